"""A window's factors, and their rows: linearised, whitened, and seen through the modes that the basis holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.sparse import csgraph

from factorfield.model.basis import Departure
from factorfield.model.factors import FactorGroup, build_group, linearise, times
from factorfield.model.folding import measured
from factorfield.model.grid import GridGroup, grid_group
from factorfield.model.representation import Representation
from factorfield.model.window import window_representation
from factorfield.model.windowed import Setup, length_of, stands
from factorfield.problem.domain import TIME, Interval
from factorfield.problem.problem import Statement
from factorfield.problem.relation import evaluate_coefficient

Array = NDArray[np.float64]


def instants_of(setup: Setup, statement: Statement, lower: float, upper: float) -> Array:
    """When an equation or a wall is asked to hold in a window: as often as it has polynomials to settle.

    Then it can be met exactly, whatever the state at the start: asked more often it would bend the start where the
    window is too long. Radau's points, the last at the end: stiff decays are damped, as in the implicit Runge-Kutta
    methods of that name. With second derivatives in time the same points let fast waves in space explode, and without
    any the state at the start is to be settled too: both are asked more often than needed.
    """
    size = next(iter(setup.representation.latents.values())).basis.families[TIME].size
    order = statement.relation.order(TIME)
    if statement.face is not None:
        order = max(setup.orders[jet.field] for jet in statement.relation.jets.values())
    exactly = order == 1 or (order > 1 and not setup.problem.domain.space)
    return _radau(size - order, lower, upper) if exactly else Interval(lower, upper).collocation(size + 2)


def _radau(count: int, lower: float, upper: float) -> Array:
    inner, _ = special.roots_jacobi(count - 1, 1.0, 0.0)
    return lower + 0.5 * (upper - lower) * (1.0 + np.append(inner, 1.0))


def standing_groups(setup: Setup, lower: float, upper: float) -> list[FactorGroup]:
    """Factors that every window has: equations and walls at its collocation points.

    Without explicit time, windows of equal length have equal rows.
    """
    groups = []
    for number, statement in enumerate(setup.problem.statements):
        known = (number, length_of(lower, upper))
        if not stands(statement):
            continue
        group = setup.rows[known] if known in setup.rows else _gridded(setup, number, lower, upper)
        groups.append(group)
        if setup.autonomous:
            setup.rows[known] = group
    return groups


def own_groups(setup: Setup, lower: float, upper: float, first: bool) -> list[FactorGroup]:
    """What distinguishes a window: measurements and instants that fall into it, and how it starts."""
    problem = setup.problem
    representation = window_representation(setup.representation, lower, upper)
    groups: list[FactorGroup] = []
    for number, (statement, sigma) in enumerate(zip(problem.statements, setup.sigma, strict=True)):
        if stands(statement):
            continue
        if statement.points is not None:
            t = statement.points[TIME]
            inside = np.flatnonzero((t <= upper) & ((t > lower) | first))
            if len(inside):
                groups += measured(statement, representation, inside, lower, sigma, problem.constants)
            continue
        at = (statement.face or {})[TIME]
        if lower < at <= upper or (first and at <= lower):
            groups.append(_gridded(setup, number, lower, upper))
    for statement in setup.pinned if first else ():
        axes = {name: np.array([at]) for name, at in (statement.face or {}).items()}
        where = problem.domain.tensor({**setup.points, **axes})
        relation, sigma = representation.read(statement.relation), 1.0 if statement.sigma is None else statement.sigma
        groups.append(
            build_group(
                statement.name, relation, representation, where, statement.target, sigma, problem.constants,
                statement.stencil,
            )
        )  # fmt: skip
    return groups


def _gridded(setup: Setup, number: int, lower: float, upper: float) -> FactorGroup:
    """An equation or a face at collocation points."""
    problem, statement, sigma = setup.problem, setup.problem.statements[number], setup.sigma[number]
    representation = window_representation(setup.representation, lower, upper)
    face = statement.face or {}
    axes = {TIME: instants_of(setup, statement, lower, upper), **setup.points}
    axes |= {name: np.array([at]) for name, at in face.items()}
    where = problem.domain.tensor(axes)
    if statement.name in setup.projection:
        through = setup.projection[statement.name]
        return grid_group(statement, representation, axes, where, sigma, problem.constants, through)
    relation = representation.read(statement.relation)
    return build_group(
        statement.name, relation, representation, where, statement.target, sigma, problem.constants, statement.stencil
    )


def is_equation(group: FactorGroup) -> bool:
    return group.name.startswith("equation")


def projected(group: FactorGroup, values: Array) -> Array:
    """Values at an equation's points (instants x places) seen through its modes (chain_projection.py)."""
    if not isinstance(group, GridGroup):
        return values
    return (values.reshape(-1, group.through.shape[1]) @ group.through.T).ravel()


