"""The params of a workflow run against the schema of its workflow."""

from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest

from ksana.domain.errors import InvalidInput
from ksana.engine.params import check_params, check_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
        "tenants": {"type": "array", "items": {"$ref": "#/$defs/tenant"}, "default": []},
        "count": {"type": "integer", "minimum": 1},
        "name": {"type": "string", "pattern": "^(a+)+$"},
        "mail": {"type": "string", "format": "email"},
        "a b": {"type": "null"},
        "$ref": {"type": "string"},
    },
    "required": ["count"],
    "additionalProperties": False,
    "$defs": {"tenant": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}},
}


def doubling(levels: int) -> dict[str, Any]:
    twice = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**twice, f"a{levels}": {"type": "object"}}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"not": value}
    return value


def test_what_is_missing_gets_its_default_before_it_is_checked() -> None:
    given = MappingProxyType({"count": 2})
    assert check_params(SCHEMA, given) == {"region": "eu", "tenants": [], "count": 2}
    assert dict(given) == {"count": 2}
    assert check_params(SCHEMA, {"count": 2, "region": "us"})["region"] == "us"
    filled = check_params(SCHEMA, {"count": 2})
    filled["tenants"].append("changed")
    assert check_params(SCHEMA, {"count": 2})["tenants"] == []
    with pytest.raises(InvalidInput, match=r"params\.x"):
        check_params({"properties": {"x": {"type": "string", "default": 7}}}, {})


def test_defaults_below_the_top_are_left_alone() -> None:
    schema = {"properties": {"a": {"properties": {"b": {"default": 1}}}}}
    assert check_params(schema, {"a": {}}) == {"a": {}}


@pytest.mark.parametrize(
    ("params", "field", "message"),
    [
        ({"count": 1, "tenants": [{"id": "a"}, {"id": "b"}, {"id": 3}]}, "params.tenants[2].id", "3 is not of type"),
        ({"count": 1, "tenants": [{}]}, "params.tenants[0].id", "must be given"),
        ({}, "params.count", "must be given"),
        ({"count": 0}, "params.count", "less than the minimum"),
        ({"count": "1"}, "params.count", "not of type"),
        ({"count": 1, "region": "x" * 9_000}, "params.region", "is not one of"),
        ({"count": 1, "zone": 1}, "params", "not known: zone"),
        ({"count": 1, "a b": 1}, 'params["a b"]', "not of type"),
        ({"count": 1, "mail": "nobody"}, "params.mail", "email"),
        ({"count": 1, "$ref": 1}, 'params["$ref"]', "not of type"),
        ({"count": 2**70}, "params", "64 bits"),
        ({"count": 1, "name": "\ud800"}, "params", "plain JSON"),
        ({"count": 1, "name": "a\0"}, "params.name", "does not match"),
        ({1: 1}, "params", "plain JSON"),
        ({"count": object()}, "params", "plain JSON"),
        ([], "params", "must be an object"),
        (None, "params", "must be an object"),
    ],
)
def test_what_is_wrong_is_named(params: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_params(SCHEMA, params)
    assert refused.value.field == field
    assert message in refused.value.reason
    assert len(refused.value.reason) < 300


def test_all_that_is_wrong_is_told_up_to_twenty() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_params(SCHEMA, {"tenants": [{}] * 50}, field="run.params")
    errors = refused.value.details["errors"]
    assert len(errors) == 20
    assert {"field": "run.params.tenants[3].id", "message": "must be given"} in errors
    assert refused.value.details["field"] == errors[0]["field"]


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("x", "must be a JSON Schema"),
        ([], "must be a JSON Schema"),
        (None, "must be a JSON Schema"),
        (True, "must be a JSON Schema"),
        ({"type": "nope"}, "at .type: "),
        ({"properties": {"a": {"minimum": "x"}}}, "at .properties.a.minimum: "),
        ({"$schema": "http://127.0.0.1:1/meta"}, "Unknown meta-schema"),
        ({"$ref": "http://127.0.0.1:1/x"}, "nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "other.json#/x"}}}, "nothing is fetched"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "nothing is fetched"),
        ({"$ref": 7}, "nothing is fetched"),
        ({"anyOf": [{"$dynamicRef": "http://x/"}]}, "$dynamicRef cannot be used"),
        ({"$dynamicRef": "#x"}, "$dynamicRef cannot be used"),
        ({"$defs": {"a": {"$id": "http://x/y"}}}, "$id cannot be used"),
        ({"$ref": "#/$defs/gone"}, "there is nothing at #/$defs/gone"),
        ({"allOf": [{"$ref": "#"}]}, "refers to itself"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "refers to itself"),
        ({"$defs": {"a": {"properties": {"x": {"items": {"$ref": "#/$defs/a"}}}}}}, "refers to itself"),
        ({"properties": {"x": {"items": {"$ref": "#/properties/x"}}}}, "refers to itself"),
        (doubling(40), "more than 10000 parts"),
        (doubling(400), "nested too deep"),
        ({"pattern": "(?=a)"}, "regex"),
        ({"pattern": "(a)\\1"}, "regex"),
        ({"pattern": "["}, "regex"),
        ({"pattern": "((a{100}){100}){100}"}, "regex"),
        ({"patternProperties": {"(?<!a)b": {}}}, "regex"),
        ({"allOf": [{"pattern": "a"}] * 101}, "more than 100 patterns"),
        ({"description": "x" * 100_000}, "larger than 100000 bytes"),
        ({"title": "\ud800"}, "plain JSON"),
        ({"x": object()}, "plain JSON"),
        (nested(100_000), "plain JSON"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any, complaint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_schema(schema, field="params_schema")
    assert refused.value.field == "params_schema"
    assert complaint in refused.value.reason


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {},
        {"$id": "http://example.com/mine", "$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "object"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}},
        {"properties": {"$id": {"type": "string"}, "$ref": {"const": {"$ref": "http://x"}}}},
        doubling(8),
    ],
)
def test_an_ordinary_schema_is_accepted(schema: Any) -> None:
    check_schema(schema, field="params_schema")


def test_the_schema_stays_as_it_is() -> None:
    schema = {"properties": {"a": {"default": 1}}}
    check_params(schema, {})
    assert schema == {"properties": {"a": {"default": 1}}}


@pytest.mark.parametrize(
    ("schema", "params"),
    [
        ({"properties": {"s": {"pattern": "^(a+)+$"}}}, {"s": "a" * 500_000 + "!"}),
        ({"properties": {"s": {"pattern": "(.*)*(.*)*x"}}}, {"s": "a" * 100_000}),
        ({"properties": {"s": {"items": {"format": "regex"}}}}, {"s": ["((a{100}){100}){100}"] * 4_000}),
        ({"allOf": [{"properties": {"s": {"uniqueItems": True}}}] * 1_000}, {"s": [{"a": i} for i in range(50_000)]}),
        (doubling(8), {"s": list(range(100_000))}),
    ],
)
def test_no_schema_takes_long(schema: Any, params: Any) -> None:
    """Else this would not end."""
    with suppress(InvalidInput):
        check_params(schema, params)
