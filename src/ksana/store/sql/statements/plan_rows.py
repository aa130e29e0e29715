"""Plans as a transaction sees them: locked before any of their runs and tasks, changed in memory, written once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Row, case, func, select

from ksana.domain.clock import from_micros, to_micros
from ksana.domain.events import EventType
from ksana.domain.plan import PLAN_ENDED, Pause, Plan, PlanMove, PlanStatus, TaskStatus, WaveTally
from ksana.store.sql import schema
from ksana.store.sql.codec_plans import plan as plan_of
from ksana.store.sql.rows import LATER, Statement, brief, columns, update_by_id
from ksana.store.sql.statements import outbox, runs, tenant_tasks
from ksana.store.sql.statements.journal import fitting, record_events
from ksana.store.sql.statements.tenant_tasks import TaskNow
from ksana.store.sql.tx import Tx

_PLAN = columns(
    id="int",
    status="text",
    wave="int",
    cleared="int",
    forgiven="int",
    reason="text",
    message="text",
    started_at="int",
    ended_at="int",
)
_WRITE = update_by_id(
    "plans",
    _PLAN,
    version="t.version + 1",
    updated_at=LATER,
    **{name: f"r.{name}" for name, _ in _PLAN if name != "id"},
)
_COUNTS = Statement(
    "SELECT t.wave, t.status, count(*) AS number FROM tenant_tasks t WHERE t.plan_id = :plan_id GROUP BY t.wave, t.status"
)
_ASKED_FOR = Statement(
    "SELECT t.wave, count(*) AS number FROM tenant_tasks t WHERE t.plan_id = :plan_id AND t.status IN"
    f" ('{TaskStatus.CREATED}', '{TaskStatus.WAITING_FOR_LOCK}') AND t.asked_for = 1 GROUP BY t.wave"
)
_COUNTS_OF_MANY = Statement(
    "SELECT t.plan_id, t.status, count(*) AS number FROM {rows} {join} tenant_tasks t ON t.plan_id = r.id"
    " GROUP BY t.plan_id, t.status",
    columns(id="int"),
)
_plans, _tasks = schema.plans.c, schema.tenant_tasks.c
_FIELD = {
    TaskStatus.CREATED: "waiting",
    TaskStatus.WAITING_FOR_LOCK: "waiting",
    TaskStatus.RUNNING: "running",
    TaskStatus.PAUSED: "paused",
    TaskStatus.COMPLETED: "completed",
    TaskStatus.FAILED: "failed",
    TaskStatus.CANCELLED: "cancelled",
}


@dataclass(slots=True)
class PlanNow:
    """A plan that the transaction has locked. `now` is how it stands by now."""

    row: Row[Any]
    now: Plan
    told: list[tuple[EventType, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.now.id

    def change(self, event: EventType, data: Mapping[str, Any], **fields: Any) -> None:
        self.now = replace(self.now, **fields)
        self.told.append((event, data))

    def move(
        self,
        target: PlanStatus,
        at: int,
        event: EventType,
        data: Mapping[str, Any] | None = None,
        why: Pause | None = None,
    ) -> None:
        """IllegalTransition if there is no such way."""
        PlanMove(frozenset({self.now.status}), target)
        ended = from_micros(at) if target in PLAN_ENDED else None
        started = self.now.started_at or (from_micros(at) if target is PlanStatus.RUNNING else None)
        told = {} if why is None else {"reason": why.reason, "message": why.message}
        reason, message = (None, None) if why is None else (why.reason, why.message)
        times = {"started_at": started, "ended_at": ended}
        self.change(event, {**(data or {}), **told}, status=target, reason=reason, message=message, **times)


def lock(tx: Tx, plan_id: int) -> PlanNow | None:
    found = tx.core(select(schema.plans).where(_plans.id == plan_id).with_for_update())
    return PlanNow(found[0], plan_of(found[0])) if found else None


def lock_tasks(tx: Tx, task_ids: Sequence[int]) -> dict[int, TaskNow]:
    """These tasks, locked in order, the runs that they are before them."""
    if not task_ids:
        return {}
    known = tx.core(select(_tasks.run_id).where(_tasks.id.in_(sorted(set(task_ids))), _tasks.run_id.is_not(None)))
    runs.lock(tx, [row.run_id for row in known])
    return tenant_tasks.lock(tx, task_ids)


def write(tx: Tx, plan: PlanNow, at: int) -> None:
    """What has changed of it, and that it has."""
    if not plan.told:
        return
    now = plan.now
    reason = fitting(now.reason, 255) if now.reason else None
    started, ended = (None if each is None else to_micros(each) for each in (now.started_at, now.ended_at))
    row = (plan.id, now.status, now.wave, now.cleared, now.forgiven, reason, brief(now.message), started, ended)
    tx.run(_WRITE, [row], at=at)
    record_events(tx, at, [(event, f"plan/{plan.id}", dict(data)) for event, data in plan.told])
    outbox.add(tx, at, [(event, plan.id, None) for event, _ in plan.told])
    plan.told = []


def tallies(tx: Tx, plan: Plan) -> tuple[WaveTally, ...]:
    """One for each wave, in order; there is one more than the plan names, for those who are in none."""
    counts: list[dict[str, int]] = [{} for _ in range(len(plan.spec.waves) + 1)]
    for row in tx.query(_COUNTS, plan_id=plan.id):
        name = _FIELD[TaskStatus(row.status)]
        counts[row.wave][name] = counts[row.wave].get(name, 0) + row.number
    if plan.status is PlanStatus.PAUSED:
        for row in tx.query(_ASKED_FOR, plan_id=plan.id):
            counts[row.wave]["asked_for"] = row.number
    return tuple(WaveTally(**each) for each in counts)


def counts(tx: Tx, plan_ids: Sequence[int]) -> dict[int, WaveTally]:
    """Of each of these plans, over all of its waves."""
    found: dict[int, dict[str, int]] = {plan_id: {} for plan_id in plan_ids}
    for row in tx.query(_COUNTS_OF_MANY, [(each,) for each in sorted(found)]):
        name = _FIELD[TaskStatus(row.status)]
        found[row.plan_id][name] = found[row.plan_id].get(name, 0) + row.number
    return {plan_id: WaveTally(**each) for plan_id, each in found.items()}


def going_on(tx: Tx, statuses: Iterable[PlanStatus]) -> list[Plan]:
    wanted = select(schema.plans).where(_plans.status.in_(sorted(statuses))).order_by(_plans.id)
    return [plan_of(row) for row in tx.core(wanted)]


def progress(tx: Tx, plan_ids: list[int]) -> dict[int, tuple[int, int]]:
    """How many tenants of each of these are done, and when the last of its tasks changed."""
    done = func.sum(case((_tasks.status == TaskStatus.COMPLETED, 1), else_=0)).label("number")
    wanted = select(_tasks.plan_id, done, func.max(_tasks.updated_at).label("at"))
    rows = tx.core(wanted.where(_tasks.plan_id.in_(plan_ids)).group_by(_tasks.plan_id))
    return {row.plan_id: (int(row.number), row.at) for row in rows}
