"""A model laid out for the compiled sweep: flat arrays, and the form in which each group's relation is handed over.

Three forms, the most special that fits:
  linear       slopes and an offset per factor;
  semilinear   p0 + p1 u + p2 u^2 + sum_h a_h (c1 g'(z_h) r_h + c2 g''(z_h) q_h^2): data, advection, diffusion and
               quadratic reactions in the paper's ansatz, in closed form;
  general      any other relation, by cubature in jet space through a compiled function of scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from factorfield.compiled import numba
from factorfield.errors import expected
from factorfield.methods.mean_field.kernel import GENERAL, LINEAR, MOST_READS, RELATION, SEMILINEAR, sweep
from factorfield.model.activation import PiecewiseExponential
from factorfield.model.factors import FactorGroup
from factorfield.model.linearisation import symmetric_rule
from factorfield.model.model import BlockModel
from factorfield.model.representation import LatentRelation
from factorfield.problem.relation import evaluate_coefficient

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)


class CompiledRelation(Protocol):
    """Writes value and slopes of a group's relation to `outputs`."""

    def __call__(self, group: int, arguments: Array, outputs: Array) -> None: ...


@dataclass(frozen=True, eq=False)
class Layout:
    """Arrays in the order of the kernel's arguments; see kernel.sweep."""

    groups: tuple[FactorGroup, ...]
    forms: tuple[Form, ...]
    group_of: Indices
    uses_belief: NDArray[np.bool_]
    floor: Array
    design: Array
    starts: Indices
    offsets: Indices
    lengths: Indices
    blocks: Indices
    block_counts: Indices
    message_start: Indices
    message_size: int
    target: Array
    noise: Array
    coefficients: Array
    constants: Array
    relation: CompiledRelation | None
    activation: PiecewiseExponential

    def factors(self, of_equation: bool) -> Indices:
        """The numbers of the factors that do (or do not) belong to an equation."""
        chosen = [(group.statement.kind == "equation") == of_equation for group in self.groups]
        return np.flatnonzero(np.array(chosen)[self.group_of])

    def with_parameters(self, model: BlockModel) -> Layout:
        """The same layout for other constants."""
        coefficients, constants = _numbers(model.groups, self.forms)
        return replace(self, groups=model.groups, coefficients=coefficients, constants=constants)

    def sweep(self, order: Indices, arrays: Sequence[Array], kinks: bool, damping: float) -> tuple[float, int]:
        forms = self.forms
        rules = [symmetric_rule(len(f.relation.inputs)) if f.kind == GENERAL else _NO_RULE for f in forms]
        width = max(nodes.shape[1] for nodes, _ in rules)
        nodes = np.concatenate([np.pad(n, ((0, 0), (0, width - n.shape[1]))) for n, _ in rules])
        derivatives = [f.activation_derivatives for f in forms]
        kl, rejected = sweep(
            np.asarray(order), self.group_of, np.array([f.kind for f in forms]), self.uses_belief, self.floor,
            self.design, self.starts, self.offsets, self.lengths, np.array([len(f.relation.inputs) for f in forms]),
            self.blocks, self.block_counts, self.message_start, self.target, self.noise, self.coefficients,
            _stacked([f.units for f in forms], -1), _stacked([f.readout for f in forms], 0.0),
            self.relation, self.constants, np.array([f.constant_count for f in forms]),
            _stacked(derivatives, 0), np.array([len(d) for d in derivatives]),
            nodes, np.concatenate([w for _, w in rules]), np.cumsum([0, *[len(w) for _, w in rules]]),
            self.activation.alpha, self.activation.beta, kinks, damping, *arrays,
        )  # fmt: skip
        return float(kl), int(rejected)


_NO_RULE = (np.zeros((0, 1)), np.zeros(0))


def _stacked(arrays: Sequence[NDArray[Number]], fill: float) -> NDArray[Number]:
    """Arrays of different lengths as one, short ones padded with `fill`."""
    shape = [max(a.shape[axis] for a in arrays) for axis in range(arrays[0].ndim)]
    result = np.full((len(arrays), *shape), fill, dtype=arrays[0].dtype)
    for index, a in enumerate(arrays):
        result[index][tuple(slice(n) for n in a.shape)] = a
    return result


