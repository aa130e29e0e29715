"""The config of an `http` job: what may stand in it, what it becomes, and what its templates may use."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidInput
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.egress_rules import MAX_URL, checked_headers, checked_url
from ksana.executors.templates import DocumentTooLarge, check_template, is_template, map_strings, render

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
CALLBACK_METHODS = ("POST", "PUT")
VARIABLES = frozenset(
    {
        *("run_id", "task_id", "job_id", "job_name", "task_name", "scheduled_at", "triggered_at"),
        *("attempt", "max_attempts", "trace_id", "callback_url", "callback_token", "input"),
        *("params", "nodes", "item", "index", "workflow_id", "workflow_run_id", "node_id"),
    }
)
LONGEST_CONNECT = timedelta(hours=1)

_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)(.*)", re.DOTALL)
_KEYS = ("method", "url", "headers", "body", "connect_timeout", "follow_redirects", "callback_method")


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A checked config, as the executor reads it. Its texts are still templates."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any
    connect_timeout: timedelta | None
    follow_redirects: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "HttpTarget":
        """From a config that `checked_config` has passed."""
        given = config.get("connect_timeout")
        return cls(
            method=str(config.get("method") or "GET").upper(),
            url=str(config.get("url") or ""),
            headers=config.get("headers") or {},
            body=config.get("body"),
            connect_timeout=None if given is None else parse_duration(given, field="connect_timeout"),
            follow_redirects=config.get("follow_redirects") is True,
        )


def checked_config(config: Mapping[str, Any], policy: EgressPolicy) -> dict[str, Any]:
    """The config with its defaults, as plain JSON. InvalidInput names the key that is wrong, also one that is not known."""
    for key in config:
        if key not in _KEYS:
            raise InvalidInput(str(key), f"not known; there are: {', '.join(_KEYS)}")
    return {
        "method": _one_of(config.get("method"), METHODS, field="method", default="GET"),
        "url": _checked_url(config.get("url"), policy),
        "headers": _checked_headers(config.get("headers")),
        "body": _checked_body(config.get("body")),
        "connect_timeout": _checked_connect_timeout(config.get("connect_timeout")),
        "follow_redirects": _checked_flag(config.get("follow_redirects"), field="follow_redirects"),
        "callback_method": _one_of(
            config.get("callback_method"), CALLBACK_METHODS, field="callback_method", default="POST"
        ),
    }


def has_templates(target: HttpTarget) -> bool:
    """Whether anything in it is filled in for each attempt."""
    found = False

    def looked_at(text: str) -> str:
        nonlocal found
        found = found or is_template(text)
        return text

    try:
        map_strings([target.url, target.headers, target.body], looked_at)
    except DocumentTooLarge:
        return True
    return found


def rendered_url(text: str, variables: Mapping[str, Any]) -> str:
    """The URL filled in; scheme and host are never touched. TemplateFailed as `render`."""
    if not is_template(text):
        return text
    found = _AUTHORITY.fullmatch(text)
    return found[1] + render(found[2], variables) if found else text


def rendered_body(body: Any, variables: Mapping[str, Any]) -> Any:
    """The body filled in: a text as a whole, or every string value within a JSON document.

    TemplateFailed as `render`; InvalidInput if it is too deep or has too much in it.
    """
    return _in_body(body, lambda text: render(text, variables))


def _in_body(body: Any, change: Callable[[str], str]) -> Any:
    try:
        return map_strings(body, change)
    except DocumentTooLarge as error:
        raise InvalidInput("body", str(error)) from error


def _checked_url(value: Any, policy: EgressPolicy) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput("url", "must be given, as in https://example.com/path")
    text = value.strip()
    if len(text) > MAX_URL:
        raise InvalidInput("url", f"is longer than {MAX_URL} characters")
    if not is_template(text):
        checked_url(text, policy)
        return text
    found = _AUTHORITY.fullmatch(text)
    if found is None or "{" in found[1]:
        raise InvalidInput("url", "may have templates in its path and query, but not in its scheme and host")
    checked_url(found[1], policy)
    check_template(found[2], field="url", names=VARIABLES)
    return text


def _checked_headers(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("headers", "must be an object of names and values")
    headers: dict[str, str] = {}
    for name, given in value.items():
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            raise InvalidInput(f"headers.{name}", "must be a string")
        headers[str(name)] = str(given)
    checked_headers(headers)
    for name, text in headers.items():
        check_template(text, field=f"headers.{name}", names=VARIABLES)
    return headers


def _checked_body(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str | Mapping | list):
        raise InvalidInput("body", "must be a text, or a JSON object or array")

    def checked(text: str) -> str:
        check_template(text, field="body", names=VARIABLES)
        return text

    _in_body(value, checked)
    return value if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """A copy that shares nothing with what the caller may still change."""
    return (
        {str(name): _plain(item) for name, item in value.items()}
        if isinstance(value, Mapping)
        else ([_plain(item) for item in value] if isinstance(value, list | tuple) else value)
    )


def _checked_connect_timeout(value: Any) -> str | None:
    if value is None:
        return None
    duration = parse_duration(value, field="connect_timeout")
    if not timedelta(0) < duration <= LONGEST_CONNECT:
        raise InvalidInput("connect_timeout", "must be longer than nothing and at most an hour")
    return format_duration(duration)


def _checked_flag(value: Any, *, field: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidInput(field, "must be true or false")
    return value


def _one_of(value: Any, choices: tuple[str, ...], *, field: str, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str) or value.upper() not in choices:
        raise InvalidInput(field, f"must be one of {', '.join(choices)}")
    return value.upper()
