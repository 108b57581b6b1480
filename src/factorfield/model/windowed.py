"""The model of time windows: modes in space, polynomials in time within a window, and what is known at the start.

What the user left open is chosen from the data and reported in `settings`: here the degree in time, the length of the
first window that is tried (`first_level`), the points and the axes whose modes may grow; sizes, sigmas, modes and
priors in choices.py, the spectrum of labels at the start in spectrum.py; corners.py softens the sigmas of a start that
disagrees with a wall. The windows themselves are found while solving (methods/chain); then `edges` hold them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, special

from factorfield.errors import Advice, expected
from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Chebyshev, Departure, Family, Fourier, Tensor, family_for
from factorfield.model.choices import (
    Sizes,
    check_orders,
    checked_counts,
    shown,
    starts_by_formula,
    window_modes,
    window_prior,
    window_sigmas,
)
from factorfield.model.corners import softened
from factorfield.model.face_errors import LEFT_OUT_OF_WALLS, error_part
from factorfield.model.folding import MANY
from factorfield.model.functions import coefficient_parts
from factorfield.model.graded import GradedSpline, first_cells, may_not_follow
from factorfield.model.model import Asked, Space, Traits, WindowModel, check_memory, check_no_region, is_standing
from factorfield.model.narrow import check_wide, pulses
from factorfield.model.process import start_roots
from factorfield.model.representation import LatentRelation, Representation, field_form, substitute
from factorfield.model.searched import CORNER, StartSpectrum, number_coordinates
from factorfield.model.sizes import sizes_of
from factorfield.model.spectrum import FEWEST_LABELS, Spectrum, fastest_rates, spectra_of, system_growth, tails_of
from factorfield.problem.completeness import missing_conditions
from factorfield.problem.domain import TIME, Axis, Interval, Periodic
from factorfield.problem.jumps import instants
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement
from factorfield.problem.stencil import Stencil

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MOST_GROWTH = 100.0  # exponent of the fastest-growing wave from which a linear problem is called ill-posed
MOST_WEIGHTS = 1600  # of a window where modes mix: a second or so per factorisation
DEGREE_LEAST = 6
BEFORE = 1e-9  # of the horizon: before and after an instant
WINDOWS = 20  # typically, for what all of them keep of the measurements
POINTS_OF_NOISE = 42  # twice as many as the features that a smooth field is given on an interval
DEGREE_LOCAL = {1: 6, 2: 5}  # over cells, by axes of space: a window costs the cube of it, and the fewer there are
DEGREE_LINEAR, DEGREE_COUPLED = 20, 12  # waves that do not mix cost little: longer windows, fewer messages


def window_model(
    problem: Problem,
    *,
    modes: Mapping[str, int] | None = None,
    cells: Mapping[str, int] | Literal["auto"] | None = None,
    degree: int | None = None,
    activation: Activation | None = None,
    windows: ArrayLike | None = None,
) -> WindowModel:
    """Modes in space and polynomials in time for windows linked by messages; what is None is chosen from the data.

    modes    per space axis: frequencies (periodic) or polynomial degrees (interval)
    cells    along the space axes, instead of modes: quintic splines over so many cells, which along a single axis
             follow the field's steepness; "auto": as many as it needs
    degree   of the polynomials in time within a window (20, 12 where modes mix, 6 over cells, 5 over those of a plane)
    windows  their edges, instead of error control
    """
    if cells is None and modes is None and problem.shape is not None:
        cells = "auto"
    if cells is None:
        check_no_region(problem, "windows of time over modes")
    _check(problem, degree)
    edges = None if windows is None else _edges(problem, windows)
    ansatz = activation or Identity()
    sizes = sizes_of(problem, ansatz)
    if cells is not None:
        if not _tells_start(problem):
            raise expected("a start that a formula or labels tell, with cells=", "none", "ff.Initial, or no cells=")
        unknown = [*problem.unknowns, *problem.functions]
        if unknown and len(problem.domain.space) > 1:
            raise expected("known coefficients with cells= in a plane", ", ".join(unknown), "modes=, or method='tree'")
        off = [s.name for s in problem.statements if s.wall is not None and s.error is not None]
        if off:
            raise expected("walls of a region without sigma= in windows of time", off[0], "method='tree'")
        local: dict[str, Family] = {**first_cells(problem, cells, modes)}
        return with_families(problem, local, ansatz, sizes, {}, Asked(degree, edges, cells != "auto"), local)
    given, spectra = checked_counts(modes, problem, "modes"), spectra_of(problem, sizes.offsets)
    counts = window_modes(problem, given, spectra, sizes.scale)
    families = {name: family_for(problem.domain[name], n) for name, n in counts.items()}
    return with_families(problem, families, ansatz, sizes, spectra, Asked(degree, edges), given)


def with_families(
    problem: Problem, families: Mapping[str, Family], ansatz: Activation, sizes: Sizes,
    spectra: Mapping[str, Spectrum], asked: Asked, given: Collection[str],
) -> WindowModel:  # fmt: skip
    """The model over given features of each space axis; `given` are the axes whose features the user asked for."""
    scale, numbers, counts = sizes.scale, held_numbers(problem, ansatz), _counts(families)
    degree = asked.degree or _degree(problem, families, ansatz, bool(numbers))
    bounded = {name: own.degree for name, own in families.items() if isinstance(own, Chebyshev | GradedSpline)}
    check_orders(problem.statements, {**bounded, TIME: degree})
    representation = _representation(problem, families, counts, (degree, ansatz), numbers)
    relations = {s.name: representation.read(s.relation) for s in problem.statements}
    points = _points(problem, families, relations)
    in_plane = is_local(families) and len(families) > 1  # rows of a window are then never formed (instants.py)
    if not in_plane:
        _check_memory(problem, representation, relations, points)
    fastest, rates = fastest_rates(problem, counts)
    traits = _traits(problem, relations, rates, bool(numbers), counts)
    forward = is_forward(problem, traits)
    sigmas = window_sigmas(problem, sizes, spectra, counts, fastest, forward)
    held: tuple[Statement, ...] = ()
    corners: tuple[Advice, ...] = ()
    if any(s.kind == "boundary" and s.wall is None for s in problem.statements):
        sigmas, held, corners = softened(problem, sigmas, points, families, forward)
    tails = tails_of(problem, spectra, counts, ansatz)
    settings = {
        "model": "chain", "cells" if is_local(families) else "modes": counts, "degree": degree, "scale": scale,
        "offset": sizes.shown, "activation": ansatz.name, "sigma": shown(problem, sigmas),
        "left_out": {name: float(np.sqrt(np.sum(tail.variance))) for name, tail in tails.items()},
    }  # fmt: skip
    model = WindowModel(
        problem=problem, representation=representation,
        prior=window_prior(problem, representation, sizes, ansatz, spectra, counts, fastest),
        sigmas=sigmas, modes=counts, scale=scale, settings=settings, advice=corners, degree=degree, traits=traits,
        space=Space(points, {} if in_plane else projections(problem, families, points)),
        tails=tails, held_at_start=held,
        growing=_growing(problem, given, spectra, traits), first_level=_first_level(problem, degree, fastest),
        process=start_roots(problem, families, sizes.offsets),
        asked=asked, edges=asked.edges, jumps=jumps_of(problem), held=numbers, holds=forward,
        spectrum=_start_spectrum(problem, traits, scale, fastest),
    )  # fmt: skip
    return model.at(np.zeros(len(model.coordinates)))


def suits_region(problem: Problem) -> bool:
    """Do windows over cells suit a problem in a region: one field, an equation of first order in time and second in
    space, walls of values and fluxes, and a formula for the start that alone informs?"""
    if TIME not in problem.domain or len(problem.fields) > 1 or may_not_follow(problem):
        return False
    if problem.unknowns or problem.functions or not _tells_start(problem):
        return False
    for statement in problem.statements:
        order = max((sum(dict(jet.orders).values()) for jet in statement.relation.jets.values()), default=0)
        if statement.sigma is not None or statement.points is not None or statement.stencil:
            return False
        if order > (2 if statement.kind == "equation" else 1):
            return False
    return True


def _check(problem: Problem, degree: int | None) -> None:
    if TIME not in problem.domain:
        raise expected("a problem with a time axis 't' for method='chain'", repr(problem), "method='joint'")
    check_wide(problem, problem.domain.space)
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


def is_local(families: Mapping[str, Family]) -> bool:
    return any(isinstance(family, GradedSpline) for family in families.values())


def _counts(families: Mapping[str, Family]) -> dict[str, int]:
    """Frequencies, polynomial degrees or cells of each axis."""
    counts = {}
    for name, own in families.items():
        assert isinstance(own, Fourier | Chebyshev | GradedSpline)
        if isinstance(own, Chebyshev):
            counts[name] = own.degree
        else:
            counts[name] = own.modes if isinstance(own, Fourier) else own.cells
    return counts


def _degree(problem: Problem, families: Mapping[str, Family], activation: Activation, held: bool) -> int:
    if is_local(families):
        return DEGREE_LOCAL[len(families)]
    linear = all(statement.relation.is_linear for statement in problem.statements) and activation.name == "identity"
    linear = linear and not (problem.functions or (problem.unknowns and not held))
    if linear and all(isinstance(family, Fourier) for family in families.values()):
        return DEGREE_LINEAR
    across = len(problem.fields) * int(np.prod([family.size for family in families.values()], dtype=int))
    return int(np.clip(MOST_WEIGHTS // across - 1, DEGREE_LEAST, DEGREE_LINEAR if linear else DEGREE_COUPLED))


def held_numbers(problem: Problem, activation: Activation) -> dict[str, float]:
    """Unknown numbers that are no weights, at the middle of their prior: then they are searched on the marginal
    likelihood.

    They are held where all statements are linear in everything else, and where only later measurements tell how a field
    over space starts: among so many loosely known weights, the most probable numbers are not the typical ones. Else
    they are weights among others."""
    middle = {each.name: each.value(0.0) for each in number_coordinates(problem)}
    if problem.domain.space and not _tells_start(problem):
        return middle
    functions = [part for part in coefficient_parts(problem) if part[0] in problem.functions]
    forms = {name: field_form(name, problem.domain.names, activation) for name in problem.fields}
    forms |= {name: form for name, _, form in functions}
    if not all(substitute(statement.relation, forms).is_linear for statement in problem.statements):
        return {}
    return middle


def _tells_start(problem: Problem) -> bool:
    """Does a formula or a row of labels say how the fields start?"""
    start = problem.domain[TIME].lower
    labels = sum(int(np.sum(s.points[TIME] == start)) for s in problem.statements if s.points is not None)
    return labels >= FEWEST_LABELS or any((s.face or {}).get(TIME) == start for s in problem.statements)


def _start_spectrum(problem: Problem, traits: Traits, scale: float, fastest: float) -> StartSpectrum | None:
    """Of fields at a start of which only later measurements tell."""
    if _tells_start(problem) or not traits.has_later_data or not problem.domain.space:
        return None
    rate = max(fastest, 1.0 / problem.domain[TIME].length)
    return StartSpectrum(dict.fromkeys(problem.fields, scale), CORNER, rate)


def _representation(
    problem: Problem, families: Mapping[str, Family], modes: Mapping[str, int], ansatz: tuple[int, Activation],
    held: Collection[str],
) -> Representation:  # fmt: skip
    (degree, activation), horizon, parts = ansatz, problem.domain[TIME], []
    for name in problem.fields:
        window = Departure(degree, horizon.lower, horizon.upper, _time_order(problem, name))
        basis = Tensor({TIME: window, **families})
        parts.append((name, basis, field_form(name, problem.domain.names, activation)))
    parts += [part for part in coefficient_parts(problem) if part[0] not in held]
    parts += [error_part(wall, problem.domain, modes, LEFT_OUT_OF_WALLS) for wall in _noisy_walls(problem)]
    return Representation.build(parts)


def _noisy_walls(problem: Problem) -> list[Statement]:
    """Walls whose error is part of the state."""
    return [s for s in problem.statements if s.error is not None and is_standing(s)]


def _time_order(problem: Problem, name: str) -> int:
    """How many time derivatives of a field make its state."""
    jets = [jet for s in problem.statements if s.kind == "equation" for jet in s.relation.jets.values()]
    return max([1, *(dict(jet.orders).get(TIME, 0) for jet in jets if jet.field == name)])


def _points(
    problem: Problem, families: Mapping[str, Family], relations: Mapping[str, LatentRelation]
) -> dict[str, Array]:
    """Collocation along the space axes: enough for waves, and for products of two of them."""
    constant = all(relation.is_linear and not _varies(relation, problem) for relation in relations.values())
    points = {}
    for name in problem.domain.space:
        family, axis = families[name], problem.domain[name]
        if isinstance(family, GradedSpline):
            points[name] = family.quadrature[0]
            continue
        size = family.size
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
    kept = sum(_kept_rows(s, relations[s.name].is_linear, size, WINDOWS) for s in problem.statements)
    check_memory(size, window_rows(problem, representation, points) + 2 * kept)  # twice: for the way back


def _kept_rows(statement: Statement, linear: bool, size: int, windows: int = 1) -> int:
    """How many rows a statement's measurements keep, at most, in so many windows: many are folded (folding.py)."""
    count = 0 if statement.points is None else len(statement.target)
    return min(count, windows * max(MANY * size, 2 * (size + 1))) if linear else count


