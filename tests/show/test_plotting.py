"""Every kind of picture for every shape of problem; formulas as people write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import factorfield as ff
from factorfield.show.fields import Scale, _beyond, cuts, label
from factorfield.show.formula import MathText, mathml, mathtext, symbol, vanishing
from factorfield.show.graph import factor_groups
from factorfield.show.report.page import page
from factorfield.show.style import BAND, SIGNED, SPREAD
from factorfield.show.views import calibration, check_of, data_of, residuals, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHAPES = {  # one small problem per shape
    "stationary, an unknown": lambda: ff.problems.get("reaction-coefficient"),
    "ODE, two fields": lambda: ff.problems.get("lotka-volterra", noise=2.0),
    "space and time": lambda: ff.problems.get("heat", noise=0.1, labels=48),
    "plane": lambda: ff.problems.get("poisson-2d", noise=0.05),
    "plane and time": lambda: ff.problems.get("heat-2d", noise=0.1),
    "an unknown function": lambda: ff.problems.get("poisson-source"),
    "no truth, two fields": lambda: ff.Problem(
        ["u_t = v_x", "v_t = u_x"], {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {},
        [ff.Initial("u = sin(2*pi*x)"), ff.Initial("v = 0")], name="$x$ & <b>",
    ),
}  # fmt: skip
MISSING = {  # what a problem does not have is said, not drawn
    "coefficients": {
        "an unknown function",
        "ODE, two fields",
        "space and time",
        "plane",
        "plane and time",
        "no truth, two fields",
    },
    "trace": {"an unknown function", "plane", "stationary, an unknown"},
    "reliability": {"no truth, two fields"},
    "sensors": set(SHAPES) - {"ODE, two fields"},
}


@pytest.fixture(scope="module")
def solutions() -> dict[str, ff.Solution]:
    return {name: ff.solve(make()) for name, make in SHAPES.items()}


def shown_in(panel: Axes) -> list[np.ndarray]:
    """The values of the maps that a panel shows, transposed back to (first axis, second axis)."""
    from matplotlib.collections import QuadMesh

    meshes = [entry for entry in panel.collections if isinstance(entry, QuadMesh)]
    return [np.asarray(mesh.get_array()).reshape(np.asarray(mesh.get_coordinates()).shape[:2]).T for mesh in meshes]


def panels_of(figure: Figure) -> list[Axes]:
    return [panel for panel in figure.axes if panel.get_label() != "<colorbar>" and panel.get_visible()]


def lines_of(panel: Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in panel.get_lines()}


def legend_of(figure: Figure) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def check_fields(figure: Figure, solution: ff.Solution) -> None:
    """Lines along one axis, maps over two, frames of the plane at four times: the numbers of the prediction."""
    seen, panels = view(solution), panels_of(figure)
    if len(seen.axes) == 1:
        check_slices(figure, solution)
    elif len(seen.axes) == 2:
        columns = 2 + (seen.truth is not None)
        for row, name in enumerate(seen.names):
            mean, std, *error = panels[row * columns : (row + 1) * columns]
            np.testing.assert_array_equal(shown_in(mean)[0], seen.mean[row])
            np.testing.assert_array_equal(shown_in(std)[0], seen.std[row])
            assert [mean.get_title(), std.get_title()] == [f"posterior {what} of ${name}$" for what in ("mean", "std")]
            assert [mean.get_xlabel(), mean.get_ylabel()] == [f"${axis}$" for axis in seen.axes]
            for panel in error:
                np.testing.assert_array_equal(shown_in(panel)[0], seen.mean[row] - seen.truth[row])
                assert panel.get_title() == "mean - truth"
    else:
        upper, lower = panels[: len(panels) // 2], panels[len(panels) // 2 :]
        for panel, below in zip(upper, lower, strict=True):
            at = float(panel.get_title().removeprefix("$t$ = "))
            index = int(np.abs(seen.axes["t"] - at).argmin())
            np.testing.assert_array_equal(shown_in(panel)[0], seen.mean[0, index])
            np.testing.assert_array_equal(shown_in(below)[0], seen.std[0, index])
        bars = [panel.get_ylabel() for panel in figure.axes if panel.get_label() == "<colorbar>"]
        assert bars == ["mean of $u$", "std of $u$"]


def check_slices(figure: Figure, solution: ff.Solution) -> None:
    seen = view(solution)
    at_each = cuts(solution, seen)
    panels = panels_of(figure)
    assert len(panels) == len(at_each) * len(seen.names)
    for index, panel in enumerate(panels):
        row, piece = index // len(at_each), at_each[index % len(at_each)]
        drawn = lines_of(panel)
        np.testing.assert_array_equal(drawn["mean"], piece.mean[row].ravel())
        assert ("truth" in drawn) == (seen.truth is not None)
        (band,) = (entry for entry in panel.collections if entry.get_label() == "90 % interval")
        low, high = piece.mean[row] - BAND * piece.std[row], piece.mean[row] + BAND * piece.std[row]
        ends = band.get_paths()[0].vertices[:, 1]
        assert np.isclose(ends.min(), low.min()) and np.isclose(ends.max(), high.max())
    assert [panel.get_ylabel() for panel in panels[:: len(at_each)]] == [f"${name}$" for name in seen.names]
    assert {"mean", "90 % interval"} <= legend_of(figure) <= {"mean", "90 % interval", "truth", "data", "data nearby"}


def check_summary(figure: Figure, solution: ff.Solution) -> None:
    """One field over two axes: maps above, slices below. Others: the fields."""
    seen = view(solution)
    if len(seen.axes) != 2 or len(seen.names) > 1:
        check_fields(figure, solution)
        return
    above, below = panels_of(figure)[:-3], panels_of(figure)[-3:]
    np.testing.assert_array_equal(shown_in(above[0])[0], seen.mean[0])
    np.testing.assert_array_equal(shown_in(above[1])[0], seen.std[0])
    for panel, piece in zip(below, cuts(solution, seen, 3), strict=True):
        np.testing.assert_array_equal(lines_of(panel)["mean"], piece.mean[0].ravel())
    assert {"mean", "90 % interval"} <= legend_of(figure)


def check_residual(figure: Figure, solution: ff.Solution) -> None:
    seen, panels = residuals(solution), panels_of(figure)
    if len(seen.axes) == 1:
        for row, panel in enumerate(panels):
            np.testing.assert_array_equal(lines_of(panel)["mean"], seen.mean[row])
            assert panel.get_ylabel() == "left - right side" and panel.get_title(loc="left") == mathtext(
                seen.names[row]
            )
    elif len(seen.axes) == 2:
        for row in range(len(seen.names)):
            np.testing.assert_array_equal(shown_in(panels[2 * row])[0], seen.mean[row])
            np.testing.assert_array_equal(shown_in(panels[2 * row + 1])[0], seen.std[row])
    else:
        np.testing.assert_array_equal(shown_in(panels[0])[0], seen.mean[0, 0])


def check_coefficients(figure: Figure, solution: ff.Solution) -> None:
    for panel, (name, found) in zip(panels_of(figure), solution.parameters.items(), strict=True):
        assert panel.get_xlabel() == label(name) and panel.get_title() == f"{found['mean']:.4g} ± {found['std']:.2g}"
        (posterior,) = (line for line in panel.get_lines() if line.get_label() == "posterior")
        x, y = (np.asarray(values, float) for values in posterior.get_data())
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=1e-3)  # a density
        assert np.trapezoid(x * y, x) == pytest.approx(found["mean"], abs=1e-2 * found["std"])
    assert legend_of(figure) == {"90 % interval", "posterior", "prior"}


def check_trace(figure: Figure, solution: ff.Solution) -> None:
    panels, edges = panels_of(figure), solution.settings.get("windows") or []
    if len(edges) > 2:
        (stairs,) = (patch for patch in panels[-1].patches if hasattr(patch, "get_data"))
        np.testing.assert_allclose(stairs.get_data().edges, edges)
        np.testing.assert_allclose(stairs.get_data().values, np.diff(edges))
        assert panels[-1].get_ylabel() == "length of the window"
    for panel in panels[: len(panels) - (len(edges) > 2)]:
        assert panel.get_xlabel() == "iteration" and panel.get_ylabel() and panel.get_lines()


def check_reliability(figure: Figure, solution: ff.Solution) -> None:
    found = calibration(view(solution))
    assert found is not None
    left, right = panels_of(figure)
    np.testing.assert_allclose(left.get_lines()[1].get_ydata(), [0.0, *found.reliability, 1.0])
    assert left.get_title() == f"90 % intervals hold {100 * found.scores['coverage90']:.1f} %"
    np.testing.assert_allclose(right.patches[0].get_data().values, np.asarray(found.pit) * len(found.pit))


def check_graph(figure: Figure, solution: ff.Solution) -> None:
    """A node for every field's weights, every coefficient and every jet; a formula for every group of factors."""
    (panel,) = panels_of(figure)
    texts = [text.get_text() for text in panel.texts]
    groups = factor_groups(solution)
    assert all(group.formula in texts for group in groups)
    squares = [line for line in panel.get_lines() if line.get_marker() == "s"]
    hidden = [*solution.problem.fields, *solution.problem.functions, *solution.problem.unknowns]
    assert len(squares) == len(groups) + len(hidden)  # factors and priors
    assert all(f"$W_{{{symbol(name, MathText())}}}$" in texts for name in solution.problem.fields)


