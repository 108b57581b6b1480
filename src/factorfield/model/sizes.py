"""How large a problem's fields are, and the first solve that tells where their values do not.

A load is no size of the field: a clamped plate under u_xxxx = 1 moves by 1/384. So where conditions say zero (or an
offset) everywhere, the equation is solved once on few features, and the field's size is read off. Linear problems
scale, so that few digits and no sigma of any meaning are enough.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Tensor, family_for
from factorfield.model.choices import (
    BLOCK_RESIDUAL,
    FACE_NOISE,
    Sizes,
    field_offsets,
    field_scale,
    loaded_scale,
    natural_size,
    told_scale,
)
from factorfield.model.factors import FactorGroup, build_group, whitened_rows
from factorfield.model.functions import coefficient_parts, coefficient_prior
from factorfield.model.narrow import quick
from factorfield.model.representation import Representation, field_form
from factorfield.problem.domain import Periodic
from factorfield.problem.places import inside_of, places_of
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
MOST_FEATURES, MOST_ALONG = 300, 24  # of the first solve: in all, and along one axis
MOST_NUMBERS = 1 << 23  # in the rows of the first solve
BEYOND = 10.0  # loads that make this much more of a field than its told values are believed
NEGLIGIBLE = 1e-10  # singular values of the first solve: directions that nothing tells stay at the offset


def sizes_of(problem: Problem, activation: Activation) -> Sizes:
    """Of a problem's fields; other activations than the identity have a zero of their own, and no offset."""
    offsets = field_offsets(problem) if activation.name == "identity" else {}
    told, loaded = told_scale(problem, offsets), loaded_scale(problem, offsets)
    is_brief = any(quick(problem, statement) for statement in problem.statements)  # which few features do not see
    if loaded <= BEYOND * told or is_brief:
        return Sizes(field_scale(problem, offsets), offsets)
    solved = first_size(problem, offsets)
    if any(not statement.relation.is_linear for statement in problem.statements):
        solved = min(solved, loaded)  # a linearisation may be anything
    if solved > BEYOND * told:
        return Sizes(solved, offsets, loaded)
    return Sizes(told or field_scale(problem, offsets), offsets)


def first_size(problem: Problem, offsets: dict[str, float]) -> float:
    """The root mean square of the largest field about its offset, by least squares on few features; 0 if none."""
    representation, counts = _few_features(problem)
    if representation.size * math.prod(counts.values()) * len(problem.statements) > MOST_NUMBERS:
        return 0.0  # many axes of high order: few features are not few enough
    start, free = np.zeros(representation.size), np.zeros(representation.size, bool)
    for name, form in representation.forms.items():
        block = representation.latents[form.latents[0]].block
        if name in problem.parameters:
            start[block] = coefficient_prior(problem, name)[0]
        else:
            start[block.start], free[block] = offsets.get(name, 0.0), True
    with np.errstate(all="ignore"):
        rows, targets = whitened_rows(_groups(problem, representation, counts), start)
        left = targets - rows @ start
    if not (np.all(np.isfinite(rows)) and np.all(np.isfinite(left))):  # no linear part at constant fields
        return 0.0
    moved = np.zeros(len(start))
    moved[free] = linalg.lstsq(rows[:, free], left, cond=NEGLIGIBLE, lapack_driver="gelsy")[0]
    along = {name: problem.domain[name].cells(n) for name, n in counts.items()}
    grid = inside_of(problem.domain, problem.shape, along)
    sizes = []
    for name in problem.fields:
        latent = representation.latents[representation.forms[name].latents[0]]
        sizes.append(float(np.sqrt(np.mean((latent.basis.rows(grid) @ moved[latent.block]) ** 2))))
    return max(sizes, default=0.0)


def _few_features(problem: Problem) -> tuple[Representation, dict[str, int]]:
    """And the number of points per axis at which they are asked."""
    names = problem.domain.names
    along = min(MOST_ALONG, int(MOST_FEATURES ** (1.0 / len(names))))
    families = {}
    for name in names:
        order = max(statement.relation.order(name) for statement in problem.statements)
        degree = max(along - 1, order + 3)
        families[name] = family_for(
            problem.domain[name], degree // 2 if isinstance(problem.domain[name], Periodic) else degree
        )
    parts = [(name, Tensor(families), field_form(name, names, Identity())) for name in problem.fields]
    return Representation.build(parts + coefficient_parts(problem)), {n: f.size + 2 for n, f in families.items()}


def _groups(problem: Problem, representation: Representation, counts: dict[str, int]) -> list[FactorGroup]:
    groups = []
    for statement in problem.statements:
        share = BLOCK_RESIDUAL if statement.kind == "equation" else FACE_NOISE
        sigma = share * natural_size(statement.relation, problem, 1.0)
        along = {name: problem.domain[name].collocation(count) for name, count in counts.items()}
        where = places_of(statement, problem.domain, problem.shape, along)
        groups.append(build_group(statement, representation, where, sigma, problem.constants))
    return groups
