"""Every kind of picture for every shape of problem; formulas as people write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import factorfield as ff
from factorfield.show.fields import Scale, _beyond
from factorfield.show.formula import mathml, mathtext, vanishing
from factorfield.show.report.page import page
from factorfield.show.style import SIGNED, SPREAD
from factorfield.show.views import check_of, data_of, view

SHAPES = {  # one small problem per shape
    "stationary, an unknown": lambda: ff.problems.get("reaction-coefficient"),
    "ODE, two fields": lambda: ff.problems.get("lotka-volterra", noise=2.0),
    "space and time": lambda: ff.problems.get("heat", noise=0.1, labels=48),
    "plane": lambda: ff.problems.get("poisson-2d", noise=0.05),
    "plane and time": lambda: ff.problems.get("heat-2d", noise=0.1),
    "no truth, two fields": lambda: ff.Problem(
        ["u_t = v_x", "v_t = u_x"], {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {},
        [ff.Initial("u = sin(2*pi*x)"), ff.Initial("v = 0")], name="$x$ & <b>",
    ),
}  # fmt: skip
KINDS = ("summary", "fields", "slices", "residual", "coefficients", "trace", "reliability", "graph")
MISSING = {  # what a problem does not have is said, not drawn
    "coefficients": {"ODE, two fields", "space and time", "plane", "plane and time", "no truth, two fields"},
    "trace": {"plane"},
    "reliability": {"no truth, two fields"},
}


@pytest.fixture(scope="module")
def solutions() -> dict[str, ff.Solution]:
    return {name: ff.solve(make()) for name, make in SHAPES.items()}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_every_shape_or_says_why_not(
    solutions: dict[str, ff.Solution], shape: str, kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"
    if shape in MISSING.get(kind, ()):
        with pytest.raises(ff.ProblemError, match=r"expected .* received .*; try --kind"):
            ff.plot(solutions[shape], path, kind=kind)
        assert list(tmp_path.iterdir()) == []
        return
    ff.plot(solutions[shape], path, kind=kind)
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000
    assert [entry.name for entry in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
@pytest.mark.parametrize("kind", ["summary", "graph"])
def test_the_suffix_chooses_a_vector_format(
    solutions: dict[str, ff.Solution], kind: str, suffix: str, start: bytes, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    ff.plot(solutions["space and time"], tmp_path / f"a.{suffix}", kind=kind)
    assert (tmp_path / f"a.{suffix}").read_bytes().startswith(start)


def test_a_misspelt_kind_and_a_picture_without_a_folder_are_one_line(
    solutions: dict[str, ff.Solution], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ff.ProblemError, match="'slices'"):
        ff.plot(solutions["plane"], tmp_path / "a.png", kind="slice")
    with pytest.raises(ff.ProblemError, match="existing folder"):
        ff.plot(solutions["plane"], tmp_path / "no" / "a.png")


def test_a_notebook_shows_the_figure_and_keeps_its_own_backend(solutions: dict[str, ff.Solution]) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("svg")
    figure = ff.plot(next(iter(solutions.values())))
    assert figure._repr_png_()[1:4] == b"PNG"
    assert plt.get_backend() == "svg" and not plt.get_fignums()


def test_a_missing_matplotlib_is_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; import factorfield as ff;"
        "ff.plot(ff.solve(ff.problems.get('poisson')), 'a.png')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "factorfield[plot]" in done.stderr


def test_the_command_draws_a_stored_solution(solutions: dict[str, ff.Solution], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    solutions["stationary, an unknown"].save(tmp_path / "run.nc")

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "factorfield.cli.app", "plot", *arguments]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    done = command("run.nc", "--kind", "coefficients")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run-coefficients.png").read_bytes().startswith(b"\x89PNG")
    for arguments, words in {
        ("run.nc", "--kind", "coefficents"): "'coefficients'",
        ("no.nc",): "which does not exist",
        ("run.nc", "--out", "run.xyz"): "png",
    }.items():
        done = command(*arguments)
        assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_measured_functions_of_a_field_are_turned_back_into_its_units() -> None:
    problem = ff.Problem(
        "u_t = -u", {"t": ff.Interval(0, 1)}, {},
        [
            ff.Initial("u = 2", sigma=0.1),
            ff.Observations(t=[0.5], of="log(u)", value=[0.3], sigma=0.1),
            ff.Observations(t=[0.6], of="u**2", value=[4.0], sigma=0.1),  # of which nobody knows the sign
        ],
    )  # fmt: skip
    (data,) = data_of(problem)
    assert data.field == "u" and np.allclose(data.values, np.exp(0.3))


def measured(units: dict[str, str] | None = None) -> ff.Solution:
    """Space and time without a truth: data at a few places, one of them beside a slice."""
    problem = ff.Problem(
        "u_t = 0.1*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)}, {},
        [ff.Initial("u = sin(pi*x)"), ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Observations(x=[0.25, 0.5, 0.75], t=[1.0, 1.05, 0.3], u=[0.3, 0.4, 0.5], sigma=0.05)], units=units,
    )  # fmt: skip
    return ff.solve(problem)


def test_slices_lie_at_round_places_and_tell_near_data_from_others() -> None:
    pytest.importorskip("matplotlib")
    figure = ff.plot(measured({"t": "s", "x": "m", "u": "K"}), kind="slices")
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["$t$ = 0 s", "$t$ = 0.5 s", "$t$ = 1 s", "$t$ = 2 s"]
    assert panels[0].get_xlabel() == "$x$ (m)" and panels[0].get_ylabel() == "$u$ (K)"
    drawn = {line.get_label(): line for line in panels[2].get_lines()}
    assert list(drawn["data"].get_xdata()) == [0.25] and list(drawn["data nearby"].get_xdata()) == [0.5]
    assert drawn["data nearby"].get_alpha() < 0.5 and drawn["data"].get_zorder() < drawn["mean"].get_zorder()
    assert panels[0].get_ylim() != panels[3].get_ylim()  # late bands would vanish on the scale of the start


def test_the_summary_checks_measurements_where_no_truth_is_known(solutions: dict[str, ff.Solution]) -> None:
    pytest.importorskip("matplotlib")
    solution = measured()
    titles = [panel.get_title() for panel in ff.plot(solution).axes]
    assert "3 of 3 bars meet the line" in titles
    found = check_of(solution, "u")
    assert found is not None and np.allclose(found.measured, [0.3, 0.4, 0.5])
    assert np.all(found.std > 0.05)  # the noise and the field's own
    assert not any("bars" in panel.get_title() for panel in ff.plot(solutions["space and time"]).axes)


def test_a_spike_leaves_the_rest_of_a_residual_visible() -> None:
    sizes = np.ones((100, 100))
    sizes[0, 0] = 1e3
    assert Scale(SPREAD, usual=True).limits(sizes)[1] < 2.0 and Scale(SPREAD).limits(sizes)[1] == 1e3
    assert _beyond(sizes, Scale(SPREAD, usual=True).limits(sizes)) == "max"
    assert _beyond(sizes, Scale(SPREAD).limits(sizes)) == "neither"
    smooth = np.linspace(0, 1, 100)
    assert Scale(SIGNED, usual=True).limits(smooth) == (-1.0, 1.0)  # no spike: the whole range


def test_units_with_a_dollar_sign_are_text() -> None:
    pytest.importorskip("matplotlib")
    figure = ff.plot(measured({"u": "$/kg", "x": "$", "t": "a_b^2"}))
    figure.canvas.draw()
    assert any(panel.get_ylabel() == r"$u$ (\$/kg)" for panel in figure.axes)


def test_a_table_among_the_coefficients_does_not_trip_the_title() -> None:
    pytest.importorskip("matplotlib")
    problem = ff.Problem(
        "u_x = k", {"x": ff.Interval(0, 1)}, {"k": ff.Table(x=[0, 0.5, 1], value=[1, 2, 1])},
        [ff.Boundary("u = 0", at={"x": 0})],
    )  # fmt: skip
    solution = ff.solve(problem)
    assert ff.plot(solution).get_suptitle() == "$u_{x}=k$"
    assert "a table over x, known" in page(solution)


def test_a_view_holds_truth_only_at_its_own_coordinates(solutions: dict[str, ff.Solution]) -> None:
    solution = solutions["space and time"]
    whole = view(solution)
    assert whole.truth is not None and whole.truth.shape == whole.mean.shape == (1, *solution.problem.truth.shape)
    elsewhere = view(solution, solution.predict(x=[0.123, 0.4], t=[0.0, 0.5]))
    assert elsewhere.truth is None and elsewhere.mean.shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("u_t + b*u_x = nu*u_xx", r"$u_{t}+b\,u_{x}=\nu\,u_{\mathit{xx}}$"),
        ("u - (u_x - 2)", r"$u-(u_{x}-2)$"),
        ("(-u)**2", r"${(-u)}^{2}$"),
        ("u - -2*u_x", r"$u-(-2\,u_{x})$"),
        ("u*2*3", r"$u\cdot 2\cdot 3$"),
        ("1/(1 + exp(-x))*u", r"$\frac{1}{1+\exp(-x)}\,u$"),
        ("sqrt(u)*abs(u)", r"$\sqrt{u}\,|u|$"),
        ("(x/2)**2", r"${\left(\frac{x}{2}\right)}^{2}$"),
        ("exp(-((x-1)/2)**2)", r"$\exp\left(-{\left(\frac{x-1}{2}\right)}^{2}\right)$"),
        ("x/2**2", r"$\frac{x}{{2}^{2}}$"),
        ("(1/2)*u - 1/x", r"$\frac{1}{2}\,u-\frac{1}{x}$"),
        ("(2e-5)**2", r"${(2\times 10^{-5})}^{2}$"),
        ("(x**2)**3", r"${({x}^{2})}^{3}$"),
    ],
)
def test_formulas_keep_their_meaning(text: str, written: str) -> None:
    assert mathtext(text) == written
    assert mathml(text).startswith("<math") and mathml(text).count("<mrow>") == mathml(text).count("</mrow>")


def test_a_fraction_bears_its_power_in_brackets_in_a_page_too() -> None:
    fraction = "<mfrac><mrow><mi>x</mi></mrow><mrow><mn>2</mn></mrow></mfrac>"
    assert f"<mo>(</mo>{fraction}<mo>)</mo>" in mathml("(x/2)**2")
    assert "<mo>(</mo>" not in mathml("x/2 + u")


def test_titles_write_equations_with_both_sides(solutions: dict[str, ff.Solution]) -> None:
    pytest.importorskip("matplotlib")
    assert vanishing("u_t + u_x") == "u_t + u_x = 0" and vanishing("u = 1") == "u = 1"
    problem = ff.Problem("u_x - 1", {"x": ff.Interval(0, 1)}, {}, [ff.Boundary("u = 0", at={"x": 0})])
    assert ff.plot(ff.solve(problem)).get_suptitle() == "$u_{x}-1=0$"


def test_long_formulas_are_written_at_once() -> None:
    """Nested products once took time exponential in their length."""
    assert mathtext("*".join(["u"] * 200)).count("u") == 200
