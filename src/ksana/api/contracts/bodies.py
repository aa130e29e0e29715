"""Bodies that are read as they came: one that may be missing, or that is kept word for word."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, PrivateAttr, ValidationError, model_validator

M = TypeVar("M", bound=BaseModel)


async def optional_body(request: Request, model: type[M]) -> M:
    """The body; of an empty one, or null, the defaults. Its Content-Type is not asked for: `curl -X POST` sends none."""
    raw = await request.body()
    return model() if raw.strip() in {b"", b"null"} else parsed(raw, model)


def parsed(raw: bytes, model: type[M]) -> M:
    """The body as the model has it; RequestValidationError, as the framework raises it for bodies that it reads."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        wrong = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([{**wrong, "ctx": {"error": error.msg}}]) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in found]) from None


def body_of(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """`openapi_extra` for a route that reads its body itself. The model's schema must have no parts elsewhere."""
    schema = model.model_json_schema()
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


class AsGiven(BaseModel):
    """An object that its fields only describe: it is read by somebody else, who knows better what is wrong with it."""

    _document: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _kept(cls, value: Any, validate: Callable[[Any], Self]) -> Self:
        if not isinstance(value, dict):
            return validate(value)  # which refuses it
        made = cls.model_construct()
        made._document = value  # noqa: SLF001 - its own
        return made

    @property
    def document(self) -> dict[str, Any]:
        return self._document
