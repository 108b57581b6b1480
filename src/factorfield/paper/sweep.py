"""Many runs on dask.distributed: a local cluster, or a scheduler that exists already.

Workers claim a run (or several that a method advances in lockstep), compute it, and write its record themselves; a
driver only submits and counts. A driver may thus be killed and started again, several may share one folder, and a
worker that dies costs what it is at work on only.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from factorfield.errors import expected, needed
from factorfield.paper.run import Run, Spec, execute, execute_together
from factorfield.paper.store import Store
from factorfield.progress import Progress

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEDULER_PATIENCE = 15.0  # seconds to wait for a scheduler
DEATHS = 5  # workers that may die on one run before it counts as failed
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip


@dataclass
class Outcome:
    """What became of a sweep."""

    finished: int = 0  # by this driver
    skipped: int = 0  # there already, or made by another driver meanwhile
    failed: dict[str, str] = field(default_factory=dict)  # key -> reason
    set_aside: int = 0


def perform(folder: str, specs: Sequence[Spec], data: str | None) -> list[str]:
    """One lockstep on a worker, each run "finished", "skipped", "busy" (another process has it) or "failed: reason".

    The batch is solved whole even if some of it is finished: rounding depends on its size, and a resumed sweep gives
    the numbers of an uninterrupted one.
    """
    store, runs = Store.open(folder), [Run(**spec) for spec in specs]
    if all(store.finished(run) for run in runs):
        return ["skipped"] * len(runs)
    with ExitStack() as claims:
        if not all(claims.enter_context(store.claim(run)) for run in runs):
            return ["busy"] * len(runs)
        missing = [not store.finished(run) for run in runs]
        if not any(missing):  # made by another process, between our look and our claim
            return ["skipped"] * len(runs)
        try:
            records = execute_together(runs, data) if len(runs) > 1 else [execute(runs[0], data)]
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            for run, lacking in zip(runs, missing, strict=True):
                if lacking:
                    store.write_failure(run, reason)
            return [f"failed: {reason}" if lacking else "skipped" for lacking in missing]
        for run, record in zip(runs, records, strict=True):
            store.write(run, record)  # leaves alone what is there
    return ["finished" if lacking else "skipped" for lacking in missing]


def sweep(
    runs: Sequence[Run],
    store: Store,
    data: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    retry: bool = False,
    tell: Progress | None = None,
) -> Outcome:
    """Bring every run's record into the store; what is there is kept.

    scheduler  address of an existing dask scheduler; its workers must see the same folder
    workers    processes of the local cluster (default: one per core), each with one BLAS thread
    retry      also run what failed before
    """
    outcome = Outcome()
    store.clean()
    tasks: dict[str, list[Run]] = {}
    for run in _unique(runs):
        there = store.finished(run)
        outcome.set_aside += there and store.read(run) is None
        reason = store.failure(run)
        if reason is not None and not retry and not store.finished(run):
            outcome.failed[run.key] = reason
            continue
        store.forget_failure(run)
        tasks.setdefault(run.lockstep, []).append(run)
    waiting = [task for task in tasks.values() if not all(store.finished(run) for run in task)]
    outcome.skipped = sum(map(len, tasks.values())) - sum(map(len, waiting))
    if waiting:
        with connected(scheduler, min(workers or os.cpu_count() or 1, len(waiting))) as client:
            _drive(client, waiting, store, data, outcome, tell)
    return outcome


def _unique(runs: Sequence[Run]) -> list[Run]:
    return list({run.key: run for run in runs}.values())


def _drive(
    client: Client, tasks: list[list[Run]], store: Store, data: str | None, outcome: Outcome, tell: Progress | None
) -> None:
    distributed = needed("distributed", "cluster")
    begin, total, left = time.monotonic(), sum(map(len, tasks)), sum(map(len, tasks))
    folder = str(store.folder.resolve())

    def submit(task: list[Run]) -> Future:
        specs, name = [run.spec for run in task], f"{task[0].key}-{time.time_ns()}"
        return client.submit(perform, folder, specs, data, pure=False, key=name)

    futures = {submit(task): task for task in tasks}
    pending = distributed.as_completed(futures, loop=client.loop)
    for future in pending:
        task = futures.pop(future)
        try:
            results = future.result()
        except distributed.scheduler.KilledWorker:
            reason = f"{DEATHS} workers died on it, perhaps of memory: try fewer --workers"
            results = ["skipped" if store.finished(run) else f"failed: {reason}" for run in task]
            for run, result in zip(task, results, strict=True):
                if result != "skipped":
                    store.write_failure(run, reason)
        if "busy" in results:  # another driver has it: look again, and take over if its process dies
            time.sleep(0.5)
            again = submit(task)
            futures[again] = task
            pending.add(again)
            continue
        for run, result in zip(task, results, strict=True):
            if result.startswith("failed: "):
                outcome.failed[run.key] = result.removeprefix("failed: ")
        outcome.finished += results.count("finished")
        outcome.skipped += results.count("skipped")
        left -= len(task)
        if tell is not None:
            done = total - left
            seconds = (time.monotonic() - begin) / done * left
            tell(f"{done}/{total} runs, {len(outcome.failed)} failed, about {seconds:.0f} s left", done / total)


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Client]:
    """A dask client; a local cluster is closed with it.

    Who can speak to a scheduler can run code. So our own listens on this machine only, without a dashboard, and asks
    for a certificate that is made for this sweep (TLS): other users of the machine cannot speak to it either.
    """
    distributed = needed("distributed", "cluster")
    dask = needed("dask", "cluster")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.nanny.pre-spawn-environ": ONE_THREAD,
        "distributed.worker.daemon": False,
        "distributed.scheduler.http.routes": [],  # a page about the sweep would be open to all users of the machine
        "distributed.worker.http.routes": [],
        "logging.distributed": "critical",
    }
    with dask.config.set(settings):
        if scheduler is None:
            needed("cryptography", "cluster")
            with _deaf_children():
                cluster = distributed.LocalCluster(
                    n_workers=0, threads_per_worker=1, memory_limit=1.0 / workers, host="127.0.0.1", security=True,
                    dashboard_address=None, scheduler_kwargs={"dashboard_address": "127.0.0.1:0"}, silence_logs=50,
                )  # fmt: skip
            # workers start inside: whatever ends us meanwhile ends them. A default client would be global state
            with cluster, distributed.Client(cluster, set_as_default=False) as client:
                cluster.scale(workers)
                yield client
            return
        try:
            client = distributed.Client(scheduler, timeout=SCHEDULER_PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as problem:
            raise expected(
                f"a dask scheduler that answers within {SCHEDULER_PATIENCE:.0f} s",
                f"none at {scheduler} ({type(problem).__name__})", "dask scheduler, and its address",
            ) from None  # fmt: skip
        with client:
            yield client


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Threads that are started inside, and their processes, do not hear Ctrl-C.

    A terminal sends it to the whole group. Only the driver answers, and ends its workers; a worker that is still
    importing would end in a traceback of its own.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # a first process would start it, and it lets its thread hear again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
