"""Problem files: templates that solve, a schema that agrees with the reader, errors with their line, no way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import factorfield as ff
from factorfield import methods
from factorfield.cli.estimate import built, estimate, speed
from factorfield.cli.files import templates
from factorfield.files.description import problem_spec
from factorfield.files.problem_file import with_numbers

BASE = """\
equation = "u_t = nu*u_xx"
[domain]
x = [0, 1]
t = [0, 1]
[parameters]
nu = 0.1
"""
X, T = np.linspace(0, 1, 21), np.linspace(0, 0.5, 6)


def read(folder: Path, text: str, **options: Any) -> ff.ProblemFile:
    (folder / "a.toml").write_text(text, encoding="utf-8")
    return ff.read_problem(folder / "a.toml", **options)


def solved(name: str) -> ff.Solution:
    file = ff.read_problem(templates()[name])
    subject = built(file.problem, file.model) if file.model else file.problem
    return ff.solve(subject, method=file.method, **file.options)


# -- templates

TRUTHS = {
    "heat": lambda x, t: (
        np.exp(-0.08 * np.pi**2 * t) * np.cos(2 * np.pi * x)
        + 0.3 * np.exp(-0.72 * np.pi**2 * t) * np.sin(6 * np.pi * x)
    ),
    "wave": lambda x, t: np.sin(np.pi * x) * np.cos(np.pi * t) + 0.5 * np.sin(2 * np.pi * x) * np.cos(2 * np.pi * t),
    "unknown-coefficient": lambda x, t: np.exp(-0.05 * np.pi**2 * t) * np.sin(np.pi * x),
    "measurements": lambda x, t: sum(
        a * np.exp(-0.02 * (np.pi * k) ** 2 * t) * np.cos(2 * np.pi * k * (x - 0.5 * t) + p)
        for k, a, p in ((1, 0.8, 0), (2, 0.4, 1.0), (3, 0.2, 2.0))
    ),
}


ERRORS = {"heat": 2e-3, "wave": 1e-3, "unknown-coefficient": 2e-2, "measurements": 8e-2}


@pytest.mark.parametrize(("name", "error"), ERRORS.items())
def test_a_template_with_time_finds_the_truth(name: str, error: float) -> None:
    solution = solved(name)
    field = solution.predict(x=X, t=T)
    truth = TRUTHS[name](X[None, :], T[:, None])
    assert solution.status == "converged"
    assert np.abs(field["mean"].transpose("t", "x").values - truth).max() < error
    if name == "unknown-coefficient":
        found = solution.parameters["D"]  # one draw of the noise: three sds, where one in ten misses the interval
        assert abs(found["mean"] - 0.05) < 3 * found["std"] and found["std"] < 0.1 * 0.05


def test_the_loggers_template_forecasts_beyond_its_data() -> None:
    """Data up to 24 h; the coefficient and every forecast within three sds of the truth behind the file."""
    solution = solved("logger")
    found, t = solution.intervals(0.95)["alpha"], np.linspace(24.0, 36.0, 5)
    assert abs(found["mean"] - 25.0) < 3 * found["std"] < 3.0 and found["interval"][0] < 25.0 < found["interval"][1]
    assert solution.problem.units["t"] == "h" and max(solution.problem.statements[-1].points["t"]) == 24.0
    ahead = solution.predict(x=[20.0], t=t, level=0.95)
    truth = 20 + 60 * np.exp(-25 * (np.pi / 50) ** 2 * t) * np.sin(0.4 * np.pi)
    assert np.all(np.abs(ahead["mean"].values.ravel() - truth) < 3 * ahead["std"].values.ravel())
    reach = (ahead["upper"] - ahead["mean"]) / ahead["std"]
    np.testing.assert_allclose(reach, 1.959964, rtol=1e-3)  # the 97.5 % quantile of a normal


def test_the_templates_without_space_or_time_find_the_truth() -> None:
    field = solved("poisson").predict(x=X, y=X)["mean"].transpose("x", "y")
    assert np.abs(field.values - np.outer(np.sin(np.pi * X), np.sin(np.pi * X))).max() < 1e-4
    t = np.linspace(0, 10, 50)
    wave = np.sqrt(4 - 0.01)
    truth = np.exp(-0.1 * t) * (np.cos(wave * t) + 0.1 / wave * np.sin(wave * t))
    assert np.abs(solved("ode").predict(t=t, of="u")["mean"].values - truth).max() < 1e-3


def test_the_pair_of_faces_makes_burgers_periodic() -> None:
    solution = solved("burgers")
    ends = solution.predict(x=[0.0, 1.0], t=[0.1, 0.5])["mean"].transpose("x", "t").values
    assert solution.status == "converged" and np.abs(ends[0] - ends[1]).max() < 5e-3 and np.ptp(ends) > 0.05


def test_every_template_is_described_with_a_sensible_cost() -> None:
    assert {"heat", "wave", "poisson", "burgers", "ode", "unknown-coefficient", "measurements"} <= set(templates())
    for path in templates().values():
        file = ff.read_problem(path)
        needs = estimate(file.problem, file.method, file.options, file.model)
        assert 10 < needs.weights < needs.factors and needs.memory >= 8 * needs.weights * needs.factors
        assert 0 < needs.seconds < 100


def test_the_speed_is_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads of a busy machine spin on a small product: it seemed hundreds of times slower than it is."""
    from threadpoolctl import threadpool_info

    used: list[int] = []

    def watched() -> float:
        used.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return float(len(used))

    monkeypatch.setattr("factorfield.cli.estimate.time.perf_counter", watched)
    assert speed(size=8, repeats=1) > 0 and set(used) == {1}


