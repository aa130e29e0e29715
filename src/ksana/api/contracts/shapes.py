"""What the bodies of the contracts share: strict models, the error body as OpenAPI shows it, answers, and names of fields."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.openapi import answer_of
from ksana.domain.errors import InvalidInput

_SAID = {
    400: "A value is wrong; `details.field` names it.",
    404: "Nothing has that id.",
    409: "Not now: the id or name is taken, or somebody changed it first.",
}


class Strict(BaseModel):
    """A body of which every field is known and has the type it says: `"5"` is no number, and `true` is none either."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """What goes out, in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel)


class ErrorBody(BaseModel):
    """Every error."""

    code: str = Field(examples=["VALIDATION_ERROR"])
    message: str = Field(examples=["schedule.every: must be between 100ms and a hundred years"])
    details: dict[str, Any] = Field(examples=[{"field": "schedule.every"}])
    request_id: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These error answers, for the `responses` of a route."""
    return {status: answer_of(ErrorBody, _SAID[status]) for status in statuses}


def answer(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON that has its shape already: no model reads it again. Instants in it are written as RFC 3339 with a `Z`."""
    written = orjson.dumps(content, option=orjson.OPT_UTC_Z)
    return Response(written, status_code=status, headers=headers, media_type="application/json")


@contextmanager
def renamed(names: Mapping[str, str]) -> Iterator[None]:
    """InvalidInput from within names its field as the caller wrote it: `headers.X-A` by the name that `headers` has here."""
    try:
        yield
    except InvalidInput as error:
        field = _name(error.field, names)
        if field == error.field:
            raise
        details = {key: value for key, value in error.details.items() if key != "field"}
        raise InvalidInput(field, error.reason, details=details) from error


def _name(field: str, names: Mapping[str, str]) -> str:
    if field in names:
        return names[field]
    first, dot, rest = field.partition(".")
    return f"{names[first]}.{rest}" if dot and first in names else field
