"""Between rows and the domain's values: workflows, their snapshots and their runs."""

from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import Any

import orjson
from sqlalchemy import Row

from ksana.domain.clock import from_micros
from ksana.domain.dag_reading import read_dag
from ksana.domain.execution import Trigger
from ksana.domain.states import RunStatus
from ksana.domain.workflow import Snapshot, SnapshotNode, Workflow, WorkflowSpec, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.store.sql import codec
from ksana.store.sql.rows import fitting_row, to_json

KEPT_SNAPSHOTS = 256
KEPT_NODES = 100_000


def definition_json(spec: WorkflowSpec) -> str:
    """What a version of a workflow is; its dag as it was given."""
    written = to_json({"name": spec.name, "description": spec.description, "dag": spec.dag.document}) or ""
    fitting_row(written.encode())
    return written


def workflow_spec(document: str) -> WorkflowSpec:
    fields = orjson.loads(document)
    return WorkflowSpec(fields["name"], read_dag(fields["dag"]), fields["description"])


def workflow(row: Row[Any]) -> Workflow:
    """From a workflow's row with the `definition` of its present version."""
    return Workflow(
        id=row.id,
        key=row.public_id,
        spec=workflow_spec(row.definition),
        enabled=bool(row.enabled),
        version=row.version,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
    )


def workflow_summary(row: Row[Any]) -> WorkflowSummary:
    return WorkflowSummary(
        id=row.id,
        key=row.public_id,
        name=row.name,
        description=row.description,
        enabled=bool(row.enabled),
        version=row.version,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
    )


def workflow_version(row: Row[Any]) -> WorkflowVersion:
    return WorkflowVersion(row.version, workflow_spec(row.definition), from_micros(row.created_at), row.created_by)


def workflow_run(row: Row[Any]) -> WorkflowRun:
    return WorkflowRun(
        id=row.id,
        key=row.public_id,
        workflow_id=row.workflow_id,
        workflow_key=row.workflow_key,
        workflow_version=row.workflow_version,
        status=RunStatus(row.status),
        trigger=Trigger(row.triggered_by),
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        schedule_id=row.schedule_id,
        planned_for=codec.instant(row.planned_for),
        parent_execution_id=row.parent_execution_id,
        depth=row.depth,
        params=codec.from_json(row.params) or {},
        error=row.error,
        reason=row.reason,
        deadline_at=codec.instant(row.deadline_at),
        started_at=codec.instant(row.started_at),
        ended_at=codec.instant(row.ended_at),
        plan_id=row.plan_id,
        tenant_id=row.tenant_id,
    )


def node_run(row: Row[Any], child_run: str | None = None) -> NodeRun:
    return NodeRun(
        execution=codec.execution(row),
        node_id=row.node_id,
        checkpoint=codec.from_json(row.checkpoint),
        parent_id=row.parent_id,
        child_run=child_run,
    )


# Snapshots --------------------------------------------------------------------------------------------------------


def snapshot_json(snapshot: Snapshot) -> str:
    """The dag as given, and for each of its nodes, in order: its spec (each different one once), its job, what it needs."""
    specs: dict[str, int] = {}
    nodes = []
    for node in snapshot.dag.nodes:
        made = snapshot.nodes[node.id]
        place = specs.setdefault(codec.job_spec_json(made.spec), len(specs))
        nodes.append((place, made.job_id, made.job_key, made.needs))
    written = [orjson.Fragment(each) for each in specs]
    document = to_json({"dag": snapshot.dag.document, "specs": written, "nodes": nodes}) or ""
    fitting_row(document.encode())
    return document


def digest_of(document: str) -> str:
    return sha256(document.encode()).hexdigest()


def read_snapshot(digest: str, document: str) -> Snapshot:
    fields = orjson.loads(document)
    dag = read_dag(fields["dag"])
    specs = [codec.job_spec(orjson.dumps(each).decode()) for each in fields["specs"]]
    nodes = {
        node.id: SnapshotNode(node, specs[place], job_id, job_key, tuple(needs))
        for node, (place, job_id, job_key, needs) in zip(dag.nodes, fields["nodes"], strict=True)
    }
    return Snapshot(digest, dag, nodes)


class KnownSnapshots:
    """Snapshots that were read before, by digest: whichever database they are from, they are the same. Safe for threads."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self._nodes = 0
        self._lock = Lock()

    def get(self, digest: str) -> Snapshot | None:
        with self._lock:
            found = self._snapshots.get(digest)
            if found is not None:
                self._snapshots.move_to_end(digest)
            return found

    def add(self, snapshot: Snapshot) -> None:
        """Keeps it; the least recently used are forgotten, but never the only one."""
        with self._lock:
            if snapshot.digest not in self._snapshots:
                self._snapshots[snapshot.digest] = snapshot
                self._nodes += len(snapshot.nodes)
            while len(self._snapshots) > 1 and (len(self._snapshots) > KEPT_SNAPSHOTS or self._nodes > KEPT_NODES):
                self._nodes -= len(self._snapshots.popitem(last=False)[1].nodes)


SNAPSHOTS = KnownSnapshots()
