"""Which equation: evidences against integrals over a grid, one prior of the start, and what the order hangs on."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

import factorfield as ff
from factorfield.ranking.one_start import common_modes, with_one_prior
from factorfield.ranking.rank import moved_level
from factorfield.solution import Status

T = np.linspace(0.2, 4.0, 12)
NOISE = 0.05 * np.random.default_rng(3).standard_normal(12)
HOURS = {"t": ff.Interval(0, 4)}
K = ff.Unknown(0.5, 0.4, positive=True)


def decay(text: str, k: ff.Unknown = K, values: np.ndarray | None = None, **more: ff.Unknown) -> ff.Problem:
    seen = ff.Observations(t=T, u=2 * np.exp(-0.6 * T) + NOISE if values is None else values, sigma=0.05)
    return ff.Problem(text, HOURS, {"k": k, **more}, [seen])


FIRST, SECOND = decay("u_t = -k*u"), decay("u_t = -k*u**2")
HEAVY = ff.Observations(t=T, u=NOISE + 1.0, sigma=0.05, noise="student-t")


def test_evidences_are_integrals_over_start_and_coefficient() -> None:
    """Quadrature and Laplace, against the log-likelihood of the exact solutions on a grid of both."""
    found = ff.rank({"first": FIRST, "second": SECOND})
    values = FIRST.statements[1].target
    start = 10.0 * ff.solve(FIRST).settings["scale"]  # prior sd of the state, as `chain` chooses it
    u0, log_k = np.linspace(1.0, 4.0, 601), np.linspace(-2.0, 1.0, 601)
    mean, variance = K.latent_moments
    prior = stats.norm(0, start).logpdf(u0)[:, None] + stats.norm(mean, math.sqrt(variance)).logpdf(log_k)
    k = np.exp(log_k)
    fields = {
        "first": lambda t: u0[:, None] * np.exp(-k * t),
        "second": lambda t: u0[:, None] / (1 + u0[:, None] * k * t),
    }
    # quadrature over one number is exact to 0.01 nats (methods/test_numbers.py); Laplace errs by the curvature of k
    for name, tolerance in (("first", 0.02), ("second", 0.1)):
        level = prior + sum(stats.norm(fields[name](t), 0.05).logpdf(y) for t, y in zip(T, values, strict=True))
        top = level.max()
        whole = top + math.log(integrate.trapezoid(integrate.trapezoid(np.exp(level - top), log_k), u0))
        assert float(found["log_evidence"].sel(name=name)) == pytest.approx(whole, abs=tolerance)
    assert list(found["evidence"].values) == ["quadrature", "Laplace"]


def test_the_table_keeps_the_given_order_and_tells_coefficients_and_misfits() -> None:
    constant = decay("u_t = -0.5*k")
    found = ff.rank({"constant": constant, "first": FIRST, "offset": decay("u_t = -k*(u - a)", a=ff.Unknown(0, 1))})
    assert list(found["name"].values) == ["constant", "first", "offset"]
    assert_allclose(found["probability"], special.softmax(found["log_evidence"].values))
    assert found.sortby("probability", ascending=False)["name"].values[0] == "first"
    one = found.sel(name="first")
    assert (
        float(one["coefficient_lower"].sel(coefficient="k"))
        < 0.6
        < float(one["coefficient_upper"].sel(coefficient="k"))
    )
    assert math.isnan(float(one["coefficient_mean"].sel(coefficient="a"))) and float(one["misfit"][0]) < 2.0
    assert float(found["misfit"].sel(name="constant")[0]) > 2.0
    odds = ff.rank({"a": ff.solve(FIRST), "b": ff.solve(FIRST)}, odds={"a": 3.0, "b": 1.0})
    assert_allclose(odds["probability"], [0.75, 0.25])


@pytest.mark.parametrize("method", ["chain", "joint"])
def test_one_prior_of_the_start_for_all(method: str) -> None:
    """To u_t = -k a constant may be added: alone, its start varies about the mean of the data. One that is a tenth as
    sure of its start is as much less probable: here both are asked with the same prior."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ff.AdviceWarning)
        found = {text: ff.solve(decay(f"u_t = {text}"), method=method) for text in ("-k", "-k*u")}
        again = with_one_prior(found, lambda model: ff.solve(model, method, adapt=False))
        told = ff.rank({text: decay(f"u_t = {text}") for text in found}, method=method)
    alone, both = ([s.model.prior for s in each.values() if s.model is not None] for each in (found, again))
    start = slice(0, 1)
    assert abs(alone[0].mean[start] - alone[1].mean[start]) > 0.1
    assert_allclose(both[0].mean[start], both[1].mean[start])
    assert_allclose(both[0].std[start], both[1].std[start], rtol=1e-9)
    assert_allclose(told["log_evidence"], [s.log_evidence for s in again.values()], atol=1e-6)


