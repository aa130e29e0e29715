"""What went wrong, as HTTP: one envelope, and one table from the error tree to statuses.

A contract that shows other codes or statuses for its paths gives a `Translation`: it changes the Problem, which is a value,
just before it is written. Nothing else knows about contracts.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from ksana.domain.errors import (
    Conflict,
    InvalidInput,
    KsanaError,
    NotFound,
    NotSupported,
    StoreFull,
    StoreUnavailable,
)
from ksana.telemetry import log

RETRY_AFTER_SECONDS = 5
MAX_ERRORS_SHOWN = 20
_UNREADABLE = "There was an error parsing the body"  # FastAPI's words for a body that is not even text
_PLACES = frozenset({"body", "query", "path", "header", "cookie"})


@dataclass(frozen=True, slots=True)
class Problem:
    """An answer that is an error. `extra` stands in the envelope beside its four members."""

    status: int
    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """How an error is shown. `message` replaces its own where that may name hosts, paths or tables."""

    status: int
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


RULES: Mapping[type[KsanaError], Rule] = {
    InvalidInput: Rule(400),
    NotFound: Rule(404),
    Conflict: Rule(409),
    StoreUnavailable: Rule(
        503, "the store cannot be reached now; try again", {"Retry-After": str(RETRY_AFTER_SECONDS)}
    ),
    NotSupported: Rule(501),
    StoreFull: Rule(507, "the store has no room left; nothing was changed"),
    KsanaError: Rule(500, "an unexpected error happened; the log has it under this request id"),
}

Translate = Callable[[Problem], Problem]


@dataclass(frozen=True, slots=True)
class Translation:
    """The problems of paths below `prefix` (whole segments; an order's colon ends one) pass through `translate`. Where two
    contracts share a prefix, one of them says which of what follows it, with the query, is its own."""

    prefix: str
    translate: Translate
    only: re.Pattern[str] | None = None

    def covers(self, target: str) -> bool:
        prefix = self.prefix.rstrip("/")
        rest = target[len(prefix) :]
        if not target.startswith(prefix) or rest[:1] not in {"", "/", ":", "?"}:
            return False
        return self.only is None or self.only.match(rest) is not None


def target_of(scope: Scope) -> str:
    """The path that was asked for, with its query."""
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


class Problems:
    """Writes problems, in the words of the contract whose path was asked for; the longest prefix decides, and of two that are
    the same, the one that takes only a part."""

    def __init__(self, translations: Sequence[Translation] = ()) -> None:
        self._translations = sorted(
            translations, key=lambda each: (len(each.prefix), each.only is not None), reverse=True
        )

    def response(self, problem: Problem, *, target: str, request_id: str) -> Response:
        for translation in self._translations:
            if translation.covers(target):
                problem = translation.translate(problem)
                break
        return Response(
            _written(envelope(problem, request_id)),
            status_code=problem.status,
            headers=dict(problem.headers),
            media_type="application/json",
        )


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # halves of characters, or numbers over 64 bits, that the caller sent and we repeat
        return json.dumps(body, default=str).encode()


def envelope(problem: Problem, request_id: str) -> dict[str, Any]:
    """The one shape of every error."""
    return {
        "code": problem.code,
        "message": problem.message,
        "details": dict(problem.details),
        "request_id": request_id,
        **problem.extra,
    }


def problem_of(error: KsanaError) -> Problem:
    """The rule of the nearest ancestor that has one."""
    rule = next(RULES[kind] for kind in type(error).__mro__ if kind in RULES)
    problem = Problem(rule.status, error.code, error.message, error.details, rule.headers)
    return problem if rule.message is None else replace(problem, message=rule.message, details={})


def internal_problem() -> Problem:
    """Nothing of what happened inside leaves the process; the log has it."""
    return Problem(500, KsanaError.code, RULES[KsanaError].message or "")


def http_problem(error: HTTPException) -> Problem:
    """What the framework refused: no such path, wrong method, too large a body."""
    if error.status_code == 400 and error.detail == _UNREADABLE:
        return Problem(400, "JSON_PARSE_ERROR", "the body is not JSON")
    try:
        status = HTTPStatus(error.status_code)
    except ValueError:
        return Problem(error.status_code, "HTTP_ERROR", str(error.detail), headers=error.headers or {})
    told = str(error.detail) if error.detail and error.detail != status.phrase else _TOLD.get(status, status.phrase)
    return Problem(status.value, _CODES.get(status, status.name), told, headers=error.headers or {})


_CODES = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "BODY_TOO_LARGE", HTTPStatus.INTERNAL_SERVER_ERROR: KsanaError.code}
_TOLD = {
    HTTPStatus.NOT_FOUND: "there is nothing at this path",
    HTTPStatus.METHOD_NOT_ALLOWED: "this path does not take that method",
}


def validation_problem(error: RequestValidationError, content_type: str | None = None) -> Problem:
    """`details.field` is the first part that is wrong, `details.errors` all of them, up to twenty."""
    found = error.errors()
    if _not_sent_as_json(found, content_type):
        told = [{"field": "body", "message": _SEND_JSON}]
        return Problem(400, InvalidInput.code, f"body: {_SEND_JSON}", details={"field": "body", "errors": told})
    if any(each["type"] == "json_invalid" for each in found):
        return Problem(400, "JSON_PARSE_ERROR", f"the body is not JSON: {_json_reason(found[0])}")
    errors = [{"field": _field(each["loc"]), "message": _told(each)} for each in found[:MAX_ERRORS_SHOWN]]
    first = errors[0] if errors else {"field": "body", "message": "is not valid"}
    return Problem(
        400,
        InvalidInput.code,
        f"{first['field']}: {first['message']}",
        details={"field": first["field"], "errors": errors},
    )


_SEND_JSON = "must be JSON, sent with the header Content-Type: application/json"
_PLAIN = {"missing": "is required", "extra_forbidden": "there is no such field"}


def _not_sent_as_json(found: Sequence[Mapping[str, Any]], content_type: str | None) -> bool:
    unread = any(tuple(each["loc"]) == ("body",) and isinstance(each.get("input"), str | bytes) for each in found)
    return unread and "json" not in (content_type or "").lower()


def _told(error: Mapping[str, Any]) -> str:
    """pydantic's words, but for the two that everybody meets."""
    return _PLAIN.get(str(error["type"]), str(error["msg"]))


def _json_reason(error: Mapping[str, Any]) -> str:
    place = error["loc"][-1] if error["loc"] else "?"
    return f"{error.get('ctx', {}).get('error', 'it cannot be read')} at character {place}"


def _field(location: Sequence[str | int]) -> str:
    parts = list(location[1:]) if location and location[0] in _PLACES else list(location)
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    return text or "body"


def install(app: FastAPI, problems: Problems) -> None:
    """From now on every error of `app` is answered in the envelope. (Unexpected ones: `middleware.Observed`.)"""

    def answer(request: Request, problem: Problem) -> Response:
        request_id = request.scope.get("state", {}).get("request_id", "")
        return problems.response(problem, target=target_of(request.scope), request_id=request_id)

    async def on_ksana_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, KsanaError)  # noqa: S101 - registered for this type only
        problem = problem_of(error)
        if problem.status >= 500:
            log().error(error.message, action="http.failed", code=error.code, exc_info=error)
        return answer(request, problem)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - likewise
        return answer(request, http_problem(error))

    async def on_validation_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - likewise
        return answer(request, validation_problem(error, request.headers.get("content-type")))

    app.add_exception_handler(KsanaError, on_ksana_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
