"""What the OpenAPI document says of these routes beside their own shapes: errors, and bodies that handlers read themselves."""

from typing import Any

from pydantic import BaseModel

from ksana.api.contracts.cronjob.answers import ErrorAnswer

_TOLD: dict[int | str, str] = {
    400: "INVALID_ARGUMENT, INVALID_JSON or INVALID_ID: nothing was changed",
    404: "NOT_FOUND: there is no such task, run or callback",
    409: "CONCURRENCY_LIMIT, NAME_CONFLICT, VERSION_CONFLICT or CALLBACK_STALE: not now",
    413: "BODY_TOO_LARGE",
    "default": "Any other error, in the same shape",  # and so FastAPI adds no 422, which is never answered
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route."""
    keys: tuple[int | str, ...] = (*statuses, "default")
    return {key: {"model": ErrorAnswer, "description": _TOLD[key]} for key in keys}


def body_of(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """`openapi_extra` for a route that reads its body itself. The model's schema must have no parts elsewhere."""
    schema = model.model_json_schema()
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
