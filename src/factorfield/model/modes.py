"""How many modes: from the user, the data, the known functions and the equation's linear part; rules of all methods.

Joint's block grows until its last modes carry almost nothing, and so do a chain's windows (`refine` of each method).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, expected
from factorfield.model.basis import Fourier, family_for
from factorfield.model.resolution import modes_of_functions
from factorfield.model.spectrum import MOST as MOST_FREQUENCIES
from factorfield.model.spectrum import Spectrum
from factorfield.model.symbol import rates
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
MOST_BLOCK_MODES = 16
MOST_BLOCK_WEIGHTS = 1200  # of a block chosen automatically: a few seconds on a laptop
MOST_WINDOW_MODES = 32
MOST_COUPLED = 12  # where modes mix, a window costs the cube of their number
FEWEST_MODES = 4
REPRESENTED = 3e-4  # left-out modes matter above this share of the field's scale
RESOLVED = 3e-5  # the last modes may carry this share of the field's scale
LOST = 10.0 * RESOLVED  # and from this the user is told that details are lost
GROWTH, LEAST_GROWTH = 1.5, 1.2  # fewer more are not worth another beginning


def checked_counts(counts: Mapping[str, int] | None, problem: Problem, what: str) -> dict[str, int]:
    checked = {}
    for name, count in (counts or {}).items():
        if name not in problem.domain:
            raise expected(f"{what} for the axes {', '.join(problem.domain.names)}", name, f"{what}={{'x': 8}}")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= 100_000:
            raise expected(f"a positive whole number of {what} along {name}", count, f"{what}={{'{name}': 8}}")
        checked[name] = int(count)
    return checked


def block_modes(problem: Problem, given: Mapping[str, int]) -> tuple[dict[str, int], tuple[Advice, ...]]:
    """Modes per axis: the user's where given, else from the data (space) and the equation's linear part (time)."""
    modes = {}
    for name in problem.domain.space:
        automatic = _modes_from_data(problem, name) if isinstance(problem.domain[name], Periodic) else 16
        modes[name] = given.get(name, automatic)
    if TIME not in problem.domain:
        open_axes = [name for name in modes if name not in given]
        for name in open_axes:  # a field has two derivatives more than what it answers to
            modes[name] = max(modes[name], modes_of_functions(problem, name) + 2)
        return affordable_modes(problem, modes, open_axes), ()
    if TIME in given:
        return {**modes, TIME: given[TIME]}, ()
    across = int(np.prod([family_for(problem.domain[name], n).size for name, n in modes.items()], dtype=int))
    wanted, most = _time_degree(problem, modes), max(12, MOST_BLOCK_WEIGHTS // (across * len(problem.fields)) - 1)
    modes[TIME] = min(wanted, most)
    if wanted <= most:
        return modes, ()
    text = (
        f"the equation's fastest waves ask for degree {wanted} in time, {most} keeps the model small; "
        "set modes={'t': ...} for more, or shorten the horizon"
    )
    return modes, (Advice("modes", text, TIME),)


def affordable_modes(problem: Problem, wanted: Mapping[str, int], automatic: Sequence[str]) -> dict[str, int]:
    """As many of the wanted modes as keep the model small, taken from the longest of the automatic axes."""
    modes = dict(wanted)

    def weights() -> int:
        sizes = [family_for(problem.domain[name], n).size for name, n in modes.items()]
        return len(problem.fields) * int(np.prod(sizes, dtype=float))

    while automatic and weights() > MOST_BLOCK_WEIGHTS and max(modes[name] for name in automatic) > MOST_BLOCK_MODES:
        modes[max(automatic, key=modes.__getitem__)] -= 1
    return modes


def _modes_from_data(problem: Problem, axis: str) -> int:
    """The fewest frequencies that explain data along a periodic axis; 8 without data.

    Enough is 99.99 % of the varying energy, or - when the rest is noise - the minimum of the Bayesian information
    criterion, whichever comes first.
    """
    for statement in problem.statements:
        if statement.points is None or len(problem.domain.space) != 1 or statement.stencil:
            continue
        x, values = statement.points[axis], statement.target - np.mean(statement.target)
        most = min(MOST_BLOCK_MODES, (len(np.unique(x)) - 1) // 4)
        if most < 1 or not np.any(values) or (TIME in problem.domain and np.ptp(statement.points[TIME]) > 0):
            continue
        features = Fourier(most, problem.domain[axis].lower, problem.domain[axis].length)(x)
        rotated = np.linalg.qr(features)[0].T @ values
        explained = np.cumsum(rotated**2)[2::2]  # by 1, 2, ... frequencies
        left = np.maximum(values @ values - explained, 1e-30 * (values @ values))
        count = np.arange(1, most + 1)
        criterion = len(x) * np.log(left) + (2 * count + 1) * np.log(len(x))
        enough = np.flatnonzero(left <= 1e-4 * (values @ values))
        return int(min(count[np.argmin(criterion)], count[enough[0]] if len(enough) else most))
    return 8


def _time_degree(problem: Problem, modes: Mapping[str, int]) -> int:
    """Degree in time from the linear part: oscillations need about rate * T / 2, decays its square root."""
    horizon = problem.domain[TIME].length
    waves = {name: 2.0 * np.pi * modes[name] / problem.domain[name].length for name in problem.domain.space}
    degree = 12.0
    for statement in problem.statements:
        found = rates(problem, statement, waves) if statement.points is None and statement.face is None else None
        if found is not None:
            rate = complex(found[0])
            degree = max(degree, 12.0 + 0.6 * abs(rate.imag) * horizon + 2.0 * np.sqrt(abs(rate.real) * horizon))
    return int(np.ceil(min(degree, 200.0)))


# -- of windows


def window_modes(
    problem: Problem, given: Mapping[str, int], spectra: Mapping[str, Spectrum], scale: float
) -> dict[str, int]:
    """Modes per space axis of a window: the user's where given, else what labels of the start show, else a guess."""
    modes = {}
    for name in problem.domain.space:
        periodic = isinstance(problem.domain[name], Periodic)
        automatic = 16 if periodic else 20
        if len(problem.domain.space) > 1:
            automatic = 6 if periodic else 10
        if spectra:
            # modes whose loss would show: beside the label noise's own share, or beside the field itself
            lasting = _lasting(problem, name)
            losses = [max(REPRESENTED * scale, 0.1 * s.sigma / 8.0) for s in spectra.values()]
            needed = [s.enough(e, MOST_WINDOW_MODES, lasting) for s, e in zip(spectra.values(), losses, strict=True)]
            automatic = max(FEWEST_MODES, *needed)
            if any(not s.relation.is_linear for s in problem.statements):  # products of modes make new ones
                automatic = min(max(automatic + 4, 8), MOST_COUPLED)
        modes[name] = given.get(name, automatic)
    return modes


def _lasting(problem: Problem, axis: str) -> Array:
    """The share of the horizon that each frequency's variance lasts, at least a hundredth."""
    wave = 2.0 * np.pi * np.arange(1.0, MOST_FREQUENCIES + 1.0) / problem.domain[axis].length
    weight = np.full(len(wave), 0.01)
    for statement in problem.statements:
        if statement.is_equation:
            found = rates(problem, statement, {axis: wave})
            exponent = np.zeros(len(wave)) if found is None else 2.0 * found.real * problem.domain[TIME].length
            decay = np.maximum(-np.broadcast_to(exponent, wave.shape), 1e-12)
            weight = np.maximum(weight, -np.expm1(-decay) / decay)
    return weight