def test_a_misspelt_or_mistyped_option_of_a_method_is_an_error() -> None:
    for options in (
        {"iteration": 3},
        {"iterations": "many"},
        {"iterations": 2.5},
        {"tolerance": True},
        {"starts": None},
    ):
        with pytest.raises(ff.ProblemError, match=r"iterations|tolerance|starts"):
            methods.get("joint", **options)


# -- what a file means


def test_a_file_means_what_the_same_python_means(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("place,speed\n1.0,3.0\n0.0,1.0\n0.5,2.0\n")
    file = read(
        tmp_path,
        """
        name = "all"
        equation = [{ text = "u_t + c*u_x = k*v", sigma = 0.01 }, "v_t = b - v"]
        [domain]
        x = { interval = [0, 1] }
        t = { interval = [0.0, 2.0] }
        [parameters]
        k = { mean = 1.0, std = 0.5, positive = true }
        b = { mean = 0.0, std = 1.0, over = "x", length = 0.3 }
        c = { file = "d.csv", x = "place", value = "speed" }
        [[initial]]
        text = "u = 0"
        [[initial]]
        text = "v = x"
        sigma = 0.1
        length = 0.4
        [[boundary]]
        text = "u"
        at = { x = [0.0, 1.0] }
        sigma = 0.2
        length = { t = 0.3 }
        [[observations]]
        x = [0.1, 0.2]
        t = 1
        of = "u_x"
        value = [1.0, 2.0]
        sigma = [0.1, 0.2]
        noise = { student-t = 3 }
        [[observations]]
        x = [0.5]
        t = [0.5]
        v = [0.7]
        average = { x = 0.1 }
        [method]
        name = "joint"
        iterations = 7
        [output]
        solution = "run.nc"
        """,
    )
    same = ff.Problem(
        [ff.Equation("u_t + c*u_x = k*v", 0.01), "v_t = b - v"],
        {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)},
        {
            "k": ff.Unknown(1.0, 0.5, positive=True), "b": ff.Unknown(0.0, 1.0, over="x", length=0.3),
            "c": ff.Table(x=[0, 0.5, 1], value=[1, 2, 3]),
        },
        [
            ff.Initial("u = 0"), ff.Initial("v = x", 0.1, 0.4), ff.Boundary("u", {"x": (0, 1)}, 0.2, {"t": 0.3}),
            ff.Observations(x=[0.1, 0.2], t=1, of="u_x", value=[1, 2], sigma=[0.1, 0.2], noise=ff.StudentT(3)),
            ff.Observations(x=[0.5], t=[0.5], v=[0.7], average={"x": 0.1}),
        ],
        name="all",
    )  # fmt: skip
    (ours, arrays), (theirs, others) = problem_spec(file.problem), problem_spec(same)
    assert ours == theirs and set(arrays) == set(others)
    assert all(np.array_equal(arrays[key], others[key]) for key in arrays)
    assert (file.method, dict(file.options)) == ("joint", {"iterations": 7})
    assert file.output == {"solution": tmp_path / "run.nc"}


