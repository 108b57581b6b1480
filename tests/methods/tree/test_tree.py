"""The method `tree` against dense algebra of its own model, on lines, planes, spaces, systems and unknown numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import factorfield as ff
from factorfield.methods.tree.errors import followed
from factorfield.methods.tree.search import Lines, belief, linearised, log_evidence, search
from factorfield.model.splines import Spline
from factorfield.model.tree import TreeModel
from factorfield.posterior.boxes import BoxesPosterior

Array = NDArray[np.float64]
pytestmark = pytest.mark.filterwarnings("ignore::factorfield.errors.AdviceWarning")  # few cells: meant


def line() -> ff.Problem:
    seen = ff.Observations(x=[0.2, 0.5, 0.81], u=[0.3, 0.2, -0.1], sigma=0.05)
    return ff.Problem(ff.Equation("u_xx = -3*x", sigma=0.1), {"x": ff.Interval(0, 2)}, {},
                      [ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), seen])  # fmt: skip


def ring() -> ff.Problem:
    average = ff.Observations(x=[0.7], u=[0.1], sigma=0.05, average={"x": 0.5})
    seen = ff.Observations(x=[0.1, 0.35], u=[0.3, 0.2], sigma=0.05)
    return ff.Problem(ff.Equation("u_xx - u = sin(2*pi*x)", sigma=0.1), {"x": ff.Periodic(0, 1)}, {}, [seen, average])


def plane() -> ff.Problem:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.0, 1.0, (2, 20))
    seen = ff.Observations(x=x, y=y, u=np.sin(3 * x) * y + 0.1 * rng.standard_normal(20), sigma=0.1)
    walls = [ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), ff.Boundary("u_y = x", at={"y": 1}, sigma=0.2)]
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    return ff.Problem(ff.Equation("u_xx + (1 + x)*u_yy = -3*x", sigma=0.5), domain, {}, [*walls, seen])


def space() -> ff.Problem:
    rng = np.random.default_rng(1)
    x, y, z = rng.uniform(0.0, 1.0, (3, 15))
    seen = ff.Observations(x=x, y=y, z=z, u=x * y - z, sigma=0.1)
    domain = {"x": ff.Interval(0, 1), "y": ff.Periodic(0, 1), "z": ff.Interval(0, 1)}
    wall = ff.Boundary("u = 0", at={"x": 0}, sigma=0.1)
    return ff.Problem(ff.Equation("u_xx + u_yy + u_zz = 1", sigma=1.0), domain, {}, [wall, seen])


def system() -> ff.Problem:
    """With time, an unknown number in a source and a pair of walls that agree."""
    seen = ff.Observations(x=[0.2, 0.5, 0.8], t=[0.3, 0.6, 0.9], v=[0.3, 0.2, 0.4], sigma=0.05)
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    equations = [ff.Equation("u_t = v", sigma=0.1), ff.Equation("v_t = u_xx + k*x", sigma=0.1)]
    conditions = [ff.Initial("u = sin(pi*x)", sigma=0.1), ff.Boundary("u", at={"x": (0, 1)}, sigma=0.1), seen]
    return ff.Problem(equations, domain, {"k": ff.Unknown(1.0, 2.0)}, conditions)


def source_of_one_axis() -> ff.Problem:
    """An unknown function of x in a plane: every box along y reads the same weights."""
    unknown = {"m": ff.Unknown(0.5, 1.0, over="x", length=0.4)}
    known = plane()
    return known.replace(equation=ff.Equation("u_xx + u_yy = m", sigma=0.5), parameters=unknown)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "line": (line, {"cells": {"x": 40}}),
    "line, cubic": (line, {"cells": {"x": 41}, "degree": 3}),
    "ring, with an average": (ring, {"cells": {"x": 40}}),
    "plane": (plane, {"cells": {"x": 20, "y": 17}, "degree": 3}),
    "space": (space, {"cells": {"x": 7, "y": 6, "z": 7}}),
    "unknown function of one axis": (source_of_one_axis, {"cells": {"x": 14, "y": 13}, "degree": 3}),
    "system": (system, {"cells": {"x": 14, "t": 20}, "degree": 3}),
}


def model_of(name: str) -> TreeModel:
    make, options = CASES[name]
    model = ff.default_model(make(), method="tree", **options)
    assert isinstance(model, TreeModel)
    return model


def without_numerical(solution: ff.Solution) -> BoxesPosterior:
    """What the model alone believes: measurements do not reduce the numerical error, and dense algebra has none."""
    assert isinstance(solution.posterior, BoxesPosterior)
    return replace(solution.posterior, numerical=np.zeros(len(solution.posterior.mean)))


def dense_rows(model: TreeModel, weights: Array, measured: bool = True) -> tuple[Array, Array]:
    """All factors and priors as dense rows about a step from given weights, and targets."""
    rows, targets = [], []
    for group in model.groups:
        if measured or group.statement.kind != "observation":
            misfit, values = group.linear_misfit(weights)
            part = np.zeros((group.count, model.size))
            np.add.at(part, (np.arange(group.count)[:, None], group.all_columns), values)
            rows.append(part)
            targets.append(-misfit)
    for prior in model.priors:
        whole = {n: slice(0, s.cells) for n, s in prior.latent.basis.families.items() if isinstance(s, Spline)}
        numbers, factors = prior.rows(whole)
        product = np.ones((1, 1))
        for factor in factors:
            product = np.kron(product, factor)
        part = np.zeros((len(product), model.size))
        part[:, numbers] = product
        rows.append(part)
        targets.append(part @ (model.prior_mean - weights))
    return np.concatenate(rows), np.concatenate(targets)


@pytest.mark.parametrize("name", CASES)
def test_mean_and_covariance_are_those_of_dense_algebra(name: str) -> None:
    model = model_of(name)
    found = search(model, 1, None)
    rows, target = dense_rows(model, model.prior_mean)
    mean = model.prior_mean + np.linalg.lstsq(rows, target, rcond=None)[0]
    upper = np.linalg.qr(rows, mode="r")
    root = np.linalg.inv(upper)
    std = np.sqrt(np.sum(root**2, axis=1))
    assert np.max(np.abs(found.weights - mean) / std) < 1e-6
    posterior = BoxesPosterior(model.problem, model.representation, model.noise, found.weights, found.tree)
    assert np.max(np.abs(posterior.weight_std / std - 1.0)) < 1e-6
    ends = np.random.default_rng(0).integers(0, model.size, (2, 10))  # pairs anywhere, most of them far apart
    columns = np.eye(model.size)[:, ends.ravel()]
    gathered = posterior.tree.gather(columns)
    wanted = root[ends.ravel()] @ root[ends.ravel()].T
    assert np.max(np.abs(gathered.T @ gathered - wanted) / np.outer(std[ends.ravel()], std[ends.ravel()])) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_the_evidence_is_that_of_dense_algebra(name: str) -> None:
    model = model_of(name)
    found = search(model, 1, None)

    def level(measured: bool) -> float:
        rows, target = dense_rows(model, found.weights, measured)
        step, *_ = np.linalg.lstsq(rows, target, rcond=None)
        left = target - rows @ step
        return -0.5 * float(left @ left) - float(np.sum(np.log(np.abs(np.diagonal(np.linalg.qr(rows, mode="r"))))))

    noise = sum(g.log_normaliser() for g in model.groups if g.statement.kind == "observation")
    assert log_evidence(model, found) == pytest.approx(level(True) - level(False) - noise, abs=1e-6)
    if not model.problem.unknowns:  # numbers are integrated over what the evidence says of them
        assert ff.solve(model, adapt=False).log_evidence == log_evidence(model, followed(model, found))


@pytest.mark.parametrize("name", ["plane", "system"])
def test_predictions_are_those_of_the_weights_at_few_points_and_at_many(name: str) -> None:
    solution = ff.solve(model_of(name), adapt=False)
    posterior = solution.posterior
    rng = np.random.default_rng(2)
    points = {n: rng.uniform(a.lower, a.upper, 90) for n, a in solution.problem.domain.items()}
    of = "u*x + u_x" if name == "plane" else "u_x - k*v"
    many = posterior.predict(points, of=of, points=True)
    few = [posterior.predict({n: x[i : i + 1] for n, x in points.items()}, of=of, points=True) for i in range(5)]
    assert np.allclose([f["std"][0] for f in few], many["std"][:5], rtol=1e-8)
    assert np.allclose([f["mean"][0] for f in few], many["mean"][:5], rtol=1e-12)
    draws = np.array(list(posterior._weight_draws(400, np.random.default_rng(0))))
    gap = (draws.mean(axis=0) - posterior.weight_mean) / posterior.weight_std * 20.0
    assert np.abs(gap).max() < 5.0
    assert np.abs(draws.std(axis=0) / posterior.weight_std - 1.0).max() < 0.25


def test_a_nonlinear_equation_ends_where_its_gradient_vanishes() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    source = "pi**2*2*sin(pi*x)*sin(pi*y) + (sin(pi*x)*sin(pi*y))**3"
    problem = ff.Problem(f"-u_xx - u_yy + u**3 = {source}", domain, {}, walls)
    solution = ff.solve(problem, "tree")
    assert solution.status == "converged" and solution.trace["iterations"] <= 8
    grid = np.linspace(0.0, 1.0, 21)
    field = solution.predict(x=grid, y=grid)
    truth = np.sin(np.pi * grid)[:, None] * np.sin(np.pi * grid)
    assert np.abs(field["mean"].values - truth).max() < 1e-6
    assert np.mean(np.abs(field["mean"].values - truth) <= 1.645 * field["std"].values) > 0.8


def test_an_unknown_number_is_found() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.05, 0.95, (2, 40))
    u = np.sin(np.pi * x) * np.sin(np.pi * y) + 0.01 * rng.standard_normal(40)
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    seen = ff.Observations(x=x, y=y, u=u, sigma=0.01)
    unknown = {"k": ff.Unknown(1.0, 1.0, positive=True)}
    problem = ff.Problem("k*(u_xx + u_yy) = -4*pi**2*sin(pi*x)*sin(pi*y)", domain, unknown, [*walls, seen])
    solution = ff.solve(problem, "tree")
    found, joint = solution.parameters["k"], ff.solve(problem, "joint", modes={"x": 10, "y": 10}).parameters["k"]
    assert abs(found["mean"] - 2.0) < 3.0 * found["std"]
    assert found["mean"] == pytest.approx(joint["mean"], abs=0.2 * joint["std"])
    assert found["std"] == pytest.approx(joint["std"], rel=0.1)


def test_an_unknown_function_is_found() -> None:
    """Its prior is smooth enough for the equation to read its derivative."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.02, 0.98, 60)
    seen = ff.Observations(x=x, u=np.log(1.0 + x) / np.log(2.0) + 1e-3 * rng.standard_normal(60), sigma=1e-3)
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 1", at={"x": 1}), ff.Boundary("m = 0", at={"x": 0})]
    unknown = {"m": ff.Unknown(0.0, 1.0, over="x")}
    problem = ff.Problem("u_xx + m_x*u_x = 0", {"x": ff.Interval(0, 1)}, unknown, [*walls, seen])  # m = log(1 + x)
    found = ff.solve(problem, "tree").predict(x=x, of="m")
    gap = np.abs(found["mean"].values - np.log(1.0 + x)) / found["std"].values
    assert np.mean(gap < 1.645) > 0.6 and gap.max() < 4.0 and found["std"].values.max() < 0.2


