"""Workflows: created, changed, switched, deleted. Each definition that one ever had is a version."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from ksana.domain.errors import IdTaken, KsanaError, NameTaken, NotFound, VersionMismatch, WorkflowInUse
from ksana.domain.events import Actor, EventType
from ksana.domain.workflow import Workflow, WorkflowSpec
from ksana.store.sql import schema
from ksana.store.sql.codec_workflows import definition_json, workflow
from ksana.store.sql.statements import admission, schedules
from ksana.store.sql.statements.journal import fitting, record_change
from ksana.store.sql.tx import Tx
from ksana.store.workflow_requests import NewWorkflow, References, WorkflowChange

_workflows, _versions, _references = schema.workflows.c, schema.workflow_versions.c, schema.workflow_references.c
PRESENT = select(schema.workflows, _versions.definition).join(
    schema.workflow_versions, (_versions.workflow_id == _workflows.id) & (_versions.version == _workflows.version)
)


@dataclass(frozen=True, slots=True)
class Switch:
    workflow_id: int
    enabled: bool
    actor: Actor


@dataclass(frozen=True, slots=True)
class Deletion:
    workflow_id: int
    actor: Actor


def create(tx: Tx, news: list[NewWorkflow]) -> list[Workflow | KsanaError]:
    return [_create(tx, new) for new in news]


def _create(tx: Tx, new: NewWorkflow) -> Workflow | KsanaError:
    if tx.core(select(_workflows.id).where(_workflows.public_id == new.key)):
        return IdTaken("workflow", new.key)
    if _name_is_taken(tx, new.spec.name, but=None):
        return NameTaken("workflow", new.spec.name)
    gone = _missing(tx, new.references)
    if gone is not None:
        return gone
    values = _columns(new.spec) | {
        "public_id": new.key,
        "enabled": new.enabled,
        "version": 1,
        "created_at": tx.clock,
        "updated_at": tx.clock,
    }
    primary_key = tx.connection.execute(insert(schema.workflows).values(values)).inserted_primary_key
    workflow_id = int(primary_key[0]) if primary_key else 0
    _keep_version(tx, workflow_id, 1, new.spec, new.actor)
    _refer(tx, workflow_id, new.references)
    data = {"key": new.key, "name": new.spec.name}
    record_change(tx, tx.clock, new.actor, (EventType.WORKFLOW_CREATED, f"workflow/{workflow_id}", data))
    return read(tx, workflow_id)


def change(tx: Tx, changes: list[WorkflowChange]) -> list[Workflow | KsanaError]:
    return [_change(tx, wanted) for wanted in changes]


def _change(tx: Tx, wanted: WorkflowChange) -> Workflow | KsanaError:
    row = _locked(tx, wanted.workflow_id)
    if row is None:
        return NotFound("workflow", wanted.workflow_id)
    if wanted.expected_version not in {None, row.version}:
        return VersionMismatch("workflow", row.public_id, expected=wanted.expected_version or 0, actual=row.version)
    if _name_is_taken(tx, wanted.spec.name, but=row.id):
        return NameTaken("workflow", wanted.spec.name)
    gone = _missing(tx, wanted.references)
    if gone is not None:
        return gone
    switched = wanted.enabled is not None and bool(row.enabled) is not wanted.enabled
    if switched:
        _set_enabled(tx, row, wanted.enabled is True, wanted.actor)
    if not wanted.always_new and _definition(tx, row) == definition_json(wanted.spec):
        return read(tx, row.id)
    version = row.version + 1
    values = _columns(wanted.spec) | {"version": version, "updated_at": tx.clock}
    tx.core_run(update(schema.workflows).where(_workflows.id == row.id).values(values))
    _keep_version(tx, row.id, version, wanted.spec, wanted.actor)
    _refer(tx, row.id, wanted.references)
    admission.let_in(tx, [row.id], tx.clock)
    record_change(tx, tx.clock, wanted.actor, (EventType.WORKFLOW_CHANGED, f"workflow/{row.id}", {"version": version}))
    return read(tx, row.id)


def switch(tx: Tx, switches: list[Switch]) -> list[Workflow | KsanaError]:
    return [_switch(tx, wanted) for wanted in switches]


def _switch(tx: Tx, wanted: Switch) -> Workflow | KsanaError:
    row = _locked(tx, wanted.workflow_id)
    if row is None:
        return NotFound("workflow", wanted.workflow_id)
    if bool(row.enabled) is not wanted.enabled:
        _set_enabled(tx, row, wanted.enabled, wanted.actor)
    return read(tx, row.id)


def delete_(tx: Tx, deletions: list[Deletion]) -> list[bool | KsanaError]:
    return [_delete(tx, wanted) for wanted in deletions]


def _delete(tx: Tx, wanted: Deletion) -> bool | KsanaError:
    # In the order in which a fire takes them: schedules, then the workflow.
    its_schedules = schedules.lock_of_workflow(tx, wanted.workflow_id)
    row = _locked(tx, wanted.workflow_id)
    if row is None:
        return False
    users = names_of_users(tx, "workflow", row.id)
    if users:
        return WorkflowInUse(row.public_id, users)
    gone = {"deleted_at": tx.clock, "updated_at": tx.clock, "unique_name": None, "public_id": f"~{row.id}"}
    tx.core_run(update(schema.workflows).where(_workflows.id == row.id).values(gone))
    tx.core_run(delete(schema.workflow_references).where(_references.workflow_id == row.id))
    schedules.delete_all(tx, its_schedules)
    data = {"key": row.public_id, "name": row.name}
    record_change(tx, tx.clock, wanted.actor, (EventType.WORKFLOW_DELETED, f"workflow/{row.id}", data))
    return True


def read(tx: Tx, workflow_id: int) -> Workflow:
    """As it stands; one that was deleted too."""
    return workflow(tx.core(PRESENT.where(_workflows.id == workflow_id))[0])


def names_of_users(tx: Tx, kind: str, target_id: int, limit: int = 20) -> list[str]:
    """The workflows whose present definition names it."""
    wanted = (
        select(_workflows.name)
        .join(schema.workflow_references, _references.workflow_id == _workflows.id)
        .where(_references.kind == kind, _references.target_id == target_id, _workflows.deleted_at.is_(None))
    )
    return [row.name for row in tx.core(wanted.order_by(_workflows.name).limit(limit))]


def _locked(tx: Tx, workflow_id: int) -> Row[Any] | None:
    wanted = select(schema.workflows).where(_workflows.id == workflow_id, _workflows.deleted_at.is_(None))
    found = tx.core(wanted.with_for_update())
    return found[0] if found else None


def _definition(tx: Tx, row: Row[Any]) -> str:
    kept = select(_versions.definition).where(_versions.workflow_id == row.id, _versions.version == row.version)
    return str(tx.core(kept)[0].definition)


def _set_enabled(tx: Tx, row: Row[Any], enabled: bool, actor: Actor) -> None:  # noqa: FBT001
    values = {"enabled": enabled, "updated_at": tx.clock}
    tx.core_run(update(schema.workflows).where(_workflows.id == row.id).values(values))
    happened = EventType.WORKFLOW_ENABLED if enabled else EventType.WORKFLOW_DISABLED
    record_change(tx, tx.clock, actor, (happened, f"workflow/{row.id}", None))


def _keep_version(tx: Tx, workflow_id: int, version: int, spec: WorkflowSpec, actor: Actor) -> None:
    values = {
        "workflow_id": workflow_id,
        "version": version,
        "definition": definition_json(spec),
        "created_at": tx.clock,
        "created_by": fitting(actor.name, 128),
    }
    tx.core_run(insert(schema.workflow_versions).values(values))


def _missing(tx: Tx, references: References) -> NotFound | None:
    """What it names and was deleted just now; the rest cannot be deleted before this is written."""
    for table, ids in ((schema.jobs, references.jobs), (schema.workflows, references.workflows)):
        if ids:
            there = select(table.c.id).where(table.c.id.in_(sorted(ids)), table.c.deleted_at.is_(None))
            found = {row.id for row in tx.core(there.order_by(table.c.id).with_for_update(read=True))}
            if found != ids:
                return NotFound(table.name.removesuffix("s"), min(ids - found))
    return None


def _refer(tx: Tx, workflow_id: int, references: References) -> None:
    tx.core_run(delete(schema.workflow_references).where(_references.workflow_id == workflow_id))
    rows = [{"workflow_id": workflow_id, "kind": "job", "target_id": each} for each in sorted(references.jobs)]
    rows += [
        {"workflow_id": workflow_id, "kind": "workflow", "target_id": each} for each in sorted(references.workflows)
    ]
    if rows:
        tx.connection.execute(insert(schema.workflow_references), rows)


def _name_is_taken(tx: Tx, name: str, *, but: int | None) -> bool:
    return any(row.id != but for row in tx.core(select(_workflows.id).where(_workflows.unique_name == name)))


def _columns(spec: WorkflowSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "unique_name": spec.name,
        "description": spec.description,
        "max_active_runs": spec.dag.max_active_runs,
        "overlap": spec.dag.overlap.value,
    }
