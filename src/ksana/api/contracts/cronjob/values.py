"""Values as document 003's clients write them: ids, numbers, durations, instants."""

import re
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Query
from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from ksana.api.contracts.values import ID_SCHEMA, read_duration, whole_id
from ksana.api.times import parse_instant
from ksana.domain.errors import InvalidInput
from ksana.domain.ids import LARGEST_INTEGER
from ksana.store.requests import MAX_PAGE_SIZE

_UNESCAPED_PLUS = re.compile(r"(.+[Tt].+) (\d{2}:\d{2})")
_NO_ZONE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?))?")


TaskId = Annotated[
    int, Path(alias="id", description="The task's id."), BeforeValidator(whole_id("id")), WithJsonSchema(ID_SCHEMA)
]

Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_INTEGER)]
"""An integer of a body: no text, no `true`, no 1.5, nothing that a JavaScript client could not read."""
GivenId = Annotated[int, Field(strict=True, ge=1, le=LARGEST_INTEGER)]

PageNumber = Annotated[int, Query(ge=1, le=LARGEST_INTEGER, description="From 1.")]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Cursor = Annotated[
    int | None,
    Query(ge=1, le=LARGEST_INTEGER, description="Instead of a page: what follows the item with this id."),
]


def _seconds(value: object) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("seconds", "must be a number of seconds")
    return read_duration(value)


def _instant(value: object) -> datetime:
    try:
        return parse_instant(value if isinstance(value, str) else "", field="")
    except InvalidInput as error:
        raise PydanticCustomError("instant", "{reason}", {"reason": error.reason}) from None


Seconds = Annotated[timedelta, BeforeValidator(_seconds), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})]


def queried_instant(text: str, *, field: str) -> datetime:
    """An instant of a query: UTC unless it says otherwise, a date alone is its midnight, and a `+` that came as a blank."""
    text = _UNESCAPED_PLUS.sub(r"\1+\2", text.strip())
    plain = _NO_ZONE.fullmatch(text)
    return parse_instant(f"{plain[1]}T{plain[2] or '00:00:00'}Z" if plain else text, field=field)


def seconds(value: timedelta) -> int | float:
    """A whole number if it is one."""
    exact = value.total_seconds()
    return int(exact) if exact.is_integer() else exact
