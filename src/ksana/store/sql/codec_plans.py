"""Between rows and the domain's values: plans and the tasks of their tenants."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import Row

from ksana.domain.clock import from_micros
from ksana.domain.plan import (
    Budget,
    OnBusy,
    Plan,
    PlanSpec,
    PlanStatus,
    TaskCheckpoint,
    TaskStatus,
    TenantTask,
    Wave,
    Wish,
)
from ksana.store.sql import codec
from ksana.store.sql.rows import fitting_row, to_json


def plan_spec_json(spec: PlanSpec) -> str:
    written = to_json({**asdict(spec), "params": dict(spec.params), "stages": list(spec.stages)}) or ""
    fitting_row(written.encode())
    return written


@lru_cache(maxsize=256)
def plan_spec(document: str) -> PlanSpec:
    fields = orjson.loads(document)
    budget = fields.pop("failure_budget")
    return PlanSpec(
        **{
            **fields,
            "stages": tuple(fields["stages"]),
            "stage_names": tuple(fields["stage_names"]),
            "waves": tuple(Wave(**each) for each in fields["waves"]),
            "failure_budget": None if budget is None else Budget(**budget),
            "on_busy": OnBusy(fields["on_busy"]),
        }
    )


def plan(row: Row[Any]) -> Plan:
    return Plan(
        id=row.id,
        key=row.public_id,
        spec=plan_spec(row.spec),
        status=PlanStatus(row.status),
        tenants=row.tenants,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        reason=row.reason,
        message=row.message,
        wave=row.wave,
        cleared=row.cleared,
        forgiven=row.forgiven,
        version=row.version,
        started_at=codec.instant(row.started_at),
        ended_at=codec.instant(row.ended_at),
    )


@dataclass(frozen=True, slots=True)
class Around:
    """What a task's own row does not have."""

    plan_key: str
    spec: PlanSpec
    run_key: str | None = None
    saved: Mapping[str, Any] = field(default_factory=dict)
    """What its stages put into its checkpoint."""
    has_tenant: bool = False


def task(row: Row[Any], around: Around) -> TenantTask:
    stages = around.spec.stage_names
    return TenantTask(
        id=row.id,
        key=row.public_id,
        plan_id=row.plan_id,
        plan_key=around.plan_key,
        tenant_id=row.tenant_id,
        position=row.position,
        wave=row.wave,
        status=TaskStatus(row.status),
        stage_names=stages,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
        params=_readable(row.params),
        wish=None if row.wish is None else Wish(row.wish),
        run_id=row.run_id,
        run_key=around.run_key,
        generation=row.generation,
        last_completed=row.last_completed,
        version=row.version,
        fence=row.fence,
        error=row.error,
        reason=row.reason,
        started_at=codec.instant(row.started_at),
        ended_at=codec.instant(row.ended_at),
        checkpoint=_checkpoint(row, stages, around.saved),
        checkpoint_version=row.checkpoint_version,
        has_tenant=around.has_tenant,
    )


def _checkpoint(row: Row[Any], stages: tuple[str, ...], saved: Mapping[str, Any]) -> TaskCheckpoint | None:
    if row.checkpoint_at is None:
        return None
    return TaskCheckpoint(
        version=row.checkpoint_version,
        last_completed=row.last_completed,
        completed=stages[: row.last_completed + 1],
        context={**saved, **_readable(row.context)},
        saved_at=from_micros(row.checkpoint_at),
    )


def _readable(value: str | None) -> dict[str, Any]:
    """What nobody can read any more must not keep the rest from being shown."""
    try:
        return dict(codec.from_json(value) or {})
    except (ValueError, TypeError):
        return {}
