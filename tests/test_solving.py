"""The one verb: which method, which model, the loop that refines it, and what is said at its end."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield import methods
from factorfield.errors import Advice
from factorfield.model.model import BlockModel, WindowModel
from factorfield.model.tree import TreeModel
from factorfield.solution import Status
from factorfield.solving import _or_local

WALLS = (ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}))


def rod(*conditions: Any, equation: str = "u_t = 0.05*u_xx", **parameters: Any) -> ff.Problem:
    return ff.Problem(equation, {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, parameters, [*WALLS, *conditions])


def heat() -> ff.Problem:
    return ff.problems.get("heat", labels=32, noise=0.02, sigma=0.02)


def noisy() -> ff.Problem:
    """Forty scattered labels whose noise nobody told."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, 40), rng.uniform(0, 1, 40)
    u = np.exp(-0.05 * np.pi**2 * t) * np.sin(np.pi * x) + 0.1 * rng.standard_normal(40)
    return rod(ff.Observations(x=x, t=t, u=u))


def burgers() -> ff.Problem:
    """A wave that steepens: more modes are needed than its start shows."""
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.3)}
    return ff.Problem("u_t + u*u_x = 0.02*u_xx", domain, {}, [ff.Initial("u = sin(2*pi*x)")])


def predators() -> ff.Problem:
    """Lotka-Volterra with two of its rates unknown, seven windows or more."""
    known = ff.problems.get("lotka-volterra", noise=1.0)
    unknown = {"alpha": ff.Unknown(0.6, 0.2, positive=True), "gamma": ff.Unknown(0.7, 0.2, positive=True)}
    return known.replace(parameters={**known.parameters, **unknown})


def two_signs(equation: str = "u_t = -a**2*u") -> ff.Problem:
    """Decay with rate a^2: at the prior mean a = 0 the density is flat, and a = 0.8 and -0.8 are better."""
    t = np.linspace(0, 2, 20)
    decayed = np.exp(-0.64 * t) if equation.endswith("*u") else 1.0 / (1.0 + 0.64 * t)
    observed = ff.Observations(t=t, u=decayed + 0.02 * np.random.default_rng(1).standard_normal(20), sigma=0.02)
    return ff.Problem(equation, {"t": ff.Interval(0, 2)}, {"a": ff.Unknown(0.0, 1.0)}, [observed])


def two_signs_nonlinear() -> ff.Problem:
    """u' = -a^2 u^2: here the coefficient is a weight, and a search for all weights rests at the prior mean."""
    return two_signs("u_t = -a**2*u**2")


def thin_layer() -> ff.Problem:
    """Without time: u = exp(-x / 0.03), which the first polynomials do not hold."""
    walls = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    return ff.Problem("u = 9e-4*u_xx", {"x": ff.Interval(0, 1)}, {}, walls)


def _axes(solution: ff.Solution) -> list[tuple[str, Any]]:
    domain = solution.problem.domain
    return [(name, domain[name]) for name in domain.names]


def one_line(error: pytest.ExceptionInfo[ff.ProblemError]) -> str:
    text = str(error.value)
    assert text.startswith("expected ") and "; try " in text and "\n" not in text
    return text


# -- a model that a method cannot take is refused, never replaced


@pytest.mark.parametrize("name", methods.names())
def test_every_method_refuses_a_model_it_cannot_take_in_one_line(name: str) -> None:
    if methods.missing_packages(name):
        pytest.skip(f"an installation without {', '.join(methods.missing_packages(name))}")
    problem = ff.problems.get("advection", labels=32)
    other = (
        ff.paper_model(problem, modes={"x": 2, "t": 2})
        if name == "chain"
        else ff.default_model(problem, method="chain")
    )
    with pytest.raises(ff.ProblemError) as error:
        ff.solve(other, method=name)
    words = {"chain": "a model of time windows", "tree": "a model of nested boxes", "forward": "a problem, not a model"}
    wanted = words.get(name, "a model of one block")
    assert wanted in one_line(error) and f"method={name!r}" in one_line(error)


def test_what_is_no_problem_is_refused() -> None:
    with pytest.raises(ff.ProblemError) as error:
        ff.solve("u_t = 0")  # type: ignore[call-overload]
    assert "an ff.Problem or a model" in one_line(error)


# -- which method, which model


def test_windows_suit_problems_with_time_and_one_block_the_others() -> None:
    assert methods.default_method(heat()) == "chain"
    assert methods.default_method(thin_layer()) == "joint"
    assert methods.default_method(ff.default_model(heat(), method="chain")) == "chain"
    assert methods.default_method(ff.default_model(heat(), method="joint")) == "joint"
    assert ff.solve(heat()).settings["method"] == "chain"
    assert ff.solve(ff.default_model(heat(), modes={"x": 4, "t": 12})).settings["method"] == "joint"


