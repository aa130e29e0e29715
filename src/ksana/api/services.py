"""What contracts are built from: commands to change things, queries and the store to show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request

from ksana.domain.clock import Clock
from ksana.domain.events import Actor
from ksana.engine.commands import (
    JobCommands,
    PlanCommands,
    RunCommands,
    ScheduleCommands,
    WorkflowCommands,
    WorkflowRunCommands,
)
from ksana.engine.overview import Overviews
from ksana.engine.queries import Queries
from ksana.settings import Settings
from ksana.settings.loading import Shown
from ksana.store.base import Store


@dataclass(frozen=True, slots=True)
class Services:
    """A contract changes things by commands only; the store is for reading."""

    store: Store
    clock: Clock
    queries: Queries
    jobs: JobCommands
    schedules: ScheduleCommands
    runs: RunCommands
    workflows: WorkflowCommands
    workflow_runs: WorkflowRunCommands
    plans: PlanCommands
    settings: Settings
    overviews: Overviews
    shown_settings: Sequence[Shown] = ()
    """Every setting as it may be shown, and where it came from."""


def actor_of(request: Request, reason: str = "") -> Actor:
    """Who asks, for the audit entry."""
    address = request.client.host if request.client is not None else ""
    request_id = request.scope.get("state", {}).get("request_id", "")
    return Actor(name="anonymous", address=address, request_id=request_id, reason=reason)
