"""From a job and an attempt to the request that is sent, and from a redirect to the next one. Pure."""

import json
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
from yarl import URL

from ksana.domain.errors import InvalidInput
from ksana.domain.job import Contract, ExecutionMode, Job
from ksana.domain.values import immutable
from ksana.executors.base import CallbackGrant, ExecutionContext, Place, rfc3339
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.egress_request import Frame, Outgoing, Parts, framed
from ksana.executors.egress_rules import MAX_HEADER_BYTES, checked_headers, checked_url
from ksana.executors.http_config import HttpTarget, has_templates, rendered_body, rendered_url
from ksana.executors.http_evidence import secrets_of
from ksana.executors.sensitive import is_sensitive
from ksana.executors.templates import render
from ksana.executors.templates_filters import TemplateFailed

MAX_BODY_BYTES = 1_000_000
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
CALLBACK_TOKEN = "X-Ksana-Callback-Token"  # noqa: S105 - the name of a header
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_NO_LENGTH = frozenset({"GET", "HEAD"})
_DROPPED_ELSEWHERE = frozenset({"x-ksana-callback-url", "x-ksana-callback-token"})
_OF_THE_ATTEMPT = frozenset({"idempotency-key", "traceparent"})
_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding"})


class Unsendable(Exception):
    """The request cannot be sent as it is, and trying again would not change that. Its text is for people."""


@immutable
class Sender:
    """What all requests of an executor have in common."""

    policy: EgressPolicy
    user_agent: str
    connect_timeout: timedelta


@immutable
class Prepared:
    """A config as far as it can be worked out before there is an attempt."""

    target: HttpTarget
    frame: Frame | None
    """All but the attempt's own headers; None if there are templates to be filled in, or if it cannot be sent."""


def prepare(config: Mapping[str, Any], sender: Sender) -> Prepared:
    """What every attempt of this config has in common. Finds no fault: that is for the attempt to tell."""
    target = HttpTarget.of(config)
    try:
        frame = None if has_templates(target) else _framed(target, sender, {}, target.body)
    except Unsendable:
        frame = None
    return Prepared(target, frame)


def compose(context: ExecutionContext, prepared: Prepared, sender: Sender) -> Outgoing:
    """The request of this attempt, its templates filled in and checked. Unsendable if it must not or cannot be sent."""
    target, frame, grant = prepared.target, prepared.frame, _grant(context)
    override = context.execution.input.get("override_body")
    if frame is None or not _is_empty(override) or (grant and frame.body is None and target.method in WITH_BODY):
        variables = variables_of(context)
        body = target.body if _is_empty(override) else override
        if _is_empty(body) and grant and target.method in WITH_BODY:
            body = _Encoded(_accepted_body(variables))
        frame = _framed(target, sender, variables, body)
    return frame.request(_attempt_headers(context, grant, frame.parts.own))


