"""What contracts are built from: commands to change things, queries and the store to show them."""

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
from ksana.engine.queries import Queries
from ksana.settings import Settings
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


def actor_of(request: Request, reason: str = "") -> Actor:
    """Who asks, for the audit entry."""
    address = request.client.host if request.client is not None else ""
    request_id = request.scope.get("state", {}).get("request_id", "")
    return Actor(name="anonymous", address=address, request_id=request_id, reason=reason)
