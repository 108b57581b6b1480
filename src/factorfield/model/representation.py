"""How fields and unknown coefficients are written in weights, and what relations become in them.

One weight vector w is cut into latents z = w . phi. A field is u = sum_h readout_h g(z_h), each z_h a tensor-product
expansion; a coefficient is theta = z, or exp(z) for a positive one. Substituted by the chain rule, a relation of jets
is a `LatentRelation`: an expression of linear functionals of the weights. Jets that only ever enter through one fixed
combination are merged (u_t + b u_x reads one functional, not two), so that a factor reads as few rows of features as
its relation needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.compiled import numba
from factorfield.errors import expected
from factorfield.model.activation import ACTIVATIONS, Activation, Identity
from factorfield.model.basis import Departure, Family, Tensor, family_from_spec
from factorfield.model.graded import GradedSpline, transfer
from factorfield.problem.domain import TIME, Orders
from factorfield.problem.relation import Jet, Relation

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
MOST_TERMS = 100  # of a slope when multiplied out, up to which slopes are compared as formulas


@dataclass(frozen=True, eq=False)
class Latent:
    """One expansion z = w[block] . phi."""

    name: str
    basis: Tensor
    block: slice


@dataclass(frozen=True, eq=False)
class Representation:
    """Every field and unknown coefficient as a function of the one weight vector."""

    forms: Mapping[str, Form]
    latents: Mapping[str, Latent]
    size: int  # of the weight vector

    @staticmethod
    def build(parts: Sequence[tuple[str, Tensor, Form]]) -> Representation:
        """From (field, basis, form) triples; the latents of one form share its basis."""
        latents: dict[str, Latent] = {}
        start = 0
        for _, basis, form in parts:
            for name in form.latents:
                latents[name] = Latent(name, basis, slice(start, start + basis.size))
                start += basis.size
        return Representation({name: form for name, _, form in parts}, latents, start)

    def read(self, relation: Relation) -> LatentRelation:
        return substitute(relation, self.forms)

    def spec(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """A JSON-able description and the arrays (rotations) that go with it."""
        forms, arrays = {}, {}
        for name, form in self.forms.items():
            basis = self.latents[form.latents[0]].basis
            activation = form.activation
            constants = {} if isinstance(activation, Identity) else {"alpha": activation.alpha, "beta": activation.beta}
            forms[name] = {
                "latents": list(form.latents),
                "axes": list(form.axes),
                "readout": list(form.readout),
                "activation": {"name": activation.name, **constants},
                "link": form.link,
                "offset": form.offset,
                "basis": basis.spec(),
            }
            if basis.rotation is not None:
                arrays[f"rotation_{name}"] = basis.rotation
        return forms, arrays

    @staticmethod
    def from_spec(forms: Mapping[str, Any], arrays: Mapping[str, Array]) -> Representation:
        parts = []
        for name, spec in forms.items():
            constants = dict(spec["activation"])
            activation: Activation = ACTIVATIONS[constants.pop("name")](**constants)
            families = {axis: family_from_spec(family) for axis, family in spec["basis"].items()}
            basis = Tensor(families, arrays.get(f"rotation_{name}"))
            form = Form(
                tuple(spec["latents"]), tuple(spec["axes"]), tuple(spec["readout"]), activation, spec["link"],
                spec.get("offset", 0.0),
            )  # fmt: skip
            parts.append((name, basis, form))
        return Representation.build(parts)


def field_form(name: str, axes: tuple[str, ...], activation: Activation, readout: Sequence[float] = (1.0,)) -> Form:
    """The form of a field with as many hidden units as readout weights."""
    weights = tuple(float(a) for a in readout)
    if not weights or not np.all(np.isfinite(weights)):
        raise expected("a finite readout weight per unit", readout, "readout=(1.0, -1.0)")
    latents = (name,) if len(weights) == 1 else tuple(f"{name}{h + 1}" for h in range(len(weights)))
    return Form(latents, axes, weights, activation)


def with_constants(representation: Representation, weights: Array, values: Mapping[str, float]) -> Array:
    """The weights with each field of one unit exchanged for a constant."""
    changed = weights.copy()
    for name, value in values.items():
        form = representation.forms[name]
        latent = representation.latents[form.latents[0]]
        if len(form.latents) == 1 and latent.basis.rotation is None:
            changed[latent.block] = form.activation.inverse(value / form.readout[0]) * latent.basis.constant
    return changed


def coefficient_form(name: str, positive: bool) -> Form:
    return Form((name,), (), link="exp" if positive else "activation")


# -- windows of time: the basis moved along, the state at the start, the map to the end


def window_representation(
    template: Representation, lower: float, upper: float, cells: GradedSpline | None = None
) -> Representation:
    """The same representation with every time axis moved to another window, and local features to other cells."""

    def moved(family: Family) -> Family:
        if isinstance(family, Departure):
            return Departure(family.degree, lower, upper, family.states)
        return cells if cells is not None and isinstance(family, GradedSpline) else family

    parts = []
    for name, form in template.forms.items():
        basis = template.latents[form.latents[0]].basis
        families = {axis: moved(family) for axis, family in basis.families.items()}
        parts.append((name, Tensor(families, basis.rotation), form))
    return Representation.build(parts)


def at_one_instant(template: Representation) -> Representation:
    """The same representation with one polynomial in time beside the state, the next power: at the start of its window,
    a statement reads every time derivative from a weight of its own."""
    parts = []
    for name, form in template.forms.items():
        basis = template.latents[form.latents[0]].basis
        families = {
            axis: replace(family, degree=family.states) if isinstance(family, Departure) else family
            for axis, family in basis.families.items()
        }
        parts.append((name, Tensor(families, basis.rotation), form))
    return Representation.build(parts)


def states_of(latent: Latent) -> int:
    """How many time derivatives at a window's start are weights of their own; one for what does not depend on time."""
    family = latent.basis.families.get(TIME)
    return family.states if isinstance(family, Departure) else 1


