"""The params of a workflow, and the JSON Schema that they follow.

Schemas come from users, so checking against one must take time in proportion: patterns are matched in linear time, nothing is ever
fetched, a schema may not refer to itself, and what it becomes with all references written out is bounded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import orjson

from ksana.domain.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MAX_SCHEMA_BYTES = 100_000
MAX_PATTERNS = 100
MAX_PATTERN_BYTES = 500_000
"""Of a compiled pattern: `\\w{500}` is beyond it."""
MAX_SCHEMA_PARTS = 10_000
"""With every reference written out."""
MAX_WORK = 20_000_000
"""Parts of the schema times values in the params: what the worst check would look at."""
MAX_ERRORS = 20
COMPILED_SCHEMAS = 256

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DATA = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})
_ELSEWHERE = frozenset({"$dynamicRef", "$recursiveRef", "$id", "id"})
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def check_schema(schema: Any, *, field: str) -> None:
    """InvalidInput naming `field` unless it is a JSON Schema (draft 2020-12, if it does not say) that may be saved."""
    _compiled(_written(schema, field), field)


def check_params(schema: Any, params: Any, *, field: str = "params") -> Mapping[str, Any]:
    """The params, with the defaults of the schema's own properties where they are missing.

    InvalidInput names the place of the first thing that is wrong, as in `params.tenants[2].id`; `details.errors` has the others.
    """
    if not isinstance(params, Mapping):
        raise InvalidInput(field, "must be an object")
    filled = {**_defaults(schema), **params}
    cells = len(_written(filled, field))
    compiled = _compiled(_written(schema, f"{field} schema"), f"{field} schema")
    if compiled.parts * cells > MAX_WORK * 4:  # a value takes some four bytes at the least
        raise InvalidInput(field, "there is too much in them to be checked against their schema")
    try:
        errors = list(islice(compiled.validator.iter_errors(filled), MAX_ERRORS))
    except ValueError as error:
        raise InvalidInput(field, "cannot be checked: not plain JSON") from error
    if errors:
        told = [{"field": _place(error, field), "message": _words(error)} for error in errors]
        raise InvalidInput(told[0]["field"], told[0]["message"], details={"errors": told})
    return filled


@dataclass(frozen=True, slots=True)
class _Compiled:
    validator: "Validator"
    parts: int


def _written(value: Any, field: str) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=_plain)
    except (TypeError, RecursionError) as error:
        raise InvalidInput(field, "must be plain JSON, in whole characters and numbers of 64 bits") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _compiled(written: bytes, field: str) -> _Compiled:
    if len(written) > MAX_SCHEMA_BYTES:
        raise InvalidInput(field, f"is larger than {MAX_SCHEMA_BYTES} bytes")
    try:
        return _compile(written)
    except _Refused as error:
        raise InvalidInput(field, str(error)) from error


class _Refused(Exception):
    """Why a schema cannot be used, for people."""


@lru_cache(maxsize=COMPILED_SCHEMAS)
def _compile(written: bytes) -> _Compiled:
    import jsonschema_rs  # noqa: PLC0415 - only those with schemas need it

    schema = orjson.loads(written)
    if not isinstance(schema, dict):
        raise _Refused("must be a JSON Schema: an object")
    parts = _Parts(schema).count()
    patterns = jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES, dfa_size_limit=MAX_PATTERN_BYTES)
    try:
        validator = jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            formats={"regex": _any},  # or it would compile whatever text the params hold
            retriever=_refuse,
            pattern_options=patterns,
        )
    except jsonschema_rs.ValidationError as error:
        place = _path(error.instance_path)
        raise _Refused(f"{'at ' + place + ': ' if place else ''}{_short(error.message)}") from error
    except ValueError as error:
        raise _Refused(_short(str(error))) from error
    return _Compiled(validator, parts)


def _any(_text: str) -> bool:
    return True


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"nothing is fetched: {uri[:200]}")


class _Parts:
    """Counts the parts of a schema with all references written out, and refuses what leads elsewhere or back to itself."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._patterns = 0
        self._counted: dict[str, int | None] = {}

    def count(self) -> int:
        try:
            found = self._part(self._schema)
        except RecursionError as error:
            raise _Refused("is nested too deep, or refers to too long a row of other parts") from error
        if found > MAX_SCHEMA_PARTS:
            raise _Refused(f"with its references written out, it has more than {MAX_SCHEMA_PARTS} parts")
        return found

    def _part(self, part: Any) -> int:
        if not isinstance(part, dict):
            return 1
        self._patterns += ("pattern" in part) + len(part.get("patternProperties") or ())
        if self._patterns > MAX_PATTERNS:
            raise _Refused(f"has more than {MAX_PATTERNS} patterns")
        own = sum(len(part[name]) for name in _DATA if isinstance(part.get(name), list | dict))
        return 1 + own + sum(self._keyword(part, name) for name in part if name not in _DATA)

    def _keyword(self, part: dict[str, Any], name: str) -> int:
        value = part[name]
        if name == "$ref":
            return self._reference(value)
        if name in _ELSEWHERE and isinstance(value, str) and (part is not self._schema or name.endswith("Ref")):
            raise _Refused(f"{name} cannot be used: refer to a part by its place, as in #/$defs/name")
        if name in _NAMED and isinstance(value, dict):
            return sum(self._part(below) for below in value.values())
        if isinstance(value, list):
            return sum(self._part(below) for below in value)
        return self._part(value)

    def _reference(self, reference: Any) -> int:
        if not isinstance(reference, str) or not re.fullmatch(r"#(/.*)?", reference, re.DOTALL):
            raise _Refused("nothing is fetched: a $ref may only lead to a place in the schema, as in #/$defs/name")
        if reference not in self._counted:
            self._counted[reference] = None
            self._counted[reference] = self._part(self._at(reference))
        found = self._counted[reference]
        if found is None or reference == "#":
            raise _Refused(f"refers to itself, through {_short(reference)}")
        return min(found, MAX_SCHEMA_PARTS + 1)

    def _at(self, reference: str) -> Any:
        part: Any = self._schema
        for step in reference.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict) and key in part:
                part = part[key]
            elif isinstance(part, list) and key.isdecimal() and len(key) < 7 and int(key) < len(part):
                part = part[int(key)]
            else:
                raise _Refused(f"there is nothing at {_short(reference)}")
        return part


def _defaults(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return {}
    declared = ((name, told) for name, told in properties.items() if isinstance(told, Mapping) and "default" in told)
    return {name: _copied(told["default"]) for name, told in declared}


def _copied(value: Any) -> Any:
    """So that whoever changes what they were given does not change the schema."""
    return orjson.loads(_written(value, "default"))


def _place(error: "ValidationError", field: str) -> str:
    kind: Any = error.kind
    missing = kind.property if error.kind.name == "required" else None
    return field + _path([*error.instance_path, *([missing] if missing is not None else [])])


def _path(steps: list[str | int]) -> str:
    return "".join(_step(step) for step in steps)[:500]


def _step(step: str | int) -> str:
    return f".{step}" if isinstance(step, str) and _PLAIN_KEY.fullmatch(step) else f"[{orjson.dumps(step).decode()}]"


def _words(error: "ValidationError") -> str:
    kind: Any = error.kind
    if error.kind.name == "required":
        return "must be given"
    if error.kind.name in {"additionalProperties", "unevaluatedProperties"}:
        return f"not known: {_short(', '.join(kind.unexpected))}"
    if error.kind.name == "falseSchema":
        return "nothing may stand here"
    return _short(error.message)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:120]} … {text[-70:]}"
