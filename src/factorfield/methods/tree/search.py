"""From a model of boxes to its belief: factors linearised, boxes eliminated, steps until nothing is left to gain."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import ProblemError, expected
from factorfield.messages.boxes import BoxTree, eliminate_boxes
from factorfield.model.local import LocalGroup
from factorfield.model.tree import TreeModel
from factorfield.problem.reference import constant_fields
from factorfield.progress import Progress

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
LEAST_RCOND = 1e-11  # of a front, scaled: below, Cholesky would leave fewer than five digits of a variance
ARRIVED = 1e-3  # nats: a step that promises less has arrived
EXACT = 1e-14  # nats: what is left of the mean of a linear problem is rounding
SHORTEST_STEP = 1e-6
CORRECTIONS = 4  # further steps with the same factors, which take away their rounding
FOLLOWED = 5  # eliminations for bringing the fields back onto the equations


@dataclass(frozen=True, eq=False)
class Lines:
    """All factors linearised: misfits, and rows in the order of each group's columns."""

    misfits: tuple[Array, ...]
    rows: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Found:
    """Weights, the belief about what is left of them, and how the search went."""

    weights: Array
    tree: BoxTree
    square_root: bool
    merits: tuple[float, ...]
    stalled: str | None = None
    held: Indices = field(default_factory=lambda: np.zeros(0, np.int64))  # weights that stay where they are
    beside: Array | None = None  # (weights, components): what the errors of starts and walls add, a root
    gain: float = 0.0  # what they add to the log evidence
    errors: Mapping[str, tuple[float, int]] = field(default_factory=dict)  # chi-square and components of each


def linearised(model: TreeModel, weights: Array, held: Indices | None = None) -> Lines:
    """All factors at the weights; nothing follows those that are held."""
    pairs = [group.linear_misfit(weights) for group in model.groups]
    if not all(np.all(np.isfinite(part)) for pair in pairs for part in pair):
        raise ProblemError(
            "expected finite factors, received overflow: the equation may have no solution here, or a sigma be far too "
            "small; try other coefficients, or larger sigmas"
        )
    for group, (_, rows) in zip(model.groups, pairs, strict=True):
        if held is not None and len(held) and group.count:
            rows[:, np.isin(group.all_columns[0], held)] = 0.0  # numbers: the same column in every row
    return Lines(tuple(misfit for misfit, _ in pairs), tuple(rows for _, rows in pairs))


def information(model: TreeModel, weights: Array, lines: Lines, held: Indices | None = None) -> Array:
    """Minus the gradient of the negative log joint: what pulls at the weights that are not held."""
    pull = np.zeros(model.size)
    for group, misfit, rows in zip(model.groups, lines.misfits, lines.rows, strict=True):
        pull -= np.bincount(group.all_columns.ravel(), (rows * misfit[:, None]).ravel(), model.size)
    for prior in model.priors:
        pull[prior.latent.block] -= prior.pull(weights)
    if held is not None:
        pull[held] = 0.0
    return pull


def eliminated(
    model: TreeModel, lines: Lines, square_root: bool, known: BoxTree | None = None, keep: bool = False,
    without: Sequence[LocalGroup] = (),
) -> BoxTree:  # fmt: skip
    """The belief about a step, given linearised factors (`without` some groups)."""
    used = [index for index, group in enumerate(model.groups) if group not in without]
    keys = [_key(model, lines, tile, used) if not box.children else b"" for tile, box in enumerate(model.boxes)]

    def own(tile: int) -> Array:
        return _rows(model, lines, tile, used) if square_root else _information(model, lines, tile, used)

    return eliminate_boxes(model.boxes, keys, own, square_root, known, keep)


def _key(model: TreeModel, lines: Lines, tile: int, used: Sequence[int]) -> bytes:
    """A digest of all that a tile's own information is made of."""
    digest = hashlib.blake2b(digest_size=16)
    for index in used:
        span = slice(model.spans[index][tile], model.spans[index][tile + 1])
        if span.stop > span.start:
            digest.update(lines.rows[index][span].tobytes())
            digest.update(model.own[index][span].tobytes())
    for place, factors in model.tile_priors[tile]:
        digest.update(place.tobytes())
        for factor in factors:
            digest.update(factor.tobytes())
    return digest.digest()


