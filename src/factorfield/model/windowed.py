"""What a chain is made of before the first window: modes, noise, prior, and each window's factors.

Every choice that the user left open is made here, from the data, and reported in `settings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield.errors import expected
from factorfield.messages.links import Belief
from factorfield.model.activation import Activation
from factorfield.model.basis import Departure, Family, Tensor, family_for
from factorfield.model.corners import softened
from factorfield.model.factors import FactorGroup
from factorfield.model.folding import WINDOWS, kept_rows
from factorfield.model.functions import coefficient_parts, coefficient_prior
from factorfield.model.latent import LatentRelation
from factorfield.model.model import FACE_NOISE, LABEL_NOISE, check_memory, checked_counts
from factorfield.model.projection import projections
from factorfield.model.representation import Representation, field_form
from factorfield.model.scales import condition_scale, field_scale, natural_size
from factorfield.model.spectra import chosen_modes, spectra_of, tails_of
from factorfield.model.spectrum import Spectrum
from factorfield.model.symbol import rates
from factorfield.model.window import Tail, layout
from factorfield.problem.consistency import check_orders
from factorfield.problem.domain import TIME, Interval, Periodic
from factorfield.problem.problem import Problem, Statement

Array = NDArray[np.float64]
RESIDUAL = 1e-5  # default sigma of an equation: this share of the field's scale over the horizon
WALL_NOISE = 1e-9  # default sigma of a wall: it holds. Noise that is new at every instant would be no smooth field
BROAD = 10.0  # prior sd of a state that nothing is known about, in units of the field's scale
OPEN = 1e3  # of what the equation settles: every window has its own, and together they must not speak about the state
MOST_GROWTH = 100.0  # exponent of the fastest-growing wave from which a linear problem is called ill-posed
ROUNDING = 1e-12  # smallest sigma of an equation, in units of its terms
FEWEST_LABELS = 8  # fewer cannot tell their noise
FIRST_NOISE = 0.1  # where the search for the noise of labels begins, in units of the field's scale
MOST_WEIGHTS = 1600  # of a window where modes mix: a second or so per factorisation
DEGREE_LEAST = 6
DEGREE_LINEAR, DEGREE_COUPLED = 20, 12  # waves that do not mix cost little: longer windows, fewer messages


@dataclass(frozen=True, eq=False)
class Setup:
    problem: Problem
    representation: Representation  # of one window; time is moved along
    prior: Belief  # of the state at the start
    spread: Array  # prior sds of a window's weights
    sigma: Sequence[Any]  # per statement
    given: frozenset[str]  # conditions whose sigma the user gave
    noise: Mapping[str, float]
    scale: float
    orders: Mapping[str, int]  # in time, by field
    points: Mapping[str, Array]  # collocation along the space axes
    projection: Mapping[str, Array]  # of each equation, from places to the modes it is seen through
    tails: Mapping[str, Tail]
    informative: NDArray[np.int64]  # entries of the state that the prior leaves open
    field_states: int  # entries of the state that belong to fields; coefficients follow them
    is_linear: bool
    autonomous: bool
    plain: bool  # linear with constant coefficients on periodic axes: waves do not mix
    changing: bool  # may windows become longer: is the equation nonlinear, or do its waves decay?
    speaks_later: bool  # is anything said after the start besides the equation?
    first_level: int  # the first window is the horizon / 2^level
    settings: Mapping[str, Any]
    started: bool = False  # by a formula, not by labels
    growing: tuple[str, ...] = ()  # space axes whose modes were chosen without data, and may prove too few
    pinned: tuple[Statement, ...] = ()  # faces, at the start
    jumps: tuple[str, ...] = ()  # advice about those that the start disagrees with
    estimated: tuple[int, ...] = ()  # statements whose sigma is found while solving (chain_noise.py)
    start: Mapping[str, float] = field(default_factory=dict)  # where the search begins, if not at the prior
    older: int = 0  # statements that an earlier solve knew already
    rows: dict[tuple[int, float], FactorGroup] = field(default_factory=dict)  # of equations, by length of the window

    @property
    def standing(self) -> frozenset[str]:
        """Statements that speak in every window alike."""
        return frozenset(s.name for s in self.problem.statements if stands(s))

    @cached_property
    def noisy_walls(self) -> bool:
        """Did the user give a wall a sigma of its own?"""
        return any(s.face is not None and stands(s) and s.sigma is not None for s in self.problem.statements)

    def start_belief(self) -> Belief:
        """The prior, moved to where the search begins: its first pass follows that path, smoothing corrects it."""
        mean, state = self.prior.mean.copy(), layout(self.representation)[0]
        for name, value in self.start.items():
            mean[state == self.representation.latents[name].start] = value
        return replace(self.prior, mean=mean)

    def is_new(self, lower: float, upper: float, first: bool) -> bool:
        """Does a condition that the earlier solve did not know speak in this window?"""
        return any(
            s.points is None or bool(np.any((s.points[TIME] <= upper) & ((s.points[TIME] > lower) | first)))
            for s in self.problem.statements[self.older :]
        )


def length_of(lower: float, upper: float) -> float:
    """A window's length up to rounding: what windows that share a factorisation have in common."""
    return float(f"{upper - lower:.9g}")


