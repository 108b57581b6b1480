"""What a relation says about the weights: the ansatz u = sum_h a_h g(z_h) substituted by the chain rule.

A `LatentRelation` is an expression of linear functionals of the weights. Jets that only ever enter through one fixed
combination are merged (u_t + b u_x reads one functional, not two), so that a factor reads as few rows of features as
its relation needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.model.activation import Activation, Identity
from factorfield.problem.domain import Orders
from factorfield.problem.relation import Jet, Relation

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]


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
        import numba
        import sympy

        array = sympy.IndexedBase("x")
        elements = {symbol: array[index] for index, symbol in enumerate(self.arguments)}
        outputs = [entry.subs(elements) for entry in (self.expression, *self.gradient)]
        floats = tuple(sympy.Float(float(entry)) if entry.is_number else entry for entry in outputs)
        return numba.njit(sympy.lambdify([array], floats, modules="math", cse=True))

    def _values(self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]) -> list[Any]:
        bent = [activation(zeta[..., of], order) for of, order, activation in self.all_activation_derivatives.values()]
        named = [parameters[name] for name in self.parameters]
        return [*np.moveaxis(zeta, -1, 0), *bent, *named, *(coordinates[name] for name in self.coordinates)]

    def value(self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]) -> Array:
        """The relation at functionals `zeta` (..., functionals)."""
        result = self._numpy[0](*self._values(zeta, parameters, coordinates))
        return np.broadcast_to(np.asarray(result, float), zeta.shape[:-1])

    def value_and_gradient(
        self, zeta: Array, parameters: Mapping[str, float], coordinates: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """The relation (...,) and its derivatives with respect to the functionals (..., functionals)."""
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
                ratio = self.sympy.cancel(slope / reference)
                constant = not (ratio.free_symbols & moving) and not self.sympy.fraction(ratio)[1].free_symbols
                if self.jets[group[0][0]][0] == latent and constant:
                    group.append((symbol, ratio))
                    break
            else:
                curved.append([(symbol, self.sympy.Integer(1))])
                slopes.append(slope)
        return list(straight.values()), curved


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
