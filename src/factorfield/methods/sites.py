"""Solving with noise that is not Gaussian: stand-ins for single values, matched until they rest (noise.py).

Works around any method: it solves with Gaussian stand-ins, asks its posterior what is believed at each value, takes the
value's own stand-in out of that belief, and matches it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, overheard, repeat
from factorfield.problem.noise import matched
from factorfield.problem.problem import Problem, Statement
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
ROUNDS = 40
KEPT = 0.3  # of the last stand-in: damping
RESTS = 0.02  # standard deviations of the belief at a value


def needs_stand_ins(problem: Problem) -> bool:
    return any(statement.noise is not None for statement in problem.statements)


def solve_with_stand_ins(problem: Problem, run: Callable[[Problem], Solution]) -> Solution:
    """The solution of a problem some of whose values have other noise than Gaussian."""
    statements = list(problem.statements)
    special = [index for index, statement in enumerate(statements) if statement.noise is not None]
    last: dict[int, Array] = {}
    for round_ in range(ROUNDS):
        for index in special if round_ == 0 else ():
            statements[index] = _first(problem.statements[index])
        with overheard() as advice:  # passed on from the last round only
            solution = run(problem.with_statements(statements))
        moved = 0.0
        for index in special:
            mean, variance = _believed(solution, problem.statements[index])
            if index in last:
                moved = max(moved, float(np.max(np.abs(mean - last[index]) / np.sqrt(variance))))
            last[index] = mean
            statements[index] = _matched(problem.statements[index], statements[index], mean, variance)
        if round_ > 0 and moved < RESTS:
            break
    repeat(advice)
    word = "converged" if moved < RESTS and solution.status == "converged" else "max-iterations"
    text = f"stand-ins for the noise moved beliefs by {moved:.1e} standard deviations in round {round_ + 1}, the last"
    status = solution.status if solution.status == "diverged" else Status(word, text)
    return _described(problem, replace(solution, status=status))


def _first(statement: Statement) -> Statement:
    assert statement.noise is not None
    target, sigma = statement.noise.first_guess(statement.target, _each(statement))
    return replace(statement, target=target, sigma=sigma)


def _each(statement: Statement) -> Array:
    return np.broadcast_to(np.asarray(statement.sigma, float), statement.target.shape)


def _believed(solution: Solution, statement: Statement) -> tuple[Array, Array]:
    assert statement.points is not None
    belief = solution.posterior.predict(statement.points, of=statement.relation.text, points=True)
    mean, variance = np.asarray(belief["mean"], float), np.asarray(belief["std"], float) ** 2
    if not np.all(np.isfinite(variance)):
        raise expected("a method with a std for noise that is not Gaussian", "one without", "method='joint'")
    return mean, np.maximum(variance, 1e-300)


def _matched(statement: Statement, current: Statement, mean: Array, variance: Array) -> Statement:
    """The next stand-in, from the belief without the current one."""
    assert statement.noise is not None
    held = 1.0 / np.square(_each(current))
    rest = np.maximum(1.0 / variance - held, 1e-3 / variance)  # a belief of many values, less this one
    cavity = (mean / variance - held * current.target) / rest
    centre, precision = matched(statement.noise, statement.target, _each(statement), cavity, 1.0 / rest)
    precision = np.exp((1.0 - KEPT) * np.log(precision) + KEPT * np.log(held))
    return replace(current, target=(1.0 - KEPT) * centre + KEPT * current.target, sigma=precision**-0.5)


def _described(problem: Problem, solution: Solution) -> Solution:
    """The posterior of the user's own problem; noise that has no one size is not offered for predictions."""
    noise = dict(solution.posterior.noise)
    for statement in problem.statements:
        jets = list(statement.relation.jets.values())
        if statement.noise is not None and len(jets) == 1 and jets[0].field in noise:
            spread = statement.noise.spread(float(np.sqrt(np.mean(_each(statement) ** 2))))
            noise.pop(jets[0].field)
            if np.isfinite(spread):
                noise[jets[0].field] = spread
    own = {s.name: float(np.sqrt(np.mean(_each(s) ** 2))) for s in problem.statements if s.noise is not None}
    shown = [(name, own.get(name, value)) for name, value in solution.settings.get("sigma", ())]
    posterior = replace(solution.posterior, problem=problem, noise=noise)
    return replace(solution, posterior=posterior, settings={**solution.settings, "sigma": shown}, resume=None)