def window_rows(problem: Problem, representation: Representation, points: Mapping[str, Array]) -> int:
    """Factors of a window that holds all observations."""
    instants = next(iter(representation.latents.values())).basis.families[TIME].size + 2
    counts = {TIME: instants, **{name: len(x) for name, x in points.items()}}
    spread = [[n for name, n in counts.items() if name not in (s.face or {})] for s in problem.statements]
    linear = [representation.read(s.relation).is_linear for s in problem.statements]
    size = representation.size
    observed = [_kept_rows(s, straight, size) for s, straight in zip(problem.statements, linear, strict=True)]
    return sum(n or int(np.prod(left, dtype=float)) for n, left in zip(observed, spread, strict=True))


def _traits(
    problem: Problem, relations: Mapping[str, LatentRelation], rates: NDArray[np.complex128], held: bool,
    modes: Mapping[str, int],
) -> Traits:  # fmt: skip
    horizon, statements = problem.domain[TIME], problem.statements
    linear = all(relation.is_linear for relation in relations.values())
    _check_growth(problem, linear, rates, modes)
    autonomous = not any(TIME in s.relation.coordinates for s in statements)
    moving = any(TIME in unknown.over for unknown in problem.functions.values()) or bool(_noisy_walls(problem))
    autonomous = autonomous and not moving
    decays = bool(np.any(rates.real * horizon.length < -1.0))
    unknown = bool((problem.unknowns and not held) or problem.functions)
    return Traits(
        linear, autonomous, linear and autonomous and not unknown and _is_separable(problem, relations),
        steady_windows=linear and autonomous and not decays,
        has_later_data=unknown or any(_is_later(s, horizon.lower) for s in statements),
        starts_by_formula=starts_by_formula(problem),
        asked_too_often=_asked_too_often(problem),
    )  # fmt: skip


