"""Stored schedules and the ledger of their planned instants."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from ksana.domain.schedule import FireDecision, ScheduleSpec
from ksana.domain.states import OccurrenceOutcome, ScheduleStatus
from ksana.domain.values import immutable


@immutable
class Schedule:
    """A stored schedule. `next_planned_for` is its cursor: the instant that the ledger has no row for yet."""

    id: int
    key: str
    job_id: int | None
    spec: ScheduleSpec
    status: ScheduleStatus
    next_planned_for: datetime | None
    next_fire_at: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime
    error: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    workflow_id: int | None = None
    """A schedule belongs to a job or to a workflow."""


@immutable
class Firing:
    """A decision about a schedule that is due. It holds only while the schedule still has this version and cursor."""

    schedule_id: int
    version: int
    cursor: datetime
    decision: FireDecision


@immutable
class Fired:
    """What `fire` wrote for one firing. `lost`: the schedule had moved on, and nothing was written."""

    schedule_id: int
    lost: bool = False
    execution_ids: tuple[int, ...] = ()
    skipped: int = 0
    """How many planned instants were recorded as not run."""
    refused: tuple[str, ...] = ()
    """Why its job took none of them, for each that `skipped` counts and that is not in a range."""
    error: str | None = None
    """Why it could not be written, if that is so."""


@immutable
class Occurrence:
    """A planned instant, or an unbroken range of `count` of them with one fate."""

    schedule_id: int
    planned_for: datetime
    outcome: OccurrenceOutcome
    recorded_at: datetime
    reason: str | None = None
    last_planned_for: datetime | None = None
    count: int = 1
    execution_id: int | None = None
    workflow_run_id: int | None = None
