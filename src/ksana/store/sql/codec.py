"""Between rows and the domain's values. A definition's JSON is read once and shared: the values are immutable."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import Row

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.errors import InvalidInput
from ksana.domain.events import Actor, Event, EventType
from ksana.domain.execution import Attempt, Execution, Trigger
from ksana.domain.instance import Instance, InstanceStatus, Lease
from ksana.domain.job import ConcurrencyPolicy, Contract, ExecutionMode, Job, JobSpec, RecoveryRule
from ksana.domain.ledger import Occurrence, Schedule
from ksana.domain.outcome import Evidence
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec
from ksana.domain.states import AttemptStatus, ExecutionStatus, OccurrenceOutcome, ScheduleStatus
from ksana.store.requests import AuditEntry, ReceivedCallback
from ksana.store.sql.rows import to_json

_MICROSECOND = timedelta(microseconds=1)
_DEFINITIONS = 16_384


def micros(instant: datetime | None) -> int | None:
    return None if instant is None else to_micros(instant)


def instant(value: int | None) -> datetime | None:
    return None if value is None else from_micros(value)


def from_json(value: str | None) -> Any:
    return None if value is None else orjson.loads(value)


# Jobs -------------------------------------------------------------------------------------------------------------


def job_spec_json(spec: JobSpec) -> str:
    """All of a spec: what SQL asks about is in columns as well."""
    document = {
        "name": spec.name,
        "type": spec.type,
        "config": spec.config,
        "description": spec.description,
        "enabled": spec.enabled,
        "mode": spec.mode,
        "timeout": spec.timeout // _MICROSECOND,
        "callback_timeout": spec.callback_timeout // _MICROSECOND,
        "retry": {
            "max_attempts": spec.retry.max_attempts,
            "delay": spec.retry.delay // _MICROSECOND,
            "multiplier": spec.retry.multiplier,
            "max_delay": None if spec.retry.max_delay is None else spec.retry.max_delay // _MICROSECOND,
        },
        "max_concurrency": spec.max_concurrency,
        "concurrency": spec.concurrency,
        "queue_limit": spec.queue_limit,
        "recovery": spec.recovery,
        "worker_queue": spec.worker_queue,
        "contract": spec.contract,
        "labels": spec.labels,
    }
    return to_json(document) or ""


@lru_cache(maxsize=_DEFINITIONS)
def job_spec(document: str) -> JobSpec:
    fields: dict[str, Any] = orjson.loads(document)
    retry = fields.pop("retry")
    return JobSpec(
        **{
            **fields,
            "mode": ExecutionMode(fields["mode"]),
            "timeout": fields["timeout"] * _MICROSECOND,
            "callback_timeout": fields["callback_timeout"] * _MICROSECOND,
            "retry": RetryPolicy(
                max_attempts=retry["max_attempts"],
                delay=retry["delay"] * _MICROSECOND,
                multiplier=retry["multiplier"],
                max_delay=None if retry["max_delay"] is None else retry["max_delay"] * _MICROSECOND,
            ),
            "concurrency": ConcurrencyPolicy(fields["concurrency"]),
            "recovery": RecoveryRule(fields["recovery"]),
            "contract": Contract(fields["contract"]),
        }
    )


def job(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        key=row.public_id,
        spec=job_spec(row.spec),
        version=row.version,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        deleted=row.deleted_at is not None,
    )


# Schedules --------------------------------------------------------------------------------------------------------


def schedule_spec_json(spec: ScheduleSpec) -> str:
    document = {
        "kind": spec.kind,
        "run_at": micros(spec.run_at),
        "every": None if spec.every is None else spec.every // _MICROSECOND,
        "cron": spec.cron,
        "timezone": spec.timezone,
        "anchor": micros(spec.anchor),
        "start_at": micros(spec.start_at),
        "end_at": micros(spec.end_at),
        "jitter": spec.jitter // _MICROSECOND,
        "misfire": spec.misfire,
        "catchup_limit": spec.catchup_limit,
        "misfire_grace": spec.misfire_grace // _MICROSECOND,
    }
    return to_json(document) or ""


def _schedule_spec(fields: Mapping[str, Any]) -> ScheduleSpec:
    return ScheduleSpec(
        kind=ScheduleKind(fields["kind"]),
        run_at=instant(fields["run_at"]),
        every=None if fields["every"] is None else fields["every"] * _MICROSECOND,
        cron=fields["cron"],
        timezone=fields["timezone"],
        anchor=instant(fields["anchor"]),
        start_at=instant(fields["start_at"]),
        end_at=instant(fields["end_at"]),
        jitter=fields["jitter"] * _MICROSECOND,
        misfire=MisfirePolicy(fields["misfire"]),
        catchup_limit=fields["catchup_limit"],
        misfire_grace=fields["misfire_grace"] * _MICROSECOND,
    )


@lru_cache(maxsize=_DEFINITIONS)
def schedule_spec(document: str) -> tuple[ScheduleSpec, str | None]:
    """The spec, and what is wrong with it now: a zone may be gone from tzdata. It is then shown as if in UTC."""
    fields = orjson.loads(document)
    try:
        return _schedule_spec(fields), None
    except InvalidInput as error:
        return _schedule_spec({**fields, "timezone": "UTC"}), error.message


_SCHEDULE_STATUSES = {status.value: status for status in ScheduleStatus}


def schedule(row: Row[Any]) -> Schedule:
    spec, error = schedule_spec(row.spec)
    return Schedule(
        id=row.id,
        key=row.public_id,
        job_id=row.job_id,
        workflow_id=row.workflow_id,
        spec=spec,
        status=_SCHEDULE_STATUSES[row.status],
        next_planned_for=instant(row.next_planned_for),
        next_fire_at=instant(row.next_fire_at),
        version=row.version,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        error=row.error or error,
        input=from_json(row.input) or {},
    )


def occurrence(row: Row[Any]) -> Occurrence:
    return Occurrence(
        schedule_id=row.schedule_id,
        planned_for=from_micros(row.planned_for),
        outcome=OccurrenceOutcome(row.outcome),
        recorded_at=from_micros(row.recorded_at),
        reason=row.reason,
        last_planned_for=instant(row.last_planned_for),
        count=row.instants,
        execution_id=row.execution_id,
        workflow_run_id=row.workflow_run_id,
    )


# Executions -------------------------------------------------------------------------------------------------------


STATUSES = {status.value: status for status in ExecutionStatus}
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}


def running(row: Row[Any], owner: str, now: datetime) -> Execution:
    """An execution as it is once `owner` has claimed it, from its row as it was before. Every run passes here: its fields are
    given in their order, which takes two thirds of the time that it takes by their names."""
    return Execution(
        row.id,
        ExecutionStatus.RUNNING,
        _TRIGGERS[row.triggered_by],
        from_micros(row.created_at),
        now,
        row.job_id,
        row.schedule_id,
        None if row.planned_for is None else from_micros(row.planned_for),
        row.attempt + 1,
        row.epoch + 1,
        owner,
        None,  # ready_at
        None,  # deadline_at
        now if row.started_at is None else from_micros(row.started_at),
        None,  # ended_at
        {} if row.input is None else orjson.loads(row.input) or {},
        None if row.output is None else orjson.loads(row.output),
        row.error,
        None,  # reason
        row.trace_id,
        row.workflow_run_id,
        row.node_id,
        row.losses,
    )


def execution(row: Row[Any]) -> Execution:
    return Execution(
        id=row.id,
        status=STATUSES[row.status],
        trigger=_TRIGGERS[row.triggered_by],
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        job_id=row.job_id,
        schedule_id=row.schedule_id,
        planned_for=instant(row.planned_for),
        attempt=row.attempt,
        epoch=row.epoch,
        owner=row.owner,
        ready_at=instant(row.ready_at),
        deadline_at=instant(row.deadline_at),
        started_at=instant(row.started_at),
        ended_at=instant(row.ended_at),
        input=from_json(row.input) or {},
        output=from_json(row.output),
        error=row.error,
        reason=row.reason,
        trace_id=row.trace_id,
        workflow_run_id=row.workflow_run_id,
        node_id=row.node_id,
        losses=row.losses,
    )


def attempt(row: Row[Any]) -> Attempt:
    return Attempt(
        execution_id=row.execution_id,
        epoch=row.epoch,
        number=row.number,
        status=AttemptStatus(row.status),
        owner=row.owner,
        started_at=from_micros(row.started_at),
        ended_at=from_micros(row.ended_at),
        error=row.error,
        evidence=Evidence(
            request=from_json(row.request) or {},
            request_body=row.request_body,
            response_code=row.response_code,
            response_headers=from_json(row.response_headers) or {},
            response_body=row.response_body,
        ),
    )


def received_callback(row: Row[Any]) -> ReceivedCallback:
    return ReceivedCallback(
        id=row.id,
        execution_id=row.execution_id,
        received_at=from_micros(row.received_at),
        headers=from_json(row.headers) or {},
        body=row.body,
        status=row.status,
    )


# Cluster and journal ----------------------------------------------------------------------------------------------


def instance(row: Row[Any]) -> Instance:
    return Instance(
        id=row.id,
        name=row.name,
        version=row.version,
        status=InstanceStatus(row.status),
        started_at=from_micros(row.started_at),
        heartbeat_at=from_micros(row.heartbeat_at),
        expires_at=from_micros(row.expires_at),
        roles=tuple(role for role in row.roles.split(",") if role),
        queues=tuple(queue for queue in row.queues.split(",") if queue),
        places=row.places,
        address=row.address,
    )


def lease(row: Row[Any]) -> Lease:
    return Lease(name=row.name, owner=row.owner, token=row.token, expires_at=from_micros(row.expires_at))


def _event_type(text: str) -> EventType | str:
    try:
        return EventType(text)
    except ValueError:  # a newer instance on the same database knows more
        return text


def event(row: Row[Any]) -> Event:
    return Event(
        id=row.id,
        type=_event_type(row.type),
        at=from_micros(row.at),
        subject=row.subject,
        data=from_json(row.data) or {},
    )


def audit_entry(row: Row[Any]) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=from_micros(row.at),
        actor=Actor(name=row.actor, address=row.address, request_id=row.request_id, reason=row.reason or ""),
        action=row.action,
        subject=row.subject,
        data=from_json(row.data) or {},
    )
