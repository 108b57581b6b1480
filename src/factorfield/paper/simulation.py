"""Simulation-based calibration: fields drawn from the prior, data from the fields, ranks among posterior draws.

If the posterior is right the rank of the truth among draws is uniform (Talts et al. 2018), whatever the quantity. A
linear problem with all hyperparameters fixed: advection, labels at the start and later, so that messages go both ways.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from factorfield.methods.chain.chain import Chain
from factorfield.model.windowed import window_model
from factorfield.paper.tables import Table
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Observations, Problem
from factorfield.progress import Progress

LABELS, LATER, SIGMA = 24, 5, 0.05
INSTANT = 0.7  # of the later labels
RANKS = 20  # bins: one more than posterior draws
QUANTITIES = {"u(0.1, 0)": (0, 0), "u(0.6, 0)": (0, 1), "u(0.1, 0.4)": (1, 0), "u(0.6, 1)": (2, 1)}


def problem_with(values: np.ndarray, later: np.ndarray) -> Problem:
    x, there = (np.arange(LABELS) + 0.5) / LABELS, np.linspace(0.05, 0.85, LATER)
    return Problem(
        "u_t + 0.6*u_x = 0", {"x": Periodic(0, 1), "t": Interval(0, 1)}, {},
        [
            Observations(x=x, t=0.0, u=values, sigma=SIGMA),
            Observations(x=there, t=INSTANT, u=later, sigma=SIGMA),
        ],
    )  # fmt: skip


def ranks(draws: int, seed: int = 0, tell: Progress | None = None) -> dict[str, np.ndarray]:
    """The rank of the truth among RANKS - 1 posterior draws, per quantity and simulated data set."""
    x, there = (np.arange(LABELS) + 0.5) / LABELS, np.linspace(0.05, 0.85, LATER)
    template = problem_with(np.sin(2 * np.pi * x) + 0.3 * np.cos(6 * np.pi * x), np.zeros(LATER))
    method = Chain(adapt=False)
    model = replace(window_model(template, degree=12, modes={"x": 4}, windows=np.linspace(0.0, 1.0, 5)), tails={})
    unseen = replace(model, problem=template.replace(conditions=[]), sigmas=model.sigmas[:1])
    prior = method.run(unseen).posterior
    spots, times = np.array([0.1, 0.6]), np.array([0.0, 0.4, INSTANT, 1.0])
    places = np.unique(np.concatenate([x, there, spots]))
    fields = np.asarray(prior.sample(draws, seed=seed, x=places, t=times))
    rng = np.random.default_rng(seed + 1)
    found: dict[str, list[int]] = {name: [] for name in QUANTITIES}
    for index, field in enumerate(fields):
        first = field[0, np.searchsorted(places, x)] + SIGMA * rng.standard_normal(LABELS)
        later = field[2, np.searchsorted(places, there)] + SIGMA * rng.standard_normal(LATER)
        seen = method.run(replace(model, problem=problem_with(first, later))).posterior
        drawn = seen.sample(RANKS - 1, seed=seed + 2 + index, x=spots, t=times[[0, 1, 3]])
        for name, (t, place) in QUANTITIES.items():
            truth = field[[0, 1, 3][t], np.searchsorted(places, spots[place])]
            found[name].append(int(np.sum(np.asarray(drawn)[:, t, place] < truth)))
        if tell is not None:
            tell(f"simulation {index + 1}/{len(fields)}", (index + 1) / len(fields))
    return {name: np.array(values) for name, values in found.items()}


def simulation_table(draws: int, tell: Progress | None = None) -> Table:
    """Chi-square of each quantity's rank histogram against the uniform one."""
    rows = []
    for name, values in ranks(draws, tell=tell).items():
        counts = np.bincount(values, minlength=RANKS)
        result = stats.chisquare(counts)
        rows.append({
            "quantity": name, "draws": draws, "chi-square": float(result.statistic), "p": float(result.pvalue),
            "fewest": int(counts.min()), "most": int(counts.max()),
        })  # fmt: skip
    title = f"simulation-based calibration: ranks in {RANKS} bins, advection, hyperparameters fixed"
    return Table(title, pd.DataFrame(rows))