def variables_of(context: ExecutionContext) -> dict[str, Any]:
    """What a template of this attempt may use: plain data only."""
    execution, job, grant = context.execution, context.job, _grant(context)
    return {
        "run_id": execution.id,
        "task_id": job.id,
        "job_id": _job_id(job),
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
    frame = request.frame
    try:
        url = checked_url(str(frame.url.join(URL(location))), policy, field="Location")
    except (InvalidInput, ValueError) as error:
        reason = error.reason if isinstance(error, InvalidInput) else "not a URL"
        raise Unsendable(f"answered {status} with a Location that cannot be followed: {reason}") from error
    if _elsewhere(frame.url, url) and CALLBACK_TOKEN in request.headers:
        # Its body may hold the token too, and whoever has that can report.
        raise Unsendable(f"answered {status} with a Location at another origin, which must not see the callback token")
    becomes_get = (status == 303 and frame.method != "HEAD") or (status in {301, 302} and frame.method == "POST")
    headers = {
        name: value
        for name, value in request.headers.items()
        if name != "Host"
        and not (becomes_get and name.lower() in _OF_THE_BODY)
        and not (_elsewhere(frame.url, url) and _is_credential(name))
    }
    method, body = ("GET", None) if becomes_get else (frame.method, frame.body)
    parts = Parts(headers, secrets=frame.parts.secrets, sensitive=frame.parts.sensitive)
    return framed(method, url, body, parts, frame.connect_timeout).request({})


def _elsewhere(first: URL, second: URL) -> bool:
    return first.origin() != second.origin()


def _is_credential(name: str) -> bool:
    return is_sensitive(name) or name.lower() in _DROPPED_ELSEWHERE


def _grant(context: ExecutionContext) -> CallbackGrant | None:
    return context.callback if context.mode is ExecutionMode.ASYNC else None


def _framed(target: HttpTarget, sender: Sender, variables: Mapping[str, Any], body: Any) -> Frame:
    try:
        url = checked_url(rendered_url(target.url, variables), sender.policy)
        given = _given_headers(target.headers, variables)
        sent = _body(body, variables)
    except InvalidInput as error:
        raise Unsendable(error.message) from error
    except TemplateFailed as error:
        raise Unsendable(str(error)) from error
    except (UnicodeError, TypeError, ValueError) as error:
        raise Unsendable("the body cannot be written as JSON or UTF-8") from error
    if sent is not None and len(sent) > MAX_BODY_BYTES:
        raise Unsendable(f"the body is larger than {MAX_BODY_BYTES} bytes")
    # Where both name one, the job's; those that must stay ours were refused before.
    theirs = {name.lower() for name in given}
    parts = Parts(
        before=_without(theirs, {"User-Agent": sender.user_agent, "Accept": "*/*", "Accept-Encoding": "identity"}),
        after=_without(theirs, _body_headers(target.method, sent)) | given,
        own=frozenset(theirs & _OF_THE_ATTEMPT),
        secrets=secrets_of(given),
        sensitive=any(is_sensitive(name) for name in given),
    )
    return framed(target.method, url, sent, parts, target.connect_timeout or sender.connect_timeout)


class _Encoded(bytes):
    """A body of our own, which has no templates."""


def _is_empty(body: Any) -> bool:
    return body is None or body == ""


def _body(body: Any, variables: Mapping[str, Any]) -> bytes | None:
    if _is_empty(body):
        return None
    if isinstance(body, _Encoded):
        return body
    filled = rendered_body(body, variables)
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


def _attempt_headers(context: ExecutionContext, grant: CallbackGrant | None, own: frozenset[str]) -> dict[str, str]:
    """What the target is told about this attempt; of that which the job tells itself, nothing."""
    execution, job, place = context.execution, context.job, context.place
    headers = {
        "X-Ksana-Run-Id": str(execution.id),
        "X-Ksana-Job-Id": str(_job_id(job)),
        "X-Ksana-Attempt": str(execution.attempt),
        "X-Ksana-Scheduled-At": context.scheduled_at,
        "Idempotency-Key": context.idempotency_key,
        # The span's number is no secret.
        "traceparent": f"00-{context.trace_id}-{random.getrandbits(64):016x}-01",
    }
    if place is not None:
        headers["X-Ksana-Workflow-Run-Id"] = place.run_id
        headers["X-Ksana-Node-Id"] = place.node_id
    if grant is not None:
        headers["X-Ksana-Callback-Url"] = grant.url
        headers[CALLBACK_TOKEN] = grant.token
    return _without(own, headers) if own else headers


def _job_id(job: Job) -> str | int:
    """Document 002 knows its jobs by strings, the others by numbers."""
    return job.key if job.spec.contract is Contract.KSANA else job.id


def _without(names: set[str] | frozenset[str], headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _body_headers(method: str, body: bytes | None) -> dict[str, str]:
    if body is None:
        return {} if method in _NO_LENGTH else {"Content-Length": "0"}
    return {"Content-Type": _content_type(body), "Content-Length": str(len(body))}


def _content_type(body: bytes) -> str:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return "text/plain; charset=utf-8"
    return "application/json"
