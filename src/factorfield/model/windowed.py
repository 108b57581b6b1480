"""The model of time windows: modes in space, polynomials in time within a window, and what is known at the start.

Every choice that the user left open is made here, from the data, and reported in `settings`. The windows themselves are
found while solving (methods/chain); then `edges` hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.errors import expected
from factorfield.messages.square_root import Belief
from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Departure, Family, Tensor, family_for
from factorfield.model.corners import softened
from factorfield.model.folding import WINDOWS, kept_rows
from factorfield.model.functions import coefficient_parts
from factorfield.model.latent import LatentRelation
from factorfield.model.model import Model, check_memory
from factorfield.model.modes import checked_counts, window_modes
from factorfield.model.priors import window_prior
from factorfield.model.projection import projections
from factorfield.model.representation import Representation, field_form
from factorfield.model.scales import field_scale
from factorfield.model.sigmas import LABEL_NOISE, Sigma, shown, window_sigmas
from factorfield.model.spectrum import Spectrum, spectra_of, tails_of
from factorfield.model.symbol import fastest_rates
from factorfield.model.window import Tail, layout
from factorfield.problem.consistency import check_orders
from factorfield.problem.domain import TIME, Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MOST_GROWTH = 100.0  # exponent of the fastest-growing wave from which a linear problem is called ill-posed
MOST_WEIGHTS = 1600  # of a window where modes mix: a second or so per factorisation
DEGREE_LEAST = 6
DEGREE_LINEAR, DEGREE_COUPLED = 20, 12  # waves that do not mix cost little: longer windows, fewer messages


@dataclass(frozen=True)
class Traits:
    """What the equations and conditions are like: which short cuts are exact."""

    linear: bool
    autonomous: bool  # nothing depends on time explicitly: windows of equal length have equal factors
    separable: bool  # linear with constant coefficients on periodic axes: waves do not mix
    steady_windows: bool  # waves keep their size: windows need not become longer
    has_later_data: bool  # is anything said after the start besides the equation, or is a coefficient unknown?
    starts_by_formula: bool  # not by labels
    has_noisy_walls: bool  # did the user give a wall a sigma of its own?


@dataclass(frozen=True, eq=False)
class Space:
    """Collocation points along the space axes, and what each equation is projected on (projection.py)."""

    points: Mapping[str, Array]
    projections: Mapping[str, Array]


@dataclass(frozen=True)
class Asked:
    """What the user asked of the windows; None: chosen."""

    degree: int | None = None
    edges: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowModel(Model):
    """One window's representation and prior; time is moved along. `edges` None: windows are found while solving."""

    degree: int
    traits: Traits
    space: Space
    tails: Mapping[str, Tail]  # modes left out, by field
    held_at_start: tuple[Statement, ...]  # walls, at the start
    asked: Asked = Asked()
    growing: tuple[str, ...] = ()  # space axes whose modes were chosen without data, and may prove too few
    first_level: int = 0  # the first window that is tried is the horizon / 2^level
    edges: tuple[float, ...] | None = None
    start: Mapping[str, float] = field(default_factory=dict)  # coefficients where a search begins, if not at the prior
    path: tuple[Array, ...] = ()  # weights of each window where its factors are linearised first

    @cached_property
    def layout(self) -> tuple[Indices, Indices]:
        """Weights that are the state at a window's start, and its inner ones."""
        return layout(self.representation)

    @cached_property
    def field_states(self) -> int:
        """Entries of the state that belong to fields; coefficients follow them."""
        names = (*self.problem.unknowns, *self.problem.functions)
        return len(self.layout[0]) - sum(self.representation.latents[name].basis.size for name in names)

    @property
    def open_states(self) -> Indices:
        """Entries of the fields' state that the prior leaves open."""
        return np.flatnonzero(self.prior.std[self.layout[0]][: self.field_states] > 0.1 * self.scale)

    @cached_property
    def prior_state(self) -> Belief:
        state = self.layout[0]
        return Belief(self.prior.mean[state], np.diag(self.prior.std[state]))

    def first_state(self) -> Belief:
        """The prior, moved to where the search begins: its first pass follows that path, smoothing corrects it."""
        mean, state = self.prior_state.mean.copy(), self.layout[0]
        for name, value in self.start.items():
            mean[state == self.representation.latents[name].start] = value
        return replace(self.prior_state, mean=mean)

    def with_condition(self, problem: Problem) -> WindowModel:
        """The same choices for the same problem with further conditions at its end."""
        added = problem.statements[len(self.problem.statements) :]
        default = Sigma(LABEL_NOISE * self.scale, "default")
        sigmas = *self.sigmas, *(default if s.sigma is None else Sigma(s.sigma, "given") for s in added)
        traits = replace(self.traits, has_later_data=True)
        closed = tuple(replace(sigma, is_open=False) for sigma in sigmas)
        return replace(self, problem=problem, sigmas=closed, traits=traits, growing=(), path=())

    def with_sigmas(self, sigmas: Sequence[Sigma]) -> WindowModel:
        settings = {**self.settings, "sigma": shown(self.problem, sigmas)}
        return replace(self, sigmas=tuple(sigmas), settings=settings)


