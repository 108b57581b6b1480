"""The sweep: whole records, claims, dying drivers and workers; tables, answers to claims, the page."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import factorfield as ff
from factorfield.paper import numbers
from factorfield.paper import store as store_module
from factorfield.paper.claims import answered
from factorfield.paper.plan import LONG, TARGETS, Scope, checked_targets
from factorfield.paper.run import Run, execute, execute_together
from factorfield.paper.store import Store
from factorfield.paper.tables import TABLES, Records
from factorfield.show.table import Table

pytest.importorskip("distributed", reason="the extra `cluster` is not installed: pip install 'factorfield[cluster]'")

import psutil  # comes with distributed

from factorfield.paper.sweep import connected, perform, sweep

SMALL = {"modes": {"x": 2, "t": 2}, "labels": 64}


def short_runs(count: int) -> list[Run]:
    return [Run("advection", {"b": 0.1}, row, "joint", model=SMALL) for row in range(count)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "out")


# -- runs and records


def test_a_run_has_one_key_per_spec() -> None:
    run = short_runs(1)[0]
    assert run.key == Run(**json.loads(json.dumps(run.spec))).key
    for other in (
        replace(run, row=1),
        replace(run, seed=1),
        replace(run, options={"iterations": 3}),
        replace(run, model={}),
    ):
        assert other.key != run.key


def test_a_record_holds_scores_calibration_weights_and_where_it_came_from() -> None:
    record = execute(Run("fisher-kpp", {"nu": 0.5, "rho": 1.0}, 0, "joint", model=SMALL))
    results = record["results"]
    problem = ff.problems.get("fisher-kpp", nu=0.5, rho=1.0)
    model = ff.paper_model(problem, curvature=False, **SMALL)  # the paper's numbers were made without that term
    field = ff.solve(model).predict(x=problem.truth.x, t=problem.truth.t)
    assert results["exact"] == ff.metrics.score(field, problem.truth)
    full = execute(Run("fisher-kpp", {"nu": 0.5, "rho": 1.0}, 0, "joint", model={**SMALL, "curvature": True}))
    field = ff.solve(ff.paper_model(problem, **SMALL)).predict(x=problem.truth.x, t=problem.truth.t)
    assert full["results"]["exact"] == ff.metrics.score(field, problem.truth) != results["exact"]
    assert results["late"]["rmse"] < results["exact"]["rmse"]
    assert sum(results["pit"]) == pytest.approx(1.0) and results["reliability"] == sorted(results["reliability"])
    assert len(results["weight_mean"]) == record["settings"]["weights"]
    assert record["provenance"]["versions"]["factorfield"] == ff.__version__
    assert json.loads(json.dumps(record))["results"]["coarse"] == results["coarse"]


def test_a_prior_run_and_a_schedule_run_use_no_or_some_factors() -> None:
    prior = execute(Run("advection", {"b": 0.1}, 0, "prior", model=SMALL))["results"]
    data = execute(
        Run("advection", {"b": 0.1}, 0, "mean-field", model=SMALL, options={"schedule": "data", "epochs": 20})
    )
    assert np.allclose(prior["weight_std"], 1.0)
    assert np.mean(data["results"]["weight_std"]) < 1.0


def test_records_are_written_once_and_a_corrupt_one_is_set_aside(store: Store) -> None:
    run = short_runs(1)[0]
    record = {"spec": run.spec, "results": {"a": 1.0}}
    store.write(run, record)
    before = store.record_path(run).stat().st_mtime_ns
    store.write(run, {"spec": run.spec, "results": {"a": 2.0}})
    assert store.read(run) == record and store.record_path(run).stat().st_mtime_ns == before
    store.record_path(run).write_text('{"spec": ')
    assert store.read(run) is None and not store.finished(run)
    assert len(list((store.folder / "aside").iterdir())) == 1
    assert {p.suffix for p in (store.folder / "records").iterdir()} <= {".json"}


def test_claims_exclude_the_living_and_ignore_the_dead(store: Store) -> None:
    run = short_runs(1)[0]
    with store.claim(run) as mine:
        assert mine
        with store.claim(run) as again:
            assert not again
        with store.claim(replace(run, row=1)) as another:
            assert another
    code = (
        "import sys, json, time; from factorfield.paper.run import Run; from factorfield.paper.store import Store\n"
        "with Store.open(sys.argv[1]).claim(Run(**json.loads(sys.argv[2]))) as mine: print(mine, flush=True), input()"
    )
    command = [sys.executable, "-c", code, str(store.folder), json.dumps(run.spec)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with store.claim(run) as mine:
            assert not mine
        other.kill()
        other.wait()
        with store.claim(run) as mine:
            assert mine  # at once: its process is gone
    (store.folder / "claims" / f"{run.key}.claim").write_text('{"host": "elsewhere", "pid": 1}')
    with store.claim(run) as mine:
        assert mine  # a file of an earlier version is no lock


def test_a_failed_run_is_recorded_with_its_reason_and_retried_on_request(store: Store) -> None:
    run = Run("advection", {"b": 0.1}, 0, "joint", model={"width": 7})
    result = perform(str(store.folder), [run.spec], None)[0]
    assert result.startswith("failed: ProblemError: expected a width") and not store.finished(run)
    outcome = sweep([run], store)
    assert outcome.failed[run.key].startswith("ProblemError") and outcome.finished == 0
    store.forget_failure(run)
    assert store.failure(run) is None


def test_a_full_disk_leaves_no_half_record(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.os, "fsync", full)
    run = short_runs(1)[0]
    with pytest.raises(OSError, match="No space left"):
        store.write(run, {"spec": run.spec, "results": {}})
    assert not list((store.folder / "records").iterdir())


# -- sweeps


def result_arrays(store: Store, runs: list[Run]) -> list[Any]:
    records = [store.read(run) for run in runs]
    assert all(record is not None for record in records)
    return [record["results"] for record in records if record is not None]


DRIVER = """
import sys
from factorfield.paper.run import Run
from factorfield.paper.store import Store
from factorfield.paper.sweep import sweep
if __name__ == "__main__":
    model = {"modes": {"x": 2, "t": 2}, "labels": 64}
    runs = [Run("advection", {"b": 0.1}, row, "joint", model=model) for row in range(40)]
    sweep(runs, Store.open(sys.argv[1]), workers=2)