def _check_growth(
    problem: Problem, linear: bool, rates: NDArray[np.complex128], modes: Mapping[str, int]
) -> None:
    """Refuse what grows beyond all numbers. Rates are those of equations one by one; where several seem to grow, all
    together are asked. Nonlinear systems pass: what they are at constant fields says little of where they go."""
    horizon = problem.domain[TIME]
    # a reaction makes all waves grow alike until it is spent; short ones that grow faster were never meant
    alike = 0.0 if linear else fastest_rates(problem, dict.fromkeys(problem.domain.space, 0))[1].real
    growth = float(np.max(rates.real - alike, initial=0.0)) * horizon.length
    if growth > MOST_GROWTH and len(problem.fields) > 1:
        growth = system_growth(problem, modes) * horizon.length if linear else 0.0
    if growth > MOST_GROWTH:
        what, why, attempt = "short waves that grow", ", as where heat runs backward in time", "fewer modes="
        if not problem.domain.space:
            what, why, attempt = "a solution that grows", "", "the units of coefficients"
        raise expected(
            f"{what} by less than e^{MOST_GROWTH:g} over the horizon", f"e^{growth:.3g}{why}",
            f"the other sign of the highest derivative, a shorter horizon, or {attempt}",
        )  # fmt: skip


def is_forward(problem: Problem, traits: Traits) -> bool:
    """Does nothing but what is told of the start inform, and are all walls told?

    Waves of a noisy start are followed by no polynomial, and an equation of second order in time, which is asked more
    often than it can be met, then needs room."""
    waves = max(_time_order(problem, name) for name in problem.fields) > 1
    measured = any(statement.kind == "observation" for statement in problem.statements)
    informed = traits.has_later_data or problem.unknowns or (waves and measured)
    return not (informed or missing_conditions(problem))


