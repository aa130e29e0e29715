"""The SQL store: each verb of the port, handed to the writer or to a reader."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from ksana.domain.clock import Clock, from_micros, to_micros
from ksana.domain.errors import KsanaError, StoreFull, StoreUnavailable
from ksana.domain.events import Actor, Event
from ksana.domain.execution import Attempt, Claim, Claimed, Execution
from ksana.domain.instance import MOST_LOSSES, Instance, Lease, Pulse
from ksana.domain.job import Job
from ksana.domain.ledger import Fired, Firing, Occurrence, Schedule
from ksana.domain.plan import Plan, TaskStatus, TenantTask, WaveTally
from ksana.domain.states import DEFERRED, AttemptStatus, ExecutionStatus
from ksana.domain.workflow import Ended, Workflow, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.store import activity_requests as a
from ksana.store import console_requests as c
from ksana.store import plan_requests as p
from ksana.store import requests as r
from ksana.store import workflow_requests as w
from ksana.store.base import EVERYTHING
from ksana.store.runtime_requests import RuntimeRemoval, RuntimeWrite
from ksana.store.sql import (
    reads,
    reads_activity,
    reads_failures,
    reads_names,
    reads_overview,
    reads_runs,
    reads_standing,
)
from ksana.store.sql import reads_plans as plans
from ksana.store.sql import reads_views as views
from ksana.store.sql import reads_workflows as flows
from ksana.store.sql.dialects.base import Courier, Dialect
from ksana.store.sql.errors import Trouble, diagnose, translate
from ksana.store.sql.filelock import FileLock
from ksana.store.sql.statements import (
    acknowledging,
    admitting,
    artifacts,
    callbacks,
    claiming,
    cluster,
    delegating,
    ending,
    enqueuing,
    firing,
    heartbeats,
    jobs,
    notes,
    ordering,
    outbox,
    plan_steering,
    planning,
    recovery,
    retention,
    runtime_state,
    schedules,
    settling,
    starting,
    stopping,
    workflows,
)
from ksana.store.sql.statements.known_jobs import KnownJobs
from ksana.store.sql.statements.lane_lookup import LaneLookup
from ksana.store.sql.statements.node_claims import KnownRuns
from ksana.store.sql.steady import Steady
from ksana.store.sql.tx import Tx
from ksana.store.sql.writer import Mirror, Writer
from ksana.store.view_requests import (
    HowFar,
    JobLedger,
    NodeBrief,
    NodeCell,
    Origin,
    PlannedSchedule,
    RunStanding,
    TargetKind,
)

T = TypeVar("T")
_TOLERATED_SKEW = timedelta(seconds=1)


class SqlStore:
    """Implements `ksana.store.base.Store`. Made by `open_store`."""

    def __init__(
        self,
        url: str,
        dialect: Dialect,
        clock: Clock,
        options: r.StoreOptions,
        lock: FileLock | None = None,
        mirror: Mirror | None = None,
    ) -> None:
        self._dialect = dialect
        self._clock = clock
        self._steady = Steady(clock)
        self._lock = lock
        self._writing: Engine = dialect.writing_engine(url, options)
        self._reading: Engine = dialect.reading_engine(url, options)
        self._readers = ThreadPoolExecutor(options.readers, thread_name_prefix="ksana-reader")
        self._closed = False
        self._courier: Courier | None = dialect.courier(url, options)
        self._known_jobs = KnownJobs()
        self._known_runs = KnownRuns()
        self._lane_lookup = LaneLookup(self._known_jobs)
        name = secrets.token_hex(16)
        self.writer = Writer(
            self._writing, dialect, clock, self._steady, name=name, max_batch=options.max_batch, mirror=mirror
        )

    # Definitions ----------------------------------------------------------------------------------------------------

    async def create_job(self, new: r.NewJob) -> Job:
        return await self.writer.submit(jobs.create, new)

    async def change_job(self, change: r.JobChange) -> Job:
        return await self.writer.submit(jobs.change, change)

    async def delete_job(self, job_id: int, actor: Actor) -> bool:
        return await self.writer.submit(jobs.delete, jobs.Deletion(job_id, actor))

    async def job(self, job_id: int) -> Job:
        return await self._read(lambda tx: reads.job(tx, job_id))

    async def job_by_key(self, key: str) -> Job:
        return await self._read(lambda tx: reads.job_by_key(tx, key))

    async def jobs(self, filters: r.JobFilter, page: r.PageRequest) -> r.Page[Job]:
        return await self._read(lambda tx: reads.jobs(tx, filters, page))

    async def create_schedule(
        self, job_id: int | None, new: r.NewSchedule, actor: Actor, *, workflow_id: int | None = None
    ) -> Schedule:
        owner = schedules.Owner(job_id, workflow_id)
        return await self.writer.submit(schedules.create, schedules.Creation(owner, new, actor))

    async def change_schedule(self, change: r.ScheduleChange) -> Schedule:
        return await self.writer.submit(schedules.change, change)

    async def pause_schedule(self, schedule_id: int, actor: Actor) -> Schedule:
        return await self.writer.submit(schedules.pause, schedules.Pause(schedule_id, actor))

    async def resume_schedule(self, resumption: r.Resumption) -> Schedule:
        return await self.writer.submit(schedules.resume, resumption)

    async def park_schedule(self, schedule_id: int, version: int, error: str) -> bool:
        return await self.writer.submit(schedules.park, schedules.Parking(schedule_id, version, error))

    async def delete_schedule(self, schedule_id: int, actor: Actor) -> bool:
        return await self.writer.submit(schedules.delete, schedules.Deletion(schedule_id, actor))

    async def schedule(self, schedule_id: int) -> Schedule:
        return await self._read(lambda tx: reads.schedule(tx, schedule_id))

    async def schedule_by_key(self, key: str) -> Schedule:
        return await self._read(lambda tx: reads.schedule_by_key(tx, key))

    async def schedules_of(self, job_ids: Sequence[int]) -> Mapping[int, Sequence[Schedule]]:
        return await self._read(lambda tx: reads.schedules_of(tx, job_ids))

    async def schedules(self, page: r.PageRequest, filters: r.ScheduleFilter = r.EVERY_SCHEDULE) -> r.Page[Schedule]:
        return await self._read(lambda tx: reads.schedules(tx, page, filters))

    # Ledger ---------------------------------------------------------------------------------------------------------

    async def due_schedules(self, until: datetime, limit: int) -> r.DueSchedules:
        return await self._read(lambda tx: reads.due_schedules(tx, until, limit))

    async def next_fire_at(self) -> datetime | None:
        return await self._read(reads.next_fire_at)

    async def fire(
        self, firings: Sequence[Firing], now: datetime, starts: Mapping[int, w.NewRun | str] | None = None
    ) -> Sequence[Fired]:
        if not firings:
            return []
        try:
            return await self.writer.submit(firing.fire, firing.Round(tuple(firings), now, starts or {}), brief=True)
        except (StoreUnavailable, StoreFull):
            raise
        except Exception as error:  # noqa: BLE001  one bad schedule must not hold up the others
            if len(firings) == 1:
                return [Fired(firings[0].schedule_id, lost=True, error=str(error) or type(error).__name__)]
        middle = len(firings) // 2
        return [*await self.fire(firings[:middle], now, starts), *await self.fire(firings[middle:], now, starts)]

    async def occurrences(
        self, schedule_id: int, since: datetime, until: datetime, limit: int, *, newest: bool = False
    ) -> Sequence[Occurrence]:
        return await self._read(lambda tx: reads.occurrences(tx, schedule_id, since, until, limit, newest=newest))

    async def last_occurrences(self, schedule_ids: Sequence[int]) -> Mapping[int, Occurrence]:
        return await self._read(lambda tx: reads.last_occurrences(tx, schedule_ids))

    async def planned_schedules(self, until: datetime, limit: int) -> Sequence[PlannedSchedule]:
        return await self._read(lambda tx: views.planned_schedules(tx, until, limit))

    async def job_ledger(self, job_id: int, edges: Sequence[datetime], most: int) -> JobLedger:
        return await self._read(lambda tx: views.job_ledger(tx, job_id, edges, most))

    async def ledger_since(self) -> datetime | None:
        return await self._read(retention.ledger_since)

    async def audited_schedules(self, after_id: int, limit: int) -> Sequence[r.AuditedSchedule]:
        return await self._read(lambda tx: reads.audited_schedules(tx, after_id, limit))

    # Queue ----------------------------------------------------------------------------------------------------------

    async def enqueue(self, new: r.NewExecution) -> r.Enqueued:
        return await self.writer.submit(enqueuing.enqueue, new, brief=True)

    async def claim(self, request: r.ClaimRequest, now: datetime) -> Sequence[Claimed]:
        wish = claiming.Wish(request, now, self._lane_lookup, self._known_jobs, self._known_runs)
        claimed_ = self.writer.submit(claiming.claim, wish, last=True, brief=True)
        try:
            return await asyncio.shield(claimed_)
        except asyncio.CancelledError:
            # Nobody would run them, and their owner lives: nobody would recover them either.
            for claimed in await claimed_:
                await self.hand_back(Claim(claimed.execution.id, claimed.execution.epoch), now)
            raise

    def succeed(self, ending: r.Ending) -> Awaitable[bool]:
        return self._settle(settling.Settlement(ending, settling.SUCCEED, AttemptStatus.SUCCEEDED))

    def fail(self, ending: r.Ending) -> Awaitable[bool]:
        return self._settle(settling.Settlement(ending, settling.FAIL, AttemptStatus.FAILED))

    def time_out(self, ending: r.Ending) -> Awaitable[bool]:
        return self._settle(settling.Settlement(ending, settling.TIME_OUT, AttemptStatus.TIMED_OUT))

    def retry(self, ending: r.Ending, retry_at: datetime, *, timed_out: bool = False) -> Awaitable[bool]:
        status = AttemptStatus.TIMED_OUT if timed_out else AttemptStatus.FAILED
        return self._settle(settling.Settlement(ending, settling.RETRY, status, ready_at=retry_at))

    def await_callback(self, ending: r.Ending, deadline: datetime | None) -> Awaitable[bool]:
        status = AttemptStatus.AWAITING_CALLBACK
        return self._settle(settling.Settlement(ending, settling.AWAIT_CALLBACK, status, deadline_at=deadline))

    def hand_back(self, claim: Claim, now: datetime) -> Awaitable[bool]:
        ending = r.Ending(claim, now, error="its instance stopped")
        return self._settle(settling.Settlement(ending, settling.HAND_BACK, AttemptStatus.HANDED_BACK))

    def _settle(self, settlement: settling.Settlement) -> "asyncio.Future[bool]":
        return self.writer.submit(settling.settle, settlement, brief=True)

    async def cancel(self, execution_id: int, actor: Actor, now: datetime) -> Execution:
        return await self.writer.submit(ending.cancel, ending.Cancellation(execution_id, actor, now))

    async def still_mine(self, claims: Sequence[Claim]) -> frozenset[Claim]:
        return await self._read(lambda tx: reads.still_mine(tx, claims))

    async def claims_of(self, instance_id: str, limit: int) -> Sequence[Claim]:
        return await self._read(lambda tx: reads.claims_of(tx, instance_id, limit))

    async def open_callback(self, callback: r.NewCallback) -> bool:
        return await self.writer.submit(callbacks.open_callbacks, callback, brief=True)

    async def report_callback(self, report: r.CallbackReport) -> r.CallbackAnswer:
        return await self.writer.submit(callbacks.report, report, brief=True)

    async def next_deadline_at(self) -> datetime | None:
        return await self._read(reads.next_deadline_at)

    async def expire_callbacks(self, now: datetime, limit: int) -> Sequence[int]:
        return await self.writer.submit(callbacks.expire_callbacks, callbacks.Expiry(now, limit))

    async def execution(self, execution_id: int) -> Execution:
        return await self._read(lambda tx: reads.execution(tx, execution_id))

    async def executions(self, filters: r.ExecutionFilter, page: r.PageRequest) -> r.Page[Execution]:
        return await self._read(lambda tx: reads_runs.executions(tx, filters, page))

    async def last_ended(self, job_ids: Sequence[int], *, nodes: bool = True) -> Mapping[int, Execution]:
        return await self._read(lambda tx: reads.last_ended(tx, job_ids, nodes=nodes))

    async def next_ready_at(self, queues: Sequence[str]) -> datetime | None:
        return await self._read(lambda tx: reads.next_ready_at(tx, queues))

    async def callbacks(self, execution_id: int) -> Sequence[r.ReceivedCallback]:
        return await self._read(lambda tx: reads.callbacks(tx, execution_id))

    async def figures(self) -> r.Figures:
        return await self._read(reads.figures)

    async def attempts(self, execution_id: int) -> Sequence[Attempt]:
        return await self._read(lambda tx: reads.attempts(tx, execution_id))

    async def queue_position(self, execution_id: int) -> int:
        return await self._read(lambda tx: reads.queue_position(tx, execution_id))

    async def active_counts(self, job_id: int) -> dict[ExecutionStatus, int]:
        return await self._read(lambda tx: reads.active_counts(tx, job_id))

    # Workflows ------------------------------------------------------------------------------------------------------

    async def create_workflow(self, new: w.NewWorkflow) -> Workflow:
        return await self.writer.submit(workflows.create, new)

    async def change_workflow(self, change: w.WorkflowChange) -> Workflow:
        return await self.writer.submit(workflows.change, change)

    async def switch_workflow(self, workflow_id: int, actor: Actor, *, enabled: bool) -> Workflow:
        return await self.writer.submit(workflows.switch, workflows.Switch(workflow_id, enabled, actor))

    async def delete_workflow(self, workflow_id: int, actor: Actor) -> bool:
        return await self.writer.submit(workflows.delete_, workflows.Deletion(workflow_id, actor))

    async def workflow(self, workflow_id: int) -> Workflow:
        return await self._read(lambda tx: flows.workflow(tx, flows.by_id(workflow_id), workflow_id))

    async def workflow_by_key(self, key: str) -> Workflow:
        return await self._read(lambda tx: flows.workflow(tx, flows.by_key(key), key))

    async def workflows(self, filters: w.WorkflowFilter, page: r.PageRequest) -> r.Page[WorkflowSummary]:
        return await self._read(lambda tx: flows.workflows(tx, filters, page))

    async def workflow_versions(self, workflow_id: int, page: r.PageRequest) -> r.Page[WorkflowVersion]:
        return await self._read(lambda tx: flows.workflow_versions(tx, workflow_id, page))

    async def workflow_version(self, workflow_id: int, version: int) -> WorkflowVersion:
        return await self._read(lambda tx: flows.workflow_version(tx, workflow_id, version))

    async def workflows_named_by(self, workflow_ids: Sequence[int]) -> Mapping[int, frozenset[int]]:
        return await self._read(lambda tx: flows.workflows_named_by(tx, workflow_ids))

    async def jobs_by_ids(self, job_ids: Sequence[int]) -> Mapping[int, Job]:
        return await self._read(lambda tx: reads.jobs_by_ids(tx, job_ids)) if job_ids else {}

    async def workflows_by_ids(self, workflow_ids: Sequence[int]) -> Mapping[int, WorkflowSummary]:
        return await self._read(lambda tx: flows.workflows_by_ids(tx, workflow_ids)) if workflow_ids else {}

    async def jobs_by_keys(self, keys: Sequence[str]) -> Mapping[str, Job]:
        return await self._read(lambda tx: flows.jobs_by_keys(tx, keys))

    async def schedules_of_workflows(self, workflow_ids: Sequence[int]) -> Mapping[int, Sequence[Schedule]]:
        return await self._read(lambda tx: flows.schedules_of_workflows(tx, workflow_ids))

    async def newest_runs(self, workflow_keys: Sequence[str], each: int) -> Mapping[str, Sequence[WorkflowRun]]:
        return await self._read(lambda tx: flows.newest_runs(tx, workflow_keys, each))

    async def known_run(self, workflow_id: int, key: str | None, idempotency_key: str | None) -> WorkflowRun | None:
        return await self._read(lambda tx: starting.known_run(tx, workflow_id, key, idempotency_key))

    async def start_run(self, new: w.NewRun) -> w.StartedRun:
        return await self.writer.submit(starting.start, new, brief=True)

    async def order(self, order: w.Order) -> w.Ordered:
        return await self.writer.submit(ordering.order, order)

    def on_run_ended(self, listener: Callable[[w.EndedRun], None]) -> None:
        self.writer.on_run_ended = listener

    async def workflow_run(self, run_id: int) -> WorkflowRun:
        return await self._read(lambda tx: flows.workflow_run(tx, run_id))

    async def workflow_run_by_key(self, key: str) -> WorkflowRun:
        return await self._read(lambda tx: flows.workflow_run_by_key(tx, key))

    async def workflow_run_keys(self, run_ids: Sequence[int]) -> Mapping[int, str]:
        return await self._read(lambda tx: flows.workflow_run_keys(tx, run_ids))

    async def workflow_runs(self, filters: w.RunFilter, page: r.PageRequest) -> r.Page[WorkflowRun]:
        return await self._read(lambda tx: reads_runs.workflow_runs(tx, filters, page))

    async def all_runs(
        self, tasks: r.ExecutionFilter | None, workflows: w.RunFilter | None, page: r.PageRequest
    ) -> r.Page[Execution | WorkflowRun]:
        return await self._read(lambda tx: reads_runs.all_runs(tx, tasks, workflows, page))

    async def activity(self, filters: a.ActivityFilter, request: a.ActivityRequest) -> a.ActivityPage:
        return await self._read(lambda tx: reads_activity.activity(tx, filters, request))

    async def runs_named(
        self, execution_ids: Sequence[int], run_keys: Sequence[str]
    ) -> Sequence[Execution | WorkflowRun]:
        return await self._read(lambda tx: reads_runs.named(tx, execution_ids, run_keys))

    async def target_names(self, runs: Sequence[Execution | WorkflowRun]) -> a.TargetNames:
        return await self._read(lambda tx: reads_names.target_names(tx, runs))

    async def run_nodes(self, run_id: int) -> w.RunNodes:
        return await self._read(lambda tx: flows.run_nodes(tx, run_id))

    async def node_cells(self, run_ids: Sequence[int], most: int) -> Mapping[int, Sequence[NodeCell]]:
        return await self._read(lambda tx: views.node_cells(tx, run_ids, most))

    async def run_standing(self, run_id: int) -> RunStanding:
        return await self._read(lambda tx: reads_standing.run_standing(tx, run_id))

    async def node_items(
        self, run_id: int, node_id: str, wanted: Collection[HowFar] | None, page: r.PageRequest
    ) -> r.Page[NodeBrief]:
        return await self._read(lambda tx: reads_standing.node_items(tx, run_id, node_id, wanted, page))

    async def node_run(self, run_id: int, node_id: str) -> NodeRun:
        return await self._read(lambda tx: flows.node_run(tx, run_id, node_id))

    async def run_events(self, run_id: int, after_id: int, limit: int) -> Sequence[Event]:
        return await self._read(lambda tx: flows.run_events(tx, run_id, after_id, limit))

    async def artifacts(self, run_id: int, node_ids: Sequence[str]) -> Mapping[str, Ended]:
        return await self._read(lambda tx: artifacts.artifacts(tx, run_id, node_ids))

    async def next_run_deadline_at(self) -> datetime | None:
        return await self._read(flows.next_run_deadline_at)

    async def expire_runs(self, now: datetime, limit: int) -> Sequence[int]:
        return await self.writer.submit(stopping.expire, stopping.Expiry(now, limit))

    async def skip(self, claim: Claim, reason: str, now: datetime) -> bool:
        ending = r.Ending(claim, now)
        return await self._settle(settling.Settlement(ending, settling.LEAVE_OUT, None, reason=reason))

    async def defer(self, claim: Claim, until: datetime, now: datetime) -> bool:
        ending = r.Ending(claim, now)
        return await self._settle(settling.Settlement(ending, settling.DEFER, None, ready_at=until, reason=DEFERRED))

    async def spread(self, claim: Claim, items: Sequence[Any], now: datetime) -> bool:
        return await self.writer.submit(delegating.spread, delegating.Spreading(claim, items, now))

    async def hand_over(self, claim: Claim, new: w.NewRun) -> bool:
        return await self.writer.submit(delegating.hand_over, delegating.Handing(claim, new), brief=True)

    async def save_checkpoint(self, claim: Claim, value: Any) -> bool:
        return await self.writer.submit(notes.save_checkpoints, notes.Note(claim, value), brief=True)

    async def save_artifact(self, claim: Claim, value: Any) -> bool:
        return await self.writer.submit(notes.save_artifacts, notes.Note(claim, value), brief=True)

    async def append_logs(self, chunks: Sequence[w.LogChunk]) -> int:
        return await self.writer.submit(notes.append_logs, tuple(chunks))

    async def logs(self, execution_id: int, after: tuple[int, int], limit: int) -> Sequence[w.LogLine]:
        return await self._read(lambda tx: flows.logs(tx, execution_id, after, limit))

    async def logs_before(self, execution_id: int, before: tuple[int, int], limit: int) -> Sequence[w.LogLine]:
        return await self._read(lambda tx: flows.logs_before(tx, execution_id, before, limit))

    # Plans ----------------------------------------------------------------------------------------------------------

    async def create_plan(self, new: p.NewPlan) -> Plan:
        return await self.writer.submit(planning.create, new)

    async def steer_plan(self, order: p.PlanOrder) -> p.Steered:
        return await self.writer.submit(plan_steering.steer_plans, order)

    async def steer_task(self, order: p.TaskOrder) -> p.Steered:
        return await self.writer.submit(plan_steering.steer_tasks, order)

    async def change_context(self, change: p.ContextChange) -> bool:
        return await self.writer.submit(plan_steering.change_contexts, change)

    async def remove_checkpoint(self, removal: p.CheckpointRemoval) -> bool:
        return await self.writer.submit(plan_steering.remove_checkpoints, removal)

    async def plan_by_key(self, key: str) -> Plan:
        return await self._read(lambda tx: plans.plan_by_key(tx, key))

    async def plans(self, filters: p.PlanFilter, page: r.PageRequest) -> r.Page[Plan]:
        return await self._read(lambda tx: plans.plans(tx, filters, page))

    async def plan_waves(self, plan: Plan) -> Sequence[WaveTally]:
        return await self._read(lambda tx: plans.plan_waves(tx, plan))

    async def plan_counts(self, plan_ids: Sequence[int]) -> Mapping[int, WaveTally]:
        return await self._read(lambda tx: plans.plan_counts(tx, plan_ids))

    async def plan_events(self, plan_id: int, after_id: int, limit: int) -> Sequence[Event]:
        return await self._read(lambda tx: reads.events(tx, after_id, limit, f"plan/{plan_id}"))

    async def tasks(self, filters: p.TaskFilter, page: r.PageRequest) -> r.Page[TenantTask]:
        return await self._read(lambda tx: plans.tasks(tx, filters, page))

    async def task_of(self, tenant_id: str, plan_key: str | None = None) -> TenantTask:
        return await self._read(lambda tx: plans.task_of(tx, tenant_id, plan_key))

    async def task_by_key(self, key: str) -> TenantTask:
        return await self._read(lambda tx: plans.task_by_key(tx, key))

    async def tasks_of(self, tenant_ids: Sequence[str]) -> Mapping[str, TenantTask]:
        return await self._read(lambda tx: plans.tasks_of(tx, tenant_ids))

    async def task_stages(self, task_id: int) -> p.TaskStages:
        return await self._read(lambda tx: plans.task_stages(tx, task_id))

    async def task_events(self, task_id: int, after_id: int, limit: int) -> Sequence[Event]:
        return await self._read(lambda tx: reads.events(tx, after_id, limit, f"task/{task_id}"))

    async def plan_standings(self) -> Sequence[p.PlanStanding]:
        return await self._read(admitting.standings)

    async def step_plan(self, plan_id: int, now: datetime) -> Sequence[p.Candidate]:
        return await self.writer.submit(admitting.step, admitting.Step(plan_id, now))

    async def admit(self, admission: p.Admission) -> Sequence[int]:
        return await self.writer.submit(admitting.admit, admission)

    async def lose_lock(self, task_id: int, now: datetime) -> Sequence[int]:
        return await self.writer.submit(admitting.lose, admitting.Loss(task_id, now))

    async def tell_progress(self, now: datetime, every: timedelta, limit: int) -> int:
        return await self.writer.submit(heartbeats.tell, heartbeats.Round(now, every, limit))

    async def running_tasks(self, after_id: int, limit: int) -> Sequence[tuple[int, str, str]]:
        return await self._read(lambda tx: plans.running_tasks(tx, after_id, limit))

    async def task_states(self, keys: Sequence[str]) -> Mapping[str, TaskStatus]:
        return await self._read(lambda tx: plans.task_states(tx, keys))

    async def outbox(self, limit: int) -> Sequence[p.OutboxRow]:
        return await self._read(lambda tx: outbox.read(tx, limit))

    async def shown(self, row_ids: Sequence[int]) -> int:
        return await self.writer.submit(outbox.done, tuple(row_ids))

    async def tasks_to_show(self, task_ids: Sequence[int]) -> Sequence[TenantTask]:
        return await self._read(lambda tx: plans.shown_tasks(tx, task_ids))

    async def plans_to_show(self, plan_ids: Sequence[int]) -> Sequence[p.ShownPlan]:
        return await self._read(lambda tx: plans.shown_plans(tx, plan_ids))

    async def all_tasks_to_show(
        self, after: p.ShownAfter, since: datetime, limit: int
    ) -> tuple[Sequence[TenantTask], p.ShownAfter | None]:
        return await self._read(lambda tx: plans.tasks_after(tx, after, to_micros(since), limit))

    async def all_plans_to_show(self, after_id: int, since: datetime, limit: int) -> Sequence[p.ShownPlan]:
        def question(tx: Tx) -> list[p.ShownPlan]:
            return plans.shown_plans(tx, plans.plan_ids_after(tx, after_id, to_micros(since), limit))

        return await self._read(question)

    async def plan_figures(self) -> p.PlanFigures:
        return await self._read(plans.figures)

    async def write_runtime(self, writes: Sequence[RuntimeWrite]) -> Sequence[bool]:
        return await self.writer.submit(runtime_state.write, writes)

    async def read_runtime(self, kind: str, keys: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        return await self._read(lambda tx: runtime_state.read(tx, kind, keys))

    async def all_runtime(self, kind: str, limit: int) -> Mapping[str, tuple[str, int]]:
        return await self._read(lambda tx: runtime_state.read_all(tx, kind, limit))

    async def remove_runtime(self, removals: Sequence[RuntimeRemoval]) -> Sequence[bool]:
        return await self.writer.submit(runtime_state.remove, removals)

    async def count_runtime(self) -> Mapping[str, int]:
        return await self._read(runtime_state.count)

    # Cluster --------------------------------------------------------------------------------------------------------

    async def join(self, new: r.NewInstance) -> Instance:
        if not self._closed:  # its heart must beat also if no connection is to be had by then
            await asyncio.get_running_loop().run_in_executor(self._readers, self._connect_heart)
        return await self.writer.submit(cluster.join, new)

    def _connect_heart(self) -> None:
        """A second connection beside the writer's, which the pool keeps for heartbeats."""
        try:
            self._writing.connect().close()
        except SQLAlchemyError as error:
            raise translate(error) from error

    def beat(
        self, instance_id: str, lease: timedelta, *, leading: Lease | None = None, resigning: Lease | None = None
    ) -> Pulse | None:
        try:
            with self._writing.begin() as connection:
                tx = self._tx(connection)
                # Asked first: from the beat to the commit, others wait for its rows.
                before = self._clock.monotonic()
                now = from_micros(tx.now())
                after = self._clock.monotonic()
                kept, leads = cluster.beat(tx, instance_id, lease, leading, resigning)
                tx.flush()
        except SQLAlchemyError as error:
            raise translate(error) from error
        return Pulse(leads, now, (before + after) / 2, after - before) if kept else None

    async def leave(self, instance_id: str) -> bool:
        return await self.writer.submit(cluster.leave, instance_id)

    async def instances(self) -> Sequence[Instance]:
        return await self._read(reads.instances)

    async def holdings(self) -> Mapping[str, int]:
        return await self._read(reads.holdings)

    async def next_recovery_at(self) -> datetime | None:
        micros = await self._read(recovery.next_at)
        return None if micros is None else from_micros(micros)

    async def recover(self, now: datetime, limit: int, most_losses: int = MOST_LOSSES) -> r.Recovered:
        return await self.writer.submit(recovery.recover, recovery.Sweep(now, limit, most_losses))

    def tell_others(self, hint: str) -> None:
        if self._courier is not None:
            self._courier.send(hint)

    def listen(self, listener: Callable[[str], None]) -> bool:
        if self._courier is None:
            return False
        self._courier.start(listener)
        return True

    @property
    def shared(self) -> bool:
        return self._dialect.shared

    @property
    def changes(self) -> int | None:
        return None if self._dialect.shared else self.writer.ended

    @property
    def commits(self) -> int:
        return self.writer.ended

    async def acquire_lock(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        return await self.writer.submit(cluster.acquire, cluster.Acquisition(name, owner, ttl))

    async def renew_lock(self, lease: Lease, ttl: timedelta) -> Lease | None:
        return await self.writer.submit(cluster.renew, cluster.Renewal(lease, ttl))

    async def release_lock(self, lease: Lease) -> bool:
        return await self.writer.submit(cluster.release, lease)

    async def lock(self, name: str) -> Lease | None:
        return await self._read(lambda tx: cluster.held(tx, name))

    # Journal --------------------------------------------------------------------------------------------------------

    async def events(self, after_id: int, limit: int, subject: str | None = None) -> Sequence[Event]:
        return await self._read(lambda tx: reads.events(tx, after_id, limit, subject))

    async def events_by_ids(self, ids: Sequence[int]) -> Sequence[Event]:
        return await self._read(lambda tx: views.events_by_ids(tx, ids))

    async def newest_event_id(self) -> int:
        return await self._read(views.newest_event_id)

    async def origins(self, subjects: Sequence[str]) -> Mapping[str, Origin]:
        return await self._read(lambda tx: views.origins(tx, subjects))

    async def names_of(self, kind: TargetKind, keys: Collection[str]) -> Mapping[str, str]:
        return await self._read(lambda tx: reads_names.names_of(tx, kind, keys))

    async def purge(self, request: r.PurgeRequest) -> r.Purged:
        return await self.writer.submit(retention.purge, request)

    async def audit_entries(self, page: r.PageRequest, filters: c.AuditFilter = EVERYTHING) -> r.Page[r.AuditEntry]:
        return await self._read(lambda tx: reads.audit_entries(tx, page, filters))

    # Overview -------------------------------------------------------------------------------------------------------

    async def queue_figures(self, now: datetime) -> Sequence[c.QueueFigures]:
        return await self._read(lambda tx: reads_overview.queue_figures(tx, to_micros(now)))

    async def run_history(self, since: datetime, step: timedelta) -> c.RunHistory:
        return await self._read(lambda tx: reads_overview.run_history(tx, to_micros(since), step))

    async def failures(self, most: int) -> c.Failures:
        return await self._read(lambda tx: reads_failures.failures(tx, most))

    async def acknowledge(self, given: c.Acknowledgement) -> datetime:
        return await self.writer.submit(acknowledging.acknowledge, given)

    # The store itself -----------------------------------------------------------------------------------------------

    async def ping(self) -> r.StoreHealth:
        began = self._clock.monotonic()
        try:
            await self._read(lambda tx: tx.now())
        except KsanaError as error:
            return r.StoreHealth(
                reachable=False, latency_seconds=self._clock.monotonic() - began, message=error.message
            )
        return r.StoreHealth(reachable=True, latency_seconds=self._clock.monotonic() - began)

    def attend(self) -> None:
        self.writer.attend()

    async def diagnose(self) -> Sequence[r.Diagnosis]:
        return await self._read(self._diagnose)

    def _diagnose(self, tx: Tx) -> list[r.Diagnosis]:
        skew = abs(from_micros(tx.now()) - self._clock.now())
        level = "ok" if skew <= _TOLERATED_SKEW else "warn"
        clock = r.Diagnosis("clock", level, f"{skew.total_seconds():.3f} s from the database's")
        return [*self._dialect.diagnose(tx.connection), clock]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        if self._courier is not None:
            self._courier.close()
        self.writer.close()
        self._readers.shutdown(wait=True)
        self._reading.dispose()
        self._writing.dispose()
        if self._lock is not None:
            self._lock.release()

    async def _read(self, question: Callable[[Tx], T]) -> T:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._ask, question)

    def _tx(self, connection: Connection) -> Tx:
        return Tx(connection, self._dialect, to_micros(self._clock.now()), self._steady.micros())

    def _ask(self, question: Callable[[Tx], T]) -> T:
        for last_try in (False, True):
            try:
                with self._reading.connect() as connection, connection.begin():
                    return question(self._tx(connection))
            except SQLAlchemyError as error:
                # A pooled connection that the server has closed meanwhile: the pool makes a new one. Or one whose prepared
                # statements are from before an upgrade: it prepares them anew.
                if last_try or diagnose(error) not in {Trouble.DISCONNECTED, Trouble.OUTDATED}:
                    raise translate(error) from error
        raise AssertionError("unreachable")
