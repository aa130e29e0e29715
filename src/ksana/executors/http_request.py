"""From a job and an attempt to the request that is sent, and from a redirect to the next one. Pure."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from yarl import URL

from ksana.domain.errors import InvalidInput
from ksana.domain.job import Contract, ExecutionMode
from ksana.executors.base import CallbackGrant, ExecutionContext, Place, rfc3339
from ksana.executors.egress import Outgoing
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.egress_rules import MAX_HEADER_BYTES, checked_headers, checked_url
from ksana.executors.http_config import HttpTarget, rendered_body, rendered_url
from ksana.executors.http_evidence import is_sensitive
from ksana.executors.templates import render
from ksana.executors.templates_filters import TemplateFailed

MAX_BODY_BYTES = 1_000_000
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
CALLBACK_TOKEN = "X-Ksana-Callback-Token"  # noqa: S105 - the name of a header
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_NO_LENGTH = frozenset({"GET", "HEAD"})
_DROPPED_ELSEWHERE = frozenset({"x-ksana-callback-url", "x-ksana-callback-token"})
_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding"})


class Unsendable(Exception):
    """The request cannot be sent as it is, and trying again would not change that. Its text is for people."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What all requests of an executor have in common."""

    policy: EgressPolicy
    user_agent: str
    connect_timeout: timedelta


def compose(context: ExecutionContext, target: HttpTarget, sender: Sender) -> Outgoing:
    """The request of this attempt, its templates filled in and checked. Unsendable if it must not or cannot be sent."""
    variables = variables_of(context)
    try:
        url = checked_url(rendered_url(target.url, variables), sender.policy)
        given = _given_headers(target.headers, variables)
        body = _body(context, target, variables)
    except InvalidInput as error:
        raise Unsendable(error.message) from error
    except TemplateFailed as error:
        raise Unsendable(str(error)) from error
    except (UnicodeError, TypeError, ValueError) as error:
        raise Unsendable("the body cannot be written as JSON or UTF-8") from error
    if body is not None and len(body) > MAX_BODY_BYTES:
        raise Unsendable(f"the body is larger than {MAX_BODY_BYTES} bytes")
    ours = _our_headers(context, variables, sender)
    headers = _merged(ours | _body_headers(target.method, body) | _callback_headers(_grant(context)), given)
    connect_timeout = target.connect_timeout or sender.connect_timeout
    return Outgoing(target.method, url, {"Host": url.host_port_subcomponent or "", **headers}, body, connect_timeout)


def variables_of(context: ExecutionContext) -> dict[str, Any]:
    """What a template of this attempt may use: plain data only."""
    execution, job, grant = context.execution, context.job, _grant(context)
    return {
        "run_id": execution.id,
        "task_id": job.id,
        # Document 002 knows its jobs by strings, the others by numbers.
        "job_id": job.key if job.spec.contract is Contract.KSANA else job.id,
        "job_name": job.spec.name,
        "task_name": job.spec.name,
        "scheduled_at": context.scheduled_at,
        "triggered_at": rfc3339(context.triggered_at),
        "attempt": execution.attempt,
        "max_attempts": job.spec.retry.max_attempts,
        "trace_id": context.trace_id,
        "callback_url": grant.url if grant else "",
        "callback_token": grant.token if grant else "",
        "input": execution.input,
        "params": context.params,
        "nodes": context.nodes,
        **_place_of(context.place),
    }


def _place_of(place: Place | None) -> dict[str, Any]:
    return {
        "item": place.item if place else None,
        "index": place.index if place else None,
        "workflow_id": place.workflow_id if place else None,
        "workflow_run_id": place.run_id if place else None,
        "node_id": place.node_id if place else None,
    }