def test_units_are_read_kept_and_refused_with_their_line(tmp_path: Path) -> None:
    file = read(tmp_path, BASE + '[units]\nx = "m"\nu = "degC"\n')
    assert file.problem.units == {"x": "m", "u": "degC"}
    assert with_numbers(file, {"nu": 0.3}).problem.units == file.problem.units
    for wrong, words in {'z = "m"': "units of some of", "x = 3": "text for units.x", 'x = ""': "a short text"}.items():
        with pytest.raises(ff.ProblemError, match=rf"line \d+: expected .*{words}"):
            read(tmp_path, BASE + f"[units]\n{wrong}\n")


@pytest.mark.parametrize("ending", ["csv", "nc", "h5"])
def test_measurements_come_from_every_kind_of_file(ending: str, tmp_path: Path) -> None:
    x, u = np.array([0.2, 0.4, 0.9]), np.array([1.0, -2.0, 0.5])
    path = tmp_path / f"data.{ending}"
    if ending == "csv":
        path.write_text("x,height,error\n" + "".join(f"{a},{b},0.1\n" for a, b in zip(x, u, strict=True)))
    elif ending == "nc":
        xr.Dataset({"x": ("n", x), "height": ("n", u), "error": ("n", 0.1 + 0 * u)}).to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as stored:
            stored["x"], stored["height"], stored["error"] = x, u, 0.1 + 0 * u
    observed = f'[[observations]]\nfile = "data.{ending}"\nt = 0.5\nu = "height"\nsigma = "error"\n'
    statement = read(tmp_path, BASE + observed).problem.statements[-1]
    assert statement.points is not None
    assert np.array_equal(statement.target, u) and np.array_equal(statement.points["x"], x)
    assert np.array_equal(statement.points["t"], [0.5] * 3) and np.array_equal(statement.sigma, [0.1] * 3)


def test_a_table_over_two_axes_comes_from_rows_in_any_order(tmp_path: Path) -> None:
    rows = [(x, t, 10 * x + t) for x in (0.0, 0.5, 1.0) for t in (0.0, 1.0)]
    np.random.default_rng(0).shuffle(rows)
    (tmp_path / "d.csv").write_text("x,t,d\n" + "".join(f"{x},{t},{d}\n" for x, t, d in rows))
    table = 'nu = { file = "d.csv", x = "x", t = "t", value = "d" }'
    value = read(tmp_path, BASE.replace("nu = 0.1", table)).problem.parameters["nu"]
    assert isinstance(value, ff.Table)
    assert np.allclose(value({"x": np.array([0.5, 1.0]), "t": np.array([1.0, 0.0])}), [6.0, 10.0])
    (tmp_path / "d.csv").write_text("x,t,d\n0,0,1\n1,1,1\n")
    with pytest.raises(ff.ProblemError, match="line 6: expected one row for every point"):
        read(tmp_path, BASE.replace("nu = 0.1", table))


# -- where an error is


def test_the_piece_at_fault_is_named(tmp_path: Path) -> None:
    good = '[[initial]]\ntext = "u = 0"\n'
    for bad, line in (('[[initial]]\ntext = "w = 0"\n', 10), ('[[boundary]]\ntext = "u = 0"\nat = { x = 7 }\n', 11)):
        with pytest.raises(ff.ProblemError, match=rf"^a\.toml, line {line}: expected"):
            read(tmp_path, BASE + good + bad)


# -- no way out