def layout(representation: Representation) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which weights of a window are its state at the start (unknown coefficients included), and which are inner."""
    state: list[int] = []
    for latent in representation.latents.values():
        basis = latent.basis
        count = basis.size
        family = basis.families.get(TIME)
        if isinstance(family, Departure):
            count = family.states * (basis.size // family.size)
        state += range(latent.block.start, latent.block.start + count)
    inner = np.setdiff1d(np.arange(representation.size), state)
    return np.array(state, int), inner


def end_map(representation: Representation, onto: GradedSpline | None = None) -> Array:
    """The state at the end of a window as a linear map of its weights; with cells that move, on those of the next."""
    state, _ = layout(representation)
    rows = np.zeros((len(state), representation.size))
    at = 0
    for latent in representation.latents.values():
        basis = latent.basis
        family = basis.families.get(TIME)
        if not isinstance(family, Departure):
            rows[at : at + basis.size, latent.block] = np.eye(basis.size)
            at += basis.size
            continue
        moved = np.eye(basis.size // family.size)
        for own in basis.families.values():
            if onto is not None and isinstance(own, GradedSpline) and own != onto:
                moved = transfer(own, onto)
        for order in range(family.states):
            values = family([family.upper], order)[0]
            rows[at : at + len(moved), latent.block] = np.kron(values, moved)
            at += len(moved)
    return rows


# -- relations in functionals of the weights


@dataclass(frozen=True)
class Form:
    """How a field (or an unknown coefficient) is written: sum of readout_h * link(z_h) over latents z_h."""

    latents: tuple[str, ...]
    axes: tuple[str, ...]
    readout: tuple[float, ...] = (1.0,)
    activation: Activation = field(default_factory=Identity)
    link: str = "activation"  # or "exp": a positive coefficient
    offset: float = 0.0  # added to z: the prior mean of an unknown function


@dataclass(frozen=True)
class Functional:
    """A linear functional of one latent: sum of coefficient(coordinates) * derivative."""

    latent: str
    terms: tuple[tuple[Orders, Any], ...]

    @property
    def is_value(self) -> bool:
        return len(self.terms) == 1 and self.terms[0][0] == () and self.terms[0][1] == 1

    def __str__(self) -> str:
        parts = []
        for orders, coefficient in self.terms:
            suffix = "".join(axis * times for axis, times in orders)
            name = f"{self.latent}_{suffix}" if suffix else self.latent
            parts.append(name if coefficient == 1 else f"({coefficient})*{name}")
        return " + ".join(parts)


@dataclass(frozen=True, eq=False)
class LatentRelation:
    """expression(functionals, activation derivatives, parameters, coordinates); the factor's whole meaning.

    `inputs` are the symbols of the functionals; `activation_derivatives` maps the symbol of g^(k)(z)
    to (functional of z, k, g).
    """

    expression: sympy.Expr
    functionals: tuple[Functional, ...]
    inputs: tuple[sympy.Symbol, ...]
    activation_derivatives: Mapping[sympy.Symbol, tuple[int, int, Activation]]
    parameters: tuple[str, ...]
    coordinates: tuple[str, ...]

    @cached_property
    def gradient(self) -> tuple[sympy.Expr, ...]:
        """d expression / d functional, the activation's chain rule included."""
        symbols = {key[:2]: symbol for symbol, key in self.all_activation_derivatives.items()}
        entries = []
        for index, symbol in enumerate(self.inputs):
            entry = self.expression.diff(symbol)
            for derivative, (of, order, _) in self.activation_derivatives.items():
                if of == index:
                    entry = entry + self.expression.diff(derivative) * symbols[index, order + 1]
            entries.append(entry)
        return tuple(entries)

    @cached_property
    def all_activation_derivatives(self) -> dict[sympy.Symbol, tuple[int, int, Activation]]:
        """The activation derivatives that the expression or its gradient needs."""
        import sympy

        activation_derivatives = dict(self.activation_derivatives)
        present = {key[:2] for key in activation_derivatives.values()}
        for of, order, activation in list(activation_derivatives.values()):
            if (of, order + 1) not in present:
                present.add((of, order + 1))
                activation_derivatives[sympy.Symbol(f"g{order + 1}_{of}", real=True)] = (of, order + 1, activation)
        return activation_derivatives

    @cached_property
    def is_linear(self) -> bool:
        moving = set(self.inputs) | set(self.all_activation_derivatives)
        return all(not (entry.free_symbols & moving) for entry in self.gradient)

    @property
    def is_activation(self) -> Activation | None:
        """The activation g if the relation is exactly g(z), else None."""
        if len(self.inputs) == 1 and self.expression in self.activation_derivatives:
            _, order, activation = self.activation_derivatives[self.expression]
            return activation if order == 0 else None
        return None

    @cached_property
    def arguments(self) -> tuple[sympy.Symbol, ...]:
        """The order of arguments of every generated callable."""
        import sympy

        names = (*self.parameters, *self.coordinates)
        return (*self.inputs, *self.all_activation_derivatives, *(sympy.Symbol(name, real=True) for name in names))

    @cached_property
    def _numpy(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        import sympy

        outputs = [self.expression, *self.gradient]
        value = sympy.lambdify(self.arguments, self.expression, modules=["scipy", "numpy"], cse=True, dummify=True)
        both = sympy.lambdify(self.arguments, outputs, modules=["scipy", "numpy"], cse=True, dummify=True)
        return value, both

    @cached_property
    def _jax(self) -> Callable[..., Any]:
        import sympy

        outputs = [self.expression, *self.gradient]
        return sympy.lambdify(self.arguments, outputs, modules="jax", cse=True, dummify=True)

    def traced(self, zeta: Sequence[Any], parameters: Sequence[Any], coordinates: Sequence[Any]) -> tuple[Any, ...]:
        """(value, d/d functional 0, ...) in JAX, for functionals given one by one."""
        import jax.numpy as jnp

        bent = [activation(zeta[of], order, jnp) for of, order, activation in self.all_activation_derivatives.values()]
        return tuple(self._jax(*zeta, *bent, *parameters, *coordinates))

    def scalar(self) -> Callable[..., Any]:
        """A Numba function of one array, in the order of `arguments`: (value, d/d functional 0, ...), all floats."""
        import sympy

        array = sympy.IndexedBase("x")
        elements = {symbol: array[index] for index, symbol in enumerate(self.arguments)}
        outputs = [entry.subs(elements) for entry in (self.expression, *self.gradient)]
        floats = tuple(sympy.Float(float(entry)) if entry.is_number else entry for entry in outputs)
        return numba().njit(sympy.lambdify([array], floats, modules="math", cse=True))

    def _values(self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]) -> list[Any]:
        bent = [activation(zeta[..., of], order) for of, order, activation in self.all_activation_derivatives.values()]
        named = [parameters[name] for name in self.parameters]
        return [*np.moveaxis(zeta, -1, 0), *bent, *named, *(coordinates[name] for name in self.coordinates)]

    def value(self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]) -> Array:
        """The relation at functionals `zeta` (..., functionals)."""
        with np.errstate(all="ignore"):  # what has no value is NaN, judged by those who ask
            result = self._numpy[0](*self._values(zeta, parameters, coordinates))
        return np.broadcast_to(np.asarray(result, float), zeta.shape[:-1])

    def value_and_gradient(
        self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """The relation (...,) and its derivatives with respect to the functionals (..., functionals)."""
        with np.errstate(all="ignore"):
            value, *gradient = self._numpy[1](*self._values(zeta, parameters, coordinates))
        shape = zeta.shape[:-1]
        slopes = np.empty(zeta.shape)
        for index, entry in enumerate(gradient):
            slopes[..., index] = entry
        return np.broadcast_to(np.asarray(value, float), shape), slopes


def substitute(relation: Relation, forms: Mapping[str, Form]) -> LatentRelation:
    """Write a relation in functionals of the latents: chain rule for the ansatz, then merging."""
    return _substituted(relation, tuple(forms.items()))


@lru_cache(maxsize=256)  # a sweep builds the same relation for every row: SymPy's work is done once
def _substituted(relation: Relation, items: tuple[tuple[str, Form], ...]) -> LatentRelation:
    forms = dict(items)
    builder = _ChainRule(forms)
    replacements = {symbol: builder.jet(jet) for symbol, jet in relation.jets.items()}
    unknown = [name for name in relation.parameters if name in forms]
    by_name = {str(symbol): symbol for symbol in relation.expression.free_symbols}
    replacements |= {by_name[name]: builder.jet(Jet(name)) for name in unknown}
    expression = relation.expression.subs(replacements, simultaneous=True)
    known = tuple(name for name in relation.parameters if name not in forms)
    return builder.finish(expression, known, relation.coordinates)


class _ChainRule:
    """Total derivatives of sum_h a_h g(z_h) in symbols for the jets of z_h and for g^(k)(z_h)."""

    def __init__(self, forms: Mapping[str, Form]) -> None:
        import sympy

        self.sympy = sympy
        self.forms = forms
        self.axes_of = {latent: form.axes for form in forms.values() for latent in form.latents}
        self.jets: dict[sympy.Symbol, tuple[str, Orders]] = {}
        self.activation_derivatives: dict[sympy.Symbol, tuple[str, int, Activation]] = {}

    def jet(self, jet: Jet) -> sympy.Expr:
        form = self.forms[jet.field]
        expression = self.sympy.Integer(0)
        for weight, latent in zip(form.readout, form.latents, strict=True):
            expression += self.sympy.nsimplify(weight) * self._unit(form, latent)
        for axis, times in jet.orders:
            for _ in range(times):
                expression = self._along(expression, axis)
        return expression

    def _unit(self, form: Form, latent: str) -> sympy.Expr:
        value = self._symbol(latent, ()) + self.sympy.Float(form.offset) if form.offset else self._symbol(latent, ())
        if form.link == "exp":
            return self.sympy.exp(value)
        if isinstance(form.activation, Identity):
            return value
        return self._activation_derivative(latent, 0, form.activation)

    def _symbol(self, latent: str, orders: Orders) -> sympy.Symbol:
        suffix = "".join(axis * times for axis, times in orders)
        symbol = self.sympy.Symbol(f"{latent}|{suffix}", real=True)
        self.jets[symbol] = (latent, orders)
        return symbol

    def _activation_derivative(self, latent: str, order: int, activation: Activation) -> sympy.Symbol:
        symbol = self.sympy.Symbol(f"g{order}|{latent}", real=True)
        self.activation_derivatives[symbol] = (latent, order, activation)
        return symbol

    def _along(self, expression: sympy.Expr, axis: str) -> sympy.Expr:
        total = self.sympy.Integer(0)
        for symbol in sorted(expression.free_symbols, key=str):
            partial = expression.diff(symbol)
            if symbol in self.activation_derivatives:
                latent, order, activation = self.activation_derivatives[symbol]
                inner = self._activation_derivative(latent, order + 1, activation) * self._raised(latent, (), axis)
            else:
                inner = self._raised(*self.jets[symbol], axis)
            total += partial * inner
        return total

    def _raised(self, latent: str, orders: Orders, axis: str) -> sympy.Expr:
        if axis not in self.axes_of[latent]:
            return self.sympy.Integer(0)
        times = dict(orders)
        times[axis] = times.get(axis, 0) + 1
        return self._symbol(latent, tuple(sorted(times.items())))

    def finish(
        self, expression: sympy.Expr, parameters: tuple[str, ...], coordinates: tuple[str, ...]
    ) -> LatentRelation:
        """Number the functionals, merge what acts together, and name the activation's derivatives after them."""
        present = expression.free_symbols
        under = {z: activation for s, (z, _, activation) in self.activation_derivatives.items() if s in present}
        values = [self._symbol(latent, ()) for latent in under]  # g^(k)(z) reads z itself
        used = sorted((s for s in self.jets if s in present and s not in values), key=str)
        moving = {*used, *self.activation_derivatives, *values}
        groups: list[list[tuple[Any, Any]]] = [[(symbol, self.sympy.Integer(1))] for symbol in values]
        straight, curved = self._merged(expression, used, moving)
        inputs = [self.sympy.Symbol(f"q{i}", real=True) for i in range(len(values) + len(straight) + len(curved))]
        replacements: dict[Any, Any] = dict(zip(values, inputs, strict=False))
        extra = self.sympy.Integer(0)
        for group in straight:  # enters the relation as one plain sum: coefficients are the slopes themselves
            replacements |= {symbol: 0 for symbol, _ in group}
            extra += inputs[len(groups)]
            groups.append(group)
        for group in curved:  # depends on one combination: set all of it into the first jet
            replacements |= {symbol: 0 for symbol, _ in group[1:]}
            replacements[group[0][0]] = inputs[len(groups)]
            groups.append(group)
        functionals = [
            Functional(self.jets[group[0][0]][0], tuple((self.jets[s][1], c) for s, c in group)) for group in groups
        ]
        where = {latent: index for index, latent in enumerate(under)}
        kept = {s: key for s, key in self.activation_derivatives.items() if s in present}
        names = {s: self.sympy.Symbol(f"g{k}_{where[z]}", real=True) for s, (z, k, _) in kept.items()}
        activation_derivatives = {names[s]: (where[z], k, a) for s, (z, k, a) in kept.items()}
        final = expression.subs(replacements | names, simultaneous=True) + extra
        return LatentRelation(final, tuple(functionals), tuple(inputs), activation_derivatives, parameters, coordinates)

    def _merged(
        self, expression: sympy.Expr, used: list[Any], moving: set[Any]
    ) -> tuple[list[list[tuple[Any, Any]]], list[list[tuple[Any, Any]]]]:
        """Jets that enter linearly, one group per latent; and others whose slopes keep a fixed ratio."""
        straight: dict[str, list[tuple[Any, Any]]] = {}
        curved: list[list[tuple[Any, Any]]] = []
        slopes: list[Any] = []
        for symbol in used:
            latent, slope = self.jets[symbol][0], expression.diff(symbol)
            if not (slope.free_symbols & moving):
                straight.setdefault(latent, []).append((symbol, slope))
                continue
            for group, reference in zip(curved, slopes, strict=True):
                if max(expanded_terms(slope), expanded_terms(reference)) > MOST_TERMS:
                    continue  # merging saves rows of features, and is not worth more than it saves
                ratio = self.sympy.cancel(slope / reference)
                constant = not (ratio.free_symbols & moving) and not self.sympy.fraction(ratio)[1].free_symbols
                if self.jets[group[0][0]][0] == latent and constant:
                    group.append((symbol, ratio))
                    break
            else:
                curved.append([(symbol, self.sympy.Integer(1))])
                slopes.append(slope)
        return list(straight.values()), curved


def expanded_terms(expression: sympy.Expr) -> int:
    """About how many terms an expression has when it is multiplied out: what simplifying it costs."""
    if expression.is_Add:
        return sum(expanded_terms(part) for part in expression.args)
    if expression.is_Mul:
        return math.prod(expanded_terms(part) for part in expression.args)
    if expression.is_Pow and expression.exp.is_Integer:
        terms, power = expanded_terms(expression.base), abs(int(expression.exp))
        return math.comb(terms + power - 1, power)
    return 1 + sum(expanded_terms(part) for part in expression.args)


def without_curvature(relation: LatentRelation) -> LatentRelation:
    """The relation with every g''(z) dropped: the paper's release does so for Fisher-KPP."""
    dropped = {s: 0 for s, (_, order, _) in relation.activation_derivatives.items() if order == 2}
    expression = relation.expression.subs(dropped)
    activation_derivatives = {s: key for s, key in relation.activation_derivatives.items() if s not in dropped}
    bent = {of for of, _, _ in activation_derivatives.values()}
    kept = [i for i, s in enumerate(relation.inputs) if i in bent or s in expression.free_symbols]
    return replace(
        relation,
        expression=expression,
        functionals=tuple(relation.functionals[i] for i in kept),
        inputs=tuple(relation.inputs[i] for i in kept),
        activation_derivatives={s: (kept.index(of), order, g) for s, (of, order, g) in activation_derivatives.items()},
    )
