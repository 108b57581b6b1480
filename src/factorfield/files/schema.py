"""Documents against a JSON Schema, as far as our own schema needs it, with errors in our own form.

Keywords: type, enum, oneOf, $ref, required, properties, additionalProperties, items, minItems, maxItems, minimum,
maximum, exclusiveMinimum. A test holds the schema to these.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import TypedDict

from factorfield.errors import ProblemError, expected, nearest, shortened

Path = tuple[str | int, ...]
Schema = TypedDict(
    "Schema",
    {
        "$ref": str, "$defs": Mapping[str, "Schema"], "oneOf": Sequence["Schema"], "type": str, "enum": Sequence[str],
        "properties": Mapping[str, "Schema"], "additionalProperties": "bool | Schema", "required": Sequence[str],
        "items": "Schema", "minItems": int, "maxItems": int, "minimum": float, "maximum": float,
        "exclusiveMinimum": float,
    },
    total=False,
)  # fmt: skip
ATTEMPTS = {"unit": "unit = 'h', or ms, s, min, d, week", "origin": "origin = '2024-05-01 08:00'"}  # for missing keys
WORDS = {
    "object": "a table of keys", "array": "a list", "string": "text", "number": "a number", "integer": "a whole number",
    "boolean": "true or false",
}  # fmt: skip
EXAMPLES = {
    "object": "{ key = value }", "array": "[0.0, 1.0]", "string": '"text in quotes"', "number": "1.0", "integer": "8",
    "boolean": "true",
}  # fmt: skip


class Misfit(Exception):
    """Where a document leaves its schema, and the error that says so."""

    def __init__(self, path: Path, error: ProblemError) -> None:
        super().__init__(str(error))
        self.path, self.error = path, error


def check(value: object, schema: Schema) -> None:
    """Raise `Misfit` at the first place that the schema does not allow."""
    _check(value, schema, schema, ())


def _check(value: object, schema: Schema, root: Schema, path: Path) -> None:
    schema = _resolved(schema, root)
    if "oneOf" in schema:
        _check_options(value, schema, root, path)
        return
    if "type" in schema and not _has_type(value, schema["type"]):
        kind = schema["type"]
        attempt = EXAMPLES[kind]
        if kind == "array" and _resolved(schema.get("items", {}), root).get("type") == "object":
            attempt = f"double brackets: [[{named(path)}]]"
        raise _misfit(path, f"{WORDS[kind]} for {named(path)}", _shown(value), attempt)
    if "enum" in schema and value not in schema["enum"]:
        raise _misfit(
            path,
            f"{named(path)} among {', '.join(schema['enum'])}",
            value,
            nearest(str(value), schema["enum"], "one of these"),
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(value, schema, path)
    elif isinstance(value, list):
        _check_items(value, schema, root, path)
    elif isinstance(value, dict):
        _check_keys(value, schema, root, path)


def _resolved(schema: Schema, root: Schema) -> Schema:
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _has_type(value: object, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[kind])


def _check_range(value: float, schema: Schema, path: Path) -> None:
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise _misfit(path, f"a finite number for {named(path)}", _shown(value), "1.0")
    for limit, sign, fits in (
        (schema.get("minimum"), ">=", operator.ge),
        (schema.get("maximum"), "<=", operator.le),
        (schema.get("exclusiveMinimum"), ">", operator.gt),
    ):
        if limit is not None and not fits(value, limit):
            is_known = path[-1] == "std" and value == 0
            attempt = f"{path[-2]} = 1.0 for a value that is known" if is_known else "another number"
            raise _misfit(path, f"{named(path)} {sign} {limit}", f"{value:g}", attempt)


def _check_items(value: Sequence[object], schema: Schema, root: Schema, path: Path) -> None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not least <= len(value) <= most:
        count = str(least) if least == most else f"at least {least}"
        raise _misfit(path, f"{count} entries in {named(path)}", f"{len(value)}", "[0.0, 1.0]")
    if value and path[0] == "observations" and all(isinstance(item, str) for item in value):
        attempt = f"{path[-1]} = {{ {', '.join(f'{item} = {{ x = 0.1 }}' for item in value[:2])} }}"
        raise _misfit(path, f"numbers for {named(path)}, or columns with the places of their sensors", "names", attempt)
    for index, item in enumerate(value):
        _check(item, schema.get("items", {}), root, (*path, index))


def _check_keys(value: Mapping[str, object], schema: Schema, root: Schema, path: Path) -> None:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, entry in value.items():
        if key in known:
            _check(entry, known[key], root, (*path, key))
        elif others is False:
            raise _misfit(
                (*path, key),
                f"keys of {named(path)} among {', '.join(known)}",
                key,
                nearest(key, known, "leaving it out"),
            )
        elif not isinstance(others, bool):
            _check(entry, others, root, (*path, key))
    for key in schema.get("required", ()):
        if key not in value:
            attempt = ATTEMPTS.get(key, f"{key} = ...")
            raise _misfit(path, f"{key!r} in {named(path)}", ", ".join(value) or "nothing", attempt)


def _check_options(value: object, schema: Schema, root: Schema, path: Path) -> None:
    """The option that comes closest speaks: the right type, then the most keys in common."""
    options = _flat(schema, root)
    fitting = [option for option in options if _has_type(value, option["type"])]
    if not fitting:
        kinds = list(dict.fromkeys(option["type"] for option in options))
        what = " or ".join(WORDS[kind] for kind in kinds)
        raise _misfit(path, f"{what} for {named(path)}", _shown(value), EXAMPLES[kinds[0]])
    if isinstance(value, dict):
        fitting.sort(key=lambda option: len(set(option.get("properties", {})) & set(value)), reverse=True)
    faults = []
    for option in fitting:
        try:
            _check(value, option, root, path)
            return
        except Misfit as fault:
            faults.append(fault)
    raise faults[0]


def _flat(schema: Schema, root: Schema) -> list[Schema]:
    """Options of options, as one list."""
    schema = _resolved(schema, root)
    return [flat for option in schema["oneOf"] for flat in _flat(option, root)] if "oneOf" in schema else [schema]


def named(path: Path) -> str:
    """A place in a document: observations[0].sigma."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return shortened(text, 60) or "the file"


def _shown(value: object) -> str:
    """A value as a TOML reader knows it."""
    if isinstance(value, dict):
        return "a table of keys " + shortened(", ".join(value), 40)
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) > 10**18:
        return "a huge whole number"  # thousands of digits are slow to write, or refused
    return repr(value) if isinstance(value, str | int | float) else str(value)  # such as dates


def _misfit(path: Path, what: str, received: object, attempt: str) -> Misfit:
    return Misfit(path, expected(what, received, attempt))