def check_sensors(figure: Figure, solution: ff.Solution) -> None:
    """A panel per field of the ODE, its data under the mean; nothing is forecast where data reach the end."""
    panels = panels_of(figure)
    assert len(panels) == len(solution.problem.fields)
    assert all({"mean", "data"} <= set(lines_of(panel)) for panel in panels)


CHECKS = {
    "sensors": check_sensors,
    "summary": check_summary, "fields": check_fields, "slices": check_slices, "residual": check_residual,
    "coefficients": check_coefficients, "trace": check_trace, "reliability": check_reliability, "graph": check_graph,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ff.plotting.KINDS)
def test_every_kind_draws_every_shape_or_says_why_not(
    solutions: dict[str, ff.Solution], shape: str, kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.svg"
    if shape in MISSING.get(kind, ()):
        with pytest.raises(ff.ProblemError, match=r"expected .* received .*; try --kind"):
            ff.plot(solutions[shape], path, kind=kind)
        assert list(tmp_path.iterdir()) == []
        return
    figure = ff.plot(solutions[shape], path, kind=kind)
    CHECKS[kind](figure, solutions[shape])
    assert all(mathtext(vanishing(e.text)) in figure.get_suptitle() for e in solutions[shape].problem.equations)
    assert [entry.name for entry in tmp_path.iterdir()] == ["picture.svg"]


def test_a_method_without_std_draws_its_mean_without_warnings() -> None:
    pytest.importorskip("matplotlib")
    for solution in (measured(), ff.solve(ff.problems.get("poisson"))):
        unknown = solution.posterior.predict(solution.default_grid())
        unknown["std"] = unknown["std"] * np.nan
        figure = ff.plot(solution, field=unknown)
        figure.canvas.draw()
        assert np.all(np.isfinite(lines_of(panels_of(figure)[-1])["mean"]))
        assert all(np.all(np.isnan(values)) for panel in panels_of(figure)[1:2] for values in shown_in(panel))


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
    assert done.stdout == "picture written to run-coefficients.png\n" and (tmp_path / "run-coefficients.png").exists()
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
    assert "3 of 3 data in 90 % bars" in titles
    found = check_of(solution, "u")
    assert found is not None and np.allclose(found.measured, [0.3, 0.4, 0.5])
    field = solution.predict(x=[0.25, 0.5, 0.75], t=[1.0, 1.05, 0.3], points=True)
    np.testing.assert_allclose(np.sort(found.std), np.sort(np.hypot(0.05, field["std"])))  # the noise, the field's own
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
