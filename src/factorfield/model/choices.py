"""Automatic choices, for all methods side by side: sizes, sigmas, numbers of modes, priors.

Elsewhere are, of windows, the degree in time, the first window's length, the points and the axes whose modes may grow
(windowed.py), and the spectrum of labels at the start (spectrum.py); corners.py softens the sigmas of a start that
disagrees with a wall.

One Gaussian over the whole domain (joint and the other methods of one block) asks equations pointwise and cannot meet
them exactly; windows of time (chain) ask an equation as often as it has weights to settle and walls as often as they
can hold. So their defaults differ, and are given here in units of what they qualify:

    |                      | one block                          | windows                                      |
    | equation             | 1e-3 of its largest term           | 1e-5 of the field per horizon, or rounding   |
    | start (initial)      | 1e-4 of its size                   | 1e-4 of its size                             |
    | wall (boundary)      | 1e-4 of its size                   | 1e-9 of its size: it holds                   |
    | measurement          | estimated from eight values on, else 1e-2 of the field, in both              |

Where a model can follow, these are 1e-5 times as large (`HOLDS`): in one block without time and without unknown
functions, in windows where nothing but the start informs. Then what an answer is off by is numerical error, which is
estimated and part of the std.

The size of a field is that of its variation about its offset (`field_offsets`), told by conditions or by a first solve
(sizes.py); that of a term is its largest anywhere in the domain, sources included. A sigma that was given stays; on
the face of a start or a wall it is the size of a smooth error (face_errors.py), with which the condition then holds to
a small share of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from factorfield.errors import Advice, expected
from factorfield.messages.gaussian import Diagonal
from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Departure, Fourier, family_for
from factorfield.model.functions import coefficient_prior, features_of
from factorfield.model.narrow import quick
from factorfield.model.representation import Representation
from factorfield.model.spectrum import (
    FEWEST_LABELS,
    MOST_FREQUENCIES,
    Spectrum,
    largest,
    lasting_rates,
    over_domain,
    rates,
    terms_over_domain,
)
from factorfield.problem.domain import TIME, Interval, Periodic, Points
from factorfield.problem.noise import LogNormal
from factorfield.problem.places import places_of
from factorfield.problem.problem import Problem
from factorfield.problem.reference import reference_state
from factorfield.problem.relation import Relation, evaluate_coefficient
from factorfield.problem.statement import Statement

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
# sizes
SMALLEST_CONDITION = 1e-5  # of the field's scale: the least size of a condition that rounding leaves any meaning
SMALLEST_DIFFERENCE = 0.1  # the same of a condition that tells a difference from an offset
ROUNDING = 1e-9  # of the field's scale: an offset below is none
MATTERS = 0.1  # of its equation's largest term: from here the field's own value settles what it varies about
# sigmas
LABEL_NOISE = 0.01  # default sigma of a measurement, in units of the field's scale
FACE_NOISE = 1e-4  # of an initial or boundary condition: they are meant to hold
BESIDE_ERROR = 0.03  # of the sigma given to a start or a wall: how well the condition with its smooth error holds
BLOCK_RESIDUAL = 1e-3  # of an equation in one block, in units of its largest term
HOLDS = 1e-5  # times these, where a model can follow: an equation, start or wall without a sigma then holds
WINDOW_RESIDUAL = 1e-5  # of an equation in windows: this share of the field's scale over the horizon
WALL_NOISE = 1e-9  # of a wall in windows: it holds. Noise that is new at every instant would be no smooth field
LEAST_RESIDUAL = 1e-12  # smallest sigma of an equation in windows, in units of its terms
FIRST_NOISE = 0.1  # where the search for the noise of labels begins, in units of the field's scale
# modes
MOST_BLOCK_MODES = 16
MOST_BLOCK_WEIGHTS = 1200  # of a block chosen automatically: a few seconds on a laptop
MOST_SEARCHED_WEIGHTS = 500  # the same of a nonlinear one, which is solved a dozen times
MOST_PRODUCTS = 400  # weights of a block for the sake of products with unknown functions
MOST_WINDOW_MODES = 32
MOST_COUPLED = 12  # where modes mix, a window costs the cube of their number
FEWEST_MODES = 4
REPRESENTED = 3e-4  # left-out modes matter above this share of the field's scale
RESOLVED = 3e-5  # the last modes may carry this share of the field's scale
LOST = 10.0 * RESOLVED  # and from this the user is told that details are lost
GROWTH, LEAST_GROWTH = 1.5, 1.2  # fewer more are not worth another beginning
HELD_FUNCTION = 1e-5  # of a function's size: what its left-out coefficients may carry
ALONG, ACROSS = 512, 17  # points along the axis that is asked about, and along each other one
# priors
BROAD = 10.0  # prior sd of a state that nothing is known about, in units of the field's scale
MOST_COUNTED = 1000  # modes or points along one axis that may be asked for
OPEN = 1e3  # of what the equation settles: every window has its own, and together they must not speak about the state


# -- how large things are: fields, conditions, the terms of an equation


@dataclass(frozen=True)
class Sizes:
    """How large things are: the fields' typical size, and the level that each of them varies about."""

    scale: float
    offsets: Mapping[str, float] = field(default_factory=dict)  # of fields that may be shifted
    loaded: float = 0.0  # what loads could make of a field whose values nothing tells, unknown coefficients and all

    @property
    def reach(self) -> float:
        """For priors."""
        return max(self.scale, self.loaded)

    @property
    def shown(self) -> dict[str, float]:
        """For settings: the offsets that there are."""
        return {name: offset for name, offset in self.offsets.items() if offset}

    @property
    def magnitude(self) -> float:
        """Of the largest numbers that occur: what rounding is relative to."""
        return max([self.scale, *(abs(offset) for offset in self.offsets.values())])


