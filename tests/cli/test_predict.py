"""`factorfield predict`, and --level wherever an interval is told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import factorfield as ff
from factorfield.cli.app import main


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decay with an unknown rate, measured eight times."""
    t = np.linspace(0.2, 3.0, 8)
    y = np.exp(-0.7 * t) + 0.02 * np.random.default_rng(1).standard_normal(8)
    conditions = [ff.Initial("u = 1", sigma=0.01), ff.Observations(t=t, u=y, sigma=0.02)]
    rate = ff.Unknown(1.0, 0.5, positive=True)
    path = tmp_path_factory.mktemp("run") / "run.nc"
    ff.solve(ff.Problem("u_t = -k*u", {"t": ff.Interval(0, 4)}, {"k": rate}, conditions)).save(path)
    return path


def said(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def test_a_grid_as_csv_holds_what_python_predicts(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    assert said("predict", run, "--grid", "t=0:4:9", "--csv", out, "--level", "0.5") == 0
    table = pd.read_csv(out)
    assert list(table) == ["t", "mean", "std", "lower", "upper"] and len(table) == 9
    field = ff.load(run).predict(t=np.linspace(0, 4, 9))
    np.testing.assert_allclose(table["mean"], field["mean"], rtol=1e-6)
    np.testing.assert_allclose(table["upper"] - table["mean"], stats.norm.ppf(0.75) * field["std"], rtol=1e-5)
    np.testing.assert_allclose(table["upper"] + table["lower"], 2 * field["mean"], rtol=1e-6)


def test_points_come_from_a_file_and_noise_and_other_quantities_are_asked_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "points.csv").write_text("name,t\na,1.5\nb,0.5\n")
    assert said("predict", run, "--at", tmp_path / "points.csv", "--of", "u_t") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "t,mean,std,lower,upper" and [line.partition(",")[0] for line in lines[1:]] == ["1.5", "0.5"]
    assert all(float(line.split(",")[1]) < 0 for line in lines[1:])
    widths = []
    for noise in ([], ["--noise"]):
        assert said("predict", run, "--grid", "t=1,2", *noise) == 0
        widths.append([float(line.split(",")[2]) for line in capsys.readouterr().out.splitlines()[1:]])
    np.testing.assert_allclose(np.square(widths[1]) - np.square(widths[0]), 0.02**2, rtol=1e-4)


def test_axes_may_follow_each_other_after_grid_as_people_write_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in domain for end in (0, 1)]
    ff.solve(ff.Problem("u_xx + u_yy = -1", domain, {}, walls)).save(tmp_path / "a.nc")
    capsys.readouterr()
    assert said("predict", tmp_path / "a.nc", "--grid", "x=0:1:3", "y=0.5") == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "x,y,mean,std,lower,upper" and len(rows) == 4
    assert float(rows[2].split(",")[2]) == pytest.approx(0.07367, rel=1e-3)  # the centre of a square: a known series


def test_every_interval_has_the_level_that_was_asked_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said("show", run, "--level", "0.99", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["level"] == 0.99
    wide, usual = document["parameters"]["k"]["interval"], ff.load(run).parameters["k"]["interval"]
    ratio = np.log(wide[1] / wide[0]) / np.log(usual[1] / usual[0])  # log-normal: widths of the logarithm
    assert ratio == pytest.approx(stats.norm.ppf(0.995) / stats.norm.ppf(0.95), rel=1e-6)
    assert said("show", run, "--level", "0.99") == 0
    assert "  99 %: [" in capsys.readouterr().out
    assert said("report", run, "--out", tmp_path / "a.html", "--level", "0.95") == 0
    page = (tmp_path / "a.html").read_text()
    assert "95 % interval" in page and "90 % interval" not in page
    for level in ("0", "1", "1.5", "-3", "90"):
        assert said("show", run, "--level", level) == 2
    assert "--level 0.95" in capsys.readouterr().err


def test_show_tells_how_far_each_data_set_is_missed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said("show", run, "--json") == 0
    by_name = {c["name"]: c["misfit"] for c in json.loads(capsys.readouterr().out)["conditions"]}
    solution = ff.load(run)
    data = solution.problem.statements[2]
    assert data.points is not None
    mean = solution.predict(t=data.points["t"])["mean"].to_numpy()
    assert by_name["observations of u"] == pytest.approx(np.sqrt(np.mean(((mean - data.target) / 0.02) ** 2)))
    assert by_name["initial: u = 1"] is None
    assert said("show", run) == 0
    assert "sigma in the root mean square; about 1 is right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either --grid or --at"), (("--grid", "t=0:4"), "axis=lower:upper:count"), (("--grid", "x=1"), "axes t"),
        (("--grid", "t=0:5:6"), "t inside [0, 4]"), (("--grid", "t=a"), "axis=lower"), (("--grid", "t=0:1:0"), "axis="),
        (("--at", "none.csv"), "an existing data file"), (("--grid", "t=1", "--of", "v"), "'v'"),
        (("--grid", "t=1", "--csv", "no/such.csv"), "existing folder"), (("--grid", "t=0:1:9999999"), "axis="),
    ],
)  # fmt: skip
def test_what_cannot_be_predicted_is_one_line(
    arguments: tuple[str, ...], words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said("predict", run, *arguments) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_the_run_itself_is_not_written_over(run: Path) -> None:
    assert said("predict", run, "--grid", "t=1", "--csv", run) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--grid", "t=0", "--of", "1"), "a quantity of the field"), (("--grid", "t=0", "t=1"), "once, received twice"),
        (("--grid", "t=0:inf:3"), "axis=lower:upper:count"), (("--grid", "t=-1e308:1e308:3"), "axis=lower:upper:count"),
    ],
)  # fmt: skip
def test_odd_places_and_quantities_are_one_line(
    arguments: tuple[str, ...], words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said("predict", run, *arguments) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


def test_names_that_a_terminal_must_not_see_are_spelt_out(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a\x1b[31m\x9b\u202e\udcff"
    assert said("predict", run, "--grid", "t=0", "--csv", tmp_path / f"{name}.csv") == 0
    assert said("solve", "poisson", "--out", tmp_path / f"{name}.nc", "--json") == 0
    shown = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert json.loads(shown.partition("\n")[2])["written"]["solution"].endswith(r"a\x1b[31m\x9b\u202e\udcff.nc")
