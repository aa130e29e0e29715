"""Document 003's names for the parts of a job and its schedule: the one table, for what comes in and for what is refused."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any


class Part(Enum):
    """Which value a field belongs to."""

    JOB = auto()  # JobSpec
    CONFIG = auto()  # JobSpec.config, the executor's
    SCHEDULE = auto()  # ScheduleSpec


FIELDS: Mapping[str, tuple[Part, str]] = {
    "name": (Part.JOB, "name"),
    "description": (Part.JOB, "description"),
    "exec_type": (Part.JOB, "mode"),
    "timeout_seconds": (Part.JOB, "timeout"),
    "callback_timeout_sec": (Part.JOB, "callback_timeout"),
    "retry_policy": (Part.JOB, "retry"),
    "max_concurrency": (Part.JOB, "max_concurrency"),
    "concurrency_policy": (Part.JOB, "concurrency"),
    "queue_limit": (Part.JOB, "queue_limit"),
    "recovery": (Part.JOB, "recovery"),
    "labels": (Part.JOB, "labels"),
    "worker_queue": (Part.JOB, "worker_queue"),
    "status": (Part.JOB, "enabled"),
    "http_method": (Part.CONFIG, "method"),
    "target_url": (Part.CONFIG, "url"),
    "headers": (Part.CONFIG, "headers"),
    "body_template": (Part.CONFIG, "body"),
    "callback_method": (Part.CONFIG, "callback_method"),
    "follow_redirects": (Part.CONFIG, "follow_redirects"),
    "connect_timeout": (Part.CONFIG, "connect_timeout"),
    "cron_expr": (Part.SCHEDULE, "cron"),
    "timezone": (Part.SCHEDULE, "timezone"),
    "misfire_policy": (Part.SCHEDULE, "misfire"),
    "catchup_limit": (Part.SCHEDULE, "catchup_limit"),
    "start_at": (Part.SCHEDULE, "start_at"),
    "end_at": (Part.SCHEDULE, "end_at"),
    "jitter": (Part.SCHEDULE, "jitter"),
}

_ELSEWHERE = {
    "retry.max_attempts": "retry_policy.max_retries",
    "retry.delay": "retry_policy.initial_delay",
    "retry.multiplier": "retry_policy.strategy",
    "retry.max_delay": "retry_policy.max_delay",
    "size": "page_size",
    "idempotency_key": "Idempotency-Key",
}
"""Fields that are parts of others, or not a task's."""

_SHOWN: Mapping[str, str] = {**{inner: name for name, (_, inner) in FIELDS.items()}, **_ELSEWHERE}


def shown(field: str) -> str:
    """Document 003's name for a field that the domain or an executor found wrong; `headers.X` keeps its end."""
    if field in _SHOWN:
        return _SHOWN[field]
    first, dot, rest = field.partition(".")
    return f"{_SHOWN.get(first, first)}{dot}{rest}"


def of_part(part: Part, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given fields that belong to this part, under the names that it has for them."""
    return {FIELDS[name][1]: value for name, value in given.items() if FIELDS[name][0] is part}
