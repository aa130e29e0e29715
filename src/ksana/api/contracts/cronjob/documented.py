"""The error answers of these routes, as the OpenAPI document tells them."""

from typing import Any

from ksana.api.contracts.cronjob.answers import ErrorAnswer
from ksana.api.openapi import answer_of

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
    return {key: answer_of(ErrorAnswer, _TOLD[key]) for key in keys}
