"""Are the intervals right? Data drawn with stated noise and counted coverage, cell by cell.

Advection of PDEBench-like initial fields: the truth is known exactly, and labels carry noise of 0.5, 2 and 10 % of the
initial field's standard deviation. A cell is (noise, labels, sigma known or not).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factorfield import metrics, problems
from factorfield.methods import Method
from factorfield.paper.tables import Column, Table, mean
from factorfield.progress import Progress
from factorfield.solving import solve

NOISES = (0.005, 0.02, 0.1)
LABELS = (64, 256, 1024)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Cell:
    noise: float
    labels: int
    known: bool


def cells(known: Sequence[bool] = (False, True)) -> list[Cell]:
    return [Cell(noise, labels, k) for k in known for noise in NOISES for labels in LABELS]


def one_draw(cell: Cell, draw: int, method: str | Method) -> dict[str, float]:
    """Coverage at each level, error and sharpness of one data set, over the whole field."""
    clean = problems.get("advection", b=0.4, row=draw)
    noise = cell.noise * float(clean.truth.isel(t=0).std())
    problem = problems.get(
        "advection", b=0.4, row=draw, noise=noise, labels=cell.labels, seed=10_000 + draw,
        sigma=noise if cell.known else None,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = solve(problem, method=method)
    truth = problem.truth.isel(t=slice(0, None, 20), x=slice(3, None, 8))
    shown = solution.predict(x=truth.x, t=truth.t)
    centre, std, exact = (np.asarray(a, float) for a in (shown["mean"], shown["std"], truth))
    row = {f"{level:g}": metrics.coverage(centre, std, exact, level) for level in LEVELS}
    row["error"] = float(np.sqrt(np.mean((centre - exact) ** 2)))
    row["std"] = float(np.mean(std))
    found = solution.posterior.noise.get("u", np.nan)
    row["noise ratio"] = found / noise
    for index, share in enumerate(metrics.pit_histogram(centre, std, exact, 10)):
        row[f"pit{index}"] = share
    return row


def calibrate(draws: int, chosen: Sequence[Cell], method: str | Method, tell: Progress | None = None) -> Table:
    """A row per cell and a pooled one per kind of sigma: coverage in per cent, error, mean std, noise found : true."""
    found = []
    for position, cell in enumerate(chosen):
        kind = f"sigma {'known' if cell.known else 'unknown'}"
        names = {"cell": f"noise {100 * cell.noise:g} %, {cell.labels} labels, {kind}", "pooled": f"pooled, {kind}"}
        for draw in range(draws):
            found.append({**names, **one_draw(cell, draw, method)})
            if tell is not None:
                tell(f"cell {position + 1}/{len(chosen)}", (position * draws + draw + 1) / (draws * len(chosen)))
    rows = pd.DataFrame(found).assign(ends=lambda rows: 10 * 0.5 * (rows["pit0"] + rows["pit9"]))
    columns: dict[str, Column] = {f"{100 * level:g} %": (f"{level:g}", mean(100)) for level in LEVELS}
    columns |= {"RMSE": ("error", mean()), "mean std": ("std", mean())}
    columns |= {"noise ratio": ("noise ratio", mean()), "PIT ends": ("ends", mean())}
    groups = [rows.groupby(name, sort=False) for name in ("cell", "pooled")]
    lines = pd.concat([group.agg(draws=("error", "size"), **columns) for group in groups])
    title = "calibration of 90 % intervals and others, over fields and noise draws"
    return Table(title, lines.rename_axis("cell").reset_index())
