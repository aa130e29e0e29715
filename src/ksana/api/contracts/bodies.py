"""Bodies that are read as they came: one that may be missing, or that is kept word for word."""

from typing import Any, TypeVar

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

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