def field_scale(problem: Problem, offsets: Mapping[str, float] | None = None) -> float:
    """The fields' typical size: what the conditions say about them beside their offsets, else what sources and fluxes
    make of them, else the offsets' own, else 1."""
    levels = offsets or {}
    return told_scale(problem, levels) or loaded_scale(problem, levels) or Sizes(0.0, levels).magnitude or 1.0


def loaded_scale(problem: Problem, offsets: Mapping[str, float]) -> float:
    """The largest size that any statement's values, sources or fluxes could make of a field, by its largest term."""
    return max((_told_size(problem, statement, offsets) for statement in problem.statements), default=0.0)


def told_scale(problem: Problem, offsets: Mapping[str, float]) -> float:
    """The size that conditions on the fields' values tell; 0 where all of them say the offsets."""
    told = [s for s in problem.statements if s.kind != "equation" and _tells_values(s)]
    return max((_told_size(problem, statement, offsets) for statement in told), default=0.0)


def _tells_values(statement: Statement) -> bool:
    return any(not jet.orders for jet in statement.relation.jets.values())


def starts_by_formula(problem: Problem) -> bool:
    """Is a value of the fields told at the start of time, not by labels?"""
    begin = problem.domain[TIME].lower
    at_start = [s for s in problem.statements if (s.face or {}).get(TIME) == begin]
    return any(not jet.orders for s in at_start for jet in s.relation.jets.values())


