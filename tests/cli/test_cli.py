"""The command line as a user meets it: a subprocess, its output, its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

import factorfield as ff
from factorfield.cli.app import main
from factorfield.cli.output import duration, uncertain


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "factorfield.cli.app", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300
    )


def test_solve_prints_a_table_and_writes_a_file_and_a_picture(tmp_path: Path) -> None:
    done = run("solve", "heat", "--set", "nu=0.05", "--out", "run.nc", "--plot", "run.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("converged", "RMSE", "coverage (90 %)", "CRPS", "seconds to solve"):
        assert word in done.stdout
    assert ff.load(tmp_path / "run.nc").problem.constants == {"nu": 0.05}
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG") and done.stderr == ""


def test_list_names_every_problem_and_method(tmp_path: Path) -> None:
    done = run("list", cwd=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in [*ff.problems.names(), *ff.methods.names()])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "heet"), "'heat'"),
        (("solve", "heat", "--set", "nuu=1"), "'nu'"),
        (("solve", "heat", "--set", "nu"), "--set nu=0.05"),
        (("solve", "heat", "--set", "nu=fast"), "number"),
        (("solve", "heat", "--method", "jiont"), "'joint'"),
        (("solve", "heat", "--model", "papper"), "'paper'"),
        (("solve", "heat", "--out", "no/such/folder/run.nc"), "existing folder"),
        (("solve", "heat", "--out", "/proc/run.nc"), "may be written"),
        (("solve", "heat", "--plot", "run.xyz"), "png"),
        (("solve", "heat", "--out", "run.toml"), "run.nc"),
        (("solve",), "Missing argument"),
        (("solv",), "No such command"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a successful command prints on stdout."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out


def test_a_file_is_written_checked_solved_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(capsys, "new", "unknown-coefficient") == "unknown-coefficient.toml written\n"
    checked = said(capsys, "check", "unknown-coefficient.toml")
    for words in (
        "-D*u_xx + u_t = 0",
        "linear in u, unknown coefficient",
        "interval [0, 1]",
        "positive unknown, 0.1 +- 0.1",
        "9 values",
        "; t = ",
        "MiB",
    ):
        assert words in checked
    assert not Path("unknown-coefficient.nc").exists()
    solved = json.loads(said(capsys, "solve", "unknown-coefficient.toml", "--json"))
    assert solved["written"] == {"solution": "unknown-coefficient.nc"} and solved["status"] == "converged"
    shown = json.loads(said(capsys, "show", "unknown-coefficient.nc", "--json"))
    assert shown["parameters"] == solved["parameters"] and 0.04 < shown["parameters"]["D"]["mean"] < 0.06
    assert shown["scores"] is None and shown["settings"]["modes"] == {"x": 8}
    table = said(capsys, "show", "unknown-coefficient.nc")
    assert "D\t0.05" in table and "observations of u (9 values, missed by " in table
    assert "setting sigma\tequation " in table and "[" not in table.split("setting sigma")[1].split("\n")[0]
    assert said(capsys, "new", "unknown-coefficient", "--force")  # asked for, and only then


def test_numbers_of_a_file_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "ode")
    said(capsys, "solve", "ode.toml", "--set", "k=9", "--out", "nine.nc")
    assert ff.load("nine.nc").problem.constants == {"k": 9.0, "d": 0.2} and not Path("ode.nc").exists()


def test_json_is_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(json.loads(said(capsys, "list", "--json"))["problems"]) == set(ff.problems.names())
    solved = json.loads(said(capsys, "solve", "poisson", "--json"))
    assert solved["scores"]["rmse"] < 1e-4 and solved["equations"] == ["u_xx = -pi**2*sin(pi*x)"]
    compared = json.loads(said(capsys, "compare", "poisson", "--methods", "joint,laplace", "--json"))
    assert [row["method"] for row in compared["methods"]] == ["joint", "laplace"]
    assert compared["methods"][0]["std_ratio"] is None  # not a number, as there is no HMC: null, not NaN
    assert solved["warnings"] == [] and compared["written"] == {}
    said(capsys, "new", "heat")
    checked = json.loads(said(capsys, "check", "heat.toml", "--json"))
    assert checked["equations"][0]["linear"] and checked["conditions"][1]["values"] == 4
    assert json.loads(said(capsys, "check", "--schema"))["title"] == "factorfield problem file"


def test_the_version_names_what_it_stands_on(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy

    lines = said(capsys, "--version").splitlines()
    assert lines[0] == f"factorfield {ff.__version__}" and f"numpy {numpy.__version__}" in lines


def test_help_loads_neither_numbers_nor_boxes(tmp_path: Path) -> None:
    code = (
        "import sys, atexit; from factorfield.cli.app import main;"
        "heavy = ('numpy', 'scipy', 'sympy', 'rich.table', 'json');"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules])); main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (
        done.returncode == 0 and done.stdout.splitlines()[-1] == "[]" and "..." not in done.stdout.split("Commands")[1]
    )


def test_warnings_reach_both_documents_and_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "measurements")
    data = Path("measurements.csv")
    lines = data.read_text().splitlines()
    lines[3] = lines[3].rpartition(",")[0] + ",NA"
    data.write_text("\n".join(lines))
    told = ["1 of 48 rows of measurements.csv has no value in column height and was left out"]
    assert json.loads(said(capsys, "check", "measurements.toml", "--json"))["warnings"] == told
    assert json.loads(said(capsys, "solve", "measurements.toml", "--json"))["warnings"] == told
    assert json.loads(said(capsys, "show", "measurements.nc", "--json"))["warnings"] == told
    assert f"warning\t{told[0]}" in said(capsys, "show", "measurements.nc")
    with h5py.File("measurements.nc", "a") as stored:  # which drops the checksum
        del stored.attrs["warnings"], stored.attrs["advice"]  # as files of older versions
        stored.attrs["format_version"] = 2
    assert json.loads(said(capsys, "show", "measurements.nc", "--json"))["warnings"] is None
    assert "warning\tthe file does not say" in said(capsys, "show", "measurements.nc")


def test_a_result_never_replaces_the_problem_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "ode")
    before = Path("ode.toml").read_text()
    with pytest.raises(SystemExit):
        main(["solve", "ode.toml", "--out", "ode.toml"])
    assert "try ode.nc" in capsys.readouterr().err and Path("ode.toml").read_text() == before


def test_a_name_that_is_also_a_file_here_gets_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "poisson")
    with pytest.raises(SystemExit):
        main(["solve", "poisson"])
    hint = "note: poisson.toml in this folder was not used; try factorfield solve poisson.toml\n"
    assert capsys.readouterr().err == hint


def test_one_problem_is_listed_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    listed = said(capsys, "list", "fisher-kpp")
    assert "equation\tu_t = nu*u_xx + rho*u*(1-u)" in listed and "conditions\t1: observations of u" in listed
    assert "--set nu\t0.5" in listed and "--set seed\t0" in listed
    for name in ff.problems.names():
        found = json.loads(said(capsys, "list", name, "--json"))
        assert set(found["options"]) == set(ff.problems.options(name)) and found["equations"]


def test_a_system_prints_all_equations_and_no_empty_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = said(capsys, "solve", "lotka-volterra")
    assert printed.startswith("lotka-volterra: h_t = alpha*h - beta*h*l; l_t =")
    assert "modes" not in printed and "seconds to model" not in printed


def test_compare_takes_what_is_installed_and_shows_no_empty_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = dict.fromkeys(("hmc", "vi", "sgd", "mean-field"), ("no_such_package",))
    monkeypatch.setattr(ff.methods, "_PACKAGES", missing)
    with pytest.raises(SystemExit) as end:
        main(["compare", "poisson"])
    printed = capsys.readouterr()
    assert not end.value.code and "HMC" not in printed.out and "\t100.0 %\t" in printed.out
    assert [line.split("\t")[0] for line in printed.out.splitlines()[2:4]] == ["joint", "laplace"]
    document = json.loads(said(capsys, "compare", "heat", "--methods", "joint", "--json", "--plot", "all.png"))
    assert document["written"] == {"picture": "all.png"} and Path("all.png").exists()
    assert printed.err.startswith("note: mean-field, hmc, vi, sgd left out") and "factorfield[baselines]" in printed.err


def test_check_tells_where_and_when_sensors_measured_and_which_walls_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "unknown-coefficient")
    text = (tmp_path / "unknown-coefficient.toml").read_text()
    first, wall, rest = text.partition("[[boundary]]")
    (tmp_path / "open.toml").write_text(first + "[[boundary]]" + rest.partition("[[boundary]]")[2])
    assert wall and "1 of 2 conditions on u at the ends of x" in said(capsys, "check", "open.toml")
    described = json.loads(said(capsys, "check", "open.toml", "--json"))
    assert described["missing"] and "x = " in described["conditions"][-1]["where"]


def test_the_time_of_a_narrow_source_counts_the_modes_that_it_asks_for() -> None:
    from factorfield.cli.estimate import estimate

    def weights(source: str) -> int:
        domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
        walls = [ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)]
        problem = ff.Problem(f"u_t = 0.1*u_xx + {source}", domain, {}, [ff.Initial("u = 0"), *walls])
        return estimate(problem, None, {}, {}).weights

    assert weights("point(x - 0.3)") > 2 * weights("sin(pi*x)")


def test_check_calls_linear_what_the_methods_solve_as_linear(tmp_path: Path) -> None:
    from factorfield.cli.files import _equation
    from factorfield.model.block import block_model

    for name in ("poisson-source", "reaction-coefficient", "poisson-2d"):
        problem = ff.problems.get(name)
        relations = [_equation(problem, s)["linear"] for s in problem.statements if s.kind == "equation"]
        assert all(relations) == block_model(problem).is_linear, name


def test_help_names_methods_in_a_sensible_order(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [line.split()[0] for line in said(capsys, "-h").partition("Commands:")[2].strip().splitlines()]
    assert commands[:8] == ["new", "check", "solve", "show", "predict", "plot", "report", "rank"]
    told = said(capsys, "solve", "-h")
    assert all(name in told for name in ff.methods.names())


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "factorfield", "list"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.wait() in (0, 141) and running.stderr.read() == b""


def test_the_paper_model_says_that_it_is_overconfident(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["solve", "advection", "--method", "joint", "--model", "paper"])
    assert "known to be overconfident" in capsys.readouterr().err


def test_a_model_that_a_method_cannot_take_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["solve", "advection", "--method", "chain", "--model", "paper", "--out", "run.nc"])
    printed = capsys.readouterr()
    assert end.value.code == 2 and printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith("error: expected ") and "method='chain'" in printed.err
    assert list(tmp_path.iterdir()) == []


def test_compare_says_which_methods_cannot_take_the_model_and_runs_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["compare", "advection", "--model", "paper", "--methods", "chain,joint", "--json"])
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)["methods"]}
    assert end.value.code == 1 and rows["joint"]["status"] == "converged" and rows["joint"]["rmse"] > 0
    assert rows["chain"]["status"].startswith("refused: expected ") and rows["chain"]["rmse"] is None
    with pytest.raises(SystemExit) as end:
        main(["compare", "advection", "--model", "paper", "--methods", "chain"])
    assert end.value.code == 2 and capsys.readouterr().err.startswith("error: expected ")


def test_a_method_named_on_the_command_line_makes_its_own_default_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for options, model in (((), "chain"), (("--model", "default"), "chain"), (("--method", "joint"), "default")):
        said(capsys, "solve", "heat", *options, "--out", "run.nc")
        assert ff.load("run.nc").settings["model"] == model


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.31, "seconds"), (29, "seconds"), (99.6, "minutes"), (1100, "minutes"), (9e3, "hours"), (3e5, "days")],
)
def test_durations_say_no_more_than_an_estimate_knows(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_number_and_its_uncertainty_have_one_style() -> None:
    assert uncertain(1.0043e-4, 2.3e-6, 9.66e-5, 1.043e-4) == "1.004e-04 +- 2.3e-06  90 %: [9.660e-05, 1.043e-04]"
    assert uncertain(0.020513, 0.00101, 0.01889, 0.0222) == "0.0205 +- 0.0010  90 %: [0.0189, 0.0222]"
    assert uncertain(1234.5, 67.8, 1100.0, 1400.0) == "1234 +- 68  90 %: [1100, 1400]"
    assert "+- nan" in uncertain(1.0, float("nan"), 0.0, 2.0)