@pytest.mark.parametrize("square_root", [False, True])
def test_square_roots_and_information_matrices_agree(square_root: bool) -> None:
    model = model_of("plane")
    lines = linearised(model, model.prior_mean)
    tree, used = belief(model, lines, square_root)
    rows, _ = dense_rows(model, model.prior_mean)
    root = np.linalg.inv(np.linalg.qr(rows, mode="r"))
    gathered = tree.gather(np.eye(model.size)[:, ::7])
    assert used == square_root
    assert np.allclose(np.sum(gathered**2, axis=0), np.sum(root[::7] ** 2, axis=1), rtol=1e-7)


def test_an_ill_conditioned_model_takes_square_roots_by_itself() -> None:
    model = model_of("line")
    sharp = replace(model, groups=tuple(replace(g, sigma=1e-9 * g.sigma) for g in model.groups[:1]) + model.groups[1:])
    lines = linearised(sharp, sharp.prior_mean)
    assert isinstance(lines, Lines)
    tree, used = belief(sharp, lines, False)
    assert used and tree.rcond == 1.0


def test_conditioning_is_solving_with_everything_and_renews_only_what_changes() -> None:
    problem = plane()
    options: Any = {"cells": {"x": 48, "y": 48}, "degree": 3}
    first = ff.solve(problem, "tree", **options)
    more = ff.Observations(x=[0.1, 0.11], y=[0.2, 0.21], u=[0.0, 0.1], sigma=0.05)
    found = first.condition(more)
    again = ff.solve(problem.replace(conditions=[*problem.conditions, more]), "tree", **options)
    grid = {"x": np.linspace(0, 1, 9), "y": np.linspace(0, 1, 9)}
    here, there = (without_numerical(solution).predict(grid) for solution in (found, again))
    assert np.allclose(here["mean"], there["mean"], atol=1e-9) and np.allclose(here["std"], there["std"], rtol=1e-6)
    pairs = zip(first.posterior.tree.conditionals, found.posterior.tree.conditionals, strict=True)  # type: ignore[attr-defined]
    changed = [old is not new for old, new in pairs]
    assert 1 <= sum(changed) <= 8 < len(changed)
    assert found.log_evidence == pytest.approx(again.log_evidence, abs=1e-6)


