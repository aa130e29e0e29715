"""What clients call the things that runs belong to: a question for each kind, however many there are."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row

from ksana.domain.execution import Execution
from ksana.domain.job import Contract
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.activity_requests import TargetName, TargetNames
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.tx import Tx
from ksana.store.view_requests import TargetKind

_IDS = columns(id="int")


def _named(table: str, what: str) -> Statement:
    return Statement(f"SELECT t.id, t.public_id, {what} FROM {{rows}} {{join}} {table} t ON t.id = r.id", _IDS)


_JOBS = _named("jobs", "t.name, t.contract, t.deleted_at")
_WORKFLOWS = _named("workflows", "t.name, t.deleted_at")
_PLANS = _named("plans", "t.name")
_SCHEDULES = _named("schedules", "t.deleted_at")


def _by_key(table: str) -> Statement:
    what = f"SELECT t.public_id, t.name FROM {{rows}} {{join}} {table} t ON t.public_id = r.public_id"
    return Statement(what, columns(public_id="key"))


# What was deleted has another key.
_BY_KEY = {
    TargetKind.JOB: _by_key("jobs"),
    TargetKind.WORKFLOW: _by_key("workflows"),
    TargetKind.PLAN: _by_key("plans"),
}


def target_names(tx: Tx, runs: Iterable[Execution | WorkflowRun]) -> TargetNames:
    every = list(runs)
    jobs = [run.job_id for run in every if isinstance(run, Execution) and run.job_id is not None]
    flows = [run for run in every if isinstance(run, WorkflowRun)]
    workflows = id_rows(run.workflow_id for run in flows if run.plan_id is None)
    plans = id_rows(run.plan_id for run in flows if run.plan_id is not None)
    schedules = id_rows(run.schedule_id for run in every if run.schedule_id is not None)
    return TargetNames(
        {each.id: _of_job(each) for each in tx.query(_JOBS, id_rows(jobs))},
        {each.id: _of_workflow(each) for each in tx.query(_WORKFLOWS, workflows)},
        {each.id: TargetName(each.public_id, each.name) for each in tx.query(_PLANS, plans)},
        {each.id: each.public_id for each in tx.query(_SCHEDULES, schedules) if each.deleted_at is None},
    )


def names_of(tx: Tx, kind: TargetKind, keys: Iterable[str]) -> dict[str, str]:
    return {row.public_id: row.name for row in tx.query(_BY_KEY[kind], [(key,) for key in sorted(set(keys))])}


def _of_job(row: Row[Any]) -> TargetName:
    """Of one that was deleted: its number, since another may have its key now."""
    gone = row.deleted_at is not None
    return TargetName(str(row.id) if gone else row.public_id, row.name, Contract(row.contract), deleted=gone)


def _of_workflow(row: Row[Any]) -> TargetName:
    """The runs of one that was deleted know its id."""
    return TargetName(row.public_id, row.name, deleted=row.deleted_at is not None)
