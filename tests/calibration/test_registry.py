"""The small version of the registry: few draws with fixed seeds; the full one is `factorfield calibrate --all`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from factorfield.calibration import fixed, forward, simulated, study
from factorfield.calibration.draws import predicted
from factorfield.calibration.page import page
from factorfield.calibration.records import Record, Records
from factorfield.calibration.registry import ESTIMATE, PRIOR, ROWS, Row, chosen
from factorfield.calibration.study import judged, labels_table, one_draw, verdict
from factorfield.cli.app import main
from factorfield.errors import ProblemError
from factorfield.solving import solve

SMALL = [row for row in ROWS if row.small]


@pytest.mark.parametrize("row", SMALL, ids=[row.name for row in SMALL])
def test_intervals_hold_the_truth_as_often_as_they_say(row: Row) -> None:
    """At a tenth of the usual false alarms: a perfect method fails one of these rows in some eighty sets of seeds."""
    found = [one_draw(row, draw) for draw in range(row.small)]
    assert verdict(row, found, 1e-3) == "passes", judged(row, found)
    assert all(record["status"] in ("converged", "unresolved") for record in found)


def test_every_feature_that_gives_an_interval_owns_a_row() -> None:
    told = " ".join(row.feature for row in ROWS)
    for feature in (
        "numerical error", "noisy start", "sensors, start told", "sensors, no start", "unknown number",
        "unknown function", "estimated noise", "outliers", "log-normal", "averages", "2-D", "system", "forecast",
    ):  # fmt: skip
        assert feature in told
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert sum(row.judged == PRIOR and row.draws >= 1000 for row in ROWS) >= 6
    assert sum(row.judged == PRIOR and 200 <= row.draws < 1000 for row in ROWS) >= 4


def as_records(z: np.ndarray, status: str = "converged") -> list[Record]:
    return [{"z": np.atleast_1d(one).tolist(), "status": status, "seconds": 0.1, "commit": "abc"} for one in z]


def test_verdicts_are_two_sided() -> None:
    row, z = ROWS[0], np.random.default_rng(0).standard_normal(200)
    assert verdict(row, as_records(z)) == "passes"
    assert verdict(row, as_records(2.0 * z)) == "fails"
    assert verdict(row, as_records(0.5 * z)) == "fails"
    line = judged(row, as_records(2.0 * z))
    assert line["90 %"] == pytest.approx(100 * np.mean(np.abs(2.0 * z) < 1.6449)) and line["draws"] == 200
    assert line["rms z"] == pytest.approx(np.sqrt(np.mean(4.0 * z**2)))


def test_the_points_of_a_draw_count_as_one_draw() -> None:
    """Ten thousand copies of the same few numbers are not evidence against a method."""
    row, z = ROWS[0], np.random.default_rng(1).standard_normal(20) * 1.2
    assert verdict(row, as_records(z)) == verdict(row, as_records(np.tile(z[:, None], 500))) == "passes"


def test_estimates_of_numerical_errors_may_be_neither_too_small_nor_thousands_of_times_too_large() -> None:
    row = next(row for row in ROWS if row.judged == ESTIMATE)
    z = np.random.default_rng(2).uniform(-1.0, 1.0, (30, 64))
    assert verdict(row, as_records(z)) == "passes"
    assert verdict(row, as_records([*z, z[0] * 1e-4, 10.0 * z[0]])) == "fails: 1 draws too sure and 1 too wide, of 32"


def test_a_draw_without_a_solution_fails_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ProblemError("expected this")

    monkeypatch.setattr(study, "solve", refuse)
    found = [one_draw(ROWS[0], 0)]
    assert verdict(ROWS[0], found).startswith("fails: 1 of 1 draws have no solution (failed: ProblemError: expected")


def test_a_study_resumes_from_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, made = Row("cheap", simulated.unknown_source, PRIOR, 3), []
    kept = one_draw
    monkeypatch.setattr(study, "one_draw", lambda row, draw, method: made.append(draw) or kept(row, draw, method))
    records = Records.of(tmp_path)
    first = study.study({row: 2}, records)
    (records.folder / row.name / "0001.json").write_text('{"z": [1.0')  # as a full disk leaves it
    again = study.study({row: 3}, records)
    assert made == [0, 1, 1, 2]
    assert [record["z"] for record in again[row][:2]] == [record["z"] for record in first[row]]
    assert [json.loads(path.read_text())["z"] for path in sorted((records.folder / row.name).iterdir())] == [
        record["z"] for record in again[row]
    ]


def test_the_page_lists_failures_with_their_reasons() -> None:
    z = np.random.default_rng(0).standard_normal(200)
    good, bad = ROWS[0], replace(ROWS[1], reason="it was made to fail")
    text = page({good: as_records(z), bad: as_records(3.0 * z)})
    assert f"- **{bad.name}**: fails. it was made to fail." in text and f"**{good.name}**" not in text
    assert "commit abc" in text and "None." in page({good: as_records(z)})


def test_noisy_labels_are_shown_cell_by_cell_and_pooled() -> None:
    (row,) = chosen(["labels-known"])
    table = labels_table({row: as_records(np.random.default_rng(0).standard_normal((18, 64)))})
    assert table is not None and table.frame["draws"].tolist() == [2] * 9 + [18]
    assert table.frame["cell"].iloc[-1] == "labels-known: pooled"
    assert labels_table({ROWS[0]: []}) is None


def test_calibrate_prints_a_table_writes_a_page_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["calibrate", "unknown-source", "--draws", "2", "--out", "page.md"]
    monkeypatch.setattr("sys.argv", ["factorfield", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code and "unknown-source\tunknown function" in capsys.readouterr().out
    assert "unknown-source" in (tmp_path / "page.md").read_text()
    assert len(list((tmp_path / "calibration").rglob("*.json"))) == 2


@pytest.mark.parametrize("kind", range(len(forward.KINDS)), ids=[kind.__name__ for kind in forward.KINDS])
def test_forward_problems_are_posed_with_their_own_solutions(kind: int) -> None:
    """A wrong closed form would be off by a share of the field."""
    rng = np.random.default_rng(kind)
    problem, exact = forward.KINDS[kind](rng)
    axes = {name: problem.domain[name] for name in problem.domain.names}
    at = {name: rng.uniform(axis.lower, axis.upper, 20) for name, axis in axes.items()}
    truth, found = exact(**at), predicted(solve(problem), "u", at)["mean"].values
    assert np.max(np.abs(found - truth)) < 1e-3 * np.max(np.abs(truth))


def test_draws_repeat_and_differ() -> None:
    for cell in (simulated.ring_start, fixed.sensors_field):
        first, same, other = (cell(seed).problem.conditions[-1].columns["u"] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, same)
        assert not np.any(first == other)


@pytest.mark.parametrize(
    "text",
    [
        "5", "[]", "null", "[" * 5000, '{"z": "a", "status": "converged", "seconds": 1, "commit": ""}',
        '{"z": [null], "status": "converged", "seconds": 1, "commit": ""}',
        '{"z": [1], "status": 5, "seconds": 1, "commit": ""}', '{"z": [1], "status": "converged", "seconds": "1"}',
    ],
)  # fmt: skip
def test_what_is_no_record_is_drawn_again(text: str, tmp_path: Path) -> None:
    records = Records.of(tmp_path)
    whole: Record = {"z": [0.5], "status": "converged", "seconds": 1.0, "commit": "a"}
    records.write("row", 0, whole)
    assert records.read("row", 0) == whole
    next(tmp_path.rglob("0000.json")).write_text(text)
    assert records.read("row", 0) is None


def test_a_record_with_a_number_that_is_no_float_is_drawn_again(tmp_path: Path) -> None:
    """Whole numbers of JSON have no end; a folder of records may come from elsewhere."""
    records = Records(tmp_path)
    sound = {"z": [0.1], "status": "converged", "seconds": 1.0, "commit": "a"}
    for number, odd in enumerate(({}, {"seconds": 10**400}, {"z": [10**400]})):
        records.write("row", number, sound | odd)  # type: ignore[arg-type]
    assert [records.read("row", number) is not None for number in range(3)] == [True, False, False]