def _asked_too_often(problem: Problem) -> bool:
    """Are equations of second order in time asked more often than they can be met, beside walls that are uncertain?

    An error of a wall sends waves into the field that no polynomial follows, however smooth it is: at the start it does
    not bend as the field does. What the equations miss by then would count against the error. Surplus equations and
    walls, and equations without time, do tell of the state."""
    equations = [s for s in problem.statements if s.kind == "equation"]
    orders = [s.relation.order(TIME) for s in equations]
    if not (_noisy_walls(problem) and problem.domain.space and min(orders) >= 1 and max(orders) > 1):
        return False
    return len(equations) == len(problem.fields) and not any(
        sum(speaks(s, field, axis) for s in problem.statements) > max(_order(s, field, axis) for s in equations)
        for field in problem.fields
        for axis in problem.domain.space
    )


def _is_separable(problem: Problem, relations: Mapping[str, LatentRelation]) -> bool:
    space = [problem.domain[name] for name in problem.domain.space]
    periodic = bool(space) and all(isinstance(axis, Periodic) for axis in space)
    standing = [s for s in problem.statements if is_standing(s)]
    constant = all(s.face is None and not _varies(relations[s.name], problem) for s in standing)
    return periodic and constant


def _is_later(statement: Statement, start: float) -> bool:
    if statement.points is not None:
        return bool(np.any(statement.points[TIME] > start))
    return statement.face is not None and statement.face.get(TIME, start) > start