def is_standing(statement: Statement) -> bool:
    """Does a statement hold in every window alike: an equation or a wall?"""
    return statement.points is None and TIME not in (statement.face or {})


def window_model(
    problem: Problem,
    *,
    modes: Mapping[str, int] | None = None,
    degree: int | None = None,
    activation: Activation | None = None,
    windows: ArrayLike | None = None,
) -> WindowModel:
    """Modes in space and polynomials in time for windows linked by messages; what is None is chosen from the data.

    modes    per space axis: frequencies (periodic) or polynomial degrees (interval)
    degree   of the polynomials in time within a window (20, or 12 where modes mix)
    windows  their edges, instead of error control
    """
    _check(problem, degree)
    asked = Asked(degree, None if windows is None else _edges(problem, windows))
    ansatz, scale, spectra = activation or Identity(), field_scale(problem), spectra_of(problem)
    given = checked_counts(modes, problem, "modes")
    counts = window_modes(problem, given, spectra, scale)
    families = {name: family_for(problem.domain[name], n) for name, n in counts.items()}
    degree = degree or _degree(problem, families, ansatz)
    intervals = {name: n for name, n in counts.items() if isinstance(problem.domain[name], Interval)}
    check_orders(problem.statements, {**intervals, TIME: degree})
    representation = _representation(problem, families, degree, ansatz)
    relations = {s.name: representation.read(s.relation) for s in problem.statements}
    points = _points(problem, families, relations)
    _check_memory(problem, representation, relations, points)
    rates = fastest_rates(problem, counts)
    traits = _traits(problem, relations, rates)
    fastest = float(np.max(np.abs(rates), initial=0.0))
    sigmas = window_sigmas(problem, scale, spectra, counts, fastest)
    sigmas, held, corners = softened(problem, sigmas, points, families)
    tails = tails_of(problem, spectra, counts, ansatz)
    settings = {
        "model": "chain", "modes": counts, "degree": degree, "scale": scale, "activation": ansatz.name,
        "sigma": shown(problem, sigmas),
        "left_out": {name: float(np.sqrt(np.sum(tail.variance))) for name, tail in tails.items()},
    }  # fmt: skip
    return WindowModel(
        problem=problem, representation=representation,
        prior=window_prior(problem, representation, scale, ansatz, spectra, counts, fastest),
        sigmas=sigmas, modes=counts, scale=scale, settings=settings, advice=corners, degree=degree, traits=traits,
        space=Space(points, projections(problem, families, points)), tails=tails, held_at_start=held,
        growing=_growing(problem, given, spectra, traits), first_level=_first_level(problem, degree, fastest),
        asked=asked, edges=asked.edges,
    )  # fmt: skip


def _check(problem: Problem, degree: int | None) -> None:
    if TIME not in problem.domain:
        raise expected("a problem with a time axis 't' for method='chain'", repr(problem), "method='joint'")
    if any(TIME in shift for s in problem.statements for shift, _ in s.stencil):
        raise expected("averages over space for method='chain'", "one along t", "method='joint'")
    if degree is not None and degree < 4:
        raise expected("degree >= 4", degree, "degree=12")


def _edges(problem: Problem, windows: ArrayLike) -> tuple[float, ...]:
    axis = problem.domain[TIME]
    try:
        edges = np.atleast_1d(np.asarray(windows, float))
    except (TypeError, ValueError):
        edges = np.zeros(0)
    inside = edges.ndim == 1 and len(edges) > 1 and bool(np.all(np.diff(edges) > 0.0))
    if not inside or edges[0] != axis.lower or edges[-1] != axis.upper:
        middle = 0.5 * (axis.lower + axis.upper)
        wanted = f"edges of windows that increase from {axis.lower:g} to {axis.upper:g}"
        raise expected(wanted, repr(windows), f"windows=[{axis.lower:g}, {middle:g}, {axis.upper:g}]")
    return tuple(float(edge) for edge in edges)


