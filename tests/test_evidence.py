"""The evidence of the measurements: each method against dense algebra of its own model, and against the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.model.model import BlockModel

pytestmark = pytest.mark.filterwarnings("ignore::factorfield.errors.AdviceWarning")  # few modes, far data: meant
X = np.arange(12) / 12


def heat(text: str = "u_t = 0.05*u_xx", sigma: float = 0.1, scatter: bool = False) -> ff.Problem:
    rng = np.random.default_rng(3)
    x, t = rng.uniform(0.0, 1.0, (2, 12)) if scatter else (X, np.zeros(12))
    u = np.exp(-0.05 * 4 * np.pi**2 * t) * np.sin(2 * np.pi * x) + sigma * rng.standard_normal(12)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    seen = ff.Observations(x=x, t=t, u=u, sigma=sigma)
    return ff.Problem(text, domain, {}, [ff.Initial("u = sin(2*pi*x)", sigma=0.5), seen])


def dense(model: BlockModel) -> float:
    """log N(rows; 0, I + rows prior rows') of all linearised factors, less that of all but the measurements."""

    def level(groups: Any) -> float:
        parts = [group.linear_misfit(model.prior.mean) for group in groups]
        rows, gap = np.concatenate([r for _, r in parts]), np.concatenate([m for m, _ in parts])
        spread = np.eye(len(gap)) + (rows * model.prior.std**2) @ rows.T
        logs = sum(float(np.sum(np.log(group.sigma))) for group in groups) + 0.5 * len(gap) * np.log(2 * np.pi)
        return -0.5 * float(np.linalg.slogdet(spread)[1] + gap @ np.linalg.solve(spread, gap)) - logs

    return level(model.groups) - level([g for g in model.groups if g.statement.kind != "observation"])


@pytest.mark.parametrize("scatter", [False, True])
def test_the_evidence_of_joint_is_that_of_dense_algebra(scatter: bool) -> None:
    equation = ff.Equation("u_t = 0.05*u_xx", sigma=0.1)  # dense algebra keeps its digits
    problem = heat(scatter=scatter).replace(equation=equation)
    model = ff.default_model(problem, modes={"x": 2, "t": 5})
    assert isinstance(model, BlockModel)
    assert ff.solve(model, adapt=False).log_evidence == pytest.approx(dense(model), abs=1e-6)


def test_joint_and_chain_agree_where_both_resolve_the_field() -> None:
    """The start is known well, because its sigma counts once per point that a method asks it at."""
    loose = heat(scatter=True)
    problem = loose.replace(conditions=[ff.Initial("u = sin(2*pi*x)", sigma=1e-3), loose.conditions[1]])
    chain = ff.solve(problem, modes={"x": 2}).log_evidence
    tight = problem.replace(equation=ff.Equation("u_t = 0.05*u_xx", sigma=1e-4))
    joint = ff.solve(tight, "joint", modes={"x": 2, "t": 14})
    assert joint.log_evidence == pytest.approx(chain, abs=0.02)


@pytest.mark.parametrize("text", ["10*u_t = 0.5*u_xx", "20*u_t = u_xx"])
def test_rewriting_the_equation_does_not_move_the_evidence(text: str) -> None:
    plain, other = (ff.solve(heat(t, scatter=True), modes={"x": 3}).log_evidence for t in ("u_t = 0.05*u_xx", text))
    assert other == pytest.approx(plain, abs=1e-3)


def test_the_evidence_is_a_density_of_the_data() -> None:
    """It integrates to one over a measured value, but for the broad prior, whose width follows the data's size."""
    domain, values = {"t": ff.Interval(0, 1)}, np.linspace(-4.0, 6.0, 81)

    def level(value: float) -> float:
        seen = ff.Observations(t=0.5, u=value, sigma=0.3)
        found = ff.solve(ff.Problem("u_t = -u", domain, {}, [ff.Initial("u = 1", sigma=0.8), seen])).log_evidence
        assert found is not None
        return found

    total = np.trapezoid(np.exp([level(value) for value in values]), values)
    assert total == pytest.approx(1.0, abs=5e-3)


def test_no_measurements_have_no_evidence_and_a_file_does_not_tell(tmp_path: Any) -> None:
    domain = {"t": ff.Interval(0, 1)}
    solution = ff.solve(ff.Problem("u_t = -u", domain, {}, [ff.Initial("u = 1")]))
    assert solution.log_evidence == pytest.approx(0.0, abs=1e-9)
    assert ff.load(solution.save(tmp_path / "run.nc")).log_evidence is None