def _growing(
    problem: Problem, given: Collection[str], spectra: Mapping[str, Spectrum], traits: Traits
) -> tuple[str, ...]:
    """Labels show the modes they need, unless modes mix; a formula does not."""
    grows = not traits.separable if spectra else traits.starts_by_formula
    return tuple(name for name in problem.domain.space if grows and name not in given)


def jumps_of(problem: Problem) -> tuple[float, ...]:
    """When a known source, coefficient or wall jumps, and when short pulses of them begin and end."""
    jumping = [statement for statement in problem.statements if statement.relation.jumps]
    found = {s.name: instants([s.relation.text], problem.domain[TIME], problem.constants) for s in jumping}
    for wall in (s for s in jumping if s.face is not None):
        for instant in found[wall.name]:
            _check_continuous(problem, wall, instant)
    return tuple(sorted({instant for own in found.values() for instant in own} | set(pulses(problem))))


def _check_continuous(problem: Problem, wall: Statement, instant: float) -> None:
    """A field has one value at a time: it cannot follow a wall that jumps."""
    apart = BEFORE * problem.domain[TIME].length
    middle = {**problem.domain.centre, **{name: np.array([at]) for name, at in (wall.face or {}).items()}}
    at_both = {name: np.repeat(x, 2) for name, x in middle.items()} | {TIME: instant + apart * np.array([-1.0, 1.0])}
    found = []
    for size in (0.0, 1.0):  # of the field and its derivatives there
        known = {**dict.fromkeys(map(str, wall.relation.jets), size), **problem.typical_parameters}
        found.append(np.broadcast_to(evaluate_coefficient(wall.relation.expression, known, at_both), 2))
    if np.max(np.abs(np.diff(found, axis=1))) > np.sqrt(BEFORE) * np.max(np.abs(found)):
        attempt = f"a ramp, such as (1 + tanh((t - {instant:g})/0.1))/2, or max and min of t"
        raise expected("walls that change in time without a jump", f"{wall.name!r} at t = {instant:g}", attempt)


