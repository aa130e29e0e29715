"""The engine's figures, under document 003's names and our own. Labels are bounded: no user can make series without end."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ksana.domain.execution import Claimed, Execution
from ksana.domain.ledger import Fired, Schedule
from ksana.domain.outcome import Evidence
from ksana.domain.schedule import FireDecision
from ksana.domain.states import ACTIVE, CRONJOB_NAMES, RUN_ACTIVE, ExecutionStatus
from ksana.engine.plans.measures import PlanMeasures
from ksana.engine.tallies import Counts, Distribution
from ksana.store.requests import Figures, Recovered
from ksana.store.workflow_requests import EndedRun

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
OTHER = "other"
ALL = ()
"""Of a figure without labels."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    max_tasks: int = 1_000
    """How many tasks have series of their own; the others share one."""


class Measures:
    def __init__(self, registry: CollectorRegistry, options: MeasureOptions) -> None:
        self._options = options
        self._known: dict[int, str] = {}
        self._tasks = Gauge("cronjob_task_total", "Tasks.", ["status"], registry=registry)
        self._runs = Counts("cronjob_run", "Runs that ended.", ["status"], registry)
        self._durations = Distribution(
            "cronjob_run_duration_seconds", "From the first attempt to the end.", ["task_id"], registry, _SECONDS
        )
        self._retries = Counter("cronjob_run_retries", "Attempts to be repeated.", ["task_id"], registry=registry)
        self._requests = Counts("cronjob_http_request", "Requests to targets.", ["method", "code"], registry)
        self._pending = Gauge("cronjob_callback_pending", "Runs that wait for their callback.", registry=registry)
        self._looks = Histogram(
            "cronjob_scheduler_scan_latency", "Time to read what is due.", registry=registry, buckets=_SECONDS
        )
        self._misfires = Counter(
            "cronjob_misfire", "Planned instants that came too late.", ["task_id"], registry=registry
        )
        self._lateness = Distribution(
            "ksana_lateness_seconds", "From the planned instant to the start.", [], registry, _SECONDS
        )
        self._skips = Counts("ksana_skips", "Planned instants that were not run.", ["reason"], registry)
        self._active = Gauge("ksana_runs_active", "Runs that have not ended.", ["status"], registry=registry)
        self._flows = Counter("ksana_workflow_runs", "Workflow runs that ended.", ["status"], registry=registry)
        self._flow_seconds = Histogram(
            "ksana_workflow_run_duration_seconds",
            "From the first node's start to the end.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._flows_active = Gauge(
            "ksana_workflow_runs_active", "Workflow runs that have not ended.", ["status"], registry=registry
        )
        self._nodes = Distribution(
            "ksana_node_duration_seconds", "One attempt of a node, or of an item.", ["type"], registry, _SECONDS
        )
        self.plans = PlanMeasures(registry)
        self._leads = Gauge("ksana_leads", "1 while this instance leads.", registry=registry)
        self._living = Gauge("ksana_instances", "Instances that are alive.", registry=registry)
        self._fenced = Counter(
            "ksana_fenced", "Results that were refused: the attempt was no longer this instance's.", registry=registry
        )
        self._rescued = Counter(
            "ksana_recovered", "Executions whose instance was lost while they ran.", ["outcome"], registry=registry
        )
        self._running = Gauge("ksana_worker_running", "Executions that this instance runs.", registry=registry)

    def looked(self, seconds: float) -> None:
        self._looks.observe(seconds)

    def fired(self, schedule: Schedule, decision: FireDecision, fired: Fired) -> None:
        """What `fire` wrote: of what it skipped, the ranges are misfires, the rest was refused by the job."""
        misfired = sum(part.count for part in decision.skipped)
        for part in decision.skipped:
            self._skips.add((part.reason,), part.count)
        if misfired:
            self._misfires.labels(self._task(schedule.job_id)).inc(misfired)
        for reason in fired.refused:
            self._skips.add((reason,))
            self._runs.add((CRONJOB_NAMES[ExecutionStatus.SKIPPED],))

    def started(self, claimed: Claimed, at: datetime) -> None:
        execution = claimed.execution
        if execution.attempt == 1 and claimed.node is None:  # a node is for no instant of its own
            late = at - (execution.planned_for or execution.created_at)
            self._lateness.observe(ALL, max(0.0, late.total_seconds()))

    def running(self, number: Callable[[], int]) -> None:
        """Who knows how many run, whenever somebody asks."""
        self._running.set_function(number)

    def attempted(self, evidence: Evidence) -> None:
        """An attempt is over, however it went."""
        method = evidence.request.get("method") if evidence.request else None
        if isinstance(method, str):
            known = method if method in METHODS else OTHER
            self._requests.add((known, _code(evidence.response_code)))

    def retried(self, claimed: Claimed) -> None:
        self._retries.labels(self._task(claimed.execution.job_id)).inc()

    def ended(self, status: ExecutionStatus, execution: Execution, at: datetime) -> None:
        """A run is over: counted by how, and by how long it took from its first attempt on. Nodes are not runs."""
        if execution.workflow_run_id is not None:
            return
        self._runs.add((CRONJOB_NAMES[status],))
        if execution.started_at is not None:
            seconds = (at - execution.started_at).total_seconds()
            self._durations.observe((self._task(execution.job_id),), max(0.0, seconds))

    def node_attempted(self, job_type: str, seconds: float) -> None:
        """An attempt of a node is over; its type is one of those that there are."""
        self._nodes.observe((job_type,), seconds)

    def run_ended(self, ended: EndedRun) -> None:
        """A workflow run is over."""
        self._flows.labels(ended.status.value).inc()
        self._flow_seconds.observe(ended.seconds)

    def fenced(self) -> None:
        self._fenced.inc()

    def recovered(self, found: Recovered) -> None:
        """Work of instances that are gone."""
        self._rescued.labels("requeued").inc(found.requeued)
        self._rescued.labels("failed").inc(found.failed)

    def leading(self, leads: bool) -> None:  # noqa: FBT001 - what else could it be
        """Whether this instance leads, when somebody asks."""
        self._leads.set(leads)

    def living(self, number: int) -> None:
        """How many instances there are, when somebody asks."""
        self._living.set(number)

    def expired(self, number: int) -> None:
        """So many runs waited for their callback in vain."""
        self._runs.add((CRONJOB_NAMES[ExecutionStatus.FAILED_TIMEOUT],), number)

    def refresh(self, figures: Figures) -> None:
        """What is counted in the store, when somebody asks."""
        self._tasks.labels("ENABLED").set(figures.jobs_enabled)
        self._tasks.labels("DISABLED").set(figures.jobs_disabled)
        self._pending.set(figures.active.get(ExecutionStatus.CALLBACK_PENDING, 0))
        for run_status in RUN_ACTIVE:
            self._flows_active.labels(run_status.value).set(figures.workflow_runs.get(run_status, 0))
        for status in ACTIVE:
            self._active.labels(status.value).set(figures.active.get(status, 0))

    def _task(self, job_id: int | None) -> str:
        if job_id is None:
            return OTHER
        if job_id not in self._known and len(self._known) < self._options.max_tasks:
            self._known[job_id] = str(job_id)
        return self._known.get(job_id, OTHER)


def _code(status: int | None) -> str:
    if status is None:
        return "error"
    return str(status) if 100 <= status <= 599 else OTHER
