"""Text to SymPy without running it: Python's grammar reads the text, a whitelist passes the tree, nothing is evaluated.

Allowed: names, numbers, + - * / **, parentheses, the functions of FUNCTIONS, and one `=`; in conditions, which are
texts of their own or the first argument of `where`, also comparisons (< <= > >=) joined by `and`, `or`, `not`.
Length, depth, numbers and exponents are bounded, so that a hostile text costs milliseconds.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError, expected, nearest, shortened

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
SMOOTH = ("sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "atan", "erf", "abs")
# examples by name: their first argument has a zero or a condition, and there they jump or have a kink
JUMPING = {
    "heaviside": "heaviside(t - 1)", "sign": "sign(x - 0.5)", "min": "min(x, 0.5)", "max": "max(x, 0.5)",
    "where": "where(x < 0.5, 1, 2)",
}  # fmt: skip
POINT = "point"  # a source of integral one: point(x - 0.3, 0.02) is a Gaussian of that width
ARGUMENTS = {"min": (2,), "max": (2,), "where": (3,), POINT: (1, 2)}  # how many; one of the others
FUNCTIONS = (*SMOOTH, *JUMPING, POINT)
CONSTANTS = ("pi",)
NOT_FINITE = "a finite real expression", "a division by zero or a complex number", "checking the constants"
RESERVED = frozenset(FUNCTIONS + CONSTANTS)
SHORTER = {"lambda": "lam"}  # words of Python's that people take for coefficients
LONGEST_TEXT = 2000
DEEPEST = 120
LARGEST_POWER = 20
MOST_LEVELS = 24  # of sums in products in functions; long sums and products are one level
LARGEST_NUMBER = 1e100

_PLAIN = (ast.BinOp, ast.UnaryOp, ast.Load, ast.UAdd, ast.USub, ast.Pow, ast.Add, ast.Sub, ast.Mult, ast.Div)
_ARRAY_NAMES = {"atan": "arctan", "min": "minimum", "max": "maximum"}  # where NumPy's are other than ours
_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")  # not that of <= >= == !=


def parse_sides(text: str) -> list[ast.expr]:
    """The whitelisted syntax trees of `expression` (one) or `left = right` (two)."""
    _check_text(text, "an equation", "'u_t + b*u_x = 0'")
    sides = _EQUALS.split(text)
    if len(sides) > 2:
        raise expected("at most one '='", text, "'u_t = nu*u_xx'")
    trees = [_syntax_tree(side, text, "'u_t + b*u_x'") for side in sides]
    for tree in trees:
        _check_nodes(tree)
    return trees


def parse_condition(text: str) -> ast.expr:
    """The whitelisted syntax tree of comparisons joined by and, or, not: `x**2 + y**2 < 1 and not y > 0.5`."""
    _check_text(text, "a condition", "'x**2 + y**2 < 1'")
    tree = _syntax_tree(text, text, "'x**2 + y**2 < 1'")
    check_condition(tree)
    return tree


def _check_text(text: str, what: str, example: str) -> None:
    if not isinstance(text, str):
        raise expected(f"{what} as text", text, example)
    if len(text) > LONGEST_TEXT:
        raise ProblemError(
            f"expected {what} of at most {LONGEST_TEXT} characters, received {len(text)}; "
            "try naming long parts as parameters"
        )
    if not text.isascii():
        raise expected("plain ASCII text", text.encode("ascii", "replace").decode(), "spelling Greek letters out")
    if _nesting(text) > DEEPEST:
        raise ProblemError(f"expected at most {DEEPEST} nested parentheses, received {_nesting(text)}; try splitting")


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _syntax_tree(side: str, text: str, example: str) -> ast.expr:
    """Python's tree of one expression, of bounded depth; what stands in it is not yet checked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(side.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what these say is about Python
        raise expected(f"an expression such as {example}", repr(shortened(text)), _meant(text)) from None
    _check_depth(tree)
    return tree


