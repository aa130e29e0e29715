"""Values as the clients of several contracts write them: ids, texts, durations, pages, JSON, traces."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal

import orjson
from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator, StrictStr, WithJsonSchema
from pydantic_core import PydanticCustomError

from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.job import NAME_LENGTH
from ksana.store.requests import MAX_PAGE_SIZE, MAX_PAGED_ROWS

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_NO_TRACE = "0" * 32

_ID = re.compile(r"[0-9]{1,18}")
ID_SCHEMA = {"type": "integer", "minimum": 1, "maximum": LARGEST_INTEGER}


class InvalidId(InvalidInput):
    """An id in a path that is none."""

    code = "INVALID_ID"


def whole_id(field: str) -> Callable[[object], int]:
    """Reads document 003's integers. Wrong ones are INVALID_ID: not a ValueError, so that it leaves pydantic as it is."""

    def read(value: object) -> int:
        text = str(value)
        number = int(text) if _ID.fullmatch(text) else 0
        if not 1 <= number <= LARGEST_INTEGER:
            raise InvalidId(field, f"must be an integer between 1 and {LARGEST_INTEGER}")
        return number

    return read


IntegerRunId = Annotated[
    int,
    Path(alias="run_id", description="The run's id."),
    BeforeValidator(whole_id("run_id")),
    WithJsonSchema(ID_SCHEMA),
]
PageNumber = Annotated[int, Query(ge=1, le=MAX_PAGED_ROWS, description="From 1.")]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Keyword = Annotated[str | None, Query(max_length=NAME_LENGTH, description="Part of the name.")]


def _whole_characters(text: str) -> str:
    """JSON can write half a character (`\\ud800`); no database keeps one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("characters", "must not contain halves of characters") from None
    return text


Text = Annotated[StrictStr, AfterValidator(_whole_characters)]


def read_duration(value: object) -> timedelta:
    """For validators of shapes."""
    try:
        return parse_duration(value, field="")
    except InvalidInput as error:
        raise PydanticCustomError("duration", "{reason}", {"reason": error.reason}) from None


Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "examples": ["1m30s"]}]}),
]


def printable(text: str, *, field: str) -> str:
    """Text to search with; InvalidInput if it has characters that no stored name has and no database is asked for."""
    if not text.isprintable():
        raise InvalidInput(field, "must not contain control characters")
    return text


def empty_as_none(value: Any) -> Any:
    """`?status=` asks for nothing in particular."""
    return None if value == "" else value


Enabled = Annotated[bool | None, BeforeValidator(empty_as_none)]
Include = Annotated[Literal["runs"] | None, Query(description="Also what became of it.")]


def as_json(value: Any, *, field: str) -> str:
    """Its JSON; InvalidInput if it cannot be kept."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise InvalidInput(field, "cannot be kept: it is nested too deep, or a number in it is too large") from None


def trace_of(traceparent: str | None) -> str | None:
    """The trace that the caller goes on with (W3C), if it says one."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return found[1] if found and found[1] != _NO_TRACE else None