@pytest.mark.parametrize("name", methods.names())
def test_the_first_model_is_of_the_kind_that_the_method_takes(name: str) -> None:
    if methods.missing_packages(name):
        pytest.skip(f"an installation without {', '.join(methods.missing_packages(name))}")
    if name == "forward":  # it solves problems, and makes no model
        with pytest.raises(ff.ProblemError) as error:
            ff.default_model(heat(), method=name)
        assert "method='forward'" in one_line(error)
        return
    model = ff.default_model(heat(), method=name)
    assert isinstance(model, {"chain": WindowModel, "tree": TreeModel}.get(name, BlockModel))


def test_the_first_model_is_the_one_that_solve_begins_with() -> None:
    model = ff.default_model(heat(), method="chain", modes={"x": 3}, degree=8)
    assert isinstance(model, WindowModel)
    assert model.modes == {"x": 3} and model.degree == 8 and model.edges is None
    solution = ff.solve(heat(), modes={"x": 3}, degree=8)
    by_model = ff.solve(model)
    grid = {"x": np.linspace(0, 1, 5), "t": np.linspace(0, 1, 4)}
    assert np.array_equal(solution.predict(**grid)["mean"], by_model.predict(**grid)["mean"])
    assert np.array_equal(solution.predict(**grid)["std"], by_model.predict(**grid)["std"])


# -- from features over whole axes to local ones


def layers() -> ff.Problem:
    """Along all four walls of a square, 0.045 wide."""
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    return ff.Problem("0.002*(u_xx + u_yy) - u = -1", domain, {}, walls)


def test_layers_too_thin_for_one_block_go_to_boxes_and_the_settings_say_why() -> None:
    """In the middle of a wall they are those of one axis: 1 - cosh((y - 1/2) / w) / cosh(1 / (2 w))."""
    solution = ff.solve(layers())
    assert solution.settings["method"] == "tree" and solution.status == "converged"
    assert "local splines: one block of" in str(solution.settings["features"])
    y, width = np.linspace(0.0, 0.5, 21), np.sqrt(0.002)
    truth = 1 - np.cosh((y - 0.5) / width) / np.cosh(0.5 / width)
    assert np.abs(solution.predict(x=[0.5], y=y)["mean"].values.ravel() - truth).max() < 1e-4  # two other walls: 3e-5


def lost(solution: ff.Solution) -> ff.Solution:
    """The same, as if one block had not resolved it."""
    return replace(solution, status=Status("unresolved"), trace={**solution.trace, "numerical_error": 0.5})


def test_a_block_that_is_not_resolved_stays_where_boxes_fail_or_leave_more(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ff.Problem("u_xx = -sin(pi*x)", {"x": ff.Interval(0, 1)}, {}, [*WALLS])
    tree = ff.methods.Tree
    block = lost(ff.solve(problem, "joint"))
    assert _or_local(problem, block, {}, None).settings["method"] == "tree"
    assert _or_local(ff.default_model(problem), block, {}, None) is block  # a model is never replaced
    assert _or_local(problem, ff.solve(problem, "joint"), {}, None).settings["method"] == "joint"
    kept = tree.run

    def refused(self: Any, model: Any, progress: Any = None) -> ff.Solution:
        raise ff.ProblemError("expected less, received more; try other")

    def worse(self: Any, model: Any, progress: Any = None) -> ff.Solution:
        found = lost(kept(self, model, progress))
        return replace(found, trace={**found.trace, "numerical_error": 9.0})

    for run in (refused, worse):
        monkeypatch.setattr(tree, "run", run)
        assert _or_local(problem, block, {}, None) is block


def front() -> ff.Problem:
    walls = [ff.Boundary("u_x = 0", at={"x": end}) for end in (0, 1)]
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.02)}
    start = ff.Initial("u = (1 - tanh(25*(x - 0.3)))/2")
    return ff.Problem("u_t = 0.02*u_xx + 100*u*(1 - u)*(u - 1/4)", domain, {}, [start, *walls])


def test_a_front_goes_from_modes_to_cells_and_the_settings_say_why() -> None:
    solution = ff.solve(front())
    assert solution.settings["method"] == "chain" and set(solution.settings["cells"]) == {"x"}
    assert "cells that follow the field" in str(solution.settings["features"])
    assert default_settings(front(), modes={"x": 60}).get("cells") is None  # what is asked for is not replaced