def field_offsets(problem: Problem) -> dict[str, float]:
    """The level that each field varies about, where only differences from it matter: an offset is no size.

    A field may be shifted if every statement reads its value linearly and alone: that changes sources only. It varies
    about what walls tell of its values, on average. Without such walls, where terms in its value itself matter in the
    equations, about the level at which constant fields obey them (of h*(u - 20), 20; of u'' = -u, 0); else about what
    starts and measurements tell.
    """
    movable = [name for name in problem.fields if all(_may_shift(s, name) for s in problem.statements)]
    walls = [_told_mean(problem, name, walls=True) for name in movable]
    told = np.array([_told_mean(problem, n) or 0.0 if w is None else w for n, w in zip(movable, walls, strict=True)])
    free = np.array([wall is None for wall in walls], bool)
    equations = [s for s in problem.statements if s.kind == "equation"]
    slopes, levels = np.zeros((len(equations), len(movable))), np.zeros(len(equations))
    for row, statement in enumerate(equations):
        size = natural_size(statement.relation, problem, 1.0)
        own = {jet.field: c for jet, c in statement.relation.linear_part.items() if not jet.orders}
        at_zero = {symbol: 0 for symbol, jet in statement.relation.jets.items() if jet.field in problem.fields}
        levels[row] = _mean(problem, statement.relation.expression.subs(at_zero)) / size
        slopes[row] = [_mean(problem, own[name]) / size if name in own else 0.0 for name in movable]
    own_terms = slopes[:, free]
    if np.any(own_terms):
        settled = np.linalg.pinv(own_terms, rcond=MATTERS / np.linalg.norm(own_terms, 2))
        told[free] -= settled @ (levels + slopes @ told)
    found = dict(zip(movable, map(float, told), strict=True))
    size = max(told_scale(problem, found), loaded_scale(problem, found))
    return {name: 0.0 if abs(offset) < ROUNDING * size else offset for name, offset in found.items()}


def _may_shift(statement: Statement, name: str) -> bool:
    """Is a field's value read linearly, beside nothing that multiplies it?"""
    relation = statement.relation
    if statement.noise is not None and statement.noise.name == LogNormal.name:
        return False
    fields = {symbol for symbol, jet in relation.jets.items() if jet.field not in relation.functions}
    own = [slope for jet, slope in relation.jacobian.items() if jet.field == name and not jet.orders]
    return all(not slope.free_symbols & fields for slope in own)


def _told_mean(problem: Problem, name: str, walls: bool = False) -> float | None:
    """The mean of the values that walls, or other conditions, tell of a field, each once; None if none does."""
    means = []
    for statement in problem.statements:
        relation = statement.relation
        own = [slope for jet, slope in relation.jacobian.items() if jet.field == name and not jet.orders]
        kinds = ("boundary",) if walls else ("initial", "observation")
        if statement.kind not in kinds or relation.fields != (name,) or not own or not _share(statement):
            continue
        points = _where(problem, statement, _cells(problem))
        slope = np.asarray(evaluate_coefficient(own[0], problem.typical_parameters, points), float)
        with np.errstate(all="ignore"):
            value = (statement.target - evaluate_at(relation, problem, points)) / slope
        means += [float(np.mean(value[np.isfinite(value)]))] if np.any(np.isfinite(value)) else []
    return float(np.mean(means)) if means else None


def _mean(problem: Problem, coefficient: sympy.Expr) -> float:
    values = over_domain(problem, coefficient)
    return float(np.mean(np.nan_to_num(values)))


def condition_scale(problem: Problem, statement: Statement, sizes: Sizes) -> float:
    """The size of what a condition on a face says, of the field where it says zero: one infected among millions."""
    own = _told_size(problem, statement, sizes.offsets)
    # beside an offset, a small difference is chance
    chance = any(jet.field in sizes.offsets and not jet.orders for jet in statement.relation.jets.values())
    least = SMALLEST_DIFFERENCE if chance else SMALLEST_CONDITION
    return max(own, least * sizes.scale) if own > 0.0 else sizes.scale


def _told_size(problem: Problem, statement: Statement, offsets: Mapping[str, float]) -> float:
    """The field's size by one statement alone; 0 where it tells none."""
    size = _source_size(problem, statement, offsets)
    if not np.isfinite(size):  # such as log(u), which has no value where the field vanishes
        named = [reference_state(problem)[name][1] for name in statement.relation.fields]
        return max(named, default=0.0) if statement.kind != "equation" else 0.0
    own = [abs(offsets.get(jet.field, 0.0)) for jet in statement.relation.jets.values() if not jet.orders]
    response = _response(problem, statement)
    # a difference from the offset that is but rounding tells nothing
    return size / response if size > 1e-12 * response * max(own, default=0.0) else 0.0


