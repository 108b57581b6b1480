"""What labels of the initial field tell: its spectrum, how many modes it needs, and what those leave out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.model.activation import Activation
from factorfield.model.spectrum import MOST, Spectrum, fit
from factorfield.model.symbol import rates
from factorfield.model.window import Tail
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
MOST_MODES = 32
MOST_COUPLED = 12  # where modes mix, a window costs the cube of their number
FEWEST_MODES = 4
REPRESENTED = 3e-4  # left-out modes matter above this share of the field's scale


def spectra_of(problem: Problem) -> dict[str, Spectrum]:
    """The spectrum of each field whose values are observed at the start, along the one periodic axis."""
    space = problem.domain.space
    found: dict[str, Spectrum] = {}
    if len(space) != 1 or not isinstance(problem.domain[space[0]], Periodic):
        return found
    axis, start = problem.domain[space[0]], problem.domain[TIME].lower
    for s in problem.statements:
        if s.points is None or len(s.relation.jets) != 1 or len(s.target) < 8 or s.stencil:
            continue
        jet = next(iter(s.relation.jets.values()))
        if jet.orders or not s.relation.is_linear or np.any(s.points[TIME] != start) or jet.field in found:
            continue
        if np.ptp(s.points[space[0]]) == 0.0:
            continue
        sigma = None if s.sigma is None else float(np.sqrt(np.mean(np.square(s.sigma))))
        found[jet.field] = fit(s.points[space[0]], s.target, axis.lower, axis.length, sigma)
    return found


def chosen_modes(
    problem: Problem, given: Mapping[str, int], spectra: Mapping[str, Spectrum], scale: float
) -> dict[str, int]:
    modes = {}
    for name in problem.domain.space:
        periodic = isinstance(problem.domain[name], Periodic)
        automatic = 16 if periodic else 20
        if len(problem.domain.space) > 1:
            automatic = 6 if periodic else 10
        if spectra:
            # modes whose loss would show: beside the label noise's own share, or beside the field itself
            lasting = _lasting(problem, name)
            needed = [
                s.enough(max(REPRESENTED * scale, 0.1 * s.sigma / 8.0), MOST_MODES, lasting) for s in spectra.values()
            ]
            automatic = max(FEWEST_MODES, *needed)
            if any(not s.relation.is_linear for s in problem.statements):  # products of modes make new ones
                automatic = min(max(automatic + 4, 8), MOST_COUPLED)
        modes[name] = given.get(name, automatic)
    return modes


def _lasting(problem: Problem, axis: str) -> Array:
    """The share of the horizon that each frequency's variance lasts, at least a hundredth."""
    wave = 2.0 * np.pi * np.arange(1.0, MOST + 1.0) / problem.domain[axis].length
    weight = np.full(len(wave), 0.01)
    for statement in problem.statements:
        if statement.points is None and statement.face is None:
            found = rates(problem, statement, {axis: wave})
            exponent = np.zeros(len(wave)) if found is None else 2.0 * found.real * problem.domain[TIME].length
            decay = np.maximum(-np.broadcast_to(exponent, wave.shape), 1e-12)
            weight = np.maximum(weight, -np.expm1(-decay) / decay)
    return weight


def tails_of(
    problem: Problem, spectra: Mapping[str, Spectrum], modes: Mapping[str, int], activation: Activation
) -> dict[str, Tail]:
    """What the basis leaves out of each observed field, carried along by the equation's linear part."""
    tails: dict[str, Tail] = {}
    equations = [s for s in problem.statements if s.points is None and s.face is None]
    if len(problem.fields) != 1 or len(equations) != 1 or activation.name != "identity":
        return tails
    for name, spectrum in spectra.items():
        space = problem.domain.space[0]
        kept = modes[space]
        k = np.arange(kept + 1.0, len(spectrum.second_moment) + 1.0)
        wave = np.asarray(2.0 * np.pi * k / problem.domain[space].length, float)
        found = rates(problem, equations[0], {space: wave})
        if found is not None and len(k):
            rate = np.broadcast_to(found, wave.shape).astype(complex)
            tails[name] = Tail(space, wave, spectrum.second_moment[kept:], rate)
    return tails