def _first_level(problem: Problem, degree: int, fastest: float) -> int:
    turns = fastest * problem.domain[TIME].length / reach_of(degree)
    return max(0, int(np.ceil(np.log2(max(turns, 1.0)))))


def reach_of(degree: int) -> float:
    """Rate times length that polynomials of a degree follow to 1e-6: beyond, fast modes are given up, not followed."""
    order = degree - 1
    return 4.0 * float(np.exp((special.gammaln(order + 1) + np.log(1e-6)) / order))


# -- through which functions of space an equation is seen


def projections(problem: Problem, families: Mapping[str, Family], points: Mapping[str, Array]) -> dict[str, Array]:
    """By equation: from places to the functions it is seen through, rows that keep the size of noise.

    They are as many as are left to it beside the boundary conditions. Pointwise residuals could never vanish: products
    of modes make frequencies that the basis has no weights for, and where initial and boundary values disagree in a
    corner, polynomials cannot follow. A residual that is forced on them disturbs the modes that are held, and with them
    unknown coefficients. Seen through the functions of the basis that vanish where the walls say so (Galerkin's
    method), the equation asks for no more than the basis can do, and what is stable by an energy argument stays so.
    Lanczos' tau method, through the lowest modes, has waves of a beam that explode: it is the last resort where walls
    mix fields or directions.
    """
    found = {}
    for statement in problem.statements:
        if statement.points is not None or statement.face is not None or not problem.domain.space:
            continue
        seen: Array = np.ones((1, 1))
        for axis in problem.domain.space:
            own = _along(problem, statement, axis, families[axis], points[axis])
            seen = np.asarray(np.kron(seen, own), float)
        found[statement.name] = seen
    return found


def _along(problem: Problem, equation: Statement, axis: str, family: Family, points: Array) -> Array:
    features = family(points)
    root = np.sqrt(quadrature_weights(problem.domain[axis], family, points))
    field = settled_field(problem, equation, axis)
    if field is None and isinstance(family, GradedSpline):
        return np.asarray(np.linalg.qr(root[:, None] * features)[0].T * root, float)
    if field is None:
        return np.asarray(np.linalg.qr(features)[0].T, float)
    walls = [s for s in problem.statements if speaks(s, field, axis)]
    order = takes(problem, equation, field, axis)
    rows = [wall_row(problem, wall, field, axis, family) for wall in walls]
    held = [row for row in rows if row is not None]
    if len(held) < len(rows) or len(rows) > order:
        return np.asarray(np.linalg.qr(_lowest(features, family, walls[:order], axis))[0].T, float)
    vanishing = linalg.null_space(np.array([row / np.abs(row).max() for row in held]))
    return np.asarray(np.linalg.qr(root[:, None] * (features @ vanishing))[0].T * root, float)


