"""Equations as people write them: the text's own syntax tree as MathML (reports) or mathtext (pictures).

The tree, not the SymPy expression: a reader should meet the terms in the order in which they were written.
"""

from __future__ import annotations

import ast
import html

from markupsafe import Markup

from factorfield.problem.parsing import parse_sides
from factorfield.problem.relation import JET_NAME

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",  # noqa: RUF001
    "kappa": "κ", "lambda": "λ", "lam": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",  # noqa: RUF001
    "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
SIGNS = {"-": "&#8722;", "*": "&#8290;"}  # a proper minus; products are written by standing together
SUM, PRODUCT, SIGN, POWER, FRACTION, ATOM = range(6)  # how tightly a part holds together; only atoms bear a power


class MathML:
    """Presentation MathML: every current browser draws it without a script or a font of ours."""

    def whole(self, body: str, display: bool) -> str:
        style = ' displaystyle="true"' if display else ""
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML"{style}><mrow>{body}</mrow></math>'

    def name(self, name: str, below: str = "") -> str:
        letter = GREEK.get(name, name)
        upright = ' mathvariant="normal"' if name == "pi" else ""
        head = f"<mi{upright}>{html.escape(letter)}</mi>"
        if not below:
            return head
        # u_xx: two letters, not a word, so that each is set in italics
        letters = [GREEK[below]] if below in GREEK else list(below) if len(below) < 5 else [below]
        tail = "".join(f"<mi>{html.escape(letter)}</mi>" for letter in letters)
        return f"<msub>{head}<mrow>{tail}</mrow></msub>"

    def number(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        if not exponent:
            return f"<mn>{html.escape(text)}</mn>"
        ten = f"<msup><mn>10</mn><mn>{int(exponent)}</mn></msup>"
        return ten if mantissa == "1" else f"<mn>{mantissa}</mn><mo>&#215;</mo>{ten}"

    def operator(self, sign: str) -> str:
        space = ' lspace="0" rspace="0.17em"' if sign == "*" else ""  # 60 exp(x), not 60exp(x)
        return f"<mo{space}>{SIGNS.get(sign, sign)}</mo>"

    def fraction(self, above: str, below: str) -> str:
        return f"<mfrac><mrow>{above}</mrow><mrow>{below}</mrow></mfrac>"

    def power(self, base: str, exponent: str) -> str:
        return f"<msup><mrow>{base}</mrow><mrow>{exponent}</mrow></msup>"

    def root(self, body: str) -> str:
        return f"<msqrt>{body}</msqrt>"

    def brackets(self, body: str, kind: str = "()") -> str:
        return f"<mrow><mo>{kind[0]}</mo>{body}<mo>{kind[1]}</mo></mrow>"

    def call(self, function: str, body: str) -> str:
        return f"<mi>{function}</mi><mo>&#8289;</mo>{self.brackets(body)}"

    def words(self, text: str) -> str:
        """A condition, as it was written."""
        return f"<mtext>{html.escape(text)}</mtext>"


class MathText(MathML):
    """The TeX that Matplotlib draws by itself."""

    def whole(self, body: str, display: bool) -> str:
        return f"${body}$"

    def name(self, name: str, below: str = "") -> str:
        head = _tex(name)
        return f"{head}_{{{_tex(below)}}}" if below else head

    def number(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        if not exponent:
            return text
        return f"10^{{{int(exponent)}}}" if mantissa == "1" else rf"{mantissa}\times 10^{{{int(exponent)}}}"

    def operator(self, sign: str) -> str:
        return {"*": r"\,", "·": r"\cdot "}.get(sign, sign)

    def fraction(self, above: str, below: str) -> str:
        return rf"\frac{{{above}}}{{{below}}}"

    def power(self, base: str, exponent: str) -> str:
        return f"{{{base}}}^{{{exponent}}}"

    def root(self, body: str) -> str:
        return rf"\sqrt{{{body}}}"

    def brackets(self, body: str, kind: str = "()") -> str:
        if r"\frac" in body:  # as high as what they hold
            return rf"\left{kind[0]}{body}\right{kind[1]}"
        return f"{kind[0]}{body}{kind[1]}"

    def call(self, function: str, body: str) -> str:
        upright = ("erf", "heaviside", "sign", "where", "point")
        known = {"atan": r"\arctan", **{name: rf"\mathrm{{{name}}}" for name in upright}}
        return known.get(function, chr(92) + function) + self.brackets(body)

    def words(self, text: str) -> str:
        return rf"\mathrm{{{text.replace(' ', chr(92) + ' ').replace('_', chr(92) + '_').replace('**', '^')}}}"


def _tex(name: str) -> str:
    if GREEK.get(name) and name != "lam":
        return f"\\{name}"
    if name == "lam":
        return r"\lambda"
    return name if len(name) == 1 else rf"\mathit{{{name.replace('_', chr(92) + '_')}}}"


def vanishing(text: str) -> str:
    """An equation with both its sides: "u_t + u_x" says that it is 0."""
    return text if "=" in text else f"{text} = 0"


def mathml(text: str, display: bool = False) -> Markup:
    """`lhs = rhs` or an expression as MathML; an expression stays alone (`vanishing` makes an equation of it)."""
    return Markup(_written(text, MathML(), display))


def mathml_symbol(name: str) -> Markup:
    """A field, parameter or coordinate by itself as MathML."""
    return Markup(MathML().whole(symbol(name, MathML()), False))


def mathtext(text: str) -> str:
    """The same for Matplotlib's labels."""
    return _written(text, MathText(), False)


def _written(text: str, notation: MathML, display: bool) -> str:
    sides = [_part(side, notation)[0] for side in parse_sides(text)]
    return notation.whole(notation.operator("=").join(sides), display)


def plain(name: str) -> str:
    """A name with its Greek letter, as text."""
    head, line, below = name.partition("_")
    return f"{GREEK.get(head, head)}{line}{GREEK.get(below, below)}"


def symbol(name: str, notation: MathML) -> str:
    """A field, derivative, parameter or coordinate: u_xx and nu_1 get a subscript."""
    if JET_NAME.fullmatch(name) or "_" in name:
        head, _, below = name.partition("_")
        return notation.name(head, below)
    return notation.name(name)


def _part(node: ast.expr, notation: MathML) -> tuple[str, int]:
    """A part of the tree as (text, how tightly it holds together)."""
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int | float)
        digits = f"{node.value:.12g}"
        return notation.number(digits), PRODUCT if "e" in digits else ATOM  # 2 x 10^5 is a product
    if isinstance(node, ast.Name):
        return symbol(node.id, notation), ATOM
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return notation.words(ast.unparse(node)), SUM
    if isinstance(node, ast.UnaryOp):
        sign = notation.operator("-" if isinstance(node.op, ast.USub) else "+")
        return sign + _within(node.operand, notation, PRODUCT), SIGN
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        comma = notation.operator(", ")
        return _call(node.func.id, comma.join(_part(each, notation)[0] for each in node.args), notation), ATOM
    if isinstance(node, ast.Compare | ast.BoolOp):
        return notation.words(ast.unparse(node)), SUM
    assert isinstance(node, ast.BinOp)
    if isinstance(node.op, ast.Div):
        return notation.fraction(_part(node.left, notation)[0], _part(node.right, notation)[0]), FRACTION
    if isinstance(node.op, ast.Pow):
        return notation.power(_within(node.left, notation, ATOM), _part(node.right, notation)[0]), POWER
    if isinstance(node.op, ast.Mult):
        return _product(node, notation)
    sign = "+" if isinstance(node.op, ast.Add) else "-"
    right = _within(node.right, notation, PRODUCT, signed=False)
    return _within(node.left, notation, SUM) + notation.operator(sign) + right, SUM


def _within(node: ast.expr, notation: MathML, needed: int, signed: bool = True) -> str:
    """A part inside a larger one, in brackets where it would fall apart (or two signs would meet)."""
    text, strength = _part(node, notation)
    loose = strength < needed or (strength == SIGN and (not signed or needed > PRODUCT))
    return notation.brackets(text) if loose else text


def _product(node: ast.BinOp, notation: MathML) -> tuple[str, int]:
    left, held = _part(node.left, notation)  # once: long products are nested
    left = notation.brackets(left) if held < PRODUCT else left
    right = _within(node.right, notation, PRODUCT, signed=False)
    strength = SIGN if held == SIGN else PRODUCT  # -2 u starts with a sign
    digits = isinstance(node.right, ast.Constant) or (
        isinstance(node.right, ast.BinOp)
        and isinstance(node.right.op, ast.Mult | ast.Pow)
        and isinstance(node.right.left, ast.Constant)
    )
    return left + notation.operator("·" if digits else "*") + right, strength  # 2 3 would read as 23


def _call(function: str, body: str, notation: MathML) -> str:
    if function == "sqrt":
        return notation.root(body)
    if function == "abs":
        return notation.brackets(body, "||")
    return notation.call(function, body)