def _dense(model: TreeModel, lines: Lines, tile: int, used: Sequence[int]) -> Array:
    """A tile's factors as dense rows over the weights that it reads."""
    size, parts = len(model.boxes[tile].front), []
    for index in used:
        span = slice(model.spans[index][tile], model.spans[index][tile + 1])
        rows = lines.rows[index][span]
        if len(rows):
            at = model.own[index][span] + np.arange(0, size * len(rows), size)[:, None]
            parts.append(np.bincount(at.ravel(), rows.ravel(), len(rows) * size).reshape(len(rows), size))
    return np.concatenate(parts) if parts else np.zeros((0, size))


def _information(model: TreeModel, lines: Lines, tile: int, used: Sequence[int]) -> Array:
    rows = _dense(model, lines, tile, used)
    found = rows.T @ rows
    for place, factors in model.tile_priors[tile]:
        found[place[:, None], place] += _product([factor.T @ factor for factor in factors])
    return found


def _rows(model: TreeModel, lines: Lines, tile: int, used: Sequence[int]) -> Array:
    parts = [_dense(model, lines, tile, used)]
    for place, factors in model.tile_priors[tile]:
        share = _product(factors)
        rows = np.zeros((len(share), parts[0].shape[1]))
        rows[:, place] = share
        parts.append(rows)
    return np.concatenate(parts)


def _product(factors: Sequence[Array]) -> Array:
    """Kronecker's, first factor slowest."""
    product: Array = np.ones((1, 1))
    for factor in factors:
        product = np.asarray(np.kron(product, factor), float)
    return product


def belief(
    model: TreeModel, lines: Lines, square_root: bool, known: BoxTree | None = None, keep: bool = False,
    without: Sequence[LocalGroup] = (),
) -> tuple[BoxTree, bool]:  # fmt: skip
    """By Cholesky where the condition of every front permits, else by QR; and which it was."""
    if not square_root:
        try:
            tree = eliminated(model, lines, False, known, keep, without)
            if tree.rcond > LEAST_RCOND:
                return tree, False
        except linalg.LinAlgError:  # information that rounding made negative
            pass
    return eliminated(model, lines, True, known, keep, without), True


def search(
    model: TreeModel, iterations: int, progress: Progress | None, known: BoxTree | None = None, keep: bool = False
) -> Found:
    """One elimination for linear factors; Gauss-Newton, steps halved until the log joint does not fall, for others."""
    weights = starting_weights(model)
    if model.is_linear:
        lines = linearised(model, weights)
        tree, square_root = belief(model, lines, False, known, keep)
        return _corrected(model, Found(weights, tree, square_root, ()), lines)
    merit, merits, square_root = model.negative_log_joint(weights), [], False
    if first_coefficient(model) < model.size and model.first_weights is None:
        # of a flat field, k*u_xx tells nothing about k: first the field that suits the coefficients' means
        weights, merit = onto_equations(model, weights, merit, square_root)
    for iteration in range(iterations):
        lines = linearised(model, weights)
        tree, square_root = belief(model, lines, square_root, None, keep)
        merits.append(merit)
        gathered = tree.gather(information(model, weights, lines))
        promised, step = 0.5 * float(gathered @ gathered), tree.spread(gathered)
        if progress is not None:
            progress(f"iteration {iteration + 1}, promised gain {promised:.1e}", 0.5)
        found = _shortened(model, weights, step, merit, square_root)
        if found is not None:
            weights, merit = found
        if promised < ARRIVED:
            return Found(weights, tree, square_root, tuple(merits))
        if found is None:
            text = f"the search stalls: a step promises {promised:.2g} in log probability, and no part of it gains any"
            return Found(weights, tree, square_root, tuple(merits), text)
    text = f"{iterations} iterations came first: the last step promised {promised:.2g} in log probability"
    return Found(weights, tree, square_root, tuple(merits), text)


def _corrected(model: TreeModel, found: Found, lines: Lines) -> Found:
    """The step of a linear problem, and further ones with the same factors against its rounding."""
    weights, merits, before = found.weights, [], math.inf
    for _ in range(1 + CORRECTIONS):
        merits.append(model.merit(weights, lines.misfits))
        gathered = found.tree.gather(information(model, weights, lines, found.held))
        promised = 0.5 * float(gathered @ gathered)
        if not promised < before:
            break
        weights, before = weights + found.tree.spread(gathered), promised
        lines = Lines(tuple(group.misfit(weights) for group in model.groups), lines.rows)
        if promised < EXACT:
            break
    return replace(found, weights=weights, merits=tuple(merits))