def reach_of(degree: int) -> float:
    """Rate times length that polynomials of a degree follow to 1e-6: beyond, fast modes are given up, not followed."""
    order = degree - 1
    return 4.0 * float(np.exp((special.gammaln(order + 1) + np.log(1e-6)) / order))


def set_up(problem: Problem, degree: int | None, modes: Mapping[str, int] | None, activation: Activation) -> Setup:
    if TIME not in problem.domain:
        raise expected("a problem with a time axis 't' for method='chain'", repr(problem), "method='joint'")
    if any(TIME in shift for s in problem.statements for shift, _ in s.stencil):
        raise expected("averages over space for method='chain'", "one along t", "method='joint'")
    scale = field_scale(problem)
    spectra = spectra_of(problem)
    given_modes = checked_counts(modes, problem, "modes")
    counts = chosen_modes(problem, given_modes, spectra, scale)
    families: dict[str, Family] = {name: family_for(problem.domain[name], n) for name, n in counts.items()}
    if degree is None:
        unknown = problem.unknowns or problem.functions
        linear = all(statement.relation.is_linear for statement in problem.statements) and not unknown
        across = len(problem.fields) * int(np.prod([family.size for family in families.values()], dtype=int))
        coupled = int(np.clip(MOST_WEIGHTS // across - 1, DEGREE_LEAST, DEGREE_COUPLED))
        degree = DEGREE_LINEAR if linear and activation.name == "identity" else coupled
    intervals = {name: n for name, n in counts.items() if isinstance(problem.domain[name], Interval)}
    check_orders(problem.statements, {**intervals, TIME: degree})
    horizon = problem.domain[TIME]
    orders = {name: _time_order(problem, name) for name in problem.fields}
    parts = []
    for name in problem.fields:
        window = Departure(degree, horizon.lower, horizon.upper, orders[name])
        basis = Tensor({TIME: window, **families})
        parts.append((name, basis, field_form(name, problem.domain.names, activation)))
    representation = Representation.build(parts + coefficient_parts(problem))
    relations = {s.name: representation.read(s.relation) for s in problem.statements}
    is_linear = all(relation.is_linear for relation in relations.values())
    plain_space = is_linear and not any(_varies(relation, problem) for relation in relations.values())
    points = {}
    for name in problem.domain.space:
        size, axis = families[name].size, problem.domain[name]
        even = size + 1 if plain_space else int(1.5 * size) + 2  # enough for waves, and for products of two of them
        points[name] = axis.collocation(even if isinstance(axis, Periodic) else 2 * size)
    kept = sum(kept_rows(s, relations[s.name].is_linear, representation.size, WINDOWS) for s in problem.statements)
    check_memory(representation.size, window_rows(problem, representation, points) + 2 * kept)  # for the way back
    projection = projections(problem, families, points)
    least = ROUNDING * scale * max(_fastest(problem, counts), 1.0 / horizon.length)
    sigma, noise = _sigmas(problem, scale, spectra, counts, least)
    sigma, pinned, jumps = softened(problem, sigma, points, families)
    estimated = tuple(
        i for i, s in enumerate(problem.statements)
        if s.points is not None and s.sigma is None and np.ndim(sigma[i]) == 0 and len(s.target) >= FEWEST_LABELS
        and sigma[i] == FIRST_NOISE * scale
    )  # fmt: skip
    prior_mean, spread = _prior(problem, representation, scale, activation, spectra, counts)
    state, _ = layout(representation)
    tails = tails_of(problem, spectra, counts, activation)
    autonomous = not any(TIME in s.relation.coordinates for s in problem.statements)
    autonomous = autonomous and not any(TIME in unknown.over for unknown in problem.functions.values())
    found = _rates(problem, counts)
    rate, growth = float(np.max(np.abs(found), initial=0.0)), float(np.max(found.real, initial=0.0))
    if is_linear and growth * horizon.length > MOST_GROWTH:
        raise expected(
            f"waves that grow less than e^{MOST_GROWTH:g} over the horizon", f"e^{growth * horizon.length:.3g}",
            "the other sign of the highest derivative, fewer modes=, or a shorter horizon",
        )  # fmt: skip
    started = any(
        (s.face or {}).get(TIME) == horizon.lower and any(not jet.orders for jet in s.relation.jets.values())
        for s in problem.statements
    )
    standing = [s for s in problem.statements if stands(s)]
    space = [problem.domain[name] for name in problem.domain.space]
    periodic = bool(space) and all(isinstance(axis, Periodic) for axis in space)
    plain = (
        is_linear and periodic and autonomous and not problem.unknowns and not problem.functions
        and all(s.face is None and not _varies(relations[s.name], problem) for s in standing)
    )  # fmt: skip
    grows = (started and not spectra) or (bool(spectra) and not plain)
    growing = tuple(name for name in problem.domain.space if grows and name not in given_modes)
    changing = not is_linear or bool(np.any(found.real * horizon.length < -1.0)) or not autonomous
    level = max(0, int(np.ceil(np.log2(max(rate * horizon.length / reach_of(degree), 1.0)))))
    later = bool(problem.unknowns or problem.functions) or any(
        (s.points is not None and bool(np.any(s.points[TIME] > horizon.lower)))
        or (s.face is not None and s.face.get(TIME, horizon.lower) > horizon.lower)
        for s in problem.statements
    )
    settings = {
        "model": "chain", "modes": counts, "degree": degree, "scale": scale, "activation": activation.name,
        "sigma": [
            (statement.name, float(np.sqrt(np.mean(np.square(value)))))
            for statement, value in zip(problem.statements, sigma, strict=True)
        ],
        "left_out": {name: float(np.sqrt(np.sum(tail.variance))) for name, tail in tails.items()},
    }  # fmt: skip
    told = [s for s in problem.statements if not (s.sigma is None or s.noise or s.is_equation)]
    names = (*problem.unknowns, *problem.functions)
    fields = len(state) - sum(representation.latents[name].basis.size for name in names)
    informative = np.flatnonzero(spread[state][:fields] > 0.1 * scale)
    return Setup(
        problem, representation, Belief(prior_mean[state], np.diag(spread[state])), spread, sigma,
        frozenset(s.name for s in told), noise, scale, orders, points, projection, tails, informative, fields,
        is_linear, autonomous, plain, changing, later, level, settings, started, growing, pinned, jumps, estimated,
    )  # fmt: skip


def window_rows(problem: Problem, representation: Representation, points: Mapping[str, Array]) -> int:
    """Factors of a window that holds all observations."""
    instants = next(iter(representation.latents.values())).basis.families[TIME].size + 2
    counts = {TIME: instants, **{name: len(x) for name, x in points.items()}}
    spread = [[n for name, n in counts.items() if name not in (s.face or {})] for s in problem.statements]
    linear = [representation.read(s.relation).is_linear for s in problem.statements]
    size = representation.size
    observed = [kept_rows(s, straight, size) for s, straight in zip(problem.statements, linear, strict=True)]
    return sum(n or int(np.prod(left, dtype=float)) for n, left in zip(observed, spread, strict=True))


def enlarged(setup: Setup, problem: Problem) -> Setup:
    """The same choices for the same problem with further conditions at its end."""
    older = len(setup.problem.statements)
    added = problem.statements[older:]
    default = LABEL_NOISE * setup.scale
    sigma = [*setup.sigma, *(default if s.sigma is None else s.sigma for s in added)]
    given = setup.given | {s.name for s in added if s.sigma is not None}
    return replace(
        setup, problem=problem, sigma=sigma, given=given, speaks_later=True, older=older, estimated=(), growing=()
    )


def _varies(relation: LatentRelation, problem: Problem) -> bool:
    """Does a relation depend on where in space it is asked?"""
    named = {str(symbol) for f in relation.functionals for _, c in f.terms for symbol in c.free_symbols}
    return bool((named | set(relation.coordinates)) & set(problem.domain.space))


def stands(statement: Statement) -> bool:
    return statement.points is None and TIME not in (statement.face or {})


def _time_order(problem: Problem, name: str) -> int:
    orders = [
        dict(jet.orders).get(TIME, 0)
        for statement in problem.statements
        for jet in statement.relation.jets.values()
        if jet.field == name and statement.points is None and statement.face is None
    ]
    return max([1, *orders])


def _sigmas(
    problem: Problem, scale: float, spectra: Mapping[str, Spectrum], modes: Mapping[str, int], least: float
) -> tuple[list[Any], dict[str, float]]:
    """The noise of every statement: the user's, the evidence's, or a small default; and that of predictions.

    `least` is the smallest sigma of an equation that rounding lets it meet.
    """
    sigma: list[Any] = []
    noise: dict[str, float] = {}
    for s in problem.statements:
        jets = list(s.relation.jets.values())
        value = s.sigma
        if s.points is None and s.face is None:
            value = max(RESIDUAL * scale / problem.domain[TIME].length, 10.0 * least) if value is None else value
            if value < least:
                received, remedy = f"{float(value):.2g}", f"Equation(..., sigma={100 * least:.1g})"
                raise expected(f"sigma of the equation of at least {least:.2g}: rounding is larger", received, remedy)
        else:
            spectrum = spectra.get(jets[0].field) if len(jets) == 1 and s.points is not None else None
            at_start = s.points is not None and bool(np.all(s.points[TIME] == problem.domain[TIME].lower))
            if spectrum is not None and at_start and not jets[0].orders:
                own = spectrum.sigma if value is None else value
                noise[jets[0].field] = float(np.sqrt(np.mean(np.square(own))))
                left = spectrum.left_out(modes[problem.domain.space[0]])
                value = np.sqrt(np.square(own) + left)  # what the basis cannot follow disturbs the labels too
            elif value is None:
                many = s.points is not None and len(s.target) >= FEWEST_LABELS
                value = (FIRST_NOISE if many else LABEL_NOISE) * scale
                if s.face is not None:
                    own = condition_scale(problem, s, scale)
                    value = (WALL_NOISE if stands(s) else FACE_NOISE) * natural_size(s.relation, problem, own)
            if s.points is not None and len(jets) == 1 and not jets[0].orders:
                noise.setdefault(jets[0].field, float(np.sqrt(np.mean(np.square(value)))))
        sigma.append(value)
    return sigma, noise


def _prior(
    problem: Problem, representation: Representation, scale: float, activation: Activation,
    spectra: Mapping[str, Spectrum], modes: Mapping[str, int],
) -> tuple[Array, Array]:  # fmt: skip
    """Means and sds of a window's weights: the spectrum at the start, broad for what the equation settles."""
    reach = float(abs(activation.inverse(scale)))
    mean, sd = np.zeros(representation.size), np.full(representation.size, OPEN * reach)
    horizon = problem.domain[TIME].length
    for name, form in representation.forms.items():
        for latent_name in form.latents:
            latent = representation.latents[latent_name]
            if name in problem.parameters:
                mean[latent.block], variance = coefficient_prior(problem, name)
                sd[latent.block] = np.sqrt(variance)
                continue
            family = latent.basis.families[TIME]
            assert isinstance(family, Departure)
            across = latent.basis.size // family.size
            sd[latent.start : latent.start + across] = BROAD * reach
            if name in spectra and activation.name == "identity":
                count = modes[problem.domain.space[0]]
                sd[latent.start : latent.start + across] = np.concatenate(
                    [[spectra[name].constant], np.repeat(np.sqrt(spectra[name].variance[:count]), 2)]
                )
            rate = max(_fastest(problem, modes), 1.0 / horizon)
            for order in range(1, family.states):
                block = slice(latent.start + order * across, latent.start + (order + 1) * across)
                sd[block] = BROAD * reach * rate**order
    return mean, sd


def _fastest(problem: Problem, modes: Mapping[str, int]) -> float:
    return float(np.max(np.abs(_rates(problem, modes)), initial=0.0))


def _rates(problem: Problem, modes: Mapping[str, int]) -> NDArray[np.complex128]:
    """Rates of the highest waves held, one per equation that has them."""
    waves = {
        name: 2.0
        * np.pi
        * n
        / problem.domain[name].length
        * (1.0 if isinstance(problem.domain[name], Periodic) else 0.5)
        for name, n in modes.items()
    }
    equations = [s for s in problem.statements if s.points is None and s.face is None]
    found = [rates(problem, statement, waves) for statement in equations]
    return np.concatenate([np.zeros(0, complex), *(np.ravel(f) for f in found if f is not None)])
