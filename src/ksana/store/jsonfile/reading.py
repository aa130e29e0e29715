"""From document 002's shape to rows. What cannot be read is Unreadable, with the place in the file and the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from ksana.domain.errors import KsanaError
from ksana.domain.ids import KEY_LENGTH, LARGEST_INTEGER
from ksana.domain.job import ConcurrencyPolicy, Contract, JobSpec
from ksana.domain.retry import RetryPolicy
from ksana.store.jsonfile.shape import HTTP, HTTP_DEFAULTS
from ksana.store.jsonfile.text import duration_micros, instant_micros
from ksana.store.sql import codec

Fields = dict[str, Any]

_DEFAULT_JOB = JobSpec(
    name="default",
    type=HTTP,
    config={},
    timeout=timedelta(seconds=10),
    # Document 002 counts retries, not attempts, and has no limit to how many run at once.
    retry=RetryPolicy(max_attempts=4, delay=timedelta(seconds=5)),
    concurrency=ConcurrencyPolicy.PARALLEL,
    contract=Contract.KSANA,
)
DEFAULT_JOB: Fields = orjson.loads(codec.job_spec_json(_DEFAULT_JOB))
_JOB_KEYS = frozenset(
    {"id", "name", "enabled", "type", "http", "schedule", "timeout", "max_retries", "retry_backoff", "last_run_at"}
    | {"next_run_at", "last_status", "last_error", "ksana"}
)
_REST_KEYS = frozenset(
    {"id", "version", "created_at", "updated_at", "spec", "retry", "config", "unsaid", "schedule", "more_schedules"}
    | {"last_run", "open_runs"}
)
_STRINGS = ("name", "type", "description", "mode", "concurrency", "recovery", "worker_queue", "contract")
_WHOLES = ("timeout", "callback_timeout", "max_concurrency", "queue_limit")


class Unreadable(Exception):
    """The file, or a part of it, is not what Ksana or document 002 would have written."""


@dataclass(slots=True)
class Ids:
    """The ids that were given out before: new ones begin after the greatest."""

    greatest: dict[str, int] = field(default_factory=dict)

    def seen(self, table: str, value: int) -> None:
        self.greatest[table] = max(value, self.greatest.get(table, 0))

    def next(self, table: str) -> int:
        self.greatest[table] = self.greatest.get(table, 0) + 1
        return self.greatest[table]


def read_spec(raw: Fields, rest: Fields) -> tuple[JobSpec, str]:
    """The job's spec, and the JSON that the column holds."""
    said = {
        "name": raw.get("name"),
        "type": raw.get("type", HTTP),
        "enabled": boolean(raw.get("enabled", True)),
        "timeout": duration_micros(raw.get("timeout"), "timeout", "10s"),
        "config": _config(raw, rest),
        "retry": DEFAULT_JOB["retry"] | table(rest.get("retry", {})) | _retry(raw),
    }
    document = DEFAULT_JOB | table(rest.get("spec", {})) | said
    for name in _STRINGS:
        text(document[name])
    for name in _WHOLES:
        whole(document[name], least=0)  # the spec knows its bounds
    for label in table(document["labels"]).values():
        text(label)
    spec = codec.job_spec(orjson.dumps(document).decode())
    return spec, codec.job_spec_json(spec)


def _retry(raw: Fields) -> Fields:
    retries = whole(raw.get("max_retries", 3), least=0)
    delay = duration_micros(raw.get("retry_backoff"), "retry_backoff", "5s")
    return {"max_attempts": retries + 1, "delay": delay}


def _config(raw: Fields, rest: Fields) -> Fields:
    if raw.get("type", HTTP) != HTTP:
        return table(rest.get("config", {}))
    shown = table(raw.get("http"))
    if not rest:
        if not text(shown.get("url", "")):
            raise ValueError("http.url is missing")
        return HTTP_DEFAULTS | _checked_http(shown)
    hidden = {*rest.get("unsaid", []), *table(rest.get("config", {}))}
    said = {name: value for name, value in shown.items() if name not in hidden or value != HTTP_DEFAULTS[name]}
    # What a person has written where a default stood goes before what stood behind it.
    return table(rest.get("config", {})) | _checked_http(said)


def _checked_http(said: Fields) -> Fields:
    for name in ("method", "url", "body"):
        text(said.get(name, ""))
    for value in table(said.get("headers", {})).values():
        text(value)
    return said


# Values: each is of its type, or Unreadable is not far ------------------------------------------------------------------


def table(value: object) -> Fields:
    if not isinstance(value, dict):
        raise TypeError(f"{_brief(value)} should be an object")
    return value


def rows(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{_brief(value)} should be a list")
    return value


def text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{_brief(value)} should be text")
    return value


def optional_text(value: object) -> str | None:
    return None if value is None else text(value)


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{_brief(value)} should be true or false")
    return value


def whole(value: object, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{_brief(value)} should be a whole number")
    if not least <= value <= LARGEST_INTEGER:
        raise ValueError(f"{value} should be between {least} and {LARGEST_INTEGER}")
    return value


def instant(fields: Mapping[str, Any], name: str) -> int:
    """An instant that must be there."""
    found = instant_micros(fields.get(name))
    if found is None:
        raise ValueError(f"{name} is missing")
    return found


def key(value: object) -> str:
    """The id of a job or a schedule, whoever made it; `~` begins the ids of what was deleted."""
    found = text(value)
    if not 1 <= len(found) <= KEY_LENGTH or not found.isprintable() or found.startswith("~"):
        raise ValueError(f"{_brief(value)} is no id")
    return found


def job_parts(value: object) -> tuple[Fields, Fields]:
    """A job's plain fields, and the rest, which is empty if a person wrote it."""
    raw = known(table(value), _JOB_KEYS)
    return raw, known(table(raw.get("ksana", {})), _REST_KEYS)


def known(fields: Fields, names: frozenset[str]) -> Fields:
    """The fields. What is not understood would be lost with the next write, so that it is not let pass."""
    strange = sorted(fields.keys() - names)
    if strange:
        raise ValueError(f"unknown field {strange[0]!r}")
    return fields


def why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return error.message if isinstance(error, KsanaError) else str(error)


def _brief(value: object) -> str:
    return repr(value)[:60]
