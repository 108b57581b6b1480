"""Unknown numbers of a tree of boxes, on the marginal likelihood."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import factorfield as ff
from factorfield.methods.tree.search import given, linearised, log_evidence
from factorfield.methods.tree.searched import is_searched
from factorfield.model.splines import Spline
from factorfield.model.tree import TreeModel
from factorfield.posterior.boxes import BoxesPosterior
from factorfield.solution import Solution

Array = NDArray[np.float64]
X = np.linspace(0.05, 0.95, 15)
ROD = {"x": ff.Interval(0, 1)}
WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]


def screened(text: str = "u_xx - k*u = -10", sigma: float = 0.02) -> ff.Problem:
    """The rate at which a source is lost, from noisy readings."""
    rng = np.random.default_rng(3)
    root = np.sqrt(8.0)
    u = 10 / 8.0 * (1 - np.cosh(root * (X - 0.5)) / np.cosh(root / 2))
    seen = ff.Observations(x=X, u=u + sigma * rng.standard_normal(len(X)), sigma=sigma)
    return ff.Problem(text, ROD, {"k": ff.Unknown(6.0, 4.0, positive=True)}, [*WALLS, seen])


@pytest.fixture(scope="module")
def found() -> Solution:
    return ff.solve(screened(), "tree", cells={"x": 24})


def test_the_evidence_of_numbers_that_are_held_is_that_of_dense_algebra() -> None:
    model = ff.default_model(screened(), method="tree", cells={"x": 16})
    assert isinstance(model, TreeModel) and is_searched(model)
    for value in (np.log(4.0), np.log(8.0)):
        fixed = given(model, {"k": value})
        lines = linearised(model, fixed.weights, fixed.held)
        levels = []
        for measured in (True, False):
            rows, targets = [], []
            for group, misfit, values in zip(model.groups, lines.misfits, lines.rows, strict=True):
                if measured or group.statement.kind != "observation":
                    part = np.zeros((group.count, model.size))
                    np.add.at(part, (np.arange(group.count)[:, None], group.all_columns), values)
                    rows.append(part)
                    targets.append(-misfit)
            for prior in model.priors:
                whole = {n: slice(0, s.cells) for n, s in prior.latent.basis.families.items() if isinstance(s, Spline)}
                numbers, (factor,) = prior.rows(whole)
                part = np.zeros((len(factor), model.size))
                part[:, numbers] = factor
                rows.append(part)
                away = model.prior_mean - fixed.weights
                away[fixed.held] = 0.0
                targets.append(part @ away)
            matrix, target = np.concatenate(rows), np.concatenate(targets)
            left = target - matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0]
            size = np.sum(np.log(np.abs(np.diagonal(np.linalg.qr(matrix, mode="r")))))
            levels.append(-0.5 * float(left @ left) - float(size))
        noise = sum(g.log_normaliser() for g in model.groups if g.statement.kind == "observation")
        assert log_evidence(model, fixed) == pytest.approx(levels[0] - levels[1] - noise, abs=1e-6)


def test_a_number_is_that_of_one_block_and_rewriting_the_equation_does_not_move_it(found: Solution) -> None:
    """All are the same marginal, of equations that hold: to 0.02 sd."""
    k = found.parameters["k"]
    others = [
        ff.solve(screened(), "joint", modes={"x": 12}).parameters["k"],
        ff.solve(screened("u_xx/k - u = -10/k"), "tree", cells={"x": 24}).parameters["k"],
        ff.solve(screened("100*u_xx - 100*k*u = -1000"), "tree", cells={"x": 24}).parameters["k"],
    ]
    for other in others:
        assert other["mean"] == pytest.approx(k["mean"], abs=0.02 * k["std"])
        assert other["std"] == pytest.approx(k["std"], rel=0.02)
    assert abs(k["mean"] - 8.0) < 3 * k["std"]
    assert found.status == "converged" and "marginal likelihood" in found.status.help


def test_the_field_carries_what_the_number_makes_uncertain(found: Solution) -> None:
    """Between readings at one k, and at one a sd away, the field moves by its slope: both parts add up."""
    posterior = found.posterior
    assert isinstance(posterior, BoxesPosterior) and posterior.beside is not None
    field, alone = found.predict(x=X, numerical=False), found.predict(x=X[:4], numerical=False)
    assert_allclose(alone["std"], field["std"][:4], rtol=1e-9)  # gathered, and from the leaves
    draws = found.posterior.exact.sample(2000, x=X, seed=0)
    assert_allclose(draws.std("sample"), field["std"], rtol=0.08)  # five times the error of 2,000 draws
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / np.sqrt(2000)


def test_files_and_further_readings(found: Solution, tmp_path: Path) -> None:
    again = ff.load(found.save(tmp_path / "run.nc"))
    assert again.predict(x=X).equals(found.predict(x=X)) and again.parameters == found.parameters
    more = ff.Observations(x=[0.3, 0.5], u=[0.55, 0.62], sigma=0.02)
    step = found.condition(more)
    known = screened()
    at_once = ff.solve(known.replace(conditions=[*known.conditions, more]), "tree", cells={"x": 24})
    one, other = step.parameters["k"], at_once.parameters["k"]
    assert one["mean"] == pytest.approx(other["mean"], abs=0.02 * other["std"])
    assert one["std"] == pytest.approx(other["std"], rel=0.02)
    assert step.log_evidence == pytest.approx(at_once.log_evidence, abs=0.02)


def test_cells_are_halved_with_numbers_and_the_numerical_error_reaches_them() -> None:
    found = ff.solve(screened(), "tree", tolerance=1e-6)
    assert found.status == "converged" and found.trace["numerical_error"] <= 1e-6
    coarse = ff.solve(screened(), "tree", cells={"x": 6}, degree=3)
    error = abs(coarse.parameters["k"]["mean"] - found.parameters["k"]["mean"])
    assert error < 4 * coarse.parameters["k"]["std"]