def test_a_file_gives_the_same_bits_and_the_same_model_too(tmp_path: Any) -> None:
    solution = ff.solve(model_of("system"), adapt=False)
    grid = {"x": np.linspace(0, 1, 11), "t": np.linspace(0, 1, 12)}
    loaded = ff.load(solution.save(tmp_path / "run.nc"))
    again = ff.solve(solution.model, adapt=False)
    for other in (loaded, again):
        for of in ("u", "v_x"):
            assert other.predict(**grid, of=of).equals(solution.predict(**grid, of=of))
        assert other.sample(2, **grid).equals(solution.sample(2, **grid))
        assert other.parameters == solution.parameters


def test_cells_are_halved_until_the_tolerance_is_met_and_the_error_is_told() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    problem = ff.Problem("u_xx + u_yy = -73*pi**2*sin(8*pi*x)*sin(3*pi*y)", domain, {}, walls)
    grid = np.linspace(0.0, 1.0, 41)
    truth = np.sin(8 * np.pi * grid)[:, None] * np.sin(3 * np.pi * grid)
    for tolerance in (1e-2, 1e-5):
        solution = ff.solve(problem, "tree", tolerance=tolerance)
        error = np.sqrt(np.mean((solution.predict(x=grid, y=grid)["mean"].values - truth) ** 2) / np.mean(truth**2))
        assert solution.status == "converged" and error < tolerance
        assert solution.trace["numerical_error"] / 30 < error < 3 * solution.trace["numerical_error"]
    coarse = ff.solve(problem, "tree", cells={"x": 12, "y": 12})
    field = coarse.predict(x=grid, y=grid)
    assert coarse.status == "unresolved" and "it is part of the std" in coarse.status.help
    assert np.mean(np.abs(field["mean"].values - truth) <= 1.645 * field["std"].values) > 0.8


