"""The schema of problem files and its checker."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from factorfield import methods
from factorfield.cli.files import templates
from factorfield.files import schema
from factorfield.files.problem_file import schema_text

SCHEMA = json.loads(schema_text())
KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "type", "enum", "oneOf", "required", "properties",
    "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum",
}  # fmt: skip


def every_schema(node: Any) -> list[dict[str, Any]]:
    """The schema and all schemas in it (never names of properties)."""
    found = [node]
    for key in ("additionalProperties", "items"):
        found += every_schema(node[key]) if isinstance(node.get(key), dict) else []
    for key in ("properties", "$defs"):
        found += [inner for entry in node.get(key, {}).values() for inner in every_schema(entry)]
    return found + [inner for entry in node.get("oneOf", ()) for inner in every_schema(entry)]


def test_the_schema_uses_only_what_the_checker_knows() -> None:
    nodes = every_schema(SCHEMA)
    assert len(nodes) > 60
    assert {key for node in nodes for key in node} <= KEYWORDS


@pytest.mark.parametrize("path", templates().values(), ids=lambda path: path.stem)
def test_templates_and_schema_agree(path: Path) -> None:
    import tomllib

    document = tomllib.loads(path.read_text())
    schema.check(document, SCHEMA)
    with pytest.raises(schema.Misfit):
        schema.check({**document, "equatoin": "u"}, SCHEMA)


def test_methods_and_their_options_are_those_of_the_schema() -> None:
    options = SCHEMA["properties"]["method"]["properties"]
    assert options["name"]["enum"] == methods.names()
    fields = set()
    for module, name in methods._METHODS.values():
        method = getattr(importlib.import_module(module), name)()
        fields |= {field.name for field in dataclasses.fields(method)}
    for name in ("chain", "tree"):  # of models of one block: [model]
        fields |= set(methods.model_options(methods.get(name)))
    assert set(options) - {"name"} == fields - {"activation", "store"}  # no paths, no objects


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data-and-files.md").read_text()
    table = page.partition("## Every key")[2].partition("In Python")[0]
    for key in {key for node in every_schema(SCHEMA) for key in node.get("properties", {})}:
        assert re.search(rf"\b{key}\b", table), key
