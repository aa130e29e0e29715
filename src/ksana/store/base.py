"""The port: every way in which what is stored can change, and every question that can be asked of it.

A verb is one transition, applied in one transaction; its docstring names the states it leads from and to. There is no
`update(fields)`. Three rules hold for all of them:

- **Fenced.** A verb that ends or continues an attempt takes a `Claim` (execution id and epoch) and writes only while the row
  still has that epoch and a state it leads from. Losing that race is an ordinary answer (`False`, or `lost`), not an error:
  it tells a zombie to stop and write nothing.
- **Durable before answered.** An awaited verb returns after its commit.
- **Grouped.** Verbs awaited at the same time are applied in one transaction, in an order of the store's choosing; one that
  fails, fails alone.

Failures common to all: StoreUnavailable (nothing was written, unless the message says that this is unknown), StoreFull.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from ksana.domain.events import Actor, Event
from ksana.domain.execution import Attempt, Claim, Claimed, Execution
from ksana.domain.instance import MOST_LOSSES, Instance, Lease, Pulse
from ksana.domain.job import Job
from ksana.domain.ledger import Fired, Firing, Occurrence, Schedule
from ksana.domain.plan import Plan, TaskStatus, TenantTask, WaveTally
from ksana.domain.states import ExecutionStatus
from ksana.domain.workflow import Ended, Workflow, WorkflowSummary, WorkflowVersion
from ksana.domain.workflow_run import NodeRun, WorkflowRun
from ksana.store.activity_requests import ActivityFilter, ActivityPage, ActivityRequest, TargetNames
from ksana.store.console_requests import Acknowledgement, AuditFilter, Failures, QueueFigures, RunHistory
from ksana.store.plan_requests import (
    Admission,
    Candidate,
    CheckpointRemoval,
    ContextChange,
    NewPlan,
    OutboxRow,
    PlanFigures,
    PlanFilter,
    PlanOrder,
    PlanStanding,
    ShownAfter,
    ShownPlan,
    Steered,
    TaskFilter,
    TaskOrder,
    TaskStages,
)
from ksana.store.requests import (
    EVERY_SCHEDULE,
    AuditedSchedule,
    AuditEntry,
    CallbackAnswer,
    CallbackReport,
    ClaimRequest,
    Diagnosis,
    DueSchedules,
    Ending,
    Enqueued,
    ExecutionFilter,
    Figures,
    JobChange,
    JobFilter,
    NewCallback,
    NewExecution,
    NewInstance,
    NewJob,
    NewSchedule,
    Page,
    PageRequest,
    Purged,
    PurgeRequest,
    ReceivedCallback,
    Recovered,
    Resumption,
    ScheduleChange,
    ScheduleFilter,
    StoreHealth,
)
from ksana.store.runtime_requests import RuntimeRemoval, RuntimeWrite
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
from ksana.store.workflow_requests import (
    EndedRun,
    LogChunk,
    LogLine,
    NewRun,
    NewWorkflow,
    Order,
    Ordered,
    RunFilter,
    RunNodes,
    StartedRun,
    WorkflowChange,
    WorkflowFilter,
)

EVERYTHING = AuditFilter()


class Definitions(Protocol):
    """Jobs and schedules. Every change writes an event and an audit entry with it."""

    async def create_job(self, new: NewJob) -> Job:
        """A job, and its schedule if it has one. NameTaken, IdTaken."""

    async def change_job(self, change: JobChange) -> Job:
        """The whole new spec with the steps of its schedules; version + 1, or no change at all if there are no steps and the
        spec is the same. A raised limit starts queued runs at once. NotFound, NameTaken, VersionMismatch."""

    async def delete_job(self, job_id: int, actor: Actor) -> bool:
        """The job and its schedules are gone from every list; SCHEDULED, QUEUED and RETRYING runs are CANCELED, what runs may
        end, and history stays. False if there was none. JobInUse if workflows name it."""

    async def job(self, job_id: int) -> Job:
        """NotFound if there is none, or it was deleted."""

    async def job_by_key(self, key: str) -> Job:
        """NotFound if there is none, or it was deleted."""

    async def jobs(self, filters: JobFilter, page: PageRequest) -> Page[Job]:
        """Jobs by id."""

    async def create_schedule(
        self, job_id: int | None, new: NewSchedule, actor: Actor, *, workflow_id: int | None = None
    ) -> Schedule:
        """A further schedule of a job or, with a `job_id` of None, of a workflow. NotFound (job, workflow), IdTaken."""

    async def change_schedule(self, change: ScheduleChange) -> Schedule:
        """The whole new spec and cursor; a PARKED or FINISHED one becomes ACTIVE. A cursor that lies within what the ledger has
        already is moved past it. NotFound, VersionMismatch (also if it has fired since its `basis`)."""

    async def pause_schedule(self, schedule_id: int, actor: Actor) -> Schedule:
        """ACTIVE, PARKED → PAUSED; one that is PAUSED or FINISHED stays so. NotFound."""

    async def resume_schedule(self, resumption: Resumption) -> Schedule:
        """PAUSED, PARKED → ACTIVE, and the ledger says what passed meanwhile; any other stays as it is. NotFound,
        VersionMismatch."""

    async def park_schedule(self, schedule_id: int, version: int, error: str) -> bool:
        """ACTIVE → PARKED, because its next instant cannot be worked out. False if it has changed since."""

    async def delete_schedule(self, schedule_id: int, actor: Actor) -> bool:
        """It fires no more; its ledger stays. False if there was none."""

    async def schedule(self, schedule_id: int) -> Schedule:
        """NotFound if there is none, or it was deleted."""

    async def schedule_by_key(self, key: str) -> Schedule:
        """NotFound if there is none, or it was deleted."""

    async def schedules_of(self, job_ids: Sequence[int]) -> Mapping[int, Sequence[Schedule]]:
        """The schedules of each of these jobs, by id; a job without any is left out."""

    async def schedules(self, page: PageRequest, filters: ScheduleFilter = EVERY_SCHEDULE) -> Page[Schedule]:
        """All schedules that match, by id."""


class Ledger(Protocol):
    """Planned instants and what became of them."""

    async def due_schedules(self, until: datetime, limit: int) -> DueSchedules:
        """ACTIVE schedules with `next_fire_at` ≤ until, earliest first."""

    async def next_fire_at(self) -> datetime | None:
        """When the next schedule is due."""

    async def fire(
        self, firings: Sequence[Firing], now: datetime, starts: Mapping[int, NewRun | str] | None = None
    ) -> Sequence[Fired]:
        """For each firing whose schedule still has that version and cursor: one occurrence an instant, an execution (or a
        workflow run, as `starts` has it by schedule, or the reason why not) for each that runs, and the moved cursor, all in
        one transaction. → SCHEDULED, or SKIPPED (the job is full and skips, its queue
        is full, or it is disabled). The others are `lost` and change nothing; one that cannot be written has an `error`, and
        should be parked."""

    async def occurrences(
        self, schedule_id: int, since: datetime, until: datetime, limit: int, *, newest: bool = False
    ) -> Sequence[Occurrence]:
        """The ledger of one schedule with since ≤ planned < until, in order or the `newest` first, with a range that begins
        before and reaches into it."""

    async def last_occurrences(self, schedule_ids: Sequence[int]) -> Mapping[int, Occurrence]:
        """The newest row of each of these schedules' ledgers; a schedule that has none is left out."""

    async def planned_schedules(self, until: datetime, limit: int) -> Sequence[PlannedSchedule]:
        """ACTIVE schedules of enabled jobs and workflows with `next_fire_at` ≤ until, earliest first; those whose definition
        cannot be read are left out."""

    async def job_ledger(self, job_id: int, edges: Sequence[datetime], most: int) -> JobLedger:
        """The ledger of a job's schedules, those that were deleted too, by the days between these edges: the newest days first,
        until `most` rows were looked at."""

    async def ledger_since(self) -> datetime | None:
        """From when on the ledger is whole: rows before it were removed, or never kept. None: from the beginning."""

    async def audited_schedules(self, after_id: int, limit: int) -> Sequence[AuditedSchedule]:
        """Schedules with a greater id, by id, those that were deleted too, each with the definitions that it had."""