def _source_size(problem: Problem, statement: Statement, offsets: Mapping[str, float]) -> float:
    """The root mean square of what a statement says beside fields at their offsets: values, fluxes, sources; short
    pulses by what they amount to over the horizon. Not finite where it has no value beside them."""

    def said(points: Points) -> float:
        values = evaluate_at(statement.relation, problem, points, offsets)
        return float(np.sqrt(np.mean((statement.target - _share(statement) * values) ** 2)))

    along = _cells(problem)
    brief = []
    for part in quick(problem, statement):  # a source acts as long as it lasts, a value is what it is
        share = part.length / problem.domain[TIME].length if statement.kind == "equation" else 1.0
        brief.append(share * said(_where(problem, statement, along | {TIME: part.cells(64)})))
    return max([said(_where(problem, statement, along)), *brief])


def _share(statement: Statement) -> float:
    """Of a constant, in what a statement reads: 1, and 0 in a difference of two places."""
    total = sum(weight for _, weight in statement.stencil) if statement.stencil else 1.0
    return total if abs(total) > ROUNDING else 0.0


def _cells(problem: Problem) -> dict[str, Array]:
    return {name: axis.cells(64) for name, axis in problem.domain.items()}


def _where(problem: Problem, statement: Statement, along: Mapping[str, Array]) -> Points:
    return places_of(statement, problem.domain, problem.shape, along)


def _response(problem: Problem, statement: Statement) -> float:
    """What a statement says about a field of size one that varies over the whole domain; of the field itself, if it
    names that: h*(u - 20) is about 20, whatever h is."""
    terms = terms_over_domain(problem, statement.relation)
    own = [largest(slopes) for jet, slopes in terms.items() if not jet.orders]
    if statement.kind == "equation" or not own:
        return natural_size(statement.relation, problem, 1.0)
    return max(own) or 1.0


def evaluate_at(
    relation: Relation, problem: Problem, points: Points, offsets: Mapping[str, float] | None = None
) -> Array | float:
    """A relation where fields are constant, at their offsets, and unknown coefficients at their means."""
    levels = {str(symbol): (offsets or {}).get(jet.field, 0.0) for symbol, jet in relation.jets.items()}
    flat = {str(symbol): 0.0 for symbol, jet in relation.jets.items() if jet.orders}
    return evaluate_coefficient(relation.expression, {**levels, **flat, **problem.typical_parameters}, points)


def natural_size(relation: Relation, problem: Problem, scale: float) -> float:
    """The size of the largest linear term, anywhere, for a field of size `scale` varying over the whole domain."""
    sizes = []
    for jet, slopes in terms_over_domain(problem, relation).items():
        size = largest(slopes)
        for axis, times in jet.orders:
            size /= problem.domain[axis].length ** times
        sizes.append(size)
    return scale * (max(sizes, default=1.0) or 1.0)


# -- sigmas


@dataclass(frozen=True, eq=False)
class Sigma:
    """The standard deviation of a statement, one number or one per measurement, and where it comes from."""

    value: float | Array
    origin: Literal["given", "estimated", "default"]
    noise: float | Array | None = None  # of the measurement alone, where `value` holds what the basis leaves out too
    is_open: bool = False  # is it found while solving?
    rounds: int = 0  # how often it has been estimated anew

    @property
    def typical(self) -> float:
        return _root_mean_square(self.value)

    @property
    def stated(self) -> float:
        """What was given or chosen; what a basis cannot follow is no part of it."""
        own = self.value if self.noise is None or self.origin == "estimated" else self.noise
        return _root_mean_square(own)


def _root_mean_square(values: float | Array) -> float:
    """Of numbers whose squares may be beyond all numbers."""
    largest = float(np.max(np.abs(values)))
    if not 0.0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(np.mean(np.square(values / largest))))


def observation_noise(problem: Problem, sigmas: Sequence[Sigma]) -> dict[str, float]:
    """What one more measurement of a field would add: the root mean square of all its direct measurements' noise."""
    squares: dict[str, list[Array]] = {}
    for statement, sigma in zip(problem.statements, sigmas, strict=True):
        if statement.is_direct:
            noise = sigma.value if sigma.noise is None else sigma.noise
            each = np.broadcast_to(np.square(noise), statement.target.shape)
            squares.setdefault(statement.jet.field, []).append(each)
    return {name: float(np.sqrt(np.mean(np.concatenate(found)))) for name, found in squares.items()}


