"""Relations between fields, their derivatives, coefficients and coordinates, read from text.

A `Relation` is lhs - rhs in jets such as u, u_t, u_xx. What it says about the weights is in model/representation.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, nearest
from factorfield.problem.coefficients import Table, located
from factorfield.problem.domain import Orders, normal_along
from factorfield.problem.parsing import RESERVED, names_in, parse_sides, to_sympy

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
JET_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*)_([a-z]+)")
HIGHEST_ORDER = 8
OUTWARD = "n"  # u_n is the derivative of u along the normal out of a region


@dataclass(frozen=True)
class Jet:
    """A derivative of a field: `orders` is () for the field itself."""

    field: str
    orders: Orders = ()


def orders_of(letters: Sequence[str]) -> Orders:
    return tuple(sorted((axis, list(letters).count(axis)) for axis in set(letters)))


@dataclass(frozen=True, eq=False)
class Relation:
    """lhs - rhs of a text, in symbols for jets, parameters and coordinates."""

    text: str
    expression: sympy.Expr
    jets: Mapping[sympy.Symbol, Jet]
    parameters: tuple[str, ...]
    coordinates: tuple[str, ...]  # and tables of values, which are known at every point as coordinates are
    functions: tuple[str, ...] = ()  # names among the jets that are unknown coefficients

    @property
    def jumps(self) -> set[sympy.Basic]:
        """The parts that are given by cases: steps, signs, the smaller or larger of two, zones."""
        import sympy

        found: set[sympy.Basic] = self.expression.atoms(sympy.Piecewise)
        return found

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(jet.field for jet in self.jets.values() if jet.field not in self.functions))

    def order(self, axis: str) -> int:
        """The highest derivative along an axis."""
        return max((dict(jet.orders).get(axis, 0) for jet in self.jets.values()), default=0)

    @cached_property
    def orders(self) -> dict[tuple[str, str], int]:
        """The highest derivative of each field along each axis that it is differentiated along."""
        found: dict[tuple[str, str], int] = {}
        for jet in self.jets.values():
            for axis, order in jet.orders:
                found[jet.field, axis] = max(order, found.get((jet.field, axis), 0))
        return found

    @cached_property
    def jacobian(self) -> dict[Jet, sympy.Expr]:
        return {jet: self.expression.diff(symbol) for symbol, jet in self.jets.items()}

    @cached_property
    def linear_part(self) -> dict[Jet, sympy.Expr]:
        """Coefficients of the fields' derivatives: exactly for a linear relation, at the zero field otherwise.

        Unknown functions stay, as the symbols of coefficients that vary slowly.
        """
        zero = {symbol: 0 for symbol, jet in self.jets.items() if jet.orders or jet.field not in self.functions}
        own = {jet: entry for jet, entry in self.jacobian.items() if jet.field not in self.functions}
        return {jet: entry.subs(zero) for jet, entry in own.items()}

    @cached_property
    def is_linear(self) -> bool:
        jets = set(self.jets)
        return all(not (entry.free_symbols & jets) for entry in self.jacobian.values())


def find_fields(texts: Sequence[str], axes: Sequence[str], known: Sequence[str], declared: Sequence[str]) -> list[str]:
    """The fields of a system: whatever is differentiated along an axis, and whatever was observed."""
    fields: dict[str, None] = {}
    for text in texts:
        for name in names_in(parse_sides(text)):
            match = JET_NAME.fullmatch(name)
            if name not in known and match and all(letter in axes for letter in match[2]):
                fields.setdefault(match[1])
    fields |= dict.fromkeys(declared)  # last, so that the order is that of the equations
    return [name for name in fields if name not in known]


def parse_relation(
    text: str,
    fields: Sequence[str],
    axes: Sequence[str],
    parameters: Sequence[str],
    functions: Sequence[str] = (),
    tables: Mapping[str, Sequence[str]] | None = None,
    plane: Sequence[str] = (),
) -> Relation:
    """Text to Relation; every name is a field, a derivative of one, a coefficient or a coordinate.

    `functions` are unknown functions, `tables` known ones with their axes; `plane` are the axes of a region on whose
    wall the relation holds: there u_n is the outward normal derivative.
    """
    parse_sides(text)  # refuses what is not text, or too long to remember
    known = tuple((name, tuple(over)) for name, over in (tables or {}).items())
    outward = () if OUTWARD in axes else tuple(plane)
    return _parsed(text, tuple(fields), tuple(axes), tuple(parameters), tuple(functions), known, outward)


@lru_cache(maxsize=256)
def _parsed(
    text: str, fields: tuple[str, ...], axes: tuple[str, ...], parameters: tuple[str, ...], functions: tuple[str, ...],
    tables: tuple[tuple[str, tuple[str, ...]], ...], plane: tuple[str, ...],
) -> Relation:  # fmt: skip
    import sympy

    sides = parse_sides(text)
    symbols: dict[str, sympy.Symbol] = {}
    jets: dict[sympy.Symbol, Jet] = {}
    given: dict[str, tuple[str, ...]] = {name: () for name in axes}
    for name in names_in(sides):
        symbols[name] = sympy.Symbol(name, real=True)
        if name in parameters or name in axes:
            continue
        outward = _outward(name, (*fields, *functions), (*axes, OUTWARD)) if plane else None
        if outward is not None:
            symbols[name] = _along_normal(*outward, plane, symbols, jets)
            continue
        base = name if name in dict(tables) else name.partition("_")[0]
        jet = _as_jet(name, (*fields, *functions, *dict(tables)), axes, parameters)
        if base in dict(tables):
            given[name] = dict(tables)[base]
        else:
            jets[symbols[name]] = jet
    expression = to_sympy(sides, symbols, frozenset(parameters))
    for jumping in expression.atoms(sympy.Piecewise):
        check_known(jumping, {str(symbol) for symbol in jets})
    present = {str(symbol) for symbol in expression.free_symbols}
    coordinates = [name for name in symbols if name in given and name not in parameters and name in present]
    coordinates += [axis for name in coordinates for axis in given[name]]
    coordinates += [normal_along(axis) for axis in plane if normal_along(axis) in present]
    return Relation(
        text=text,
        expression=expression,
        jets={symbol: jet for symbol, jet in jets.items() if str(symbol) in present},
        parameters=tuple(name for name in symbols if name in parameters and name in present),
        coordinates=tuple(dict.fromkeys(coordinates)),
        functions=functions,
    )


def _outward(name: str, fields: Sequence[str], axes: Sequence[str]) -> tuple[str, str] | None:
    """A field and the letters of its derivative, if that is one along the normal."""
    match = JET_NAME.fullmatch(name)
    if match and match[1] in fields and OUTWARD in match[2] and set(match[2]) <= set(axes):
        if len(match[2]) > 2:
            raise expected("normal derivatives up to order 2", name, "u_n, u_nn or u_nt")
        return match[1], match[2]
    return None


def _along_normal(
    field: str, letters: str, plane: Sequence[str], symbols: dict[str, sympy.Symbol], jets: dict[sympy.Symbol, Jet]
) -> sympy.Expr:
    """u_n = n_x u_x + n_y u_y; the derivatives that it takes join the symbols and jets."""
    import sympy

    total = sympy.Integer(0)
    for along in product(*(plane if letter == OUTWARD else (letter,) for letter in letters)):
        name = f"{field}_{''.join(sorted(along))}"
        term = symbols.setdefault(name, sympy.Symbol(name, real=True))
        jets[term] = Jet(field, orders_of(along))
        for letter, axis in zip(letters, along, strict=True):
            if letter == OUTWARD:
                part = normal_along(axis)
                term = term * symbols.setdefault(part, sympy.Symbol(part, real=True))
        total = total + term
    return total

def check_known(jumping: sympy.Basic, unknown: Collection[str]) -> None:
    """A jump may depend on what is known: where it lies cannot be searched for by slopes."""
    for name in sorted({str(symbol) for symbol in jumping.free_symbols} & set(unknown)):
        wanted = "coordinates and known numbers in heaviside, sign, min, max and where"
        raise expected(wanted, name, f"a smooth step, such as (1 + tanh({name}/0.1))/2")


def _as_jet(name: str, fields: Sequence[str], axes: Sequence[str], parameters: Sequence[str]) -> Jet:
    if name in fields:
        return Jet(name)
    match = JET_NAME.fullmatch(name)
    if match and match[1] in fields:
        missing = [letter for letter in match[2] if letter not in axes]
        if missing == [OUTWARD]:
            remedy = f"ff.Boundary('{name} = 0') of a problem with region=, or derivatives along the axes"
            raise expected(f"the outward normal derivative {name} on the boundary of a region", "it elsewhere", remedy)
        if missing:
            raise expected(
                f"derivatives along the axes {', '.join(axes)}", f"{name} (along {missing[0]!r})",
                f"adding {missing[0]!r} to the domain",
            )  # fmt: skip
        if len(match[2]) > HIGHEST_ORDER:
            raise expected(f"derivatives up to order {HIGHEST_ORDER}", name, "a system of lower order")
        return Jet(match[1], orders_of(match[2]))
    if name in RESERVED:
        raise expected("a call such as sin(x)", f"the bare name {name!r}", f"{name}(x)")
    raise expected(
        "fields, their derivatives, coordinates and parameters", f"the unknown symbol {name!r}",
        _advice(name, fields, axes, parameters),
    )  # fmt: skip


def _advice(name: str, fields: Sequence[str], axes: Sequence[str], parameters: Sequence[str]) -> str:
    """What an unknown name may have meant: another's derivative, a misspelling, or a coefficient not given."""
    if len(name) == 2 and name[0] == "d" and (name[1:] in fields or name[1:] in axes):
        return f"derivatives as {(fields or ('u',))[0]}_{axes[0]}, {(fields or ('u',))[0]}_{axes[-1]}{axes[-1]}"
    match = JET_NAME.fullmatch(name)
    if match and fields and all(letter in axes for letter in match[2]):
        return f"a derivative of {', '.join(fields)}, such as {fields[0]}_{match[2]}"
    options = [*fields, *axes, *parameters]
    return f"{nearest(name, options)}, or parameters={{{name!r}: 1.0}} (or ff.Unknown, ff.Table) if it is a coefficient"


