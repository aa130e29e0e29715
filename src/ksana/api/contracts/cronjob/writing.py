"""What the queries found, in document 003's names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from ksana.api.contracts.cronjob import answers
from ksana.api.contracts.cronjob.values import seconds
from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.execution import Attempt, Execution
from ksana.domain.identity import trace_id
from ksana.domain.job import JobSpec
from ksana.domain.ledger import Schedule
from ksana.domain.retry import RetryPolicy
from ksana.domain.states import CRONJOB_FINAL_NAMES, CRONJOB_NAMES, ExecutionStatus, ScheduleStatus
from ksana.engine.queries import Explanation, JobView
from ksana.store.requests import Page, ReceivedCallback

T = TypeVar("T")
_TASK = tuple(answers.Task.model_fields)


def listed(page: Page[T], write: Callable[[T], dict[str, Any]]) -> dict[str, Any]:
    """As `answers.Listed`."""
    items = [write(item) for item in page.items]
    return {"page": page.page, "page_size": page.size, "total": page.total, "items": items}


# Tasks ------------------------------------------------------------------------------------------------------------


def task(view: JobView) -> dict[str, Any]:
    """As `answers.Task`."""
    job, schedule = view.job, view.schedule
    fields = {
        "id": job.id,
        "key": job.key,
        "version": job.version,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        **_job_fields(job.spec),
        **_request_fields(job.spec),
        **_schedule_fields(schedule),
        "last_run": None if view.last_run is None else _last_run(view.last_run),
    }
    return {name: fields[name] for name in _TASK}


def _job_fields(spec: JobSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "type": spec.type,
        "exec_type": spec.mode.value,
        "timeout_seconds": seconds(spec.timeout),
        "retry_policy": _retry(spec.retry),
        "max_concurrency": spec.max_concurrency,
        "concurrency_policy": spec.concurrency.value,
        "callback_timeout_sec": seconds(spec.callback_timeout),
        "status": "ENABLED" if spec.enabled else "DISABLED",
        "recovery": spec.recovery.value,
        "queue_limit": spec.queue_limit,
        "labels": dict(spec.labels),
        "worker_queue": spec.worker_queue,
    }


def _retry(policy: RetryPolicy) -> dict[str, Any]:
    return {
        "max_retries": policy.max_attempts - 1,
        "initial_delay": seconds(policy.delay),
        "strategy": "fixed" if policy.multiplier == 1.0 else "exponential",
        "max_delay": None if policy.max_delay is None else seconds(policy.max_delay),
    }


def _request_fields(spec: JobSpec) -> dict[str, Any]:
    """What an `http` job sends. What another executor's config means is not for this contract to say."""
    config: Mapping[str, Any] = spec.config if spec.type == "http" else {}
    body, connect = config.get("body"), config.get("connect_timeout")
    http = spec.type == "http"
    return {
        "http_method": config.get("method", "GET" if http else None),
        "target_url": config.get("url"),
        "headers": {name: str(value) for name, value in (config.get("headers") or {}).items()} if http else None,
        "body_template": body if body is None or isinstance(body, str) else orjson.dumps(body).decode(),
        "callback_method": config.get("callback_method", "POST" if http else None),
        "follow_redirects": config.get("follow_redirects", False if http else None),
        "connect_timeout": None if connect is None else seconds(parse_duration(connect, field="connect_timeout")),
    }


def _schedule_fields(schedule: Schedule | None) -> dict[str, Any]:
    if schedule is None:
        names = ("cron_expr", "timezone", "misfire_policy", "catchup_limit", "start_at", "end_at", "jitter")
        return {**dict.fromkeys(names), "next_run_time": None, "schedule": None}
    spec = schedule.spec
    return {
        "cron_expr": spec.cron,
        "timezone": spec.timezone,
        "misfire_policy": spec.misfire.value,
        "catchup_limit": spec.catchup_limit,
        "start_at": spec.start_at,
        "end_at": spec.end_at,
        "jitter": seconds(spec.jitter),
        "next_run_time": schedule.next_planned_for if schedule.status is ScheduleStatus.ACTIVE else None,
        "schedule": _schedule(schedule),
    }