@dataclass(frozen=True, eq=False)
class Form:
    """How one group's relation is handed to the kernel."""

    kind: int
    relation: LatentRelation
    units: Indices  # (units, 3): positions of z, r, q
    readout: Array
    coefficients: tuple[sympy.Expr, ...]  # p0, p1, p2, c1, c2

    @property
    def activation_derivatives(self) -> Indices:
        """(functional of z, order k) of every g^(k)(z) that a general relation and its slopes read."""
        keys = [(of, order) for of, order, _ in self.relation.all_activation_derivatives.values()]
        return np.array(keys if self.kind == GENERAL else [], np.int64).reshape(-1, 2)

    @property
    def constant_count(self) -> int:
        return len(self.relation.parameters) + len(self.relation.coordinates)


def lay_out(model: BlockModel, equations_use_belief: bool, floor: float) -> Layout:
    groups = model.groups
    forms = tuple(_form(model, group) for group in groups)
    most = max(len(form.relation.inputs) for form in forms)
    if most > MOST_READS:
        raise expected(f"at most {MOST_READS} functionals per factor for mean-field", f"{most}", "method='joint'")
    design, where = _design(groups)
    count = [group.count for group in groups]
    group_of = np.repeat(np.arange(len(groups)), count)
    starts = np.zeros((sum(count), most), np.int64)
    offsets, lengths = np.zeros((len(groups), most), np.int64), np.zeros((len(groups), most), np.int64)
    touched: list[list[tuple[int, int]]] = []
    for g, group in enumerate(groups):
        rows = np.flatnonzero(group_of == g)
        for j, block in enumerate(group.blocks):
            width = block.stop - block.start
            starts[rows, j] = where[g][j] + width * np.arange(group.count)
            offsets[g, j], lengths[g, j] = block.start, width
        touched.append(list(dict.fromkeys((b.start, b.stop - b.start) for b in group.blocks)))
    blocks = _stacked([np.array(t, np.int64) for t in touched], 0)
    sizes = np.array([sum(length for _, length in t) for t in touched])[group_of]
    coefficients, constants = _numbers(groups, forms)
    return Layout(
        groups, forms, group_of,
        np.array([equations_use_belief and group.statement.kind == "equation" for group in groups]),
        np.array([floor if group.statement.kind == "equation" else 0.0 for group in groups]),
        design, starts, offsets, lengths, blocks, np.array([len(t) for t in touched]),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64), int(sizes.sum()),
        np.concatenate([group.target for group in groups]), np.concatenate([group.sigma for group in groups]) ** 2,
        coefficients, constants, _compiled(forms), _activation(model),
    )  # fmt: skip


def _activation(model: BlockModel) -> PiecewiseExponential:
    """The one nonlinear activation of the model; the kernel has room for a single pair of constants."""
    found = {
        f.activation for f in model.representation.forms.values() if isinstance(f.activation, PiecewiseExponential)
    }
    if len(found) > 1:
        raise expected("one activation for all fields in mean-field", f"{len(found)}", "method='joint'")
    return next(iter(found), PiecewiseExponential())


def _design(groups: Sequence[FactorGroup]) -> tuple[Array, list[list[int]]]:
    """All rows in one flat array, and where the rows of each group's functionals start; shared rows are stored once."""
    where: dict[tuple[int, int], int] = {}
    starts: list[list[int]] = []
    pieces: list[tuple[int, FactorGroup, int]] = []
    position = 0
    for group in groups:
        starts.append([])
        for j, rows in enumerate(group.rows):
            key = (id(rows), id(group.shared))
            if key not in where:
                where[key] = position
                pieces.append((position, group, j))
                position += group.count * (group.blocks[j].stop - group.blocks[j].start)
            starts[-1].append(where[key])
    design = np.empty(position)
    for at, group, j in pieces:
        rows = group.dense_rows(j)
        design[at : at + rows.size] = rows.ravel()
    return design, starts


def _form(model: BlockModel, group: FactorGroup) -> Form:
    relation = group.relation
    nothing = np.full((1, 3), -1, np.int64), np.zeros(1)
    if relation.is_linear:
        return Form(LINEAR, relation, *nothing, ())
    return _semilinear(model, relation) or Form(GENERAL, relation, *nothing, ())