"""


def claimant(driver: int, store: Store) -> psutil.Process | None:
    """A worker of this driver in the middle of a run: one that holds a claim's file open."""
    time.sleep(0.005)
    for process in psutil.Process(driver).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(Path(file.path).parent == store.folder / "claims" for file in process.open_files()):
                return process
    return None


def test_a_sweep_survives_killed_drivers_and_workers(tmp_path: Path) -> None:
    """40 runs; the driver and a worker are killed three times each while runs are under way."""
    runs = short_runs(40)
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    store = Store.open(tmp_path / "out")
    times: dict[str, int] = {}
    kills = {"driver": 0, "worker": 0}
    while kills["worker"] < 3 or kills["driver"] < 3:
        driver = subprocess.Popen([sys.executable, str(script), str(store.folder)])
        wanted = len(times) + 3
        while driver.poll() is None and len(list((store.folder / "records").glob("*.json"))) < wanted:
            time.sleep(0.02)
        at_work = next(filter(None, (claimant(driver.pid, store) for _ in range(500))))
        at_work.kill()
        kills["worker"] += 1
        assert driver.poll() is None  # still under way
        driver.send_signal(signal.SIGKILL)
        kills["driver"] += 1
        driver.wait(timeout=120)
        for path in (store.folder / "records").glob("*.json"):
            times.setdefault(path.name, path.stat().st_mtime_ns)
    assert 3 <= len(times) < 40
    outcome = sweep(runs, store, workers=2)
    assert not outcome.failed and outcome.finished + outcome.skipped == 40
    records = list((store.folder / "records").glob("*.json"))
    assert len(records) == 40  # every run exists, once
    assert all(times.get(path.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns for path in records)
    clean = [execute(run)["results"] for run in runs[::8]]
    assert result_arrays(store, runs)[::8] == json.loads(json.dumps(clean))  # bit for bit


def test_rows_advanced_in_lockstep_resume_to_the_same_bits(store: Store) -> None:
    model, options = {"modes": {"x": 2, "t": 2}, "labels": 64}, {"iterations": 200}
    runs = [Run("advection", {"b": 0.1}, row, "sgd", model=model, options=options) for row in range(3)]
    assert len({run.lockstep for run in runs}) == 1 and runs[0].lockstep != short_runs(1)[0].lockstep
    specs = [run.spec for run in runs]
    assert perform(str(store.folder), specs, None) == ["finished"] * 3
    before = result_arrays(store, runs)
    store.record_path(runs[1]).unlink()  # as if killed between two writes
    assert perform(str(store.folder), specs, None) == ["skipped", "finished", "skipped"]
    assert result_arrays(store, runs) == before


def test_reactions_solved_together_are_the_reactions_solved_alone() -> None:
    model, options = {"modes": {"x": 2, "t": 2}, "labels": 64}, {"iterations": 400}
    runs = [
        Run("fisher-kpp", {"nu": 1.0, "rho": rho}, row, "sgd", model=model, options=options)
        for rho in (1.0, 10.0)
        for row in (0, 1)
    ]
    assert len({run.lockstep for run in runs}) == 1
    together = [record["results"]["weight_mean"] for record in execute_together(runs)]
    alone = [execute(run)["results"]["weight_mean"] for run in runs]
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-9)  # Adam from zero has no draws: rounding only
    assert np.max(np.abs(np.subtract(together[0], together[2]))) > 1e-3  # the reaction is each run's own


