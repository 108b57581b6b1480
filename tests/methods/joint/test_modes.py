"""A block without time gets more modes until its last ones carry almost nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.joint.joint import Joint
from factorfield.methods.joint.modes import last_modes, lost_details, richer
from factorfield.model.block import block_model
from factorfield.model.model import BlockModel
from factorfield.solution import Solution


def layer(width: float = 0.03, **options: Any) -> BlockModel:
    walls = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    problem = ff.Problem(f"u = {width**2}*u_xx", {"x": ff.Interval(0, 1)}, {}, walls)
    return block_model(problem, **options)


def solved(model: BlockModel) -> Solution:
    return Joint(adapt=False).run(model)


def test_last_modes_that_are_there_count_and_noise_does_not() -> None:
    model = layer(modes={"x": 10})
    posterior = solved(model).posterior
    carried = last_modes(model, posterior)["x"]
    mean = posterior.weight_mean
    assert carried == pytest.approx(np.abs(mean[-2:]).max() / model.scale)
    uncertain = replace(posterior, root=1e6 * posterior.root)  # type: ignore[call-arg]
    assert last_modes(model, uncertain)["x"] == 0.0


def test_modes_grow_by_half_where_they_are_needed() -> None:
    model = layer()
    more = richer(model, solved(model))
    assert more is not None and more.modes["x"] == int(np.ceil(1.5 * model.modes["x"]))
    assert more.automatic == model.automatic == ("x",) and more.settings["automatic"] == ["x"]


@pytest.mark.parametrize("model", [layer(modes={"x": 20}), layer(width=10.0)], ids=["given", "enough"])
def test_given_modes_and_enough_of_them_stay(model: BlockModel) -> None:
    assert richer(model, solved(model)) is None


def test_a_block_in_time_does_not_grow() -> None:
    model = block_model(ff.problems.get("heat", labels=16), modes={"x": 3})
    assert model.automatic == ("t",) and richer(model, solved(model)) is None


def test_details_that_are_lost_are_told_for_automatic_modes_only() -> None:
    model = layer(width=0.002)
    (advice,) = lost_details(model, solved(model).posterior)
    assert (advice.kind, advice.about) == (
        "modes",
        "x",
    ) and f"the last of {model.modes['x']} modes along x" in advice.text
    asked = layer(width=0.002, modes={"x": 16})
    assert list(lost_details(asked, solved(asked).posterior)) == []


def test_refining_ends_at_a_model_that_holds_the_field() -> None:
    solution = ff.solve(layer())
    x = np.linspace(0, 1, 41)
    assert solution.model is not None and solution.model.modes["x"] > layer().modes["x"]
    np.testing.assert_allclose(solution.predict(x=x)["mean"], np.exp(-x / 0.03), atol=1e-3)
