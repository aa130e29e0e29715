"""Paths of document 004, and what their queries may say."""

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BeforeValidator, Field

from ksana.api.contracts.jobchain.runs import MOST_EVENTS
from ksana.api.contracts.keys import possible
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.segments import segment
from ksana.api.contracts.values import Keyword, PageNumber, PageSize, empty_as_none
from ksana.domain.ids import KEY_LENGTH, LARGEST_INTEGER
from ksana.domain.plan import PlanStatus, TaskStatus
from ksana.domain.plan_reading import MAX_WAVES

PLANS = "/api/v1/plans"
PLAN = f"{PLANS}/{segment('planId')}"
TENANTS = "/api/v1/tenants"
TENANT = f"{TENANTS}/{segment('tenantId')}"
TASK = f"{TENANT}/task"
CHECKPOINT = f"{TENANT}/checkpoint"

PlanId = Annotated[str, Path(alias="planId", description="The plan's id.")]
TenantId = Annotated[str, Path(alias="tenantId", description="The tenant's id, which may be a number.")]
Empty = BeforeValidator(empty_as_none)
After = Annotated[int, Field(ge=0, le=LARGEST_INTEGER, description="Those that follow the event with this id.")]
Limit = Annotated[int, Field(ge=1, le=MOST_EVENTS)]
WaveNumber = Annotated[int, Field(ge=1, le=MAX_WAVES + 1)]
Part = Annotated[str, Field(max_length=KEY_LENGTH)]
CheckpointVersion = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class PlansQuery(StrictQuery):
    status: Annotated[PlanStatus | None, Empty] = None
    keyword: Keyword = None
    include: Annotated[Literal["tasks"] | None, Empty, Field(description="Also how far each is.")] = None
    page: PageNumber = 1
    size: PageSize = 20


class TasksQuery(StrictQuery):
    status: Annotated[TaskStatus | None, Empty] = None
    wave: Annotated[WaveNumber | None, Empty, Field(description="From 1.")] = None
    keyword: Annotated[Part | None, Empty, Field(description="Part of the tenant's id.")] = None
    page: PageNumber = 1
    size: PageSize = 20


class EventsQuery(StrictQuery):
    after: After = 0
    limit: Limit = 100


class TaskQuery(StrictQuery):
    plan_id: Annotated[str | None, Empty] = Field(
        default=None, description="Its task in this plan; else the one that it has or, if it has none, the last."
    )

    @property
    def plan_key(self) -> str | None:
        """NotFound if nothing can have that id."""
        return None if self.plan_id is None else possible("plan", self.plan_id)


class TaskEventsQuery(TaskQuery, EventsQuery):
    pass


class RemovalQuery(TaskQuery):
    version: Annotated[CheckpointVersion | None, Empty] = Field(
        default=None, description="Removes it only if this is still its version."
    )


WhichPlans = Annotated[PlansQuery, Query()]
WhichTasks = Annotated[TasksQuery, Query()]
WhichEvents = Annotated[EventsQuery, Query()]
WhichTask = Annotated[TaskQuery, Query()]
WhichTaskEvents = Annotated[TaskEventsQuery, Query()]
WhichCheckpoint = Annotated[RemovalQuery, Query()]
