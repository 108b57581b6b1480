"""Folding many measurements to few rows loses nothing: the same answer, noise and advice as with all of them."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.model import folding
from factorfield.model.folding import Summary
from factorfield.model.window_factors import WindowFactors
from factorfield.model.windowed import window_model


def reaction(count: int, sigma: bool) -> ff.Problem:
    """Two fields, an unknown rate, sums of fields and cell averages of a slope, half of them at the start."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, count), rng.uniform(0, 1, count)
    t[: count // 2] = 0.0
    u = np.cos(2 * np.pi * x) * np.exp(-t)
    slope = -2 * np.pi * np.sin(2 * np.pi * x) * np.exp(-t)
    noise = rng.uniform(0.05, 0.2, count)
    return ff.Problem(
        ["u_t = 0.01*u_xx - k*u + 0.1*v**2", "v_t = -v + 0.01*v_xx"],
        {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
        {"k": ff.Unknown(1.0, 1.0, positive=True)},
        [
            ff.Observations(
                x=x, t=t, of="u + x*v", value=u + 0.5 * x * np.exp(-t) + noise * rng.standard_normal(count),
                sigma=noise if sigma else None,
            ),
            ff.Observations(
                x=x, t=t, of="u_x", value=slope + rng.standard_normal(count), sigma=1.0, average={"x": 0.01}
            ),
            ff.Initial("v = 0.5"),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("sigma", [True, False], ids=["sigma per point", "sigma estimated"])
@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
def test_folded_measurements_give_the_same_answer(sigma: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = reaction(1500, sigma)
    found = []
    for many in (2, 10**9):
        monkeypatch.setattr(folding, "MANY", many)
        solution = ff.solve(problem, modes={"x": 3})
        found.append((solution, solution.predict(x=np.linspace(0, 0.9, 4), t=np.linspace(0, 1, 3))))
    (folded, seen), (plain, known) = found
    assert float(np.abs((seen["mean"] - known["mean"]) / known["std"]).max()) < 1e-6
    assert float(np.abs(seen["std"] / known["std"] - 1.0).max()) < 1e-6
    assert folded.parameters["k"]["std"] == pytest.approx(plain.parameters["k"]["std"], rel=1e-6)
    assert folded.warnings == plain.warnings
    assert [s for _, s in folded.settings["sigma"]] == pytest.approx([s for _, s in plain.settings["sigma"]], rel=1e-6)


def test_a_fold_keeps_the_sum_of_squares_at_any_weights() -> None:
    model = window_model(reaction(1500, True), modes={"x": 2})
    factors = WindowFactors(model)
    folds = [group for group in factors.own(0.0, 1.0, True) if isinstance(group, Summary)]
    assert [(g.name, g.count) for g in folds] == [
        ("observations of u + x*v", 750), ("observations of u + x*v", 750),
        ("observations of u_x", 750), ("observations of u_x", 750),
    ]  # fmt: skip
    assert all(len(g.target) <= model.representation.size + 1 for g in folds)
    folded = {g.name: 0.0 for g in folds}
    weights = np.random.default_rng(1).standard_normal(model.representation.size)
    plain = dict.fromkeys(folded, 0.0)
    for group in folds:
        value = group.relation.value(group.project(weights), group.parameters, group.points)
        folded[group.name] += float(np.sum(((value - group.target) / group.sigma) ** 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "MANY", 10**9)
        for group in factors.own(0.0, 1.0, True):
            if group.name in plain:
                value = group.relation.value(group.project(weights), group.parameters, group.points)
                plain[group.name] += float(np.sum(((value - group.target) / group.sigma) ** 2))
    assert folded == pytest.approx(plain, rel=1e-10)
