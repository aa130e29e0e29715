"""Jobs: created, changed, deleted."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select, update

from ksana.domain.errors import IdTaken, JobInUse, KsanaError, NameTaken, NotFound, VersionMismatch
from ksana.domain.events import Actor, EventType
from ksana.domain.job import MAX_CONCURRENCY, Contract, Job, JobSpec
from ksana.domain.states import ExecutionMove, ExecutionStatus
from ksana.store.requests import JobChange, NewJob
from ksana.store.sql import codec, schema
from ksana.store.sql.rows import Statement
from ksana.store.sql.statements import schedules, workflows
from ksana.store.sql.statements.journal import record_change
from ksana.store.sql.statements.slots import release, status_list
from ksana.store.sql.tx import Tx

DROP = ExecutionMove(
    frozenset({ExecutionStatus.SCHEDULED, ExecutionStatus.QUEUED, ExecutionStatus.RETRYING}), ExecutionStatus.CANCELED
)
_jobs = schema.jobs.c

_DROP_UNSTARTED = Statement(
    f"UPDATE executions {{by_job_status}} SET status = '{DROP.target}', ready_at = NULL, ended_at = :at, updated_at = :at,"
    f" reason = 'job_deleted' WHERE job_id = :job_id AND status IN ({status_list(DROP.sources)})"
    # A node of a workflow runs with what its run started with.
    " AND workflow_run_id IS NULL"
)


@dataclass(frozen=True, slots=True)
class Deletion:
    id: int
    actor: Actor


def create(tx: Tx, news: list[NewJob]) -> list[Job | KsanaError]:
    return [_create(tx, new) for new in news]


def _create(tx: Tx, new: NewJob) -> Job | KsanaError:
    if tx.core(select(_jobs.id).where(_jobs.public_id == new.key)):
        return IdTaken("job", new.key)
    if _name_is_taken(tx, new.spec, but=None):
        return NameTaken("job", new.spec.name)
    if new.schedule is not None and schedules.key_is_taken(tx, new.schedule.key):
        return IdTaken("schedule", new.schedule.key)
    values = _columns(new.spec) | {
        "public_id": new.key,
        "version": 1,
        "created_at": tx.clock,
        "updated_at": tx.clock,
    }
    result = tx.connection.execute(insert(schema.jobs).values(values))
    primary_key = result.inserted_primary_key
    job_id = int(primary_key[0]) if primary_key else 0
    happening = (EventType.JOB_CREATED, f"job/{job_id}", {"key": new.key, "name": new.spec.name})
    record_change(tx, tx.clock, new.actor, happening)
    if new.schedule is not None:
        schedules.insert_one(tx, schedules.Owner(job_id), new.schedule, new.actor)
    return codec.job(tx.core(select(schema.jobs).where(_jobs.id == job_id))[0])


def change(tx: Tx, changes: list[JobChange]) -> list[Job | KsanaError]:
    return [_change(tx, change) for change in changes]


def _change(tx: Tx, wanted: JobChange) -> Job | KsanaError:
    if wanted.steps:
        schedules.lock_of_job(tx, wanted.job_id)  # before the job, in the order in which a fire takes them
    row = _locked(tx, wanted.job_id)
    if row is None:
        return NotFound("job", wanted.job_id)
    if wanted.expected_version not in {None, row.version}:
        return VersionMismatch("job", wanted.job_id, expected=wanted.expected_version or 0, actual=row.version)
    if _name_is_taken(tx, wanted.spec, but=row.id):
        return NameTaken("job", wanted.spec.name)
    values = _columns(wanted.spec)
    if values["spec"] == row.spec and not wanted.steps:
        return codec.job(row)
    for step in wanted.steps:
        schedules.take(tx, row.id, step, wanted.actor)
    values |= {"version": row.version + 1, "updated_at": tx.clock}
    tx.core_run(update(schema.jobs).where(_jobs.id == row.id).values(values))
    # Whatever the old limit was, the claim will count: this only lets it look.
    release(tx, {row.id: wanted.spec.max_concurrency if wanted.spec.limited else MAX_CONCURRENCY}, tx.clock)
    data = {"version": row.version + 1, "changed": _differing(row.spec, values["spec"])}
    happening = (EventType.JOB_CHANGED, f"job/{row.id}", data)
    record_change(tx, tx.clock, wanted.actor, happening)
    return codec.job(tx.core(select(schema.jobs).where(_jobs.id == row.id))[0])


def delete(tx: Tx, deletions: list[Deletion]) -> list[bool | KsanaError]:
    return [_delete(tx, deletion) for deletion in deletions]


def _delete(tx: Tx, deletion: Deletion) -> bool | KsanaError:
    # In the order in which a fire takes them: schedules, then the job.
    schedules_of_job = schedules.lock_of_job(tx, deletion.id)
    row = _locked(tx, deletion.id)
    if row is None:
        return False
    users = workflows.names_of_users(tx, "job", row.id)
    if users:
        return JobInUse(row.public_id, users)
    # Its name and its public id are free again; `~` begins no id that a client may choose.
    gone = {"deleted_at": tx.clock, "updated_at": tx.clock, "unique_name": None, "public_id": f"~{row.id}"}
    tx.core_run(update(schema.jobs).where(_jobs.id == row.id).values(gone))
    schedules.delete_all(tx, schedules_of_job)
    tx.run(_DROP_UNSTARTED, at=tx.clock, job_id=row.id)
    happening = (EventType.JOB_DELETED, f"job/{row.id}", {"key": row.public_id, "name": row.name})
    record_change(tx, tx.clock, deletion.actor, happening)
    return True


def _differing(before: str, after: str) -> list[str]:
    """The parts of a spec that differ, those of its config by their names. Not what they are: some may be secret."""
    old, new = _flat(codec.from_json(before)), _flat(codec.from_json(after))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    config = {f"config.{name}": value for name, value in spec["config"].items()}
    return {name: value for name, value in spec.items() if name != "config"} | config


def _locked(tx: Tx, job_id: int) -> Row[Any] | None:
    found = tx.core(select(schema.jobs).where(_jobs.id == job_id, _jobs.deleted_at.is_(None)).with_for_update())
    return found[0] if found else None


def _name_is_taken(tx: Tx, spec: JobSpec, *, but: int | None) -> bool:
    unique_name = _unique_name(spec)
    if unique_name is None:
        return False
    taken = tx.core(select(_jobs.id).where(_jobs.unique_name == unique_name))
    return any(row.id != but for row in taken)


def _unique_name(spec: JobSpec) -> str | None:
    """Document 002's jobs are told apart by their id alone."""
    return None if spec.contract is Contract.KSANA else spec.name


def _columns(spec: JobSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "unique_name": _unique_name(spec),
        "description": spec.description,
        "type": spec.type,
        "enabled": spec.enabled,
        "contract": spec.contract.value,
        "worker_queue": spec.worker_queue,
        "concurrency": spec.concurrency.value,
        "max_concurrency": spec.max_concurrency,
        "queue_limit": spec.queue_limit,
        "recovery": spec.recovery.value,
        "spec": codec.job_spec_json(spec),
    }