def _degree(problem: Problem, families: Mapping[str, Family], activation: Activation) -> int:
    unknown = problem.unknowns or problem.functions
    linear = all(statement.relation.is_linear for statement in problem.statements) and not unknown
    if linear and activation.name == "identity":
        return DEGREE_LINEAR
    across = len(problem.fields) * int(np.prod([family.size for family in families.values()], dtype=int))
    return int(np.clip(MOST_WEIGHTS // across - 1, DEGREE_LEAST, DEGREE_COUPLED))


def _representation(
    problem: Problem, families: Mapping[str, Family], degree: int, activation: Activation
) -> Representation:
    horizon, parts = problem.domain[TIME], []
    for name in problem.fields:
        window = Departure(degree, horizon.lower, horizon.upper, _time_order(problem, name))
        basis = Tensor({TIME: window, **families})
        parts.append((name, basis, field_form(name, problem.domain.names, activation)))
    return Representation.build(parts + coefficient_parts(problem))


def _time_order(problem: Problem, name: str) -> int:
    """How many time derivatives of a field make its state."""
    jets = [jet for s in problem.statements if s.is_equation for jet in s.relation.jets.values() if jet.field == name]
    return max([1, *(dict(jet.orders).get(TIME, 0) for jet in jets)])


def _points(
    problem: Problem, families: Mapping[str, Family], relations: Mapping[str, LatentRelation]
) -> dict[str, Array]:
    """Collocation along the space axes: enough for waves, and for products of two of them."""
    constant = all(relation.is_linear and not _varies(relation, problem) for relation in relations.values())
    points = {}
    for name in problem.domain.space:
        size, axis = families[name].size, problem.domain[name]
        even = size + 1 if constant else int(1.5 * size) + 2
        points[name] = axis.collocation(even if isinstance(axis, Periodic) else 2 * size)
    return points


def _varies(relation: LatentRelation, problem: Problem) -> bool:
    """Does a relation depend on where in space it is asked?"""
    named = {str(symbol) for f in relation.functionals for _, c in f.terms for symbol in c.free_symbols}
    return bool((named | set(relation.coordinates)) & set(problem.domain.space))


def _check_memory(
    problem: Problem, representation: Representation, relations: Mapping[str, LatentRelation],
    points: Mapping[str, Array],
) -> None:  # fmt: skip
    size = representation.size
    kept = sum(kept_rows(s, relations[s.name].is_linear, size, WINDOWS) for s in problem.statements)
    check_memory(size, window_rows(problem, representation, points) + 2 * kept)  # twice: for the way back


def window_rows(problem: Problem, representation: Representation, points: Mapping[str, Array]) -> int:
    """Factors of a window that holds all observations."""
    instants = next(iter(representation.latents.values())).basis.families[TIME].size + 2
    counts = {TIME: instants, **{name: len(x) for name, x in points.items()}}
    spread = [[n for name, n in counts.items() if name not in (s.face or {})] for s in problem.statements]
    linear = [representation.read(s.relation).is_linear for s in problem.statements]
    size = representation.size
    observed = [kept_rows(s, straight, size) for s, straight in zip(problem.statements, linear, strict=True)]
    return sum(n or int(np.prod(left, dtype=float)) for n, left in zip(observed, spread, strict=True))


def _traits(
    problem: Problem, relations: Mapping[str, LatentRelation], rates: NDArray[np.complex128]
) -> Traits:
    horizon, statements = problem.domain[TIME], problem.statements
    linear = all(relation.is_linear for relation in relations.values())
    growth = float(np.max(rates.real, initial=0.0)) * horizon.length
    if linear and growth > MOST_GROWTH:
        raise expected(
            f"waves that grow less than e^{MOST_GROWTH:g} over the horizon", f"e^{growth:.3g}",
            "the other sign of the highest derivative, fewer modes=, or a shorter horizon",
        )  # fmt: skip
    autonomous = not any(TIME in s.relation.coordinates for s in statements)
    autonomous = autonomous and not any(TIME in unknown.over for unknown in problem.functions.values())
    decays = bool(np.any(rates.real * horizon.length < -1.0))
    unknown = bool(problem.unknowns or problem.functions)
    return Traits(
        linear, autonomous, linear and autonomous and _is_separable(problem, relations),
        steady_windows=linear and autonomous and not decays,
        has_later_data=unknown or any(_is_later(s, horizon.lower) for s in statements),
        starts_by_formula=any(
            (s.face or {}).get(TIME) == horizon.lower and any(not jet.orders for jet in s.relation.jets.values())
            for s in statements
        ),
        has_noisy_walls=any(s.face is not None and is_standing(s) and s.sigma is not None for s in statements),
    )  # fmt: skip


def _is_separable(problem: Problem, relations: Mapping[str, LatentRelation]) -> bool:
    space = [problem.domain[name] for name in problem.domain.space]
    periodic = bool(space) and all(isinstance(axis, Periodic) for axis in space)
    standing = [s for s in problem.statements if is_standing(s)]
    constant = all(s.face is None and not _varies(relations[s.name], problem) for s in standing)
    return periodic and constant and not problem.unknowns and not problem.functions


def _is_later(statement: Statement, start: float) -> bool:
    if statement.points is not None:
        return bool(np.any(statement.points[TIME] > start))
    return statement.face is not None and statement.face.get(TIME, start) > start


def _growing(
    problem: Problem, given: Mapping[str, int], spectra: Mapping[str, Spectrum], traits: Traits
) -> tuple[str, ...]:
    """Labels show the modes they need, unless modes mix; a formula does not."""
    grows = not traits.separable if spectra else traits.starts_by_formula
    return tuple(name for name in problem.domain.space if grows and name not in given)


def _first_level(problem: Problem, degree: int, fastest: float) -> int:
    turns = fastest * problem.domain[TIME].length / reach_of(degree)
    return max(0, int(np.ceil(np.log2(max(turns, 1.0)))))


def reach_of(degree: int) -> float:
    """Rate times length that polynomials of a degree follow to 1e-6: beyond, fast modes are given up, not followed."""
    order = degree - 1
    return 4.0 * float(np.exp((special.gammaln(order + 1) + np.log(1e-6)) / order))