def test_data_stay_in_the_folder_unless_allowed(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "data.csv").write_text("x,t,u\n0.5,0.5,1\n")
    (inside / "link.csv").symlink_to(tmp_path / "data.csv")
    (inside / "loop.csv").symlink_to(inside / "loop.csv")
    for name in ("../data.csv", str(tmp_path / "data.csv"), "link.csv", "a/../../data.csv"):
        text = BASE + f'[[observations]]\nfile = "{name}"\n'
        with pytest.raises(ff.ProblemError, match="line 8: expected a path inside the problem file's folder"):
            read(inside, text)
        if "a/" not in name:
            assert len(read(inside, text, allow_outside=True).problem.statements[-1].target) == 1
    with pytest.raises(ff.ProblemError, match="line 8"):
        read(inside, BASE + '[[observations]]\nfile = "loop.csv"\n')


@pytest.mark.parametrize("private", ["~/private.csv", "~root/private.csv", "$HOME/private.csv"])
def test_what_a_file_says_is_never_expanded(private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, inside = tmp_path / "home", tmp_path / "inside"
    home.mkdir()
    inside.mkdir()
    (home / "private.csv").write_text("x,t,u\n0.1,0.1,1\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(inside)
    for words in ({}, {"allow_outside": True}):
        with pytest.raises(ff.ProblemError, match="an existing data file"):
            read(Path(), BASE + f'[[observations]]\nfile = "{private}"\n', **words)
    planted = read(Path(), BASE + '[output]\nsolution = "~/planted.nc"\n').output["solution"]
    assert planted == inside.resolve() / "~" / "planted.nc"


def test_an_output_over_an_input_is_refused(tmp_path: Path) -> None:
    data = '[[observations]]\nfile = "data.csv"\n'
    (tmp_path / "data.csv").write_text("x,t,u\n0.1,0.1,1\n")
    (tmp_path / "twin.nc").hardlink_to(tmp_path / "data.csv")
    (tmp_path / "same.nc").symlink_to(tmp_path / "data.csv")
    for name in ("data.csv", "./data.csv", "twin.nc", "same.nc", "a.toml"):
        with pytest.raises(ff.ProblemError, match="line 10: expected an output beside the inputs"):
            read(tmp_path, BASE + data + f'[output]\nsolution = "{name}"\n')
    assert read(tmp_path, BASE + data + '[output]\nsolution = "run.nc"\n').inputs[1] == tmp_path.resolve() / "data.csv"


def test_a_loggers_table_with_stamps_and_a_column_per_sensor_reads_as_it_is(tmp_path: Path) -> None:
    log = "time;T1;T2;outside\n01.05.2024 08:00;1;4;10\n01.05.2024 14:00;2;5;11\n02.05.2024 08:00;3;6;12\n"
    (tmp_path / "log.csv").write_text(log)
    clock = '{ column = "time", unit = "h", origin = 2024-05-01T08:00:00 }'
    text = f"""
equation = "u_t = u_xx - 0.1*(u - outside)"
[domain]
x = [0, 100]
t = [0, 24]
[parameters]
outside = {{ file = "log.csv", t = {clock}, value = "outside" }}
[[observations]]
file = "log.csv"
t = {clock}
u = {{ T1 = {{ x = 5 }}, T2 = {{ x = 50, sigma = 0.2 }} }}
"""
    with pytest.raises(ff.ProblemError, match=r"line 11: expected sigma of every sensor, or one for all"):
        read(tmp_path, text)
    problem = read(tmp_path, text + "sigma = 0.1\n").problem
    outside, observed = problem.parameters["outside"], problem.statements[1]
    assert isinstance(outside, ff.Table)
    assert list(outside.axes["t"]) == [0, 6, 24] and list(outside.value) == [10, 11, 12]
    assert observed.points is not None and list(observed.points["t"]) == [0, 6, 24] * 2
    assert list(observed.points["x"]) == [5] * 3 + [50] * 3 and list(observed.target) == [1, 2, 3, 4, 5, 6]
    assert list(observed.sigma) == [0.1] * 3 + [0.2] * 3  # type: ignore[arg-type]