class Queue(Protocol):
    """Executions, from wish to end."""

    async def enqueue(self, new: NewExecution) -> Enqueued:
        """→ SCHEDULED; a disabled job can be run, too. ConcurrencyLimit if the job is full and skips, or its queue is full
        (nothing is written); NotFound; InvalidInput for an idempotency key that is too long."""

    async def claim(self, request: ClaimRequest, now: datetime) -> Sequence[Claimed]:
        """SCHEDULED, RETRYING → RUNNING, epoch + 1, attempt + 1: the earliest that are ready at `now`, or later when its turn has
        come, at most `capacity`, never more of a job than its limit allows, counted from its live rows. SCHEDULED → QUEUED for
        what its job has no room for. What another instance is claiming is passed over. If it is cancelled meanwhile, what it
        claimed is handed back."""

    def succeed(self, ending: Ending) -> Awaitable[bool]:
        """RUNNING → SUCCESS. False: no longer yours."""

    def fail(self, ending: Ending) -> Awaitable[bool]:
        """RUNNING → FAILED. False: no longer yours."""

    def time_out(self, ending: Ending) -> Awaitable[bool]:
        """RUNNING → TIMEOUT. False: no longer yours."""

    def retry(self, ending: Ending, retry_at: datetime, *, timed_out: bool = False) -> Awaitable[bool]:
        """RUNNING → RETRYING until `retry_at`. False: no longer yours."""

    def await_callback(self, ending: Ending, deadline: datetime | None) -> Awaitable[bool]:
        """RUNNING → CALLBACK_PENDING until `deadline`, or until somebody reports. False: no longer yours; if the callback
        came first, what was sent and answered is kept with the attempt that it ended."""

    def hand_back(self, claim: Claim, now: datetime) -> Awaitable[bool]:
        """RUNNING → SCHEDULED, at once, its attempt not counted: this instance stops. False: no longer yours."""

    async def cancel(self, execution_id: int, actor: Actor, now: datetime) -> Execution:
        """Anything that has not ended → CANCELED; what has ended stays as it is. The execution afterwards. NotFound."""

    async def still_mine(self, claims: Sequence[Claim]) -> frozenset[Claim]:
        """Which of these are still RUNNING under that epoch: the others are to be stopped."""

    async def claims_of(self, instance_id: str, limit: int) -> Sequence[Claim]:
        """What this instance has RUNNING, as the store has it, by id."""

    async def open_callback(self, callback: NewCallback) -> bool:
        """Makes a token valid for the attempt under way; to be called before the request is sent. False: no longer yours."""

    async def report_callback(self, report: CallbackReport) -> CallbackAnswer:
        """CALLBACK_PENDING, RUNNING → CALLBACK_SUCCESS; → FAILED or RETRYING if the report says so. One that comes after the
        end, or with a token that is of an earlier attempt or ran out, is kept as IGNORED. NotFound for an unknown token; by ids,
        for an execution of another job or one that opened no callback."""

    async def next_deadline_at(self) -> datetime | None:
        """When the next callback is overdue; it may have passed."""

    async def expire_callbacks(self, now: datetime, limit: int) -> Sequence[int]:
        """CALLBACK_PENDING → FAILED_TIMEOUT for those past their deadline. Their ids."""

    async def execution(self, execution_id: int) -> Execution:
        """NotFound if there is none."""

    async def executions(self, filters: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        """Newest first: of a job by what they were planned for, else by id."""

    async def last_ended(self, job_ids: Sequence[int], *, nodes: bool = True) -> Mapping[int, Execution]:
        """Of each of these jobs, the run that has ended and is for the latest instant; a job that has none is left out. Without
        `nodes`, nodes of workflow runs do not count: looked for among the job's last 100."""

    async def next_ready_at(self, queues: Sequence[str]) -> datetime | None:
        """When the next execution of these queues can be claimed; it may have passed."""

    async def attempts(self, execution_id: int) -> Sequence[Attempt]:
        """Its attempts that have ended, in order."""

    async def callbacks(self, execution_id: int) -> Sequence[ReceivedCallback]:
        """The reports that came in for it, in order, at most 1,000."""

    async def queue_position(self, execution_id: int) -> int:
        """How many of its job's queued runs go before it; 0 if it is not QUEUED."""

    async def active_counts(self, job_id: int) -> dict[ExecutionStatus, int]:
        """How many of the job's executions are in each state that has not ended."""

    async def figures(self) -> Figures:
        """How many jobs there are, and how many executions in each state that has not ended."""


class Workflows(Protocol):
    """Workflows and their runs. A run's nodes are executions, claimed and ended like all others; their ends advance it."""

    async def create_workflow(self, new: NewWorkflow) -> Workflow:
        """Version 1. NameTaken, IdTaken, NotFound (what it names was deleted just now)."""

    async def change_workflow(self, change: WorkflowChange) -> Workflow:
        """The whole new definition, version + 1; the same definition makes no new version. NotFound, NameTaken,
        VersionMismatch."""

    async def switch_workflow(self, workflow_id: int, actor: Actor, *, enabled: bool) -> Workflow:
        """Disabled, it starts no more; what runs goes on. NotFound."""

    async def delete_workflow(self, workflow_id: int, actor: Actor) -> bool:
        """It and its schedules are gone from every list; its runs go on and stay. False if there was none. WorkflowInUse if
        others name it."""

    async def workflow(self, workflow_id: int) -> Workflow:
        """NotFound if there is none, or it was deleted."""

    async def workflow_by_key(self, key: str) -> Workflow:
        """NotFound if there is none, or it was deleted."""

    async def workflows(self, filters: WorkflowFilter, page: PageRequest) -> Page[WorkflowSummary]:
        """Workflows by id."""

    async def workflow_versions(self, workflow_id: int, page: PageRequest) -> Page[WorkflowVersion]:
        """Every definition that it had, newest first."""

    async def workflow_version(self, workflow_id: int, version: int) -> WorkflowVersion:
        """NotFound."""

    async def workflows_named_by(self, workflow_ids: Sequence[int]) -> Mapping[int, frozenset[int]]:
        """The workflows that the present definition of each of these names as nodes."""

    async def jobs_by_ids(self, job_ids: Sequence[int]) -> Mapping[int, Job]:
        """These jobs; one that is not there, or deleted, is left out."""

    async def workflows_by_ids(self, workflow_ids: Sequence[int]) -> Mapping[int, WorkflowSummary]:
        """These workflows; likewise."""

    async def jobs_by_keys(self, keys: Sequence[str]) -> Mapping[str, Job]:
        """The jobs with these keys; one that is not there is left out."""

    async def schedules_of_workflows(self, workflow_ids: Sequence[int]) -> Mapping[int, Sequence[Schedule]]:
        """The schedules of each of these workflows, by id; a workflow without any is left out."""

    async def newest_runs(self, workflow_keys: Sequence[str], each: int) -> Mapping[str, Sequence[WorkflowRun]]:
        """Of each of these workflows, by its key, as many of its newest runs, newest first; one without any is left out."""

    async def known_run(self, workflow_id: int, key: str | None, idempotency_key: str | None) -> WorkflowRun | None:
        """The run of this workflow that this id, or this idempotency key, has made before."""

    async def start_run(self, new: NewRun) -> StartedRun:
        """→ PENDING, its first nodes SCHEDULED; → QUEUED if its workflow is full and queues. A run id or idempotency key that is
        known gives the run that it made. NotFound, WorkflowDisabled, ConcurrencyLimit, IdTaken, InvalidInput."""

    async def order(self, order: Order) -> Ordered:
        """A person's order. Stop: → STOPPING, what has not started STOPPED. Close: → CLOSED, everything STOPPED. Reopen, Complete,
        SkipNode: nodes that have ended move again, what was skipped because of them is decided anew, FAILED and STOPPED runs →
        RUNNING. NotFound, RunNotRunning, RunTerminal, RunNotStopped, NodeNotRetryable, NodeNotCompletable,
        NodeNotSkippable."""

    def on_run_ended(self, listener: Callable[[EndedRun], None]) -> None:
        """Told, in a thread of the store's, of each run whose end this store has committed: for figures, not for work."""

    async def workflow_run(self, run_id: int) -> WorkflowRun:
        """NotFound."""

    async def workflow_run_by_key(self, key: str) -> WorkflowRun:
        """NotFound."""

    async def workflow_run_keys(self, run_ids: Sequence[int]) -> Mapping[int, str]:
        """The ids that clients know these runs by; one that is gone is left out."""

    async def workflow_runs(self, filters: RunFilter, page: PageRequest) -> Page[WorkflowRun]:
        """Newest first."""

    async def all_runs(
        self, tasks: ExecutionFilter | None, workflows: RunFilter | None, page: PageRequest
    ) -> Page[Execution | WorkflowRun]:
        """Runs of jobs (without their documents) and of workflows, newest first by when they were asked for; None leaves a
        kind out. Pages by number only."""

    async def activity(self, filters: ActivityFilter, request: ActivityRequest) -> ActivityPage:
        """Runs of jobs and of workflows (without their documents), newest first by when they were made (those of one job: by the
        instant that they are for), or the longest or shortest of the newest LOOKED_AT. By status, job and workflow an index
        finds them; for the rest each page looks at LOOKED_AT rows at the most, and the next one goes on there."""

    async def runs_named(
        self, execution_ids: Sequence[int], run_keys: Sequence[str]
    ) -> Sequence[Execution | WorkflowRun]:
        """Runs of jobs, and nodes, with these ids, and runs of workflows with these keys, with all that they were given; one
        that is not there is left out."""

    async def target_names(self, runs: Sequence[Execution | WorkflowRun]) -> TargetNames:
        """What clients call the jobs, workflows, plans and schedules of these runs, those that were deleted too."""

    async def run_nodes(self, run_id: int) -> RunNodes:
        """The run with the snapshot that it started with and all its nodes and items. NotFound."""

    async def node_cells(self, run_ids: Sequence[int], most: int) -> Mapping[int, Sequence[NodeCell]]:
        """How the nodes of each of these runs stand, without items. So many in all: runs that do not fit any more are left out,
        and of the first the rest of its nodes."""

    async def run_standing(self, run_id: int) -> RunStanding:
        """How its nodes stand, with their items counted, and without what they made. NotFound."""

    async def node_items(
        self, run_id: int, node_id: str, wanted: Collection[HowFar] | None, page: PageRequest
    ) -> Page[NodeBrief]:
        """The items of a node in their order; only those that stand so. NotFound."""

    async def node_run(self, run_id: int, node_id: str) -> NodeRun:
        """One node, or one item. NotFound."""

    async def run_events(self, run_id: int, after_id: int, limit: int) -> Sequence[Event]:
        """What happened to a run and its nodes, in order."""

    async def artifacts(self, run_id: int, node_ids: Sequence[str]) -> Mapping[str, Ended]:
        """Of these nodes, those that have ended."""

    async def next_run_deadline_at(self) -> datetime | None:
        """When the next run has taken too long; it may have passed."""

    async def expire_runs(self, now: datetime, limit: int) -> Sequence[int]:
        """→ STOPPING with everything of it STOPPED, and so FAILED, for runs past their deadline. The executions that are to be
        broken off."""

    # By whoever runs a node

    async def skip(self, claim: Claim, reason: str, now: datetime) -> bool:
        """RUNNING → SKIPPED: its condition is false. False: no longer yours."""

    async def defer(self, claim: Claim, until: datetime, now: datetime) -> bool:
        """RUNNING → SCHEDULED, to be taken again at that time; it does not count as an attempt. False: no longer yours."""

    async def spread(self, claim: Claim, items: Sequence[Any], now: datetime) -> bool:
        """RUNNING → DELEGATED, with an execution for each item. False: no longer yours."""

    async def hand_over(self, claim: Claim, new: NewRun) -> bool:
        """RUNNING → DELEGATED, with a workflow run of its own. False: no longer yours. As `start_run`."""

    async def save_checkpoint(self, claim: Claim, value: Any) -> bool:
        """For the next attempt. False: no longer yours."""

    async def save_artifact(self, claim: Claim, value: Any) -> bool:
        """What it has made so far. False: no longer yours."""

    async def append_logs(self, chunks: Sequence[LogChunk]) -> int:
        """What attempts have written; how much of it was new."""

    async def logs(self, execution_id: int, after: tuple[int, int], limit: int) -> Sequence[LogLine]:
        """What its attempts wrote after that (epoch, seq), in order."""

    async def logs_before(self, execution_id: int, before: tuple[int, int], limit: int) -> Sequence[LogLine]:
        """What its attempts wrote before that (epoch, seq), the last first."""


class Plans(Protocol):
    """Plans, the tasks of their tenants, and what is shown of them outside. A task's run is a workflow run like others; what
    becomes of it becomes of the task in the same transaction."""

    async def create_plan(self, new: NewPlan) -> Plan:
        """→ READY, or RUNNING; a task for each tenant, CREATED. IdTaken, TenantBusy (nothing is written)."""

    async def steer_plan(self, order: PlanOrder) -> Steered:
        """A person's order. Start: READY → RUNNING. Pause: RUNNING → PAUSED, its tasks at their next stage boundary. Resume:
        PAUSED → RUNNING with the tasks that paused with it. Cancel: → CANCELLED with all that has not ended. RetryFailed: FAILED
        tasks → CREATED, a plan that had ended → RUNNING. NotFound, PlanRefused, GateShut, BudgetSpent."""

    async def steer_task(self, order: TaskOrder) -> Steered:
        """A person's order. Pause: CREATED, WAITING_FOR_LOCK → PAUSED; RUNNING at its next stage boundary. Resume: PAUSED →
        CREATED. Retry: FAILED, CANCELLED → CREATED. Cancel: → CANCELLED. NotFound, TaskRefused, TenantBusy."""

    async def change_context(self, change: ContextChange) -> bool:
        """More for the checkpoint of a task. NotFound, TaskRefused, CheckpointStale."""

    async def remove_checkpoint(self, removal: CheckpointRemoval) -> bool:
        """A failed task would begin from its first stage. False: it has none. NotFound, TaskRefused, CheckpointStale."""

    async def plan_by_key(self, key: str) -> Plan:
        """NotFound."""

    async def plans(self, filters: PlanFilter, page: PageRequest) -> Page[Plan]:
        """Newest first."""

    async def plan_waves(self, plan: Plan) -> Sequence[WaveTally]:
        """How the tasks of each wave stand."""

    async def plan_counts(self, plan_ids: Sequence[int]) -> Mapping[int, WaveTally]:
        """How the tasks of each of these plans stand, over all of its waves; without who was asked for."""

    async def plan_events(self, plan_id: int, after_id: int, limit: int) -> Sequence[Event]:
        """What happened to a plan, in order."""

    async def tasks(self, filters: TaskFilter, page: PageRequest) -> Page[TenantTask]:
        """In the order in which they are begun; without checkpoints."""

    async def task_of(self, tenant_id: str, plan_key: str | None = None) -> TenantTask:
        """The tenant's task, or the last that it had; or its task in one plan. NotFound."""

    async def task_by_key(self, key: str) -> TenantTask:
        """Without its checkpoint. NotFound."""

    async def tasks_of(self, tenant_ids: Sequence[str]) -> Mapping[str, TenantTask]:
        """The same for many; a tenant that never had one is left out."""

    async def task_stages(self, task_id: int) -> TaskStages:
        """A task with its checkpoint and its stages. NotFound."""

    async def task_events(self, task_id: int, after_id: int, limit: int) -> Sequence[Event]:
        """What happened to a task, in order."""

    # By whoever drives plans

    async def plan_standings(self) -> Sequence[PlanStanding]:
        """Every plan that goes on."""

    async def step_plan(self, plan_id: int, now: datetime) -> Sequence[Candidate]:
        """Whatever follows from how its tasks stand: RUNNING → PAUSED, COMPLETED, FAILED; the next wave. Then those whose turn it
        is; CREATED → WAITING_FOR_LOCK for those whose tenant another task has."""

    async def admit(self, admission: Admission) -> Sequence[int]:
        """CREATED, WAITING_FOR_LOCK → RUNNING with a new fencing token, for as many as there still is room for: their ids."""

    async def lose_lock(self, task_id: int, now: datetime) -> Sequence[int]:
        """RUNNING → WAITING_FOR_LOCK: another has its tenant. The executions that are to be broken off."""

    async def tell_progress(self, now: datetime, every: timedelta, limit: int) -> int:
        """An event for each RUNNING task that has told nothing for so long. How many."""

    async def running_tasks(self, after_id: int, limit: int) -> Sequence[tuple[int, str, str]]:
        """Id, key and tenant of RUNNING tasks with a greater id, by id."""

    async def task_states(self, keys: Sequence[str]) -> Mapping[str, TaskStatus]:
        """Of these tasks, those that there are."""

    async def outbox(self, limit: int) -> Sequence[OutboxRow]:
        """What has changed and is not shown outside yet, oldest first."""

    async def shown(self, row_ids: Sequence[int]) -> int:
        """These rows of the outbox are done with."""

    async def tasks_to_show(self, task_ids: Sequence[int]) -> Sequence[TenantTask]:
        """These tasks with their checkpoints."""

    async def plans_to_show(self, plan_ids: Sequence[int]) -> Sequence[ShownPlan]:
        """These plans with what is shown of them."""

    async def all_tasks_to_show(
        self, after: ShownAfter, since: datetime, limit: int
    ) -> tuple[Sequence[TenantTask], ShownAfter | None]:
        """The next tasks that have not ended, or not before `since`, and where to go on; None: these were the last."""

    async def all_plans_to_show(self, after_id: int, since: datetime, limit: int) -> Sequence[ShownPlan]:
        """Plans with a greater id, by id, that have not ended, or not before `since`."""

    async def plan_figures(self) -> PlanFigures:
        """How many there are that have not ended."""

    # By `ksana.runtime.sql`

    async def write_runtime(self, writes: Sequence[RuntimeWrite]) -> Sequence[bool]:
        """Each by its rule; whether it was written."""

    async def read_runtime(self, kind: str, keys: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """The values and versions of those that are there and have not expired."""

    async def all_runtime(self, kind: str, limit: int) -> Mapping[str, tuple[str, int]]:
        """All of a kind."""

    async def remove_runtime(self, removals: Sequence[RuntimeRemoval]) -> Sequence[bool]:
        """Whether each was there, and went."""

    async def count_runtime(self) -> Mapping[str, int]:
        """How many there are of each kind."""


class Cluster(Protocol):
    """Instances, leases, and the work of those that died. Lease times are the database's own on PostgreSQL and MySQL."""

    async def join(self, new: NewInstance) -> Instance:
        """→ ALIVE. On SQLite every other instance is DEAD from now on: one process holds the file."""

    def beat(
        self, instance_id: str, lease: timedelta, *, leading: Lease | None = None, resigning: Lease | None = None
    ) -> Pulse | None:
        """ALIVE → ALIVE, for one lease more, and with it the lock that it leads by, if it is still held; one that it resigns is
        free. Blocking, on a connection of its own, for a thread of its own.
        None: its lease ran out or it was declared dead, and it must stop all its work and join anew."""

    async def leave(self, instance_id: str) -> bool:
        """ALIVE → LEFT. What it still runs is recovered at once."""

    async def instances(self) -> Sequence[Instance]:
        """Every instance that is known, newest first, at most 1,000."""

    async def holdings(self) -> Mapping[str, int]:
        """How many executions each instance runs; one that runs none is left out."""

    async def next_recovery_at(self) -> datetime | None:
        """When there will be something to recover unless somebody's heart goes on beating; long ago: there is already."""

    async def recover(self, now: datetime, limit: int, most_losses: int = MOST_LOSSES) -> Recovered:
        """ALIVE → DEAD for instances whose lease ran out; what they, and those that left, were RUNNING → SCHEDULED, or FAILED
        if the job's rule is at most once, or if it was lost so often that it may be what kills them. The lost attempt is
        recorded."""

    def tell_others(self, hint: str) -> None:
        """Wakes other instances, where the database can. A hint: it may be lost, late or one for many."""

    def listen(self, listener: Callable[[str], None]) -> bool:
        """Hears what other instances tell from now on, in a thread of the store's; also once, as `*`, whenever some may have
        been missed. False: this database cannot, or nobody else is there."""

    @property
    def shared(self) -> bool:
        """Whether other instances may be on the same database."""

    @property
    def changes(self) -> int | None:
        """Another number after each transaction that may have changed anything, leases aside: as long as it stays the same, so do
        all answers. It changes before whoever wrote hears of it. None: others may write too, and nobody can tell."""

    @property
    def commits(self) -> int:
        """Another number after each transaction of this store's own that may have changed anything, leases aside."""

    async def acquire_lock(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        """A free or expired lock, with a token greater than any before; an owner that still holds it gets it renewed with the
        same token. None: somebody else has it."""

    async def renew_lock(self, lease: Lease, ttl: timedelta) -> Lease | None:
        """None: it ran out or was taken over; whoever guards something with it must stop."""

    async def release_lock(self, lease: Lease) -> bool:
        """False: it was no longer held."""

    async def lock(self, name: str) -> Lease | None:
        """Who holds it now."""


class Journal(Protocol):
    """What happened, and who asked for it."""

    async def events(self, after_id: int, limit: int, subject: str | None = None) -> Sequence[Event]:
        """Events with a greater id, or those of them about one subject, in order. Where several instances write, one may
        appear after another with a greater id: who must not miss any asks again from a little further back."""

    async def events_by_ids(self, ids: Sequence[int]) -> Sequence[Event]:
        """Those of these events that there are, in order."""

    async def newest_event_id(self) -> int:
        """0 if nothing has happened yet."""

    async def origins(self, subjects: Sequence[str]) -> Mapping[str, Origin]:
        """Whose these subjects of events are; one that is gone, or neither a run's nor a target's, is left out. One question for
        each kind, however many there are."""

    async def names_of(self, kind: TargetKind, keys: Collection[str]) -> Mapping[str, str]:
        """How those of these that there are are called, by their keys."""

    async def audit_entries(self, page: PageRequest, filters: AuditFilter = EVERYTHING) -> Page[AuditEntry]:
        """Newest first."""

    async def purge(self, request: PurgeRequest) -> Purged:
        """Removes what has been kept long enough: ended runs with their attempts, callbacks and idempotency keys, rows of the
        ledger, events, instances that are gone. Never anything that has not ended."""


class Overview(Protocol):
    """How all of it stands, and what went wrong. What it costs depends on what is under way, not on history."""

    async def queue_figures(self, now: datetime) -> Sequence[QueueFigures]:
        """Of each queue, how many executions are ready and how many run, by name; a queue that has neither is left out."""

    async def run_history(self, since: datetime, step: timedelta) -> RunHistory:
        """The runs that ended since then, of jobs and of workflows, counted by steps. Nodes, and runs that work for a node, are
        not among them; nor what was cancelled, stopped or skipped."""

    async def failures(self, most: int) -> Failures:
        """What has failed since somebody acknowledged it last, by target: runs of jobs, of workflows and of plans, but not
        those that work for a node, whose run tells it. Nothing of what was deleted."""

    async def acknowledge(self, given: Acknowledgement) -> datetime:
        """Failures that ended until then are not among the `failures` any more. Until when that holds by now: a later
        acknowledgement is never taken back by an earlier one."""


class Store(Definitions, Ledger, Queue, Workflows, Plans, Cluster, Journal, Overview, Protocol):
    """All of it, and the store itself."""

    async def ping(self) -> StoreHealth:
        """Whether the database answers; never raises."""

    def attend(self) -> None:
        """Somebody waits for an answer of this process: for a moment, nothing is to hold up its event loop for long."""

    async def diagnose(self) -> Sequence[Diagnosis]:
        """What `ksana doctor` shows: durable settings, clock, version."""

    async def close(self) -> None:
        """What has been asked for is committed, then the connections are closed. A verb awaited later gets StoreUnavailable."""