def redirected(request: Outgoing, status: int, location: str, policy: EgressPolicy) -> Outgoing:
    """The request that follows a redirect; Unsendable if it leads where nothing may be sent.

    As browsers do: 303 becomes a GET, and so does a POST answered with 301 or 302. Another origin is sent no credentials.
    """
    try:
        url = checked_url(str(request.url.join(URL(location))), policy, field="Location")
    except (InvalidInput, ValueError) as error:
        reason = error.reason if isinstance(error, InvalidInput) else "not a URL"
        raise Unsendable(f"answered {status} with a Location that cannot be followed: {reason}") from error
    if _elsewhere(request.url, url) and CALLBACK_TOKEN in request.headers:
        # Its body may hold the token too, and whoever has that can report.
        raise Unsendable(f"answered {status} with a Location at another origin, which must not see the callback token")
    becomes_get = (status == 303 and request.method != "HEAD") or (status in {301, 302} and request.method == "POST")
    headers = {
        name: value
        for name, value in request.headers.items()
        if not (becomes_get and name.lower() in _OF_THE_BODY)
        and not (_elsewhere(request.url, url) and _is_credential(name))
    }
    headers["Host"] = url.host_port_subcomponent or ""
    method, body = ("GET", None) if becomes_get else (request.method, request.body)
    return Outgoing(method, url, headers, body, request.connect_timeout)


def _elsewhere(first: URL, second: URL) -> bool:
    return first.origin() != second.origin()


def _is_credential(name: str) -> bool:
    return is_sensitive(name) or name.lower() in _DROPPED_ELSEWHERE


def _grant(context: ExecutionContext) -> CallbackGrant | None:
    return context.callback if context.mode is ExecutionMode.ASYNC else None


def _body(context: ExecutionContext, target: HttpTarget, variables: Mapping[str, Any]) -> bytes | None:
    given = context.execution.input.get("override_body")
    chosen = target.body if given is None or given == "" else given
    if chosen is None or chosen == "":
        grant = _grant(context)
        return _accepted_body(variables) if grant and target.method in WITH_BODY else None
    filled = rendered_body(chosen, variables)
    if isinstance(filled, str):
        return filled.encode()
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _accepted_body(variables: Mapping[str, Any]) -> bytes:
    """What a target needs to call back, for a job that has no body of its own."""
    names = ("job_id", "task_id", "run_id", "scheduled_at", "triggered_at", "attempt", "callback_url", "callback_token")
    return orjson.dumps({name: variables[name] for name in names})


def _given_headers(templates: Mapping[str, str], variables: Mapping[str, Any]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in templates.items():
        given[name] = render(value, variables)
        if len(given[name]) > MAX_HEADER_BYTES:  # already here, so that no more than one of them is ever that long
            raise InvalidInput(f"headers.{name}", f"is longer than {MAX_HEADER_BYTES} bytes")
    checked_headers(given)
    return given


def _our_headers(context: ExecutionContext, variables: Mapping[str, Any], sender: Sender) -> dict[str, str]:
    return {
        "User-Agent": sender.user_agent,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "X-Ksana-Run-Id": str(variables["run_id"]),
        "X-Ksana-Job-Id": str(variables["job_id"]),
        "X-Ksana-Attempt": str(variables["attempt"]),
        "X-Ksana-Scheduled-At": str(variables["scheduled_at"]),
        "Idempotency-Key": context.idempotency_key,
        "traceparent": f"00-{context.trace_id}-{secrets.token_hex(8)}-01",
        **_place_headers(context.place),
    }


def _place_headers(place: Place | None) -> dict[str, str]:
    return {"X-Ksana-Workflow-Run-Id": place.run_id, "X-Ksana-Node-Id": place.node_id} if place else {}


def _body_headers(method: str, body: bytes | None) -> dict[str, str]:
    if body is None:
        return {} if method in _NO_LENGTH else {"Content-Length": "0"}
    return {"Content-Type": _content_type(body), "Content-Length": str(len(body))}


def _callback_headers(grant: CallbackGrant | None) -> dict[str, str]:
    return {"X-Ksana-Callback-Url": grant.url, CALLBACK_TOKEN: grant.token} if grant else {}


def _content_type(body: bytes) -> str:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return "text/plain; charset=utf-8"
    return "application/json"


def _merged(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Ours and the job's; where both name one, the job's. Those that must stay ours were refused before."""
    theirs = {name.lower() for name in given}
    return {name: value for name, value in ours.items() if name.lower() not in theirs} | dict(given)