def default_settings(problem: ff.Problem, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ff.AdviceWarning)
        return dict(ff.solve(problem, **options).settings)


# -- the last model gives the same bits

CASES: dict[str, tuple[Callable[[], ff.Problem], dict[str, Any]]] = {
    "heat": (heat, {}),
    "noise to estimate": (noisy, {"modes": {"x": 8}}),
    "fisher-kpp": (lambda: ff.problems.get("fisher-kpp", labels=32), {}),
    "burgers, modes grow": (burgers, {}),
    "wave": (lambda: ff.problems.get("wave", labels=16), {}),
    "windows of unlike lengths": (lambda: ff.problems.get("lotka-volterra"), {}),
    "unknown coefficients": (predators, {}),
    "three starts": (two_signs, {"starts": 3}),
    "three starts, nonlinear": (two_signs_nonlinear, {"starts": 3}),
    "cells that follow a front": (front, {}),
    "joint, poisson": (lambda: ff.problems.get("poisson"), {}),
    "joint, modes grow": (thin_layer, {}),
    "joint, three starts": (two_signs, {"method": "joint", "starts": 3}),
    "joint, three starts, nonlinear": (two_signs_nonlinear, {"method": "joint", "starts": 3}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:more than one answer fits:factorfield.AdviceWarning")
def test_the_last_model_without_adapting_gives_the_same_bits(name: str) -> None:
    make, options = CASES[name]
    solution = ff.solve(make(), **options)
    assert solution.model is not None
    again = ff.solve(solution.model, method=options.get("method"), adapt=False)
    assert again.status == solution.status
    axes = {n: np.linspace(a.lower, a.upper, 6) for n, a in _axes(solution)}
    for one, other in ((solution, again), (again, ff.solve(again.model, adapt=False))):  # type: ignore[arg-type]
        assert np.array_equal(one.posterior.weight_mean, other.posterior.weight_mean)
        assert np.array_equal(one.posterior.weight_std, other.posterior.weight_std)
        ours, theirs = one.predict(**axes), other.predict(**axes)
        assert np.array_equal(ours["mean"], theirs["mean"])
        assert np.array_equal(ours["std"], theirs["std"])
        assert one.parameters == other.parameters


def test_the_loop_finds_what_the_first_model_did_not_know() -> None:
    """Of the cases above: modes, noise and starts were indeed found while solving."""
    first, last = ff.default_model(burgers(), method="chain"), ff.solve(burgers()).model
    assert isinstance(last, WindowModel) and last.modes["x"] > first.modes["x"]
    assert last.edges is not None and last.edges[0] == 0.0 and last.edges[-1] == 0.3
    options: dict[str, Any] = {"modes": {"x": 8}}
    first, solution = ff.default_model(noisy(), method="chain", **options), ff.solve(noisy(), **options)
    assert solution.model is not None
    before, after = first.sigmas[-1], solution.model.sigmas[-1]
    assert (before.origin, after.origin, before.rounds) == ("estimated", "estimated", 0) and after.rounds > 0
    assert 0.05 < after.typical < 0.2 and solution.model.noise["u"] == pytest.approx(after.typical)
    assert ff.solve(noisy(), adapt=False, **options).model.sigmas[-1].rounds == 0  # type: ignore[union-attr]
    grown = ff.solve(thin_layer()).model
    assert grown is not None and grown.modes["x"] > ff.default_model(thin_layer()).modes["x"]


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
@pytest.mark.parametrize("method", ["chain", "joint"])
def test_the_last_model_remembers_where_the_best_search_began(method: str) -> None:
    solution = ff.solve(two_signs_nonlinear(), method=method, starts=3)
    assert "several-modes" in {entry.kind for entry in solution.advice or ()}
    assert isinstance(solution.model, WindowModel | BlockModel)
    began = solution.model.first_weights if isinstance(solution.model, BlockModel) else solution.model.start
    assert began is not None and len(began) > 0
    found = solution.parameters["a"]
    assert abs(abs(found["mean"]) - 0.8) < 5 * found["std"] < 0.2
    stuck = ff.solve(two_signs_nonlinear(), method=method)
    assert ("unconstrained", "a") in {(entry.kind, entry.about) for entry in stuck.advice or ()}
    assert stuck.parameters["a"]["mean"] == pytest.approx(0.0, abs=1e-6)  # where it began


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
@pytest.mark.parametrize("method", ["chain", "joint"])
def test_a_search_on_the_marginal_leaves_a_flat_place_and_several_starts_tell_of_both_signs(method: str) -> None:
    once, thrice = (ff.solve(two_signs(), method=method, starts=starts) for starts in (1, 3))
    assert "several-modes" in {entry.kind for entry in thrice.advice or ()}
    for solution in (once, thrice):
        found = solution.parameters["a"]
        assert solution.status == "converged" and abs(abs(found["mean"]) - 0.8) < 4 * found["std"] < 0.1


# -- what is said


def clash() -> ff.Problem:
    x = np.linspace(0, 1, 16, endpoint=False)
    observed = [
        ff.Observations(x=x, t=0.0, u=np.sin(2 * np.pi * x), sigma=1e-3),
        ff.Observations(x=x, t=1.0, u=5.0 + 0 * x, sigma=1e-3),
    ]
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    return ff.Problem(ff.Equation("u_t", sigma=1e-3), domain, {}, observed)


def test_advice_is_a_value_of_the_solution_and_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solution = ff.solve(clash())
    assert solution.advice is not None and all(isinstance(entry, Advice) for entry in solution.advice)
    contradictions = [entry for entry in solution.advice if entry.kind == "contradiction"]
    assert [entry.about for entry in contradictions] == ["observations of u", "observations of u (2)"]
    assert solution.warnings is not None and set(solution.warnings) == {entry.text for entry in solution.advice}
    texts = [str(entry.message) for entry in told if issubclass(entry.category, ff.AdviceWarning)]
    assert sorted(texts) == sorted(set(texts)) == sorted(set(solution.warnings))
    assert all(entry.filename == __file__ for entry in told if issubclass(entry.category, ff.AdviceWarning))


def test_only_solve_warns() -> None:
    model = ff.default_model(clash(), method="chain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = methods.get("chain").run(model)
    assert "contradiction" in {entry.kind for entry in solution.advice or ()}


def test_advice_of_a_model_is_told_by_the_solution() -> None:
    """A hot rod between cold walls: the jump is known before anything is solved."""
    problem = rod(ff.Initial("u = 1"))
    model = ff.default_model(problem, method="chain")
    assert {(said.kind, said.about) for said in model.advice} == {("corner", "initial: u = 1")}
    with pytest.warns(ff.AdviceWarning, match="disagree by 1 where they meet"):
        solution = ff.solve(problem)
    assert set(model.advice) <= set(solution.advice or ())


# -- options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": {"x": 3}}, "'modes'"),
        ({"method": "chain", "collocation": {"x": 8}}, "options of chain among"),
        ({"method": "joint", "windows": [0.0, 1.0]}, "options of joint among"),
        ({"method": "joint", "iterations": "many"}, "iterations such as 50"),
        ({"starts": 2.5}, "starts such as 1"),
        ({"method": methods.get("chain"), "tolerance": 1e-3}, "options of chain's model among"),
        ({"method": "jiont"}, "'joint'"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_options_of_neither_method_nor_model_are_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ff.ProblemError) as error:
        ff.solve(heat(), **options)
    assert words in one_line(error)


def test_options_of_a_model_do_not_go_with_a_model() -> None:
    with pytest.raises(ff.ProblemError) as error:
        ff.solve(ff.default_model(heat(), method="chain"), modes={"x": 3})
    assert "a problem, not a model, with modes" in one_line(error)
    with pytest.raises(ff.ProblemError) as error:
        ff.default_model(heat(), method="chain", mdoes={"x": 3})
    assert "'modes'" in one_line(error)


@pytest.mark.parametrize("windows", [4, [0.0], [0.0, 0.5], [0.5, 0.2, 1.0], [0.0, 0.5, 0.5, 1.0], "halves", [[0, 1]]])
def test_windows_are_edges_that_increase_over_the_horizon(windows: Any) -> None:
    with pytest.raises(ff.ProblemError) as error:
        ff.solve(heat(), windows=windows)
    assert "edges of windows that increase from 0 to 1" in one_line(error)


def test_a_configured_method_takes_the_options_of_its_model() -> None:
    solution = ff.solve(heat(), method=methods.get("chain", tolerance=1e-4), modes={"x": 3}, windows=[0.0, 0.5, 1.0])
    assert solution.settings["windows"] == [0.0, 0.5, 1.0] and solution.settings["tolerance"] == 1e-4


def test_a_list_gives_a_list_and_progress_is_called() -> None:
    calls: list[tuple[str, float]] = []
    one, other = ff.solve([heat(), heat()], progress=lambda text, fraction: calls.append((text, fraction)))
    assert np.array_equal(one.posterior.weight_mean, other.posterior.weight_mean)
    assert calls and all(0.0 <= fraction <= 1.0 for _, fraction in calls)
    assert ff.solve([]) == []
