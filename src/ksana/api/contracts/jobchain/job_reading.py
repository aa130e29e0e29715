"""From document 001's bodies of jobs to what the commands take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ksana.api.contracts.jobchain.job_models import JobBody, JobChange
from ksana.api.contracts.jobchain.retries import FIELDS as RETRY_FIELDS
from ksana.api.contracts.jobchain.retries import read_retry
from ksana.api.contracts.shapes import renamed
from ksana.domain.errors import InvalidInput
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.job_config import CALLBACK_TIMEOUT, HTTP, MODE, split_config
from ksana.engine.commands import JobDraft, JobEdit

CONFIG = "configJson"
ELSE_TIMEOUT = timedelta(hours=1)
"""Of a job that is no call: a command or a function may take its time."""

FIELDS: Mapping[str, str] = {
    **RETRY_FIELDS,
    "max_concurrency": "maxConcurrency",
    "worker_queue": "workerQueue",
    MODE: f"{CONFIG}.{MODE}",
    CALLBACK_TIMEOUT: f"{CONFIG}.{CALLBACK_TIMEOUT}",
}
_PARTS: Mapping[str, str] = {
    "name": "name",
    "type": "type",
    "description": "description",
    "enabled": "enabled",
    "timeout": "timeout",
    "max_concurrency": "max_concurrency",
    "concurrency_policy": "concurrency",
    "recovery": "recovery",
    "labels": "labels",
    "worker_queue": "worker_queue",
}
"""The fields of a body that are one of the spec's, and which."""


class _AsWritten(InvalidInput):
    """It names its field as the caller wrote it."""


@contextmanager
def _named_as_written() -> Iterator[None]:
    try:
        with renamed(FIELDS):
            yield
    except InvalidInput as error:
        raise _AsWritten(error.field, error.reason, details=error.details) from error


@contextmanager
def config_named() -> Iterator[None]:
    """What an executor refuses within is named as a part of `configJson`, unless it is the type; what the reading of a body
    refuses has its name already."""
    try:
        yield
    except _AsWritten:
        raise
    except InvalidInput as error:
        name = {"type": "type", "json": CONFIG}.get(error.field, f"{CONFIG}.{error.field}")
        with renamed({error.field: name}):
            raise


@_named_as_written()
def read_job(body: JobBody, http_timeout: timedelta) -> JobDraft:
    """A new job. InvalidInput."""
    usual = _usual(body.name, body.type, http_timeout)
    return JobDraft(replace(_changed(usual, usual, body), **_config(body.type, body.config_json)))


@_named_as_written()
def read_edit(change: JobChange, job: Job, http_timeout: timedelta) -> JobEdit:
    """What this job becomes. InvalidInput."""
    given, spec = change.model_fields_set, job.spec
    if "job_id" in given and change.job_id not in {job.key, str(job.id)}:
        raise InvalidInput("jobId", "cannot be changed")
    job_type = change.type if "type" in given else spec.type
    changed = _changed(spec, _usual(spec.name, job_type, http_timeout), change)
    if "config_json" in given:
        changed = replace(changed, **_config(job_type, change.config_json))
    elif job_type != spec.type:
        raise InvalidInput(CONFIG, f"is required: a job of type {job_type} has another one")
    return JobEdit(changed)


def _usual(name: str, job_type: str, http_timeout: timedelta) -> JobSpec:
    """A job that says nothing more. A workflow may have it in many nodes at once: they run side by side."""
    return JobSpec(
        name=name,
        type=job_type,
        config={},
        timeout=http_timeout if job_type == HTTP else ELSE_TIMEOUT,
        concurrency=ConcurrencyPolicy.PARALLEL,
        contract=Contract.JOBCHAIN,
    )


def _changed(base: JobSpec, usual: JobSpec, body: JobBody | JobChange) -> JobSpec:
    """`base` with all that is given, but for the config; null is what is usual."""
    given = body.model_fields_set
    values = {part: getattr(body, name) for name, part in _PARTS.items() if name in given}
    values |= {part: getattr(usual, part) for part, value in values.items() if value is None}
    if "retry" in given:
        values["retry"] = usual.retry if body.retry is None else read_retry(body.retry, base.retry)
    return replace(base, **values)


def _config(job_type: str, given: Mapping[str, Any]) -> dict[str, Any]:
    config, mode, callback_timeout = split_config(job_type, given)
    return {"config": config, "mode": mode, "callback_timeout": callback_timeout}