def shown(problem: Problem, sigmas: Sequence[Sigma]) -> list[tuple[str, float]]:
    """For settings: every statement with its sigma."""
    return [(s.name, sigma.stated) for s, sigma in zip(problem.statements, sigmas, strict=True)]


def block_sigmas(problem: Problem, sizes: Sizes) -> tuple[Sigma, ...]:
    """Of a model with one weight vector."""
    return tuple(_block_sigma(problem, statement, sizes) for statement in problem.statements)


def _block_sigma(problem: Problem, statement: Statement, sizes: Sizes) -> Sigma:
    if statement.face is not None:
        return _face_sigma(statement, FACE_NOISE * _face_size(problem, statement, sizes))
    if statement.sigma is not None:
        return Sigma(statement.sigma, "given")
    if statement.kind == "observation":
        return Sigma(LABEL_NOISE * sizes.scale, "default", is_open=len(statement.target) >= FEWEST_LABELS)
    source = _source_size(problem, statement, sizes.offsets)
    terms = largest([natural_size(statement.relation, problem, sizes.scale), source])
    return Sigma(BLOCK_RESIDUAL * terms, "default")


def _face_sigma(statement: Statement, default: float) -> Sigma:
    """Of a start or a wall. What is given is the size of its error, a function of its own; beside that it holds."""
    if statement.sigma is None:
        return Sigma(default, "default")
    given = float(np.max(statement.sigma))
    return Sigma(given if statement.error is None else BESIDE_ERROR * given, "given", given)


def _face_size(problem: Problem, statement: Statement, sizes: Sizes) -> float:
    return natural_size(statement.relation, problem, condition_scale(problem, statement, sizes))


def window_sigmas(
    problem: Problem, sizes: Sizes, spectra: Mapping[str, Spectrum], modes: Mapping[str, int], fastest: float,
    is_forward: bool = False,
) -> tuple[Sigma, ...]:  # fmt: skip
    """Of a model with windows of time; `fastest` is the rate of the fastest wave that its modes hold, `is_forward`
    says that nothing but the start informs."""
    held = HOLDS if is_forward else 1.0
    # the least that rounding lets an equation meet
    least = LEAST_RESIDUAL * sizes.magnitude * max(fastest, 1.0 / problem.domain[TIME].length)
    found = []
    for statement in problem.statements:
        if statement.kind == "equation":
            found.append(_window_residual(problem, statement, sizes, least, held * WINDOW_RESIDUAL))
        elif statement.kind == "observation":
            found.append(_label_sigma(problem, statement, sizes, spectra, modes))
        else:
            share = held * FACE_NOISE if TIME in (statement.face or {}) else WALL_NOISE
            rounding = LEAST_RESIDUAL * natural_size(statement.relation, problem, sizes.magnitude)
            default = max(share * _face_size(problem, statement, sizes), rounding)
            own = _face_sigma(statement, default)
            smooth = statement.error is not None and TIME not in (statement.face or {})
            found.append(replace(own, value=min(default, own.value)) if smooth else own)
    return tuple(found)


def _window_residual(problem: Problem, statement: Statement, sizes: Sizes, least: float, share: float) -> Sigma:
    if statement.sigma is None:
        return Sigma(max(share * sizes.scale / problem.domain[TIME].length, 10.0 * least), "default")
    if np.max(statement.sigma) < least:
        received, remedy = f"{float(np.max(statement.sigma)):.2g}", f"Equation(..., sigma={100 * least:.1g})"
        raise expected(f"sigma of the equation of at least {least:.2g}: rounding is larger", received, remedy)
    return Sigma(statement.sigma, "given")