def test_an_existing_scheduler_with_separate_workers_runs_a_sweep(tmp_path: Path) -> None:
    address = "tcp://127.0.0.1:18786"
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [
        subprocess.Popen(
            [*dask, "scheduler", "--host", "127.0.0.1", "--port", "18786", "--dashboard-address", ":0"], **quiet
        )
    ]
    try:
        for _ in range(2):
            command = [
                *dask,
                "worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                str(tmp_path),
            ]
            started.append(subprocess.Popen(command, **quiet))
        runs = short_runs(6)
        told: list[str] = []
        store = Store.open(tmp_path / "out")
        outcome = sweep(runs, store, scheduler=address, tell=lambda text, _: told.append(text))
        assert outcome.finished == 6 and told[-1].startswith("6/6 runs")
        assert sweep(runs, store, scheduler="tcp://127.0.0.1:1").skipped == 6  # nothing left: no scheduler needed
    finally:
        for process in started:
            process.kill()
            process.wait()


def listening() -> set[tuple[str, int]]:
    """Addresses and ports at which this process and its children listen, as `ss -ltn` shows them."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [c for process in family for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    return {(connection.laddr.ip, connection.laddr.port) for connection in found}


def test_the_cluster_of_a_sweep_listens_on_this_machine_only_and_speaks_tls() -> None:
    before = listening()
    with connected(None, 1) as client:
        assert client.submit(sum, [1, 2]).result() == 3  # now the worker listens too
        found = listening() - before
        assert {address for address, _ in found} == {"127.0.0.1"}
        for _, port in found:  # nobody is shown a page about the sweep
            with pytest.raises((OSError, http.client.HTTPException)):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/info/main/workers.html", timeout=10)
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        distributed = pytest.importorskip("distributed")
        with pytest.raises((OSError, TypeError, ValueError)):  # somebody without the certificate
            distributed.Client(client.scheduler.address, timeout=2, set_as_default=False)


def test_an_unreachable_scheduler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorfield.paper.sweep.SCHEDULER_PATIENCE", 1.0)
    with (
        pytest.raises(ff.ProblemError, match=r"a dask scheduler that answers within 1 s"),
        connected("tcp://127.0.0.1:1", 1),
    ):
        pass


# -- plans, tables, claims


def test_the_plan_has_the_papers_counts() -> None:
    everything = Scope()
    table = TARGETS["table1"](everything)
    count = {
        (m, e): sum(r.method == m and r.equation == e for r in table)
        for m in everything.methods
        for e in ("advection", "fisher-kpp")
    }
    assert count["mean-field", "advection"] == 50 and count["mean-field", "fisher-kpp"] == 80
    assert count["sgd", "advection"] == 50 and count["sgd", "fisher-kpp"] == 80
    assert count["hmc", "advection"] == count["vi", "advection"] == 42  # two rows at b = 7
    assert count["hmc", "fisher-kpp"] == count["vi", "fisher-kpp"] == 32
    for target in ("width", "residual-noise", "schedule"):
        assert {r.row for r in TARGETS[target](everything)} == {0, 1, 2}
    assert len({r.key for r in TARGETS["residual-noise"](everything)}) == 10 * 5 * 3
    assert max(len(TARGETS[target](Scope(quick=True))) for target in ("table1", "width")) < 60


def test_targets_are_checked_by_name() -> None:
    assert checked_targets([]) == list(TARGETS) == checked_targets(["all"])
    with pytest.raises(ff.ProblemError, match="table1"):
        checked_targets(["tabel1"])


def small_records() -> Records:
    runs = [
        Run("advection", {"b": b}, row, m, model={})
        for b in (0.1, 0.4)
        for row in (0, 1)
        for m in ("mean-field", "joint", "sgd")
    ]
    runs += [Run("fisher-kpp", {"nu": 1.0, "rho": 10.0}, 0, m) for m in ("mean-field", "sgd", "hmc", "vi")]
    runs += [Run("advection", {"b": 0.1}, 0, "mean-field", model={"width": w}) for w in (2, 3, 4)]
    runs += [Run("advection", {"b": 0.1}, 0, "mean-field", model={"residual_noise": n}) for n in (0.005, 0.1, 1.0, 5.0)]
    runs += [
        Run("advection", {"b": 0.1}, 0, "mean-field", options={"schedule": "data"}),
        Run("advection", {"b": 0.1}, 0, "prior"),
    ]
    runs += [Run("advection", {"b": 0.1}, 0, m, kind="timing") for m in ("mean-field", "hmc", "vi")]
    records = []
    for index, run in enumerate(runs):
        score = {
            "rmse": 0.01 * (index + 1),
            "relative_l2": 0.1 + 0.01 * index,
            "coverage90": 0.5,
            "coverage95": 0.6,
            "crps": 0.01,
            "nll": 1.0,
        }
        grid = np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 4))
        mean = grid + 0.1 * np.arange(1, 9)[:, None] if run.method != "sgd" else 0.1 * grid
        results: dict[str, Any] = {
            "exact": score, "stored": None, "late": score, "reliability": [0.5] * 19, "pit": [0.05] * 20,
            "std_over_time": [0.1, 0.2, 0.3, 0.4], "rms_residual": 0.1,
            "coarse": {"x": [0, 1, 2, 3], "t": list(range(8)), "mean": mean.tolist(),
                       "std": (0.1 * (index + 1) * grid).tolist(), "exact": grid.tolist()},
            "weight_mean": [1.0, 2.0], "weight_std": [0.1, 0.2], "cold": 1.0 + index, "warm": 1.0, "predict": 0.1,
        }  # fmt: skip
        records.append({
            "spec": run.spec, "status": "converged", "help": "", "results": results, "settings": {},
            "timings": {"fit": 1.0}, "trace": {"rhat": 1.01, "ess": 500.0},
            "provenance": {"commit": "c", "versions": {}, "machine": {}},
        })  # fmt: skip
    return Records(records)


def test_tables_show_means_beside_the_papers_numbers_and_cut_nothing() -> None:
    records = small_records()
    first = TABLES["table1"](records)[0]
    ours = first.frame.set_index("method").loc["mean-field"]
    plain = {**records.all[0]["spec"], "physics": None}
    chosen = [r for r in records.all if {**r["spec"], "physics": None, "row": 0} == plain]
    assert len(chosen) == ours["runs"] == 4  # no ablation, no timing
    assert ours["RMSE x1e-2"] == pytest.approx(100 * np.mean([r["results"]["exact"]["rmse"] for r in chosen]))
    assert ours["paper: RMSE"] == 4.89
    for target, make in TABLES.items():
        for table in make(records):
            assert len(table.frame), target
            assert "..." not in table.text() and table.csv().count("\n") == len(table.frame) + 1
    assert Table("t", pd.DataFrame({"a": [float("nan")]})).cells() == [["-"]]


def test_numbers_of_runs_give_the_tables_and_answers_of_their_records(tmp_path: Path) -> None:
    records, file = small_records(), tmp_path / "runs.csv"
    numbers.write(numbers.lines_of(records), file)
    kept = numbers.Numbers(lines=numbers.read(file))
    # of these records none has a stored field: what is scored against it stays open
    for target in set(TABLES) - {"table1"}:
        for one, other in zip(TABLES[target](records), TABLES[target](kept), strict=True):
            assert one.text() == other.text(), target
    assert answered(kept) == answered(records)
    assert {claim.answer for claim in answered(kept)} > {"not run"}


def test_weights_are_compared_with_those_of_hmc_on_the_same_model() -> None:
    records = list(small_records().all)
    ours = next(r for r in records if r["spec"]["equation"] == "fisher-kpp" and r["spec"]["method"] == "mean-field")
    ours["results"] = {**ours["results"], "weight_mean": [1.02, 2.04], "weight_std": [0.05, 0.1]}  # HMC: 1, 2; 0.1, 0.2
    frame = Records(records).frame
    line = frame[(frame["method"] == "mean-field") & (frame["equation"] == "fisher-kpp")].iloc[0]
    assert line["hmc_mean_distance"] == pytest.approx(0.2) and line["hmc_std_factor"] == pytest.approx(2.0)
    answers = {claim.text: claim for claim in answered(Records(records))}
    assert answers["weight means close to HMC's"].answer == "yes"
    assert answers["weight stds substantially closer to HMC's than VI's"].answer == "no"  # VI's are HMC's here
    assert frame.loc[frame["method"] == "hmc", "hmc_std_ratio"].isna().all()


def test_new_runs_take_the_place_of_old_ones_and_keep_what_they_were_compared_with(tmp_path: Path) -> None:
    records = small_records()
    old = numbers.lines_of(records)
    is_vi = [record["spec"]["method"] == "vi" and record["spec"]["kind"] == "scores" for record in records.all]
    again = [{**r, "status": "max-iterations"} for r, chosen in zip(records.all, is_vi, strict=True) if chosen]
    together = numbers.added(numbers.lines_of(Records(again)), old)  # HMC's record is gone
    assert len(together) == len(old) and len(again) == 1
    new = together[(together["method"] == "vi") & (together["kind"] == "scores")].iloc[0]
    before = old[is_vi].iloc[0]
    assert (before["status"], new["status"]) == ("converged", "max-iterations")
    assert new["hmc_std_ratio"] == before["hmc_std_ratio"] > 0.0
    assert numbers.added(old.iloc[:0], old).equals(numbers.added(old, old.iloc[:0]))


def seeded_records() -> Records:
    """Two rows with three seeds each, and a third row with one: RMSE 0.01 (1 + row + seed) by message passing."""
    records = small_records().all
    made = []
    for method, row, seed, options in [
        *[(m, row, seed, {}) for m in ("mean-field", "joint") for row in (0, 1) for seed in (0, 1, 2)],
        ("mean-field", 2, 0, {}), ("joint", 2, 0, {}), ("mean-field", 2, 0, LONG),
    ]:  # fmt: skip
        run = Run("advection", {"b": 0.1}, row, method, seed=seed, options=options)
        value = 0.01 * (1 + row + seed) if method == "mean-field" and not options else 0.01
        score = {**records[0]["results"]["exact"], "rmse": value}
        status = "max-iterations" if value > 0.01 else "converged"
        results = {**records[0]["results"], "exact": score, "late": score}
        trace = {"epochs": 1234.0 if options else 300.0}
        made.append({**records[0], "spec": run.spec, "status": status, "results": results, "trace": trace})
    return Records(made)


def test_spread_is_the_deviation_of_a_tables_number_over_seeds() -> None:
    over_seeds, single = TABLES["spread"](seeded_records())
    lines = over_seeds.frame.set_index(["method", "cell"])
    ours = lines.loc["mean-field", "all"]
    assert (ours["seeds"], ours["runs"]) == (3, 6)  # the third row has one seed: it says nothing about spread
    assert ours["RMSE x1e-2"] == pytest.approx(np.mean([1.5, 2.5, 3.5]))
    assert ours["sd of RMSE"] == pytest.approx(np.std([1.5, 2.5, 3.5], ddof=1))
    assert lines.loc["joint", "all"]["sd of RMSE"] == pytest.approx(0.0)
    cell = single.frame.iloc[0]
    assert (cell["runs"], cell["converged"], cell["over 1.1"], cell["over 2"]) == (7, 1, 6, 4)
    assert cell["worst"] == pytest.approx(4.0) and cell["long: worst"] == pytest.approx(1.0)
    assert (cell["long: runs"], cell["long: most epochs"]) == (1, 1234)


def test_a_runs_seed_draws_points_and_order_and_leaves_chain_alone() -> None:
    run = Run("advection", {"b": 0.1}, 0, "mean-field", model=SMALL, options={"epochs": 3})
    seeds = [execute(replace(run, seed=seed))["results"]["exact"]["rmse"] for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]
    assert replace(run, seed=7).build_method().seed == 7  # type: ignore[attr-defined]
    record = execute(Run("advection", {"b": 0.1}, 0, "chain", seed=1))
    problem = ff.problems.get("advection", b=0.1)
    field = ff.solve(problem).predict(x=problem.truth.x, t=problem.truth.t)
    assert record["results"]["exact"] == ff.metrics.score(field, problem.truth)
    assert "weight_mean" not in record["results"] and record["timings"]["processor"] > 0.0


def test_every_claim_is_answered_from_numbers_or_said_not_to_be_run() -> None:
    answers = {claim.text: claim for claim in answered(small_records())}
    assert len(answers) == 24
    assert answers["SGD collapses to u = 0 on most runs at rho = 10, nu >= 1"].answer == "yes"
    assert "1 of 1" in answers["all HMC references pass the gate"].number
    assert answers["all HMC references pass the gate"].runs == 1
    assert answers["training up to 6.6x faster than HMC (advection)"].number.endswith("; warm b = 0.1: 1x")
    assert answers["MSE and RMS residual of ours and SGD of the same order (advection)"].runs == 8
    assert all(claim.answer in ("yes", "no", "partly", "not run") for claim in answers.values())
    assert {claim.answer for claim in answered(Records([]))} == {"not run"}


def test_the_command_makes_tables_pictures_and_a_page_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = [
        sys.executable, "-m", "factorfield.cli.app", "reproduce", "table1", "solutions", "calibration", "posteriors",
        "--methods", "joint,mean-field", "--rows", "1", "--speeds", "0.1", "--quick", "--out", "here",
    ]  # fmt: skip
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert "6 runs made, 0 were there, 0 failed" in first.stdout and "paper: RMSE" in first.stdout
    page = (tmp_path / "here" / "report.html").read_text()
    assert "<script" not in page and "http://" not in page and "https://" not in page and "data:image/png" in page
    assert (tmp_path / "here" / "solutions-advection.png").stat().st_size > 5_000
    assert (tmp_path / "here" / "story.png").stat().st_size > 5_000
    assert (tmp_path / "here" / "table1-1.csv").read_text().startswith("method,runs,RMSE")
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "0 runs made, 6 were there" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tabel1"], "table1"), (["--methods", "magic"], "--methods among"), (["--rows", "0"], "at least 1"),
        (["--speeds", "fast"], "numbers separated by commas"), (["--data", "nowhere"], "folder of PDEBench files"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "factorfield.cli.app", "reproduce", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1