@lru_cache(maxsize=4096)
def _function(bound: sympy.Expr) -> tuple[list[str], Callable[..., Any] | None]:
    """The names in an expression, and the function of them that it is; None where it has no value. Made once: models
    of one problem with more and fewer modes ask for the same ones."""
    import sympy

    names = sorted(str(s) for s in bound.free_symbols)
    if bound.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.AccumBounds):
        return names, None
    symbols = [sympy.Symbol(n, real=True) for n in names]
    return names, sympy.lambdify(symbols, bound, modules=["scipy", "numpy"], dummify=True)


def evaluate_coefficient(
    coefficient: sympy.Expr, parameters: Mapping[str, float | Table], coordinates: Mapping[str, Array]
) -> float | Array:
    """A functional's coefficient as a number, or one number per point; NaN where it has no real value.

    In floating point from the start: SymPy's numbers have exponents without end, and a tower of exponentials fills
    any memory with one of them.
    """
    import sympy

    names, function = _function(sympy.sympify(coefficient))
    if function is None:
        return float("nan")
    given = {name: parameters[name] for name in names if name in parameters}
    numbers = {name: np.float64(value) for name, value in given.items() if not isinstance(value, Table)}
    known = located(coordinates, [name for name in names if name not in numbers], parameters) | numbers
    with np.errstate(all="ignore"):  # what has no value is NaN
        found = np.asarray(function(*(known[name] for name in names)))
    real = np.where(found.imag == 0.0, found.real, np.nan) if np.iscomplexobj(found) else np.asarray(found, float)
    if set(names) <= set(numbers):
        return float(real) if np.isfinite(real) else float("nan")
    return real