def test_candidates_with_fewer_modes_get_those_of_the_richest() -> None:
    x = np.arange(32) / 32
    seen = ff.Observations(x=x, t=0.0, u=np.sin(2 * np.pi * x) + 0.3 * np.sin(12 * np.pi * x), sigma=0.01)
    ring = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    slow, fast = (ff.solve(ff.Problem(f"u_t = {d}*u_xx", ring, {}, [seen])) for d in (1e-5, 1.0))
    assert slow.model is not None and fast.model is not None and fast.model.modes["x"] < slow.model.modes["x"]
    assert common_modes({"slow": slow, "fast": fast}) == {"fast": dict(slow.model.modes)}


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("positive", [True, False])
def test_another_prior_moves_the_evidence_as_told(factor: float, positive: bool) -> None:
    prior = ff.Unknown(0.5, 0.2, positive=positive)
    other = replace(prior, std=factor * prior.std)
    one, two = (ff.solve(decay("u_t = -k*u", k)) for k in (prior, other))
    after = one.parameters["k"]
    told = moved_level(prior, other, ff.Unknown(after["mean"], after["std"], positive))
    assert one.log_evidence is not None and two.log_evidence is not None
    assert told == pytest.approx(two.log_evidence - one.log_evidence, abs=0.02)


def test_an_order_that_hangs_on_a_prior_is_told() -> None:
    """Two names of one equation: the narrower prior is first, until the other's is as narrow."""
    wide, narrow = decay("u_t = -k*u", ff.Unknown(0.6, 0.3)), decay("u_t = -k*u", ff.Unknown(0.6, 0.2))
    with pytest.warns(ff.AdviceWarning, match="the order hangs on a prior"):
        found = ff.rank({"wide": wide, "narrow": narrow})
    half, twice = found.attrs["advice"]
    assert float(found["probability"].sel(name="narrow")) > 0.5
    assert "half the std of the prior of k in wide (0.15), wide would be the first" in half
    assert "twice the std of the prior of k in narrow (0.4), wide would be the first" in twice


def test_a_coefficient_at_its_bound_and_what_is_not_resolved_are_told() -> None:
    flat = np.full(12, 2.0) + NOISE
    with pytest.warns(ff.AdviceWarning):
        found = ff.rank({"second": decay("u_t = -k*u**2", values=flat), "first": decay("u_t = -k*u", values=flat)})
    told = " ".join(found.attrs["advice"])
    assert "second: k goes to its bound, zero" in told and "without k as a candidate" in told
    solution = ff.solve(FIRST)
    with pytest.warns(ff.AdviceWarning):
        found = ff.rank({"left": replace(solution, status=Status("unresolved")), "other": solution})
    assert "left is unresolved" in found.attrs["advice"][0] and "its evidence is as rough" in found.attrs["advice"][0]


@pytest.mark.parametrize(
    ("problems", "words"),
    [
        ({"first": FIRST}, "two or more"), ({"first": FIRST, "b": 3}, "an ff.Problem or a solution for 'b'"),
        ({"first": FIRST, "b": decay("u_t = -k*u", values=NOISE)}, "the same measurements"),
        ({"a": FIRST.replace(conditions=[]), "b": FIRST}, "measurements to judge"),
        ({"a": FIRST, "b": FIRST.replace(conditions=[HEAVY])}, "Gaussian noise"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(problems: dict[str, ff.Problem], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.rank(problems)


def test_methods_without_evidence_and_odd_odds_are_refused() -> None:
    with pytest.raises(ff.ProblemError, match="methods with an evidence"):
        ff.rank({"a": FIRST, "b": SECOND}, method="mean-field")
    for odds, words in (({"a": 1.0}, "odds of a, b"), ({"a": 1.0, "b": 0.0}, "odds > 0")):
        with pytest.raises(ff.ProblemError, match=words):
            ff.rank({"a": FIRST, "b": SECOND}, odds=odds)