def _label_sigma(
    problem: Problem, statement: Statement, sizes: Sizes, spectra: Mapping[str, Spectrum], modes: Mapping[str, int]
) -> Sigma:
    given = statement.sigma
    one = len(statement.relation.jets) == 1 and not statement.jet.orders
    spectrum = spectra.get(statement.jet.field) if one else None
    assert statement.points is not None
    if spectrum is not None and np.all(statement.points[TIME] == problem.domain[TIME].lower):
        noise = spectrum.sigma if given is None else given
        left_out = spectrum.left_out(modes[problem.domain.space[0]])  # what the basis cannot follow disturbs labels too
        value = np.sqrt(np.square(noise) + left_out)
        return Sigma(value, "estimated" if given is None else "given", noise)
    if given is not None:
        return Sigma(given, "given")
    if len(statement.target) >= FEWEST_LABELS:
        return Sigma(FIRST_NOISE * sizes.scale, "estimated", is_open=True)
    return Sigma(LABEL_NOISE * sizes.scale, "default")


# -- modes of one block


def check_orders(statements: Sequence[Statement], degrees: Mapping[str, int]) -> None:
    """Polynomials have to outlast the derivatives that are asked of them."""
    for axis, degree in degrees.items():
        order = max(statement.relation.order(axis) for statement in statements)
        if degree <= order:
            raise expected(
                f"polynomials along {axis} of a degree above the highest derivative ({order})", f"{degree}",
                f"modes={{'{axis}': {order + 8}}}" if axis != TIME else f"degree={order + 8}",
            )  # fmt: skip


def checked_counts(
    counts: Mapping[str, int] | None, problem: Problem, what: str, most: int = MOST_COUNTED
) -> dict[str, int]:
    checked = {}
    for name, count in (counts or {}).items():
        if name not in problem.domain:
            raise expected(f"{what} for the axes {', '.join(problem.domain.names)}", name, f"{what}={{'x': 8}}")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= most:
            wanted = f"a whole number of {what} along {name} from 1 to {most}"
            raise expected(wanted, count, f"{what}={{'{name}': 8}}")
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
            modes[name] = max(modes[name], modes_of_functions(problem, name) + 2, _modes_of_products(problem, name))
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


def affordable_modes(
    problem: Problem, wanted: Mapping[str, int], automatic: Sequence[str], linear: bool = True
) -> dict[str, int]:
    """As many of the wanted modes as keep the model small, taken from the longest of the automatic axes."""
    modes = {name: min(count, MOST_COUNTED) for name, count in wanted.items()}
    most = MOST_BLOCK_WEIGHTS if linear else MOST_SEARCHED_WEIGHTS

    def weights() -> int:
        sizes = [family_for(problem.domain[name], n).size for name, n in modes.items()]
        return len(problem.fields) * int(np.prod(sizes, dtype=float))

    while automatic and weights() > most and max(modes[name] for name in automatic) > MOST_BLOCK_MODES:
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
            turns, decays = largest(found.imag) * horizon, largest(found.real) * horizon
            degree = max(degree, 12.0 + 0.6 * turns + 2.0 * np.sqrt(decays))
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
        if statement.kind == "equation":
            found = rates(problem, statement, {axis: wave})
            rate = np.zeros(1) if found is None else lasting_rates(found).real
            decay = np.maximum(-np.broadcast_to(2.0 * rate * problem.domain[TIME].length, wave.shape), 1e-12)
            weight = np.maximum(weight, -np.expm1(-decay) / decay)
    return weight


# -- modes that known functions need: sources, coefficients and walls given as formulas or tables


def modes_of_functions(problem: Problem, axis: str) -> int:
    """The fewest frequencies (periodic) or lowest degree (interval) along an axis that holds them; 0 without any."""
    spoken = [s for s in problem.statements if s.points is None and s.wall is None and axis not in (s.face or {})]
    return max((_modes_of(problem, statement, axis) for statement in spoken), default=0)


def _modes_of_products(problem: Problem, axis: str) -> int:
    """Where an unknown function multiplies the field, the field bends as its inverse does: twice the function's."""
    product = any(s.relation.functions and not s.relation.is_linear for s in problem.statements if s.kind == "equation")
    over = [u for u in problem.functions.values() if axis in u.over] if product else []
    most = int(MOST_PRODUCTS ** (1.0 / len(problem.domain.names)))
    return min(max((2 * features_of(u, problem.domain[axis]) for u in over), default=0) + 2, most) if over else 0