def test_three_axes_of_space_take_boxes_by_default() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "z": ff.Periodic(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    text = "u_xx + u_yy + u_zz = -6*pi**2*sin(pi*x)*sin(pi*y)*cos(2*pi*z)"
    solution = ff.solve(ff.Problem(text, domain, {}, walls), tolerance=1e-2)
    grid = np.linspace(0.0, 1.0, 7)
    field = solution.predict(x=grid, y=grid, z=grid)
    wave = np.sin(np.pi * grid)
    truth = wave[:, None, None] * wave[:, None] * np.cos(2 * np.pi * grid)
    assert solution.settings["method"] == "tree" and solution.status == "converged"
    assert np.abs(field["mean"].values - truth).max() < 1e-2


# -- what a user is told


def test_places_that_nothing_settles_are_told() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    problem = ff.Problem("u_xx + u_yy = 1", domain, {}, [ff.Boundary("u = 0", at={"x": 0})])
    solution = ff.solve(problem, "tree", cells={"x": 12, "y": 12}, degree=3)
    (told,) = [advice for advice in solution.advice or () if advice.kind == "free-directions"]
    assert "values of u at" in told.text and "1 of 2 conditions on u at the ends of x" in told.text


def test_readings_that_contradict_the_equation_are_told() -> None:
    domain = {"x": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)]
    seen = ff.Observations(x=np.linspace(0.1, 0.9, 20), u=np.full(20, 5.0), sigma=0.01)
    solution = ff.solve(ff.Problem("u_xx = -1", domain, {}, [*walls, seen]), "tree")
    assert any(advice.kind == "contradiction" for advice in solution.advice or ())


def test_bad_options_get_one_line() -> None:
    problem = plane()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"cells": {"x": 4, "y": 20}}, "at least 6 cells along x"),
        ({"cells": {"x": 4_000, "y": 4_000}}, "cells that take at most"),
        ({"degree": 4}, "degree 3 or 5"),
        ({"tolerance": -1.0}, "tolerance > 0"),
        ({"cells": {"q": 4}}, "cells for the axes x, y"),
    ]
    for options, words in cases:
        with pytest.raises(ff.ProblemError) as error:
            ff.solve(problem, "tree", **options)
        text = str(error.value)
        assert text.startswith("expected ") and words in text and "; try " in text and "\n" not in text
    with pytest.raises(ff.ProblemError, match="at most 2 derivatives along x"):
        ff.solve(model_of("plane"), adapt=False).predict(x=0.5, y=0.5, of="u_xxx")


def test_noise_that_is_not_gaussian_is_met_by_sites() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(0.05, 0.95, 30)
    u = np.sin(np.pi * x) + 0.02 * rng.standard_normal(30)
    u[7] += 2.0  # an outlier that Student's noise forgives
    domain = {"x": ff.Interval(0, 1)}
    seen = ff.Observations(x=x, u=u, sigma=0.02, noise="student-t")
    problem = ff.Problem(ff.Equation("u_xx = 0", sigma=20.0), domain, {}, [seen])
    found = ff.solve(problem, "tree", cells={"x": 12}).predict(x=x)
    assert np.max(np.abs(found["mean"].values - np.sin(np.pi * x))) < 0.05
