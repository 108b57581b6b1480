"""Many runs on dask.distributed: a local cluster, or a scheduler that exists already.

Workers claim a run, compute it, and write its record themselves; a driver only submits and counts. A driver may thus be
killed and started again, several may share one folder, and a worker that dies costs its current run only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from factorfield.errors import expected, needed
from factorfield.experiments.run import Run, execute
from factorfield.experiments.store import Store

Tell = Callable[[str, float], None]  # what is going on, and how far (0..1)
PATIENCE = 15.0  # seconds to wait for a scheduler
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


def perform(folder: str, spec: dict[str, Any], data: str | None) -> str:
    """One run on a worker: "finished", "skipped", "busy" (another process has it) or "failed: reason"."""
    store, run = Store.open(folder), Run(**spec)
    if store.finished(run):
        return "skipped"
    with store.claim(run) as mine:
        if not mine:
            return "busy"
        if store.finished(run):  # by another process, between our look and our claim
            return "skipped"
        try:
            record = execute(run, data)
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            store.write_failure(run, reason)
            return f"failed: {reason}"
        store.write(run, record)
    return "finished"


def sweep(
    runs: Sequence[Run],
    store: Store,
    data: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    retry: bool = False,
    tell: Tell | None = None,
) -> Outcome:
    """Bring every run's record into the store; what is there is kept.

    scheduler  address of an existing dask scheduler; its workers must see the same folder
    workers    processes of the local cluster (default: one per core), each with one BLAS thread
    retry      also run what failed before
    """
    outcome = Outcome()
    store.clean()
    waiting: list[Run] = []
    for run in _unique(runs):
        there = store.finished(run)
        if there and store.read(run) is not None:
            outcome.skipped += 1
            continue
        outcome.set_aside += there
        reason = store.failure(run)
        if reason is not None and not retry:
            outcome.failed[run.key] = reason
            continue
        store.forget_failure(run)
        waiting.append(run)
    if waiting:
        with connected(scheduler, min(workers or os.cpu_count() or 1, len(waiting))) as client:
            _drive(client, waiting, store, data, outcome, tell)
    return outcome


def _unique(runs: Sequence[Run]) -> list[Run]:
    return list({run.key: run for run in runs}.values())


def _drive(
    client: Any, waiting: list[Run], store: Store, data: str | None, outcome: Outcome, tell: Tell | None
) -> None:
    distributed = needed("distributed", "cluster")
    begin, total = time.monotonic(), len(waiting)
    folder = str(store.folder.resolve())
    futures = {}
    for run in waiting:
        futures[client.submit(perform, folder, run.spec, data, pure=False, key=f"{run.key}-{time.time_ns()}")] = run
    pending = distributed.as_completed(futures)
    for future in pending:
        run = futures.pop(future)
        try:
            result = future.result()
        except distributed.scheduler.KilledWorker:
            result = f"failed: {DEATHS} workers died on it, perhaps of memory: try fewer --workers"
            store.write_failure(run, result.removeprefix("failed: "))
        if result == "busy":  # another driver has it: look again, and take over if its process dies
            time.sleep(0.5)
            again = client.submit(perform, folder, run.spec, data, pure=False, key=f"{run.key}-{time.time_ns()}")
            futures[again] = run
            pending.add(again)
            continue
        if result.startswith("failed: "):
            outcome.failed[run.key] = result.removeprefix("failed: ")
        else:
            outcome.finished += result == "finished"
            outcome.skipped += result == "skipped"
        if tell is not None:
            done = total - len(futures)
            left = (time.monotonic() - begin) / done * len(futures)
            tell(f"{done}/{total} runs, {len(outcome.failed)} failed, about {left:.0f} s left", done / total)


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A dask client; a local cluster is closed with it."""
    distributed = needed("distributed", "cluster")
    dask = needed("dask", "cluster")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.nanny.pre-spawn-environ": ONE_THREAD,
        "distributed.worker.daemon": False,
        "logging.distributed": "critical",
    }
    with dask.config.set(settings):
        if scheduler is None:
            with (
                distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
                ) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield client
            return
        try:
            client = distributed.Client(scheduler, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as problem:
            raise expected(
                f"a dask scheduler that answers within {PATIENCE:.0f} s",
                f"none at {scheduler} ({type(problem).__name__})", "dask scheduler, and its address",
            ) from None  # fmt: skip
        with client:
            yield client
