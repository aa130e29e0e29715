"""What a client's fields mean to the commands. Values are put in their places; whether they are allowed, others decide."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ksana.api.contracts.cronjob.names import FIELDS, Part, of_part
from ksana.api.contracts.cronjob.shapes import GivenRetry, NewTask, TaskChanges, TaskFields, TriggerRequest
from ksana.api.contracts.values import as_json
from ksana.domain.durations import format_duration
from ksana.domain.errors import InvalidInput
from ksana.domain.job import DEFAULT_QUEUE, Contract, JobSpec
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import ScheduleKind, ScheduleSpec
from ksana.domain.states import CRONJOB_NAMES, ExecutionStatus
from ksana.engine.commands import JobDraft, JobEdit, ScheduleDraft
from ksana.engine.queries import JobView
from ksana.settings import Settings

CALLBACK_TIMEOUT = timedelta(seconds=300)
_MULTIPLIERS = {"fixed": 1.0, "exponential": 2.0}


class Reader:
    """Reads with the defaults that the settings give."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def draft(self, task: NewTask) -> JobDraft:
        """A new job with its schedule. InvalidInput."""
        given = self._values(task, set(type(task).model_fields), self._default_retry())
        blank = JobSpec(name=task.name, type="http", config={}, contract=Contract.CRONJOB)
        return JobDraft(_job(blank, given), ScheduleDraft(self._schedule(None, given)))

    def replacement(self, view: JobView, task: NewTask, version: int | None) -> JobEdit:
        """The whole job anew; what document 003 has no word for stays. InvalidInput."""
        draft, stored = self.draft(task), view.job.spec
        queue = stored.worker_queue if task.worker_queue is None else task.worker_queue
        kept = replace(draft.spec, contract=stored.contract, worker_queue=queue)
        return JobEdit(kept, draft.schedule.spec if draft.schedule else None, version)

    def amendment(self, view: JobView, changes: TaskChanges) -> JobEdit:
        """The stored job with these changes. InvalidInput."""
        given = self._values(changes, changes.model_fields_set, view.job.spec.retry)
        stored = None if view.schedule is None else view.schedule.spec
        schedule = self._schedule(stored, given) if of_part(Part.SCHEDULE, given) else None
        return JobEdit(_job(view.job.spec, given), schedule, changes.version)

    def _values(self, task: TaskFields, names: set[str], retry: RetryPolicy) -> dict[str, Any]:
        """The named fields, each as the value that its place takes; null is what is shown for it where nothing is given."""
        given = {name: getattr(task, name) for name in names if name in FIELDS}
        nothing: dict[str, Any] = {
            "description": "",
            "headers": {},
            "labels": {},
            "worker_queue": DEFAULT_QUEUE,
            "timeout_seconds": self._settings.executor.request_timeout,
            "callback_timeout_sec": CALLBACK_TIMEOUT,
            "retry_policy": self._default_retry(),
            "jitter": timedelta(0),
        }
        given |= {name: value for name, value in nothing.items() if name in given and given[name] is None}
        if isinstance(given.get("retry_policy"), GivenRetry):
            given["retry_policy"] = self._retry(retry, given["retry_policy"])
        if "status" in given:
            given["status"] = given["status"] == "ENABLED"
        if given.get("connect_timeout") is not None:
            given["connect_timeout"] = format_duration(given["connect_timeout"])
        return given

    def _default_retry(self) -> RetryPolicy:
        default = self._settings.executor.default_retry
        return RetryPolicy(
            max_attempts=default.max_retries + 1,
            delay=default.initial_delay,
            multiplier=_MULTIPLIERS[default.strategy],
            max_delay=max(default.max_delay, default.initial_delay),
        )

    def _retry(self, base: RetryPolicy, given: GivenRetry) -> RetryPolicy:
        """`base` with what is given. A ceiling that nobody named does not stand in the way of a longer first delay."""
        named = given.model_fields_set
        changes: dict[str, Any] = {}
        if "max_retries" in named:
            changes["max_attempts"] = given.max_retries + 1
        if given.initial_delay is not None:
            changes["delay"] = given.initial_delay
        if "strategy" in named:
            changes["multiplier"] = _MULTIPLIERS[given.strategy]
        if "max_delay" in named:
            changes["max_delay"] = given.max_delay
        elif given.initial_delay is not None and base == self._default_retry() and base.max_delay is not None:
            changes["max_delay"] = max(base.max_delay, given.initial_delay)
        return replace(base, **changes)

    def _schedule(self, stored: ScheduleSpec | None, given: Mapping[str, Any]) -> ScheduleSpec:
        parts = of_part(Part.SCHEDULE, given)
        if "cron" in parts:
            self._check_seconds(parts["cron"])
            parts |= {"kind": ScheduleKind.CRON, "every": None, "run_at": None, "anchor": None}
        elif stored is None:
            raise InvalidInput("cron_expr", "is required, because the task has no schedule yet")
        return ScheduleSpec(**parts) if stored is None else replace(stored, **parts)

    def _check_seconds(self, cron: str) -> None:
        if not self._settings.scheduler.enable_seconds_field and len(cron.split()) == 6:
            told = "has six fields, but seconds are switched off (scheduler.enable_seconds_field): write five"
            raise InvalidInput("cron_expr", told)


def _job(base: JobSpec, given: Mapping[str, Any]) -> JobSpec:
    config = {**base.config, **of_part(Part.CONFIG, given)}
    return replace(base, **of_part(Part.JOB, given), config=config)


def run_input(asked: TriggerRequest) -> dict[str, Any]:
    """What a run by hand is given. InvalidInput if its body is a template that cannot be."""
    given: dict[str, Any] = {"force_async": True} if asked.force_async else {}
    if asked.override_body is not None:
        given["override_body"] = _override(asked.override_body)
    return given


def _override(body: Any) -> str:
    # Not before it is needed: it brings Jinja2.
    from ksana.executors.http_config import VARIABLES  # noqa: PLC0415
    from ksana.executors.templates import check_template  # noqa: PLC0415

    text = body if isinstance(body, str) else as_json(body, field="override_body")
    check_template(text, field="override_body", names=VARIABLES)
    return text


def statuses_of(name: str | None) -> frozenset[ExecutionStatus]:
    """The states that document 003 shows under this name; empty for none asked for. InvalidInput."""
    if not name:
        return frozenset()
    found = frozenset(status for status, shown in CRONJOB_NAMES.items() if shown == name)
    if not found:
        raise InvalidInput("status", f"must be one of {', '.join(dict.fromkeys(CRONJOB_NAMES.values()))}")
    return found
