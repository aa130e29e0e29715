"""Figures of plans and of what is shown of them."""

from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from ksana.domain.plan import PAUSE_REASONS, PLAN_ENDED, TASK_ACTIVE, PlanStatus
from ksana.engine.plans.findings import Findings
from ksana.runtime.base import Kind
from ksana.store.plan_requests import PlanFigures

PLAN_OPEN = frozenset(PlanStatus) - PLAN_ENDED


class PlanMeasures:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._plans = Gauge("ksana_plans_active", "Plans that have not ended.", ["status"], registry=registry)
        self._tasks_active = Gauge(
            "ksana_tenant_tasks_active", "Tasks of tenants that have not ended.", ["status"], registry=registry
        )
        self._lag = Gauge(
            "ksana_projection_lag_seconds", "Age of the oldest change that is not shown outside.", registry=registry
        )
        self._keys = Gauge(
            "ksana_runtime_keys", "What is shown of plans outside, as last counted.", ["kind"], registry=registry
        )
        self._shown = Gauge("ksana_runtime_up", "Whether runtime state is shown where it should be.", registry=registry)
        self._leaked = Gauge(
            "ksana_tenant_locks_leaked", "Locks of tasks that do not run, found at the last count.", registry=registry
        )
        self._strangers = Gauge(
            "ksana_tenant_locks_unknown",
            "Locks of tasks that Ksana does not know, at the last count.",
            registry=registry,
        )
        self._leaks = Counter("ksana_tenant_lock_leaks", "Locks of tasks that do not run.", registry=registry)
        self._repairs = Counter(
            "ksana_runtime_repairs", "Things shown outside that were not as they should be.", registry=registry
        )
        self._paused = Gauge("ksana_plans_paused", "Plans that are paused, by why.", ["reason"], registry=registry)
        self._counted = Findings()

    def refresh(self, figures: PlanFigures, findings: Findings, now: datetime, *, up: bool) -> None:
        """What is counted of plans, when somebody asks."""
        for plan_status in PLAN_OPEN:
            self._plans.labels(plan_status.value).set(figures.plans.get(plan_status, 0))
        for task_status in TASK_ACTIVE:
            self._tasks_active.labels(task_status.value).set(figures.tasks.get(task_status, 0))
        oldest = figures.outbox_oldest
        self._lag.set(0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()))
        for kind in Kind:
            self._keys.labels(kind.value.partition(":")[0]).set(findings.counts.get(kind, 0))
        self._shown.set(1 if up else 0)
        self._leaked.set(findings.leaked_now)
        self._strangers.set(findings.strangers)
        self._leaks.inc(findings.leaked - self._counted.leaked)
        self._repairs.inc(findings.repaired - self._counted.repaired)
        self._counted.leaked, self._counted.repaired = findings.leaked, findings.repaired
        for reason in PAUSE_REASONS:
            self._paused.labels(reason).set(figures.paused.get(reason, 0))