def _modes_of(problem: Problem, statement: Statement, axis: str) -> int:
    where = problem.domain[axis]
    face = statement.face or {}
    axes = {
        name: where.collocation(ALONG) if name == axis
        else np.array([face[name]]) if name in face else problem.domain[name].cells(ACROSS)
        for name in problem.domain.names
    }  # fmt: skip
    points = problem.domain.tensor(axes)
    values = {**{str(symbol): 1.0 for symbol in statement.relation.jets}, **problem.typical_parameters}
    found = evaluate_coefficient(statement.relation.expression, values, points)
    if np.ndim(found) == 0 or not np.all(np.isfinite(found)):
        return 0
    table = np.moveaxis(
        np.reshape(found, [len(axes[name]) for name in problem.domain.names]), problem.domain.names.index(axis), 0
    )
    coefficients = fft.dct(table, axis=0) / ALONG if isinstance(where, Interval) else np.fft.rfft(table, axis=0) / ALONG
    carried = np.abs(coefficients).reshape(len(coefficients), -1).max(axis=1)
    return int(np.flatnonzero(carried > HELD_FUNCTION * carried.max(initial=0.0))[-1]) if carried.max() > 0.0 else 0


# -- priors of the weights; coefficients have the prior they were given, errors of faces are standard normal


def block_prior(problem: Problem, representation: Representation, sizes: Sizes, activation: Activation) -> Diagonal:
    """Every field weight N(0, s^2), s the pre-activation that gives the field's scale, the constant one about the
    field's offset; coefficients as stated."""
    mean, variance = np.zeros(representation.size), np.empty(representation.size)
    reach = sizes.reach if isinstance(activation, Identity) else float(abs(activation.inverse(sizes.reach)))
    for name, form in representation.forms.items():
        for latent in form.latents:
            block = representation.latents[latent].block
            if name not in problem.fields:
                mean[block], variance[block] = coefficient_prior(problem, name)
            else:
                variance[block] = reach**2
                mean[block.start] = sizes.offsets.get(name, 0.0)  # the first feature of every family is 1
    return Diagonal.from_moments(mean, variance)


def window_prior(
    problem: Problem, representation: Representation, sizes: Sizes, activation: Activation,
    spectra: Mapping[str, Spectrum], modes: Mapping[str, int], fastest: float,
) -> Diagonal:  # fmt: skip
    """Means and sds of a window's weights: the spectrum at the start, broad for what the equation settles."""
    reach = sizes.reach if isinstance(activation, Identity) else float(abs(activation.inverse(sizes.reach)))
    mean, sd = np.zeros(representation.size), np.full(representation.size, OPEN * reach)
    horizon = problem.domain[TIME].length
    for name, form in representation.forms.items():
        for latent_name in form.latents:
            latent = representation.latents[latent_name]
            if name not in problem.fields:
                mean[latent.block], variance = coefficient_prior(problem, name)
                sd[latent.block] = np.sqrt(variance)
                continue
            family = latent.basis.families[TIME]
            assert isinstance(family, Departure)
            across = latent.basis.size // family.size
            mean[latent.block] = sizes.offsets.get(name, 0.0) * latent.basis.constant
            sd[latent.block.start : latent.block.start + across] = BROAD * reach
            if name in spectra and activation.name == "identity":
                count = modes[problem.domain.space[0]]
                sd[latent.block.start : latent.block.start + across] = np.concatenate(
                    [[spectra[name].constant], np.repeat(np.sqrt(spectra[name].variance[:count]), 2)]
                )
            rate = max(fastest, 1.0 / horizon)
            for order in range(1, family.states):
                block = slice(latent.block.start + order * across, latent.block.start + (order + 1) * across)
                sd[block] = BROAD * reach * rate**order
    with np.errstate(over="ignore"):  # a state that nothing bounds
        return Diagonal.from_moments(mean, sd**2)