def _lowest(features: Array, family: Family, walls: Sequence[Statement], axis: str) -> Array:
    """All features but as many as there are walls: the highest modes, of splines those nearest to the walls."""
    if not isinstance(family, GradedSpline):
        return features[:, : features.shape[1] - len(walls)]
    lower = sum((wall.face or {})[axis] == family.breaks[0] for wall in walls)
    return features[:, lower : features.shape[1] - (len(walls) - lower)]


def quadrature_weights(axis: Axis, family: Family, points: Array) -> Array:
    """Of an integral over the axis at its collocation points, on average one: Fejer's rule on intervals.

    Over cells they add up to so many points as few modes would have, however many cells there are: the noise of an
    equation does not depend on them."""
    count = len(points)
    if isinstance(family, GradedSpline):
        return np.asarray(POINTS_OF_NOISE * family.quadrature[1] / axis.length, float)
    if not isinstance(axis, Interval):
        return np.ones(count)
    angle = np.pi * (np.arange(count) + 0.5) / count
    k = np.arange(1, count // 2 + 1)
    return np.asarray(1.0 - 2.0 * np.sum(np.cos(2.0 * np.outer(angle, k)) / (4.0 * k**2 - 1.0), axis=1), float)


def settled_field(problem: Problem, equation: Statement, axis: str) -> str | None:
    """The field whose walls along an axis take modes from an equation, most of all fields."""
    best: tuple[int, str | None] = (0, None)
    for field in problem.fields:
        walls = sum(speaks(s, field, axis) for s in problem.statements)
        taken = min(takes(problem, equation, field, axis), walls) if walls else 0
        if taken > best[0]:
            best = taken, field
    return best[1]


def takes(problem: Problem, equation: Statement, field: str, axis: str) -> int:
    """How many walls of a field an equation makes room for: it, of all equations, differentiates the field most there.

    Waves as a system of first order (e E_t = H_x, m H_t = E_x) conserve their energy if the walls of a field are held
    by the equation that states its own evolution, through functions that vanish where it does; a wall at either end.
    """
    equations = [s for s in problem.statements if s.kind == "equation"]
    most = {name: max(_order(s, name, axis) for s in equations) for name in problem.fields}
    order = _order(equation, field, axis)
    own = [s for s in equations if _order(s, field, TIME) > 0]
    mixed = any(axis in (s.face or {}) and len(s.relation.fields) > 1 for s in problem.statements)
    first = max(most.values()) == 1 and most[field] == 1 and not mixed
    if first and len(own) == 1 and not _order(own[0], field, axis):
        return min(2, sum(most.values())) if equation is own[0] else 0
    holder = max(equations, key=lambda s: (_order(s, field, axis), _order(s, field, TIME)))
    return order if holder is equation else 0


def _order(statement: Statement, field: str, axis: str) -> int:
    return statement.relation.orders.get((field, axis), 0)


def speaks(statement: Statement, field: str, axis: str) -> bool:
    return axis in (statement.face or {}) and any(jet.field == field for jet in statement.relation.jets.values())


def wall_row(problem: Problem, wall: Statement, field: str, axis: str, family: Family) -> Array | None:
    """What a wall says about the features along an axis; None where it speaks of more than one field or direction."""
    relation, total = wall.relation, np.zeros(family.size)
    face: Mapping[str, float] = wall.face or {}
    if not relation.is_linear or any(
        jet.field != field or {*dict(jet.orders)} - {axis} for jet in relation.jets.values()
    ):
        return None
    stencil: Stencil = wall.stencil or (({}, 1.0),)
    middle = {**problem.domain.centre, **{name: np.array([at]) for name, at in face.items()}}
    for jet, coefficient in relation.linear_part.items():
        size = float(np.ravel(evaluate_coefficient(coefficient, problem.typical_parameters, middle))[0])
        if not np.isfinite(size):
            return None
        for shift, weight in stencil:
            at = face[axis] + shift.get(axis, 0.0)
            total = total + size * weight * family(np.atleast_1d(at), dict(jet.orders).get(axis, 0))[0]
    return total if np.any(total) else None
