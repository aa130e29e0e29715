"""New executions: what every way of asking for one shares."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Row

from ksana.domain.admission import Limits, Skip, admit
from ksana.domain.errors import ConcurrencyLimit, KsanaError, NotFound
from ksana.domain.events import EventType
from ksana.domain.execution import Execution
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.states import ACTIVE, ExecutionStatus
from ksana.store.requests import Enqueued, NewExecution
from ksana.store.sql import codec
from ksana.store.sql.rows import Statement, columns, to_json
from ksana.store.sql.statements import idempotency
from ksana.store.sql.statements.journal import fitting, record_changes
from ksana.store.sql.statements.slots import JOB_STATES, job_states
from ksana.store.sql.tx import Tx

EXECUTION = columns(
    job_id="int",
    schedule_id="int",
    planned_for="int",
    triggered_by="text",
    worker_queue="text",
    status="text",
    ready_at="int",
    epoch="int",
    attempt="int",
    open_dependencies="int",
    input="text",
    reason="text",
    trace_id="text",
    created_at="int",
    ended_at="int",
    updated_at="int",
    share="text",
)
_JOBS = columns(id="int")
JOB_SHARE = "job/"
_SCHEDULED = ExecutionStatus.SCHEDULED.value
_TARGETS = Statement(
    "SELECT t.id, t.enabled, t.worker_queue, t.concurrency, t.max_concurrency, t.queue_limit"
    " FROM {rows} {join} jobs t ON t.id = r.id WHERE t.deleted_at IS NULL",
    _JOBS,
)
# A job that skips is asked about one request at a time: two must not both find it idle.
_LOCK_TARGETS = Statement(
    "SELECT t.id FROM {rows} {join} jobs t {by_id} ON t.id = r.id ORDER BY t.id {for_update}", _JOBS
)
_ACTIVE_COUNTS = Statement(
    "SELECT t.job_id, count(*) AS active FROM {rows} {join} executions t {by_job_status}"
    " ON t.job_id = r.id AND t.status = r.status"
    " GROUP BY t.job_id",
    JOB_STATES,
)
_EXECUTIONS = Statement("SELECT t.* FROM {rows} {join} executions t ON t.id = r.id", _JOBS)

Name = tuple[str, str] | int
"""What tells requests of one batch apart: their idempotency key, else their place in it."""


@dataclass(slots=True)
class Targets:
    """The jobs that are asked for, and how much each has to do already. Counts what it lets in."""

    jobs: dict[int, Row[Any]]
    active: dict[int, int] = field(default_factory=dict)

    def admit(self, job_id: int) -> Skip | None:
        """None: one more is let in."""
        job = self.jobs.get(job_id)
        if job is None:
            return Skip("job_deleted")
        if not job.enabled:
            return Skip("job_disabled")
        if job.concurrency == ConcurrencyPolicy.PARALLEL:
            return None
        refused = admit(limits_of(job), self.active.get(job_id, 0))
        if refused is None:
            self.active[job_id] = self.active.get(job_id, 0) + 1
        return refused

    def full(self, job_id: int) -> bool:
        """Whether the one that was let in last has to wait for another to end."""
        job = self.jobs[job_id]
        return bool(job.concurrency == ConcurrencyPolicy.QUEUE and self.active.get(job_id, 0) > job.max_concurrency)


def limits_of(job: Row[Any]) -> Limits:
    return _limits(job.concurrency, job.max_concurrency, job.queue_limit)


@lru_cache(maxsize=1_024)
def _limits(policy: str, max_concurrency: int, queue_limit: int) -> Limits:
    return Limits(ConcurrencyPolicy(policy), max_concurrency, queue_limit)


def targets(tx: Tx, job_ids: Iterable[int]) -> Targets:
    wanted = [(job_id,) for job_id in sorted(set(job_ids))]
    jobs = {row.id: row for row in tx.query(_TARGETS, wanted)}
    limited = [job.id for job in jobs.values() if job.concurrency != ConcurrencyPolicy.PARALLEL]
    skipping = [(job.id,) for job in jobs.values() if job.concurrency == ConcurrencyPolicy.SKIP]
    if tx.dialect.shared and skipping:
        tx.query(_LOCK_TARGETS, skipping)
    active = (
        {row.job_id: row.active for row in tx.query(_ACTIVE_COUNTS, job_states(limited, ACTIVE))} if limited else {}
    )
    return Targets(jobs, active)


def job_share(job_id: int) -> str:
    """Under which runs of a job take turns with others."""
    return f"{JOB_SHARE}{job_id}"


def insert_executions(tx: Tx, rows: Sequence[Sequence[Any]]) -> list[int]:
    return tx.insert_with_ids("executions", EXECUTION, rows) if rows else []


def enqueue(tx: Tx, news: list[NewExecution]) -> list[Enqueued | KsanaError]:
    wanted = targets(tx, {new.job_id for new in news})
    keys = [key for new in news if (key := _key(new)) is not None]
    ids: dict[Name, int] = dict(idempotency.known(tx, keys).items())
    names = [_key(new) or position for position, new in enumerate(news)]
    made: dict[Name, int] = {}
    """Of several with one key, the first makes the execution and the others are shown it."""
    refused: dict[int, KsanaError] = {}
    for position, (name, new) in enumerate(zip(names, news, strict=True)):
        if name in ids or name in made:
            continue
        refusal = _refusal(new, wanted)
        if refusal is None:
            made[name] = position
        else:
            refused[position] = refusal
    ids |= zip(made, _insert(tx, [news[position] for position in made.values()], wanted), strict=True)
    executions = _read(tx, ids.values())
    return [
        refused[position]
        if position in refused
        else Enqueued(executions[ids[name]], created=made.get(name) == position)
        for position, name in enumerate(names)
    ]


def _refusal(new: NewExecution, wanted: Targets) -> KsanaError | None:
    """Why it cannot be; None lets one more in. A person may run a disabled job by hand; only its limit counts."""
    job = wanted.jobs.get(new.job_id)
    if job is None:
        return NotFound("job", new.job_id)
    wrong = None if new.idempotency_key is None else idempotency.refusal(new.idempotency_key)
    if wrong is not None:
        return wrong
    active = wanted.active.get(job.id, 0)
    if admit(limits_of(job), active) is not None:
        queue = job.queue_limit if job.concurrency == ConcurrencyPolicy.QUEUE else 0
        return ConcurrencyLimit(job.id, limit=job.max_concurrency, queue=queue)
    wanted.active[job.id] = active + 1
    return None


def _insert(tx: Tx, made: list[NewExecution], wanted: Targets) -> list[int]:
    ids = insert_executions(tx, [_row(tx, new, wanted.jobs[new.job_id]) for new in made])
    keys = [(_key(new), execution_id) for new, execution_id in zip(made, ids, strict=True)]
    idempotency.remember(tx, [(*key, execution_id) for key, execution_id in keys if key is not None])
    record_changes(
        tx,
        tx.clock,
        [
            (new.actor, (EventType.EXECUTION_REQUESTED, f"execution/{execution_id}", _told(new)))
            for new, execution_id in zip(made, ids, strict=True)
        ],
    )
    return ids


def _told(new: NewExecution) -> dict[str, Any]:
    return {"job_id": new.job_id} | ({} if new.retry_of is None else {"retry_of": new.retry_of})


def _row(tx: Tx, new: NewExecution, job: Row[Any]) -> tuple[Any, ...]:
    ready_at = codec.micros(new.ready_at)
    return (
        job.id,
        None,
        ready_at,
        new.trigger._value_,
        job.worker_queue,
        _SCHEDULED,
        ready_at,
        0,
        0,
        0,
        to_json(new.input) if new.input else None,
        None,
        fitting(new.trace_id, 64) if new.trace_id else None,
        tx.clock,
        None,
        tx.clock,
        job_share(job.id),
    )


def _key(new: NewExecution) -> tuple[str, str] | None:
    """Under which an execution is known to whoever asked for it."""
    return None if new.idempotency_key is None else (f"job/{new.job_id}", new.idempotency_key.strip())


def _read(tx: Tx, ids: Iterable[int]) -> dict[int, Execution]:
    rows = tx.query(_EXECUTIONS, [(execution_id,) for execution_id in sorted(set(ids))])
    return {row.id: codec.execution(row) for row in rows}
