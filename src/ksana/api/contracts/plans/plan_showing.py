"""Plans as document 004 writes them."""

from collections.abc import Iterator, Sequence
from typing import Any

from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.plan import Budget, Plan, PlanStatus, Wave, WaveTally

COUNTS = ("waiting", "running", "paused", "completed", "failed", "cancelled")
THE_REST = Wave()


def plan_summary(plan: Plan) -> dict[str, Any]:
    spec = plan.spec
    return {
        "planId": plan.key,
        "name": spec.name,
        "description": spec.description,
        "status": plan.status.value,
        "pauseReason": plan.reason,
        "message": plan.message,
        "maxConcurrency": spec.max_concurrency,
        "onBusy": spec.on_busy.value,
        "failureBudget": _budget(spec.failure_budget),
        "tenants": plan.tenants,
        "currentWave": plan.wave + 1,
        "createdAt": rfc3339(plan.created_at),
        "startedAt": rfc3339_or_none(plan.started_at),
        "endedAt": rfc3339_or_none(plan.ended_at),
        "updatedAt": rfc3339(plan.updated_at),
    }


def plan_shown(plan: Plan, tallies: Sequence[WaveTally]) -> dict[str, Any]:
    """The whole plan, and how its tasks stand."""
    counts = {name: sum(getattr(tally, name) for tally in tallies) for name in COUNTS}
    return {
        **plan_summary(plan),
        "stages": list(plan.spec.stage_names),
        "params": dict(plan.spec.params),
        "progress": share(counts["completed"], plan.tenants),
        "tasks": counts,
        "waves": list(_waves(plan, tallies)),
    }


def plan_listed(plan: Plan, tally: WaveTally) -> dict[str, Any]:
    """A plan in a list, and how far it is."""
    return {
        **plan_summary(plan),
        "progress": share(tally.completed, plan.tenants),
        "tasks": _counts(tally),
        "totalWaves": len(plan.spec.waves) + _someone_is_left(plan),
    }


def _someone_is_left(plan: Plan) -> bool:
    """For the wave after those that the plan names."""
    return sum(wave.tenants(plan.tenants) for wave in plan.spec.waves) < plan.tenants


def share(done: int, total: int) -> float:
    return round(done / total, 4) if total else 0.0


def _budget(budget: Budget | None) -> int | str | None:
    if budget is None or budget.percent is None:
        return None if budget is None else budget.count
    return f"{budget.percent:g}%"


def _waves(plan: Plan, tallies: Sequence[WaveTally]) -> Iterator[dict[str, Any]]:
    """Those that the plan names, and whoever is left."""
    for index, tally in enumerate(tallies):
        named = index < len(plan.spec.waves)
        if named or tally.total:
            yield _wave(plan, index, plan.spec.waves[index] if named else THE_REST, tally)


def _wave(plan: Plan, index: int, wave: Wave, tally: WaveTally) -> dict[str, Any]:
    most = wave.max_failed_percent
    return {
        "wave": index + 1,
        "size": wave.size,
        "percent": _number(wave.percent),
        "pauseAfter": wave.pause_after,
        "gate": None if most is None else {"maxFailedPercent": _number(most)},
        "tenants": tally.total,
        "status": _wave_status(plan, index, tally),
        "tasks": _counts(tally),
    }


def _counts(tally: WaveTally) -> dict[str, int]:
    return {name: getattr(tally, name) for name in COUNTS}


def _wave_status(plan: Plan, index: int, tally: WaveTally) -> str:
    """One whose failed tenants are tried again is RUNNING again."""
    if not tally.open:
        return "DONE"
    return "PENDING" if plan.status is PlanStatus.READY or index > plan.wave else "RUNNING"


def _number(value: float | None) -> float | None:
    """As it was given: 10, and not 10.0."""
    return int(value) if value is not None and value.is_integer() else value
