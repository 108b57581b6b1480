"""Noise that is not Gaussian, by expectation propagation around any method.

Each measured value has a Gaussian site in place of its likelihood. A round solves with the present sites, divides a
value's own site out of the posterior at that value (the cavity), takes the moments of cavity times likelihood (the
tilted moments, problem/noise.py) and updates the site so that cavity times site has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.choices import observation_noise, shown
from factorfield.problem.noise import matched
from factorfield.problem.problem import Problem, Statement
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
SITE_ROUNDS = 40
DAMPING = 0.3  # share of the last site that is kept
TOLERANCE = 0.02  # largest move of a mean between rounds, in standard deviations of the belief at a value


def solve_with_sites(problem: Problem, run: Callable[[Problem, Mapping[str, float]], Solution]) -> Solution:
    """The solution of a problem some of whose values have other noise than Gaussian.

    `run` solves a problem, searching on the marginal likelihood from where the last round ended."""
    statements = list(problem.statements)
    not_gaussian = [index for index, statement in enumerate(statements) if statement.noise is not None]
    for index in not_gaussian:
        statements[index] = _first_site(statements[index])
    last: dict[int, Array] = {}
    start: Mapping[str, float] = {}
    for round_ in range(SITE_ROUNDS):
        solution = run(problem.with_statements(statements), start)
        start = solution.trace.get("searched", {})
        moved = 0.0
        for index in not_gaussian:
            mean, variance = _marginal(solution, problem.statements[index])
            if index in last:
                moved = max(moved, float(np.max(np.abs(mean - last[index]) / np.sqrt(variance))))
            last[index] = mean
            statements[index] = _updated_site(problem.statements[index], statements[index], mean, variance)
        if round_ > 0 and moved < TOLERANCE:
            break
    word = "converged" if moved < TOLERANCE and solution.status == "converged" else "max-iterations"
    text = f"sites of the noise moved beliefs by {moved:.1e} standard deviations in round {round_ + 1}, the last"
    status = solution.status if solution.status == "diverged" else Status(word, text)
    return _described(problem, replace(solution, status=status))


def _first_site(statement: Statement) -> Statement:
    assert statement.noise is not None
    target, sigma = statement.noise.first_guess(statement.target, _sigmas(statement))
    return replace(statement, target=target, sigma=sigma)


def _sigmas(statement: Statement) -> Array:
    return np.broadcast_to(np.asarray(statement.sigma, float), statement.target.shape)


def _marginal(solution: Solution, statement: Statement) -> tuple[Array, Array]:
    """Mean and variance of what was measured, under the posterior with all sites."""
    assert statement.points is not None
    belief = solution.posterior.predict(statement.points, of=statement.relation.text, points=True)
    mean, variance = np.asarray(belief["mean"], float), np.asarray(belief["std"], float) ** 2
    if not np.all(np.isfinite(variance)):
        raise expected("a method with a std for noise that is not Gaussian", "one without", "method='joint'")
    return mean, np.maximum(variance, 1e-300)


def _updated_site(statement: Statement, site: Statement, mean: Array, variance: Array) -> Statement:
    """The next site of each value, from the marginal (mean, variance) that includes the current one."""
    assert statement.noise is not None
    precision = 1.0 / np.square(_sigmas(site))
    cavity_precision = np.maximum(1.0 / variance - precision, 1e-3 / variance)
    cavity_mean = (mean / variance - precision * site.target) / cavity_precision
    centre, matched_precision = matched(
        statement.noise, statement.target, _sigmas(statement), cavity_mean, 1.0 / cavity_precision
    )
    damped = np.exp((1.0 - DAMPING) * np.log(matched_precision) + DAMPING * np.log(precision))
    return replace(site, target=(1.0 - DAMPING) * centre + DAMPING * site.target, sigma=damped**-0.5)


def _described(problem: Problem, solution: Solution) -> Solution:
    """The solution of the user's own problem: its noise, not that of the sites."""
    assert solution.model is not None
    sigmas = []
    for statement, sigma in zip(problem.statements, solution.model.sigmas, strict=True):
        if statement.noise is not None:
            own = replace(sigma, value=_sigmas(statement))
            sigma = replace(own, noise=statement.noise.spread(own.typical))
        sigmas.append(sigma)
    noise = observation_noise(problem, sigmas)
    finite = {field: size for field, size in noise.items() if np.isfinite(size)}  # some noise has no one size
    posterior = replace(solution.posterior, problem=problem, noise=finite)
    pairs = zip(problem.statements, sigmas, strict=True)
    stated = [sigma if statement.noise is None else replace(sigma, noise=None) for statement, sigma in pairs]
    settings = {**solution.settings, "sigma": shown(problem, stated)}
    return replace(solution, posterior=posterior, settings=settings, resume=None)