def linear_misfit(group: FactorGroup, weights: Array) -> tuple[Array, Array]:
    """(value - target) / sigma at the weights, and its derivative."""
    line = linearise(group.relation, group.project(weights), None, group.parameters, group.points)
    misfit = (line.value - group.target) / group.sigma
    slopes = line.slopes / group.sigma[:, None]
    if isinstance(group, GridGroup):
        return projected(group, misfit), group.seen_rows(slopes, len(weights))
    return misfit, group.pull_back(slopes, len(weights))


def whitened(groups: list[FactorGroup], weights: Array) -> tuple[Array, Array]:
    """Linearised factors at `weights` as rows w = target +- 1."""
    rows, targets = [np.zeros((0, len(weights)))], [np.zeros(0)]
    for group in groups:
        misfit, block = linear_misfit(group, weights)
        rows.append(block)
        targets.append(times(block, weights) - misfit)
    return np.concatenate(rows), np.concatenate(targets)


def last_polynomials(representation: Representation) -> NDArray[np.int64]:
    """Weights of the last two polynomials in time of every field."""
    found: list[int] = []
    for latent in representation.latents.values():
        family = latent.basis.families.get(TIME)
        if isinstance(family, Departure):
            across = latent.basis.size // family.size
            found += range(latent.block.stop - 2 * across, latent.block.stop)
    return np.array(found, int)


def plain_blocks(setup: Setup, lower: float, upper: float) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
    """The equation's whitened rows where waves do not mix: (weights, rows, targets), frequency by frequency.

    What `whitened` gives for the equation's groups, without ever building the rows of all frequencies: on a tensor
    grid they are Kronecker products of features in time and of projected features in space.
    """
    projection = next(iter(setup.projection.values()))
    representation = window_representation(setup.representation, lower, upper)
    constants = setup.problem.constants
    terms: list[tuple[int, str, Array, Array]] = []  # equation, latent, features in time, in space
    levels: list[Array] = []  # of each equation, by instant
    for statement, sigma in zip(setup.problem.statements, setup.sigma, strict=True):
        if statement.points is not None or statement.face is not None:
            continue
        grid = {TIME: instants_of(setup, statement, lower, upper), **setup.points}
        relation = representation.read(statement.relation)
        line = linearise(relation, np.zeros((1, len(relation.functionals))), None, constants, {})
        for slope, functional in zip(line.slopes[0], relation.functionals, strict=True):
            for orders, coefficient in functional.terms:
                size = float(np.ravel(evaluate_coefficient(coefficient, constants, {}))[0]) * slope / sigma
                in_time, *in_space = representation.latents[functional.latent].basis.matrices(grid, orders)
                space: Array = np.ones((1, 1))
                for features in in_space:
                    space = np.asarray(np.kron(space, features), float)
                terms.append((len(levels), functional.latent, size * in_time, projection @ space))
        levels.append(np.full(len(grid[TIME]), float(statement.target[0] - line.value[0]) / sigma))
    linked = sum(np.abs(space) > 1e-12 * np.abs(space).max() for *_, space in terms)
    _, label = csgraph.connected_components(sparse.csr_matrix(linked), directed=False)
    ones = projection.sum(axis=1)
    for number in range(label.max() + 1):
        modes = np.flatnonzero(label == number)
        weights = np.zeros(0, int)
        columns: dict[str, slice] = {}
        for name, latent in representation.latents.items():
            powers = np.arange(latent.basis.families[TIME].size)[:, None] * len(projection)
            columns[name] = slice(len(weights), len(weights) + powers.size * len(modes))
            weights = np.concatenate([weights, (latent.start + powers + modes).ravel()])
        ends = len(modes) * np.cumsum([0, *map(len, levels)])
        rows = np.zeros((ends[-1], len(weights)))
        for equation, name, in_time, space in terms:
            place = slice(ends[equation], ends[equation + 1])
            rows[place, columns[name]] += np.kron(in_time, space[np.ix_(modes, modes)])
        target = np.concatenate([np.kron(level, ones[modes]) for level in levels])
        yield weights, rows, target
