"""`factorfield rank` and `factorfield next`: what Python says, as tables, JSON, CSV and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import factorfield as ff
from factorfield.cli.app import main

DECAY = """\
equation = "u_t = -k*u"

[domain]
t = [0, 4]

[parameters]
k = { mean = 0.5, std = 0.4, positive = true }

[[observations]]
t = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
u = [1.5, 1.1, 0.82, 0.6, 0.33, 0.18]
sigma = 0.03
"""


def said(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decay of the first and of the second order, and a solution of the first."""
    path = tmp_path_factory.mktemp("decay")
    (path / "second.toml").write_text(DECAY.replace("-k*u", "-k*u**2"))
    (path / "first.toml").write_text(DECAY)
    ff.solve(ff.read_problem(path / "first.toml").problem).save(path / "run.nc")
    return path


def test_rank_sorts_for_people_and_keeps_the_order_for_programs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [folder / "second.toml", folder / "first.toml"]
    assert said("rank", *files, "--plot", folder / "rank.png") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines[2:4]] == ["first", "second"] and "k = 0.607 +- 0.022" in lines[2]
    assert (folder / "rank.png").stat().st_size > 10_000
    assert said("rank", *files, "--odds", "first=1", "--odds", "second=1e12", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    one, two = document["problems"]
    found = ff.rank({path.stem: ff.read_problem(path).problem for path in files}, {"first": 1, "second": 1e12})
    assert [one["name"], two["name"]] == ["second", "first"]
    assert one["probability"] == pytest.approx(float(found["probability"][0]))
    assert two["coefficients"]["k"]["lower"] < 0.6 and two["misfit"]["observations of u"] < 1.0


def test_next_tells_places_as_a_table_json_csv_and_a_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, csv, map_ = folder / "run.nc", folder / "next.csv", folder / "next.png"
    assert said("next", run, "--count", "3", "--target", "k", "--sigma", "0.01", "--csv", csv, "--plot", map_) == 0
    told = capsys.readouterr()
    assert "for k (std now 0.0224)" in told.out and "linearised" in told.err and map_.stat().st_size > 10_000
    found = ff.load(run).next_measurements(3, 0.01, target="k")
    table = pd.read_csv(csv)
    np.testing.assert_allclose(table["t"], found["t"], rtol=1e-7)
    np.testing.assert_allclose(table["std"], found["std"], rtol=1e-6)
    assert said("next", run, "--count", "1", "--within", "t=3:4", "--grid", "t=0:1:3", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["target"] == "u, t = (3.0, 4.0)" and document["measurements"][0]["t"] in (0.0, 0.5, 1.0)
    (folder / "places.csv").write_text("t,name\n3.5,a\n")
    assert said("next", run, "--count", "1", "--within", "t=4", "--at", folder / "places.csv") == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("1\t3.5\t")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--within", "t=a"), "an axis at a number"), (("--grid", "t=0:1:2", "--at", "a.csv"), "either --grid or --at"),
        (("--count", "0"), "1 or more"), (("--target", "q"), "unknown symbol"),
    ],
)  # fmt: skip
def test_what_next_cannot_do_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert said("next", folder / "run.nc", *arguments) == 2
    assert words in capsys.readouterr().err


def test_the_report_tells_where_to_measure_next_and_how_coefficients_go_together(folder: Path) -> None:
    text = ff.report.page(ff.load(folder / "run.nc"))
    assert "Where to measure next" in text and "Correlations" not in text  # one coefficient
    problem = ff.read_problem(folder / "first.toml").problem
    two = problem.replace(equation="u_t = -k*(u - a)", parameters={**problem.parameters, "a": ff.Unknown(0, 0.2)})
    assert "Correlations" in ff.report.page(ff.solve(two))