def _meant(text: str) -> str:
    """What to try where Python's grammar reads no expression."""
    if word := next((word for word in re.findall(r"[A-Za-z_]\w*", text) if keyword.iskeyword(word)), None):
        return f"another name than {word!r}, which is a word of its own: {SHORTER.get(word, word + '0')}"
    if "'" in text or "\u2032" in text:
        return "u_x, u_t, u_xx for derivatives in place of primes"
    if re.search(r"\d\s*[A-Za-z(]|\)\s*[A-Za-z0-9(]", text):
        return "* between factors: 2*u, not 2u"
    return "checking signs and parentheses"


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(2 * DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise ProblemError(f"expected at most {2 * DEEPEST} chained operations, received more; try splitting the equation")


def _check_nodes(tree: ast.expr) -> None:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            _check_call(node)
            is_choice = isinstance(node.func, ast.Name) and node.func.id == "where"
            if is_choice:
                check_condition(node.args[0])
            waiting += node.args[is_choice:]
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Constant):
            _check_number(node.value)
        elif isinstance(node, ast.Name):
            if "__" in node.id or node.id.startswith("_"):
                raise expected("names of letters, digits and single underscores", node.id, "another name")
        elif not isinstance(node, _PLAIN):
            raise expected(
                "names, numbers, + - * / **, parentheses and listed functions", _describe(node), _remedy(node)
            )


def check_condition(tree: ast.expr) -> None:
    """Comparisons of plain expressions, chained or joined by and, or, not; nothing else."""
    if isinstance(tree, ast.BoolOp):
        for part in tree.values:
            check_condition(part)
    elif isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        check_condition(tree.operand)
    elif isinstance(tree, ast.Compare):
        if not all(type(op) in COMPARISONS for op in tree.ops):
            raise expected("comparisons by <, <=, > or >=", "another one", "'x < 0.5', or 'x > 0.4 and x < 0.6'")
        for side in (tree.left, *tree.comparators):
            _check_nodes(side)
    else:
        raise expected("comparisons joined by and, or, not", _describe(tree), "'x**2 + y**2 < 1 and x > 0'")


def _remedy(node: ast.AST) -> str:
    remedies = {
        ast.BitXor: "u**2", ast.Attribute: "the name without the dot, such as sin(x) or pi",
        ast.Compare: "where(x < 0.5, 1, 2) for a value that depends on it",
        ast.IfExp: "where(x < 0.5, 1, 2)",
    }  # fmt: skip
    return remedies.get(type(node), "removing it")


def _describe(node: ast.AST) -> str:
    words = {
        ast.Attribute: "attribute access (a dot)",
        ast.Subscript: "a subscript [...]",
        ast.Lambda: "'lambda', a word of Python's own",
        ast.Compare: "a comparison",
        ast.IfExp: "'if ... else'",
        ast.BitXor: "'^' (powers are written **)",
        ast.keyword: "a keyword argument",
        ast.Name: "a name alone",
        ast.Constant: "a number alone",
        ast.BinOp: "a number without a comparison",
        ast.BitAnd: "'&' (written and)",
        ast.BitOr: "'|' (written or)",
        ast.Call: "a function's value without a comparison",
    }
    return words.get(type(node), f"{type(node).__name__.lower()}")


OPERATORS = ("laplacian", "laplace", "grad", "gradient", "div", "diff", "d", "D", "Derivative", "nabla", "lap")


def _check_call(node: ast.Call) -> None:
    if isinstance(node.func, ast.Constant | ast.BinOp):
        raise expected("a sign between a number and a parenthesis", ast.unparse(node), "* between factors: 2*(x + 1)")
    if not isinstance(node.func, ast.Name):
        listed = ", ".join(FUNCTIONS)
        raise expected(
            "a call of a listed function", "a call of something else", f"sin(x) without a dot; one of {listed}"
        )
    if node.func.id not in FUNCTIONS:
        close = nearest(node.func.id, FUNCTIONS)
        operators = "derivatives spelt out, such as u_xx + u_yy, " if node.func.id in OPERATORS else ""
        raise expected("a listed function", f"{node.func.id}(...)", f"{operators}{close}")
    name, counts = node.func.id, ARGUMENTS.get(node.func.id, (1,))
    if len(node.args) not in counts or node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
        wanted = "one argument" if counts == (1,) else f"{' or '.join(map(str, counts))} arguments"
        example = JUMPING.get(name, "point(x - 0.3, 0.02)" if name == POINT else f"{name}(u)")
        raise expected(f"{wanted} for {name}", f"{len(node.args)}", example)