def given(model: TreeModel, values: Mapping[str, float], known: BoxTree | None = None, keep: bool = False) -> Found:
    """The belief about all other weights given unknown numbers, by the names of their latents: where factors are linear
    in the others, one elimination."""
    held = np.array([model.representation.latents[name].block.start for name in values], np.int64)
    weights = starting_weights(model).copy()
    weights[held] = list(values.values())
    lines = linearised(model, weights, held)
    tree, square_root = belief(model, lines, False, known, keep)
    return _corrected(model, Found(weights, tree, square_root, (), held=held), lines)


def _shortened(
    model: TreeModel, weights: Array, step: Array, merit: float, square_root: bool
) -> tuple[Array, float] | None:
    """A part of a step that gains; where the equations bend away from a step in coefficients, the fields are brought
    back onto them first."""
    length = 1.0
    while length > SHORTEST_STEP:
        candidate = weights + length * step
        with np.errstate(all="ignore"):
            value = model.negative_log_joint(candidate)
        if first_coefficient(model) < model.size and not value < 0.5 * merit:
            candidate, value = onto_equations(model, candidate, value, square_root)
        if value <= merit:
            return candidate, value
        length *= 0.5
    return None


def first_coefficient(model: TreeModel) -> int:
    """The number of the first weight that is no field's."""
    return max(model.representation.latents[name].block.stop for name in model.problem.fields)


def onto_equations(model: TreeModel, weights: Array, merit: float, square_root: bool) -> tuple[Array, float]:
    """The fields that suit coefficients held where they are, and the negative log joint there: Newton steps in the
    fields alone."""
    fields = first_coefficient(model)
    for _ in range(FOLLOWED if math.isfinite(merit) else 0):
        lines = linearised(model, weights)
        pull = information(model, weights, lines)
        pull[fields:] = 0.0
        rows = tuple(np.where(g.all_columns < fields, r, 0.0) for g, r in zip(model.groups, lines.rows, strict=True))
        tree, _ = belief(model, Lines(lines.misfits, rows), square_root)
        candidate = weights + tree.solve(pull)
        value = model.negative_log_joint(candidate)
        if not value < merit:
            break
        gained, weights, merit = merit - value, candidate, value
        if gained < ARRIVED:
            break
    return weights, merit


def starting_weights(model: TreeModel) -> Array:
    """The model's own start, or the prior mean, or constants that data and walls tell if a factor has no value or no
    slope there, such as log(u) and sqrt(u) at 0."""
    if model.first_weights is not None:
        return model.first_weights
    if model.is_linear:
        return model.prior_mean
    candidates = [model.prior_mean]
    for values in constant_fields(model.problem):
        place = model.prior_mean.copy()
        for name, value in values.items():
            place[model.representation.latents[name].block] = value  # splines add up to one
        candidates.append(place)
    for place in candidates:
        with np.errstate(all="ignore"):
            pairs = [group.linear_misfit(place) for group in model.groups]
        if all(np.all(np.isfinite(part)) for pair in pairs for part in pair):
            return place
    raise expected(
        "equations and conditions that have a value where the fields are what is told of them",
        "one that has none, such as log(0)", "ff.Initial, ff.Boundary or ff.Observations that say how large they are",
    )  # fmt: skip


def log_evidence(model: TreeModel, found: Found) -> float:
    """log p(measurements | equation, conditions, prior), factors linearised at the weights that were found."""
    measured = [group for group in model.groups if group.statement.kind == "observation"]
    if not measured:
        return 0.0
    lines = linearised(model, found.weights, found.held)
    with_all = _level(model, found, lines, ())
    level = with_all - _level(model, found, lines, measured) - sum(group.log_normaliser() for group in measured)
    return level + found.gain


def _level(model: TreeModel, found: Found, lines: Lines, without: Sequence[LocalGroup]) -> float:
    """log of the integral of the factors, up to what does not depend on them being there: of steps from where they are
    linearised, so that nothing large cancels."""
    tree, _ = belief(model, lines, found.square_root, found.tree, True, without)
    kept = [
        (misfit, rows) if group not in without else (np.zeros(len(misfit)), rows)
        for group, misfit, rows in zip(model.groups, lines.misfits, lines.rows, strict=True)
    ]
    seen = Lines(tuple(misfit for misfit, _ in kept), lines.rows)
    gathered = tree.gather(information(model, found.weights, seen, found.held))
    squares = sum(float(misfit @ misfit) for misfit in seen.misfits)
    return 0.5 * (float(gathered @ gathered) - squares - tree.log_determinant)
