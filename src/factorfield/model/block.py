"""The model of one block: a tensor basis over the whole domain, factors at points of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, ProblemError
from factorfield.model.activation import Activation, Identity
from factorfield.model.basis import Tensor, family_for
from factorfield.model.choices import (
    HOLDS,
    Sigma,
    block_modes,
    block_prior,
    block_sigmas,
    check_orders,
    checked_counts,
    shown,
)
from factorfield.model.face_errors import beside_errors, error_part, with_error
from factorfield.model.factors import FactorGroup, build_group
from factorfield.model.functions import coefficient_parts
from factorfield.model.model import BlockModel, Model, check_memory, check_no_region
from factorfield.model.narrow import check_wide
from factorfield.model.representation import Representation, field_form, substitute
from factorfield.model.sizes import sizes_of
from factorfield.problem.domain import TIME, Interval, Points
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]


def block_model(
    problem: Problem,
    *,
    modes: Mapping[str, int] | None = None,
    collocation: Mapping[str, int] | None = None,
    activation: Activation | None = None,
    readout: Sequence[float] = (1.0,),
) -> BlockModel:
    """One tensor basis over the whole domain, identity ansatz, collocation at twice the features per axis.

    `modes` gives frequencies (periodic axes) or polynomial degrees (intervals); axes left out are chosen from
    the data and the equation's linear part. `collocation` gives points per axis.
    """
    ansatz = activation or Identity()
    plan = block_plan(problem, modes=modes, collocation=collocation, activation=ansatz, readout=readout)
    check_memory(plan.representation.size, plan.rows)
    sizes = sizes_of(problem, ansatz)
    sigmas, prior = block_sigmas(problem, sizes), block_prior(problem, plan.representation, sizes, ansatz)
    groups = [
        _statement_group(problem, plan.representation, statement, plan.points, sigma)
        for statement, sigma in zip(problem.statements, sigmas, strict=True)
    ]
    automatic = plan.automatic if ansatz.name == "identity" else ()
    settings = {
        "model": "default", "modes": plan.modes, "automatic": list(automatic), "collocation": plan.points,
        "scale": sizes.scale, "offset": sizes.shown, "activation": ansatz.name, "sigma": shown(problem, sigmas),
    }  # fmt: skip
    model = BlockModel(
        problem=problem, representation=plan.representation, prior=prior, sigmas=sigmas, modes=plan.modes,
        scale=sizes.scale, settings=settings, advice=plan.advice, automatic=automatic, collocation=plan.asked,
        groups=beside_errors(groups, plan.representation, problem.fields, prior.mean),
    )  # fmt: skip
    check_collocation(model, {name: n for name, n in plan.points.items() if n < plan.features[name]})
    return model


@wraps(block_model)
def holding_model(problem: Problem, **options: Any) -> BlockModel:
    """`block_model`, in which equations, starts and walls without a sigma of their own hold to rounding: what is left
    of their errors is numerical, and estimated as that.

    Where unknown coefficients bend the equation, its default sigma stays: a search needs room beside it.
    """
    model = block_model(problem, **options)
    if not holds(model):
        return model
    pairs = zip(problem.statements, model.sigmas, strict=True)
    return model.with_sigmas([
        replace(sigma, value=HOLDS * sigma.value) if holds_by_default(statement, sigma) else sigma
        for statement, sigma in pairs
    ])


def holds(model: BlockModel) -> bool:
    """Can a solve follow equations that hold? Unknown coefficients must not bend them; polynomials over a whole horizon
    of time rarely can; and errors of walls that the features cannot follow need room."""
    problem = model.problem
    exact = TIME not in problem.domain and all(statement.error is None for statement in problem.statements)
    return exact and (not (problem.unknowns or problem.functions) or is_linear_given_numbers(model))


def held_names(model: BlockModel) -> set[str]:
    """Statements without a sigma of their own that hold in a model."""
    pairs = zip(model.problem.statements, model.sigmas, strict=True)
    return {s.name for s, sigma in pairs if holds_by_default(s, sigma)} if holds(model) else set()


def holds_by_default(statement: Statement, sigma: Sigma) -> bool:
    """Is it an equation, a start or a wall without a sigma of its own?"""
    return sigma.origin == "default" and statement.kind != "observation"


def is_linear_given_numbers(model: Model) -> bool:
    """Are its factors linear in all weights but the unknown numbers?"""
    numbers = model.problem.unknowns
    forms = {name: form for name, form in model.representation.forms.items() if name not in numbers}
    return all(substitute(statement.relation, forms).is_linear for statement in model.problem.statements)


@dataclass(frozen=True, eq=False)
class Plan:
    """The shape of a model of one block before anything of its size is made."""

    modes: dict[str, int]
    automatic: tuple[str, ...]  # axes whose modes were chosen
    features: dict[str, int]  # per axis
    points: dict[str, int]
    asked: dict[str, int]  # points that the user asked for
    representation: Representation
    rows: int
    advice: tuple[Advice, ...]


def block_plan(
    problem: Problem,
    *,
    modes: Mapping[str, int] | None = None,
    collocation: Mapping[str, int] | None = None,
    activation: Activation | None = None,
    readout: Sequence[float] = (1.0,),
) -> Plan:
    """What `block_model` would make of the same arguments."""
    check_no_region(problem, "features over the whole domain")
    check_wide(problem, problem.domain)
    given = checked_counts(modes, problem, "modes")
    chosen, advice = block_modes(problem, given)
    intervals = {name: n for name, n in chosen.items() if isinstance(problem.domain[name], Interval)}
    check_orders(problem.statements, intervals)
    families = {name: family_for(problem.domain[name], chosen[name]) for name in problem.domain.names}
    counts = {name: family.size for name, family in families.items()}
    asked = checked_counts(collocation, problem, "collocation")
    points = {**{name: 2 * n for name, n in counts.items()}, **asked}
    basis, ansatz = Tensor(families), activation or Identity()
    parts = [(name, basis, field_form(name, problem.domain.names, ansatz, readout)) for name in problem.fields]
    errors = [error_part(s, problem.domain, chosen) for s in problem.statements if s.error is not None]
    representation = Representation.build(parts + coefficient_parts(problem) + errors)
    everywhere = math.prod(points[name] for name in problem.domain.names)
    rows = everywhere * len(problem.equations)
    rows += sum(len(s.target) for s in problem.statements if s.points is not None)
    automatic = tuple(sorted(set(chosen) - set(given)))
    return Plan(chosen, automatic, counts, points, asked, representation, rows, advice)


def _statement_group(
    problem: Problem, representation: Representation, statement: Statement, points: Mapping[str, int], sigma: Sigma
) -> FactorGroup:
    where: Points
    if statement.points is not None:
        where = statement.points
    else:
        face = statement.face or {}
        axes = {
            name: [face[name]] if name in face else problem.domain[name].collocation(points[name])
            for name in problem.domain.names
        }
        where = problem.domain.tensor(axes)
    group = build_group(statement, representation, where, sigma.value, problem.constants)
    return group if statement.error is None else with_error(group, representation)


def relinearised(model: BlockModel, weights: Array) -> BlockModel | None:
    """The same model with its response to errors of starts and walls linearised at a solution, where a next search
    begins; None for linear models and those that have been."""
    if model.is_linear or model.errors_at is not None or all(s.error is None for s in model.problem.statements):
        return None
    groups = beside_errors(model.groups, model.representation, model.problem.fields, weights)
    return replace(model, groups=groups, first_weights=weights, errors_at=weights)


def check_collocation(model: BlockModel, short: Mapping[str, int]) -> None:
    """Too few points leave modes free that the equation would settle, and they explode: refuse, with the numbers.

    Only axes with fewer points than features (`short`) can lose rank on a tensor grid, so the numerical ranks are
    compared only then: at the chosen points and at twice the features per axis.
    """
    if not short:
        return
    domain = model.problem.domain
    for group, statement in zip(model.groups, model.problem.statements, strict=True):
        if statement.kind != "equation":
            continue
        families = model.representation.latents[
            model.representation.forms[statement.relation.fields[0]].latents[0]
        ].basis
        enough = {n: 2 * size for n, size in zip(families.axes, families.shape, strict=True)}
        points = domain.tensor({n: domain[n].collocation(enough[n]) for n in domain.names})
        dense = build_group(statement, model.representation, points, 1.0, group.parameters)
        rank, full = numerical_rank(group, model.size), numerical_rank(dense, model.size)
        if rank < full:
            raise ProblemError(
                f"expected collocation points that settle {full} of the {model.size} weights ({group.name}), received "
                f"{group.count} points of rank {rank}; try collocation={enough} or fewer modes"
            )


def numerical_rank(group: FactorGroup, size: int) -> int:
    """Rank of a group's rows, linearised at weights where nothing vanishes by accident."""
    weights = np.random.default_rng(0).standard_normal(size)
    _, slopes = group.relation.value_and_gradient(group.project(weights), group.parameters, group.points)
    values = np.linalg.svd(group.pull_back(slopes, size), compute_uv=False)
    return int(np.sum(values > 1e-10 * values[0]))
