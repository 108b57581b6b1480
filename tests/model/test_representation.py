"""A window of time: its basis moved along, its state at the start, and the map to its end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.factors import functional_rows
from factorfield.model.representation import (
    Representation,
    end_map,
    field_form,
    layout,
    states_of,
    window_representation,
)
from factorfield.model.windowed import window_model

DOMAIN = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 2)}
SYSTEM = ff.Problem(
    ["u_tt = c*u_xx + v", "v_t = 0.1*v_xx - v**2"],  # nonlinear: the coefficient is a weight
    DOMAIN,
    {"c": ff.Unknown(1.0, 0.1)},
    [ff.Initial("u = 1"), ff.Initial("v = 2")],
)


def window(lower: float = 0.0, upper: float = 2.0) -> Representation:
    return window_representation(window_model(SYSTEM, modes={"x": 1}, degree=5).representation, lower, upper)


def test_the_state_is_what_the_next_window_needs_to_know() -> None:
    """u and u_t, v, and the coefficient: everything else is inner."""
    template = window()
    state, inner = layout(template)
    assert len(state) == 3 * 2 + 3 * 1 + 1 and len(state) + len(inner) == template.size == 2 * 3 * 6 + 1
    assert [states_of(latent) for latent in template.latents.values()] == [2, 1, 1]
    assert not set(state) & set(inner)
    u = template.latents["u"].block
    assert list(state[:6]) == list(range(u.start, u.start + 6)) and state[-1] == template.latents["c"].block.start


def values(representation: Representation, name: str, order: int, time: float, weights: np.ndarray) -> np.ndarray:
    """A time derivative of a field at five places."""
    relation = "u" if name == "u" else "v"
    text = relation + ("_" + "t" * order if order else "")
    problem = SYSTEM.replace(
        conditions=[ff.Observations(x=np.arange(5) / 5, t=time, of=text, value=np.zeros(5), sigma=1.0)]
    )
    statement = problem.statements[-1]
    latent, points = representation.latents[name], statement.points
    assert points is not None
    (functional,) = representation.read(statement.relation).functionals
    return functional_rows(functional, latent.basis, points, {}) @ weights[latent.block]


def test_the_end_map_gives_the_field_and_its_slopes_at_the_end() -> None:
    here = window(0.5, 1.25)
    weights = np.random.default_rng(0).standard_normal(here.size)
    after = window(1.25, 2.0)
    next_weights = np.zeros(after.size)
    next_weights[layout(after)[0]] = end_map(here) @ weights
    for name, order in (("u", 0), ("u", 1), ("v", 0)):
        at_end, at_start = (values(w, name, order, 1.25, x) for w, x in ((here, weights), (after, next_weights)))
        assert_allclose(at_end, at_start, atol=1e-11)
    assert next_weights[-1] == weights[-1]  # a coefficient does not change


def test_a_moved_window_has_the_same_features_as_seen_from_its_start() -> None:
    first, moved = window(0.0, 0.5), window(1.5, 2.0)
    weights = np.random.default_rng(1).standard_normal(first.size)
    assert list(first.forms) == list(moved.forms) and first.size == moved.size
    assert_allclose(values(first, "u", 1, 0.3, weights), values(moved, "u", 1, 1.8, weights), atol=1e-10)
    assert_allclose(end_map(first), end_map(moved), atol=1e-10)


def test_a_form_has_a_finite_weight_for_every_unit() -> None:
    assert field_form("u", ("t",), ff.Identity()).latents == ("u",)
    assert field_form("u", ("t",), ff.Identity(), (1.0, -1.0)).latents == ("u1", "u2")
    for readout in ((), (1.0, np.inf)):
        with pytest.raises(ff.ProblemError, match="a finite readout weight per unit"):
            field_form("u", ("t",), ff.Identity(), readout)


def test_a_representation_survives_its_description() -> None:
    original = window(0.5, 1.0)
    again = Representation.from_spec(*original.spec())
    weights = np.random.default_rng(2).standard_normal(original.size)
    for name, order in (("u", 0), ("u", 1), ("v", 0)):
        assert np.array_equal(values(original, name, order, 0.8, weights), values(again, name, order, 0.8, weights))
