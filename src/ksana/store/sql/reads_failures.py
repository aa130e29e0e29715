"""What failed and nobody has acknowledged: of the newest failures, those that ended since."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from ksana.domain.clock import from_micros
from ksana.domain.execution import Execution
from ksana.domain.states import FAILURES, RunStatus
from ksana.store.console_requests import MOST_FAILURES, FailedTarget, Failures, Target, TargetKind
from ksana.store.sql import reads_runs
from ksana.store.sql.paging import Listing, rows_of, state_values
from ksana.store.sql.reads_runs import TASK, WORKFLOW
from ksana.store.sql.rows import Statement, columns, id_rows
from ksana.store.sql.tx import Tx

_Run = tuple[int, int]
"""Its kind and its id."""
ALL, ALL_ID = "all", 0
"""How an acknowledgement of everything is kept."""
_JOBS = Listing(
    "executions",
    ("id DESC",),
    # Nodes do not count: their run tells.
    ("t.workflow_run_id IS NULL",),
    len(FAILURES),
    "t.id, t.job_id AS target_id, t.created_at, t.ended_at",
    index="ix_executions_status",
    same=("workflow_run_id DESC",),
)
_WORKFLOWS = Listing(
    "workflow_runs",
    ("id DESC",),
    (),
    1,
    "t.id, coalesce(t.plan_id, t.workflow_id) AS target_id, t.created_at, t.ended_at, t.parent_execution_id, t.plan_id",
    index="ix_workflow_runs_status",
)
_SEEN = Statement(
    "SELECT t.kind, t.target_id, t.seen_until FROM {rows} {join} acknowledgements t"
    " ON t.kind = r.kind AND t.target_id = r.target_id",
    columns(kind="key", target_id="int"),
)


def _living(table: str, condition: str = "") -> Statement:
    return Statement(f"SELECT t.id FROM {{rows}} {{join}} {table} t ON t.id = r.id{condition}", columns(id="int"))


_LIVING: Mapping[TargetKind, Statement] = {
    TargetKind.JOB: _living("jobs", " WHERE t.deleted_at IS NULL"),
    TargetKind.WORKFLOW: _living("workflows", " WHERE t.deleted_at IS NULL"),
    TargetKind.PLAN: _living("plans"),
}


@dataclass(frozen=True, slots=True)
class _Failed:
    run_id: int
    created_at: int
    ended_at: int


@dataclass(frozen=True, slots=True)
class _Group:
    target: Target
    runs: Sequence[_Failed]
    whole: bool

    @property
    def last(self) -> _Failed:
        return max(self.runs, key=lambda run: (run.ended_at, run.run_id))

    @property
    def run(self) -> _Run:
        return TASK if self.target.kind is TargetKind.JOB else WORKFLOW, self.last.run_id


def failures(tx: Tx, most: int) -> Failures:
    jobs = rows_of(tx, _JOBS, MOST_FAILURES, state_values(FAILURES))
    runs = rows_of(tx, _WORKFLOWS, MOST_FAILURES, state_values([RunStatus.FAILED]))
    own = [row for row in runs if row.parent_execution_id is None]
    of_workflows, of_plans = (
        [row for row in own if row.plan_id is None],
        [row for row in own if row.plan_id is not None],
    )
    all_jobs, all_runs = len(jobs) < MOST_FAILURES, len(runs) < MOST_FAILURES
    groups = [
        *_groups(TargetKind.JOB, jobs, whole=all_jobs),
        *_groups(TargetKind.WORKFLOW, of_workflows, whole=all_runs),
        *_groups(TargetKind.PLAN, of_plans, whole=all_runs),
    ]
    found = _unseen(tx, groups)
    found.sort(key=lambda group: (-group.last.ended_at, group.target.kind, group.target.id))
    return Failures(_shown(tx, found[:most]), len(found), all_jobs and all_runs)


def _groups(kind: TargetKind, rows: Iterable[Row[Any]], *, whole: bool) -> list[_Group]:
    runs: dict[int, list[_Failed]] = {}
    for row in rows:
        if row.ended_at is not None and row.target_id is not None:
            runs.setdefault(row.target_id, []).append(_Failed(row.id, row.created_at, row.ended_at))
    return [_Group(Target(kind, target_id), each, whole) for target_id, each in runs.items()]


def _unseen(tx: Tx, groups: Sequence[_Group]) -> list[_Group]:
    """What is left of each, unless its target is gone."""
    keys = [(group.target.kind.value, group.target.id) for group in groups]
    seen = {(row.kind, row.target_id): row.seen_until for row in tx.query(_SEEN, [(ALL, ALL_ID), *keys])}
    everything = seen.get((ALL, ALL_ID), 0)
    living = {
        Target(kind, row.id)
        for kind, statement in _LIVING.items()
        for row in tx.query(statement, id_rows(group.target.id for group in groups if group.target.kind is kind))
    }
    left = []
    for group, key in zip(groups, keys, strict=True):
        until = max(everything, seen.get(key, 0))
        runs = [run for run in group.runs if run.ended_at > until]
        if runs and group.target in living:
            # If some that were looked at have been seen, so have older ones, but for any that took longer than all these.
            left.append(_Group(group.target, runs, group.whole or len(runs) < len(group.runs)))
    return left


def _shown(tx: Tx, groups: Sequence[_Group]) -> list[FailedTarget]:
    found = reads_runs.these(tx, [group.run for group in groups])
    last = {(TASK if isinstance(run, Execution) else WORKFLOW, run.id): run for run in found}
    # Where a transaction sees what others commit meanwhile, one of them may have been removed by retention.
    known = [group for group in groups if group.run in last]
    return [
        FailedTarget(
            target=group.target,
            count=len(group.runs),
            made_since=from_micros(min(run.created_at for run in group.runs)),
            first_at=from_micros(min(run.ended_at for run in group.runs)),
            last_at=from_micros(group.last.ended_at),
            last=last[group.run],
            whole=group.whole,
        )
        for group in known
    ]
