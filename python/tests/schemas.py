"""The shapes of spec/openapi.json, and documents made from them."""

import json
from pathlib import Path
from typing import Any, Iterator

SPEC = Path(__file__).parents[2] / "spec"
SCHEMAS: dict[str, Any] = json.loads((SPEC / "openapi.json").read_text())["components"]["schemas"]

OBJECTS = sorted(name for name, schema in SCHEMAS.items() if "properties" in schema)
ENUMS = sorted(name for name, schema in SCHEMAS.items() if "enum" in schema)
UNIONS = sorted(name for name, schema in SCHEMAS.items() if "anyOf" in schema)


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, where this one names another."""
    while "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rsplit("/", 1)[1]]
    return schema


def document(schema: dict[str, Any], *, full: bool) -> Any:
    """A value of this shape: with every field, or with those alone that must be there."""
    schema = resolve(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return document(schema["anyOf"][0], full=full)
    match schema["type"]:
        case "object":
            return object_document(schema, full=full)
        case "array":
            return [document(schema["items"], full=full)] if full or schema.get("minItems") else []
        case "string":
            return "x"
        case "boolean":
            return True
        case "integer":
            return schema.get("maximum", 7) if full else schema.get("minimum", 7)
        case "number":
            return 1.5
        case other:
            raise AssertionError(f"the specification uses a type that tests do not know: {other}")


def object_document(schema: dict[str, Any], *, full: bool) -> dict[str, Any]:
    required = schema.get("required", [])
    value = {
        name: document(field, full=full)
        for name, field in schema.get("properties", {}).items()
        if full or name in required
    }
    if full:
        for field in schema.get("patternProperties", {}).values():
            value["key"] = document(field, full=full)
    return value


def wrong_value(schema: dict[str, Any]) -> Any:
    """A value of another kind than the field takes, whatever that is."""
    schema = resolve(schema)
    is_object = schema.get("type") == "object" or "anyOf" in schema
    return ["wrong"] if is_object else {"wrong": {}}


def fields() -> Iterator[tuple[str, str]]:
    """Every field of every object."""
    for name in OBJECTS:
        for field in SCHEMAS[name]["properties"]:
            yield name, field
