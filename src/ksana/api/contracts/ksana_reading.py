"""From document 002's bodies to what the commands take."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ksana.api.contracts.ksana_models import HttpBody, JobBody, JobChange
from ksana.api.contracts.ksana_showing import body_text
from ksana.api.contracts.schedules_spec import Wording, merged, read_spec
from ksana.api.contracts.shapes import renamed
from ksana.domain.durations import parse_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.job import ConcurrencyPolicy, Contract, JobSpec
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import ScheduleSpec
from ksana.engine.commands import JobDraft, JobEdit, ScheduleDraft
from ksana.engine.queries import JobView
from ksana.settings.table import JobDefaults

HTTP = "http"
FIELDS: Mapping[str, str] = {
    "retry.max_attempts": "max_retries",
    "retry.delay": "retry_backoff",
    "retry.max_delay": "retry_backoff",
    "json": "http",
    "idempotency_key": "Idempotency-Key",
}
HTTP_FIELDS: Mapping[str, str] = {name: f"http.{name}" for name in ("url", "method", "headers", "body")}


def named_as_written(job_type: str) -> AbstractContextManager[None]:
    """What is refused within is named as document 002 names it."""
    return renamed({**FIELDS, **HTTP_FIELDS} if job_type == HTTP else FIELDS)


def read_job(body: JobBody, defaults: JobDefaults, wording: Wording, now: datetime) -> JobDraft:
    """A new job. InvalidInput."""
    schedule = read_spec(body.schedule.model_dump(), wording, now=now)
    retries = defaults.max_retries if body.max_retries is None else body.max_retries
    spec = JobSpec(
        name=body.name,
        type=body.type,
        config=_config(body),
        enabled=body.enabled,
        timeout=_duration(body.timeout, "timeout", defaults.default_timeout),
        retry=RetryPolicy(retries + 1, _duration(body.retry_backoff, "retry_backoff", defaults.retry_backoff)),
        concurrency=ConcurrencyPolicy.PARALLEL,
        contract=Contract.KSANA,
    )
    return JobDraft(spec, ScheduleDraft(schedule), key=body.id or None)


def read_edit(change: JobChange, view: JobView, wording: Wording, now: datetime) -> JobEdit:
    """What a job that is as in `view` becomes. InvalidInput."""
    job, given = view.job, change.model_fields_set
    if change.id not in {"", job.key}:
        raise InvalidInput("id", "cannot be changed")
    if change.type not in {"", job.spec.type}:
        raise InvalidInput("type", "cannot be changed")
    values: dict[str, Any] = {name: getattr(change, name) for name in ("name", "enabled") if name in given}
    if "timeout" in given:
        values["timeout"] = parse_duration(change.timeout, field="timeout")
    values["retry"] = _changed_retry(change, job.spec.retry)
    values["config"] = _changed_config(change, job.spec)
    schedule = _changed_schedule(change, view, wording, now)
    return JobEdit(replace(job.spec, **values), schedule)


def _config(body: JobBody) -> Mapping[str, Any]:
    """The config of a job's type; what is wrong with it, and whether there is such a type, its executor says."""
    if body.type == HTTP and body.http is None:
        raise InvalidInput("http", "is required for a job of type http")
    if body.http is not None and body.config is not None:
        raise InvalidInput("config", "is for jobs of other types; this one has http")
    return body.config or {} if body.http is None else _call(body.http)


def _call(http: HttpBody) -> dict[str, Any]:
    return {"method": http.method, "url": http.url, "headers": http.headers or {}, "body": http.body or None}


def _changed_retry(change: JobChange, retry: RetryPolicy) -> RetryPolicy:
    given = change.model_fields_set
    attempts = change.max_retries + 1 if "max_retries" in given else retry.max_attempts
    delay = parse_duration(change.retry_backoff, field="retry_backoff") if "retry_backoff" in given else retry.delay
    ceiling = None if retry.max_delay is None else max(retry.max_delay, delay)
    return replace(retry, max_attempts=attempts, delay=delay, max_delay=ceiling)


def _changed_config(change: JobChange, spec: JobSpec) -> Mapping[str, Any]:
    given = change.model_fields_set
    if spec.type != HTTP:
        if change.http is not None:
            raise InvalidInput("http", f"does not belong to a job of type {spec.type}")
        return spec.config if change.config is None else change.config
    if change.config is not None:
        raise InvalidInput("config", "is for jobs of other types; this one has http")
    if change.http is None:
        if "http" in given:
            raise InvalidInput("http", "must be an object")
        return spec.config
    changed = change.http.model_dump(exclude_unset=True)
    if "headers" in changed:
        changed["headers"] = changed["headers"] or {}
    if "body" in changed:
        # A body of another contract may be JSON, and is shown as text: sent back, it stays what it is.
        same = (changed["body"] or "") == body_text(spec.config)
        changed["body"] = spec.config.get("body") if same else changed["body"] or None
    return {**spec.config, **changed}


def _changed_schedule(change: JobChange, view: JobView, wording: Wording, now: datetime) -> ScheduleSpec | None:
    present = None if view.schedule is None else view.schedule.spec
    if change.schedule is None:
        if "schedule" in change.model_fields_set and present is not None:
            raise InvalidInput("schedule", "cannot be taken away: pause the job, or delete it")
        return None
    given = change.schedule.model_dump(exclude_unset=True)
    if change.schedule.kind is None:
        if present is None:
            raise InvalidInput("schedule.kind", "is required: the job has no schedule yet")
        given = merged(present, given, wording)
    return read_spec(given, wording, now=now, previous=present)


def _duration(value: str | None, field: str, default: timedelta) -> timedelta:
    return default if value is None else parse_duration(value, field=field)