def _semilinear(model: BlockModel, relation: LatentRelation) -> Form | None:
    """Match the closed form by the monomials of the relation; None if it is something else."""
    import sympy

    units = sorted({of for of, _, _ in relation.activation_derivatives.values()})
    owners = {relation.functionals[z].latent: name for z in units for name, form in model.representation.forms.items()
              if relation.functionals[z].latent in form.latents}  # fmt: skip
    if not units or len(set(owners.values())) != 1 or any(f.latent not in owners for f in relation.functionals):
        return None
    form = model.representation.forms[next(iter(owners.values()))]
    weight = dict(zip(form.latents, form.readout, strict=True))
    readout = [sympy.nsimplify(weight[relation.functionals[z].latent]) for z in units]
    roles = np.full((len(units), 3), -1, np.int64)
    roles[:, 0] = units
    symbols = (*relation.inputs, *relation.activation_derivatives)
    found: dict[str, list[sympy.Expr]] = {"p0": [], "p1": [], "p2": [], "c1": [], "c2": []}
    try:
        terms = sympy.Poly(sympy.expand(relation.expression), *symbols).terms()
    except sympy.PolynomialError:
        return None
    for powers, coefficient in terms:
        present = {symbols[i]: power for i, power in enumerate(powers) if power}
        derivatives = [
            (units.index(relation.activation_derivatives[s][0]), relation.activation_derivatives[s][1], p)
            for s, p in present.items()
            if s in relation.activation_derivatives
        ]
        inputs = [(relation.inputs.index(s), p) for s, p in present.items() if s not in relation.activation_derivatives]
        match (sorted(derivatives), inputs):
            case ([], []):
                found["p0"].append(coefficient)
            case ([(h, 0, 1)], []):
                found["p1"].append(coefficient / readout[h])
            case ([(h, 0, 2)], []):
                found["p2"].append(coefficient / readout[h] ** 2)
            case ([(h, 0, 1), (k, 0, 1)], []):
                found["p2"].append(coefficient / (2 * readout[h] * readout[k]))
            case ([(h, 1, 1)], [(j, 1)]) if roles[h, 1] in (-1, j):
                roles[h, 1] = j
                found["c1"].append(coefficient / readout[h])
            case ([(h, 2, 1)], [(j, 2)]) if roles[h, 2] in (-1, j):
                roles[h, 2] = j
                found["c2"].append(coefficient / readout[h])
            case _:
                return None
    complete = {"p1": len(units), "p2": len(units) * (len(units) + 1) // 2, "c1": len(units), "c2": len(units)}
    for name, values in found.items():
        if values and (len({sympy.simplify(v) for v in values}) > 1 or len(values) != complete.get(name, 1)):
            return None
    coefficients = tuple(values[0] if values else sympy.Integer(0) for values in found.values())
    return Form(SEMILINEAR, relation, roles, np.array([float(a) for a in readout]), coefficients)


def _numbers(groups: Sequence[FactorGroup], forms: Sequence[Form]) -> tuple[Array, Array]:
    """Per factor: the numbers of its closed form, and the parameters and coordinates a general relation reads."""
    tables, constants = [], []
    for group, form in zip(groups, forms, strict=True):
        relation = form.relation
        if form.kind == LINEAR:
            zero = np.zeros((group.count, len(relation.inputs)))
            value, slopes = relation.value_and_gradient(zero, group.parameters, group.points)
            tables.append(np.column_stack([slopes, value]))
        else:
            columns = [evaluate_coefficient(c, group.parameters, group.points) for c in form.coefficients]
            tables.append(np.column_stack([np.broadcast_to(c, group.count) for c in columns or [0.0]]))
        named: list[float | Array] = [group.parameters[name] for name in relation.parameters]
        named += [group.points[name] for name in relation.coordinates]
        constants.append(np.column_stack([np.broadcast_to(c, group.count) for c in named or [0.0]]).astype(float))
    return _rows(tables), _rows(constants)


def _rows(tables: Sequence[Array]) -> Array:
    width = max(table.shape[1] for table in tables)
    return np.concatenate([np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables])


def _compiled(forms: Sequence[Form]) -> CompiledRelation | None:
    """One C-callable relation(group, arguments, outputs) for all general groups of the model; None without any."""
    cfunc, njit = numba().cfunc, numba().njit

    def chained(remaining: list[tuple[int, Callable[[Array], Sequence[float]]]]) -> CompiledRelation:
        if not remaining:
            return njit(lambda group, arguments, outputs: None)
        index, function = remaining[0]
        others = chained(remaining[1:])

        @njit
        def call(group: int, arguments: Array, outputs: Array) -> None:
            if group == index:
                values = function(arguments)
                for i in range(len(values)):
                    outputs[i] = values[i]
            else:
                others(group, arguments, outputs)

        return call

    general = [(g, form.relation.scalar()) for g, form in enumerate(forms) if form.kind == GENERAL]
    if not general:
        return None
    call = chained(general)

    def relation(group: int, arguments: Array, outputs: Array) -> None:
        call(group, arguments, outputs)

    return cfunc(RELATION)(relation)