def _schedule(schedule: Schedule) -> dict[str, Any]:
    spec = schedule.spec
    return {
        "key": schedule.key,
        "kind": spec.kind.value,
        "cron": spec.cron,
        "every": None if spec.every is None else format_duration(spec.every),
        "run_at": spec.run_at,
        "start_at": spec.start_at,
        "end_at": spec.end_at,
        "jitter": seconds(spec.jitter),
        "status": schedule.status.value,
        "error": schedule.error,
    }


def _last_run(run: Execution) -> dict[str, Any]:
    return {
        "run_id": run.id,
        **_status(run),
        "scheduled_time": run.planned_for,
        "start_time": run.started_at,
        "end_time": run.ended_at,
        "error_message": run.error,
    }


# Runs -------------------------------------------------------------------------------------------------------------


def _status(run: Execution) -> dict[str, Any]:
    return {"status": CRONJOB_NAMES[run.status], "final_status": CRONJOB_FINAL_NAMES.get(run.status)}


def run_detail(
    run: Execution, attempts: Sequence[Attempt], callbacks: Sequence[ReceivedCallback], position: int | None
) -> dict[str, Any]:
    """As `answers.Run`."""
    last = attempts[-1] if attempts else None
    return {
        **run_fields(run),
        "request_headers": None if last is None else last.evidence.request.get("headers") or {},
        "request_body": None if last is None else last.evidence.request_body,
        "response_code": None if last is None else last.evidence.response_code,
        "response_body": None if last is None else last.evidence.response_body,
        "queue_position": position,
        "output": run.output,
        "attempts": [_attempt(each) for each in attempts],
        "callbacks": [_callback(each) for each in callbacks],
    }


def run_fields(run: Execution) -> dict[str, Any]:
    """As `answers.RunSummary`: all that its own row tells."""
    return {
        "id": run.id,
        "task_id": run.job_id,
        "scheduled_time": run.planned_for,
        "start_time": run.started_at,
        "end_time": run.ended_at,
        **_status(run),
        "attempt": run.attempt,
        "trigger": run.trigger.value,
        "reason": run.reason,
        "error_message": run.error or (run.reason if run.status is ExecutionStatus.SKIPPED else None),
        "next_retry_time": run.ready_at if run.status is ExecutionStatus.RETRYING else None,
        "callback_token": None,
        "callback_deadline": run.deadline_at,
        "trace_id": trace_id(run),
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    evidence = attempt.evidence
    return {
        "attempt": attempt.number,
        "status": attempt.status.value,
        "start_time": attempt.started_at,
        "end_time": attempt.ended_at,
        "request_method": evidence.request.get("method"),
        "request_url": evidence.request.get("url"),
        "request_headers": evidence.request.get("headers") or {},
        "request_body": evidence.request_body,
        "response_code": evidence.response_code,
        "response_headers": dict(evidence.response_headers),
        "response_body": evidence.response_body,
        "error_message": attempt.error,
        "notes": evidence.request.get("notes"),
    }


def _callback(callback: ReceivedCallback) -> dict[str, Any]:
    return {
        "id": callback.id,
        "received_at": callback.received_at,
        "status": "RECEIVED" if callback.status == "RECEIVED" else "IGNORED",
        "headers": dict(callback.headers),
        "body": callback.body,
    }


def explanation(found: Explanation) -> answers.RunExplained:
    return answers.RunExplained(
        run_id=found.execution.id,
        status=_status(found.execution)["status"],
        code=found.code,
        message=found.message,
        until=found.until,
        position=found.position,
        running=found.running,
        limit=found.limit,
    )


def canceled(run: Execution, *, by_this: bool) -> answers.RunCanceled:
    status = CRONJOB_NAMES[run.status]
    told = "the run was canceled" if by_this else f"the run had ended before ({status}) and stays as it is"
    return answers.RunCanceled(run_id=run.id, status=_status(run)["status"], canceled=by_this, message=told)


def callback_answer(run: Execution, *, accepted: bool) -> answers.CallbackAccepted:
    return answers.CallbackAccepted(run_id=run.id, **_status(run), accepted=accepted)