def _check_number(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise expected("real numbers", f"{type(value).__name__} {shortened(repr(value), 30)}", "a plain number")
    if not abs(value) <= LARGEST_NUMBER:
        raise expected(f"numbers up to {LARGEST_NUMBER:g}", "a larger one", "scaling the equation")


def names_in(sides: list[ast.expr]) -> list[str]:
    """The names a text mentions, functions left out, in order of appearance."""
    called = {id(node.func) for side in sides for node in ast.walk(side) if isinstance(node, ast.Call)}
    found = [n for side in sides for n in ast.walk(side) if isinstance(n, ast.Name) and id(n) not in called]
    return list(dict.fromkeys(node.id for node in found if node.id not in CONSTANTS))


def operations_in(sides: list[ast.expr]) -> int:
    """Names, numbers and operations: what a text costs to work with."""
    return sum(isinstance(node, ast.expr) for side in sides for node in ast.walk(side))


def evaluate(sides: list[ast.expr], values: Mapping[str, Any]) -> Array:
    """Left minus right in numbers: what suffices where no formula is needed. NaN where there is no real value."""
    with np.errstate(all="ignore"):
        numbers = [np.asarray(_number(side, values), float) for side in sides]
        return numbers[0] - numbers[1] if len(numbers) == 2 else numbers[0]


def holds(condition: ast.expr, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Where a condition is true; nowhere where it has no real value."""
    if isinstance(condition, ast.BoolOp):
        join = np.logical_and if isinstance(condition.op, ast.And) else np.logical_or
        return np.asarray(join.reduce(np.broadcast_arrays(*(holds(part, values) for part in condition.values))))
    if isinstance(condition, ast.UnaryOp):
        return ~holds(condition.operand, values)
    assert isinstance(condition, ast.Compare)
    sides = [evaluate([side], values) for side in (condition.left, *condition.comparators)]
    found = np.ones((), bool)
    with np.errstate(invalid="ignore"):
        for comparison, left, right in zip(condition.ops, sides, sides[1:], strict=False):
            found = found & COMPARISONS[type(comparison)](left, right)
    return np.asarray(found)


def _number(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return np.pi if node.id == "pi" else np.asarray(values[node.id], float)
    if isinstance(node, ast.UnaryOp):
        value = _number(node.operand, values)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _called(node.func.id, node.args, values)
    assert isinstance(node, ast.BinOp)
    operation = np.power if isinstance(node.op, ast.Pow) else _BINARY[type(node.op)]
    return operation(_number(node.left, values), _number(node.right, values))


def _called(name: str, arguments: list[ast.expr], values: Mapping[str, Any]) -> Any:
    if name == "where":
        chosen = [_number(each, values) for each in arguments[1:]]
        return np.where(holds(arguments[0], values), *chosen)
    numbers = [_number(each, values) for each in arguments]
    if name == "erf":
        from scipy import special

        return special.erf(numbers[0])
    if name == "heaviside":
        return np.heaviside(numbers[0], 1.0)
    if name == POINT:
        away, width = numbers
        return np.exp(-0.5 * (away / width) ** 2) / (width * math.sqrt(2.0 * math.pi))
    return getattr(np, _ARRAY_NAMES.get(name, name))(*numbers)


def to_sympy(sides: list[ast.expr], symbols: Mapping[str, sympy.Symbol], parameters: frozenset[str]) -> sympy.Expr:
    """Left minus right as a SymPy expression; every name must be in `symbols`."""
    import sympy

    try:
        converted = [_convert(side, symbols, parameters) for side in sides]
    except TypeError:  # SymPy compares no infinite or complex numbers, as in where(x < 1/0, 1, 2)
        raise expected(*NOT_FINITE) from None
    expression = converted[0] - converted[1] if len(converted) == 2 else converted[0]
    _check_powers(expression)
    _check_levels(expression)
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
        raise expected(*NOT_FINITE)
    return expression


def _convert(node: ast.expr, symbols: Mapping[str, sympy.Symbol], parameters: frozenset[str]) -> sympy.Expr:
    import sympy

    def convert(child: ast.expr) -> sympy.Expr:
        return _convert(child, symbols, parameters)

    if isinstance(node, ast.Constant):
        return sympy.sympify(node.value)  # an int or a float by now, never text
    if isinstance(node, ast.Name):
        return sympy.pi if node.id == "pi" else symbols[node.id]
    if isinstance(node, ast.UnaryOp):
        value = convert(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        if node.func.id not in SMOOTH:
            return _special(node.func.id, node.args, convert)
        argument = convert(node.args[0])
        function = getattr(sympy, "Abs" if node.func.id == "abs" else node.func.id)
        return _as_number(lambda: float(function(argument))) if argument.is_number else function(argument)
    assert isinstance(node, ast.BinOp)
    left = convert(node.left)
    if isinstance(node.op, ast.Pow):
        return _power(left, node.right, convert, parameters)
    return _BINARY[type(node.op)](left, convert(node.right))


def _special(name: str, arguments: list[ast.expr], convert: Callable[[ast.expr], sympy.Expr]) -> sympy.Expr:
    """Jumps as cases, which every kind of array can tell; SymPy is not asked to simplify them."""
    import sympy

    def cases(*pairs: Any) -> sympy.Expr:
        return sympy.Piecewise(*pairs, evaluate=False)

    if name == "where":
        first, other = (convert(each) for each in arguments[1:])
        return cases((first, _condition(arguments[0], convert)), (other, True))
    first, *others = (convert(each) for each in arguments)
    if name == POINT:
        (width,) = others
        return sympy.exp(-((first / width) ** 2) / 2) / (width * math.sqrt(2.0 * math.pi))
    if name in ("min", "max"):
        (other,) = others
        return cases((first, first <= other if name == "min" else first >= other), (other, True))
    if name == "sign":
        return cases((-1, first < 0), (1, first > 0), (0, True))
    return cases((0, first < 0), (1, True))


def _condition(node: ast.expr, convert: Callable[[ast.expr], sympy.Expr]) -> Any:
    """A condition as SymPy's."""
    import sympy

    if isinstance(node, ast.BoolOp):
        join = sympy.And if isinstance(node.op, ast.And) else sympy.Or
        return join(*(_condition(part, convert) for part in node.values), evaluate=False)
    if isinstance(node, ast.UnaryOp):
        return sympy.Not(_condition(node.operand, convert))
    assert isinstance(node, ast.Compare)
    sides = [convert(side) for side in (node.left, *node.comparators)]
    pairs = zip(node.ops, sides, sides[1:], strict=False)
    return sympy.And(*(COMPARISONS[type(op)](left, right) for op, left, right in pairs), evaluate=False)


def _power(
    base: sympy.Expr, exponent: ast.expr, convert: Callable[[ast.expr], sympy.Expr], parameters: frozenset[str]
) -> sympy.Expr:
    if isinstance(exponent, ast.Name) and exponent.id in parameters:
        return base ** convert(exponent)
    if any(isinstance(node, ast.Name | ast.Pow) for node in ast.walk(exponent)):
        raise expected("an exponent that is a number or a parameter", "an expression", "exp(y*log(x)) for x**y")
    value = convert(exponent)
    if not abs(float(value)) <= LARGEST_POWER:
        raise expected(f"exponents between -{LARGEST_POWER} and {LARGEST_POWER}", value, "a smaller one")
    if base.is_number:
        return _as_number(lambda: float(base) ** float(value))
    return base**value


def _check_powers(expression: sympy.Expr) -> None:
    """Powers of powers multiply: ((u**20)**20)**20 is beyond the limit, though no exponent in its text is."""
    import sympy

    for power in expression.atoms(sympy.Pow):
        if power.exp.is_number and not abs(float(power.exp)) <= LARGEST_POWER:
            limit = f"exponents between -{LARGEST_POWER} and {LARGEST_POWER}"
            raise expected(f"{limit}, also of powers of powers", f"{float(power.exp):g}", "a smaller one")


def _check_levels(expression: sympy.Expr) -> None:
    """Functions of functions of functions: the derivatives of each level hold all levels below it."""
    level = [expression]
    for _ in range(MOST_LEVELS):
        level = [part for node in level for part in node.args]
        if not level:
            return
    raise expected(f"functions in at most {MOST_LEVELS} levels", "more", "a system of simpler equations")


def _as_number(compute: Callable[[], complex]) -> sympy.Expr:
    """A constant folded in floating point: SymPy's exact integers could grow without bound."""
    import sympy

    try:
        number: complex = compute()
    except (OverflowError, ZeroDivisionError, TypeError, ValueError):
        number = math.nan
    if isinstance(number, complex) or not abs(number) <= LARGEST_NUMBER:
        raise expected("constants that are real and finite", "one that is not", "checking powers and functions")
    return sympy.Integer(int(number)) if number == int(number) and abs(number) < 1e15 else sympy.Float(number)
