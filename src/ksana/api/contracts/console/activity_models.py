"""What the list of runs of both kinds is asked, and what it and orders to many runs answer."""

from typing import Annotated, Any, Literal, Self

from fastapi import Query
from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ksana.api.contracts.console.activity_showing import ActivityItem, ActivityStatus, RunKind
from ksana.api.contracts.jobchain.run_models import Reason
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import Shown, Strict
from ksana.api.contracts.values import Text, empty_as_none
from ksana.domain.execution import Trigger
from ksana.engine.commands.activity import MOST_AT_ONCE
from ksana.store.activity_requests import Sort

MAX_SIZE = 200
MAX_CURSOR = 400
Cursor = Annotated[str, Field(max_length=MAX_CURSOR)]
Empty = BeforeValidator(empty_as_none)
TriggerName = Literal["schedule", "manual", "workflow", "plan"]
_RFC3339 = "RFC 3339, as in `2026-01-31T12:00:00Z`."
_SINCE = f"Made at this instant or later; {_RFC3339}"
_UNTIL = f"Made before this instant; {_RFC3339}"
_JOB = "Runs of this job; its key, or its number."
_DONE: dict[str, Any] = {
    "matched": 3,
    "possible": 2,
    "done": 2,
    "refused": [],
    "limited": True,
    "next": "WyJuZXdlc3QiLDQyLG51bGwsbnVsbF0",
}


class ActivityQuery(StrictQuery):
    """Which runs, in which order."""

    status: Annotated[str | None, Empty, Field(description="Any of the names of states, several by commas.")] = None
    kind: Annotated[RunKind | None, Empty] = None
    job_id: Annotated[str | None, Empty, Field(description=_JOB)] = None
    workflow_id: Annotated[str | None, Empty, Field(description="Runs of this workflow, or of this plan.")] = None
    tenant_id: Annotated[str | None, Empty, Field(description="Runs that are this tenant's tasks.")] = None
    trigger: Annotated[Trigger | None, Empty] = None
    since: Annotated[str | None, Empty, Field(alias="from", description=_SINCE)] = None
    to: Annotated[str | None, Empty, Field(description=_UNTIL)] = None
    sort: Annotated[
        Sort, Field(description="`longest` and `shortest` order the newest 10,000 that match; what runs counts so far.")
    ] = Sort.NEWEST
    cursor: Annotated[Cursor | None, Empty, Field(description="`next` of the page before.")] = None
    size: Annotated[int, Field(ge=1, le=MAX_SIZE)] = 50


WhichRuns = Annotated[ActivityQuery, Query()]


class ActivityShown(Shown):
    """Runs of jobs and of workflows. By status, kind, job, workflow and time they are found by an index. By tenant and trigger,
    and among the runs of one job, a page looks at the newest 10,000 of those at the most: it may have fewer items than were
    asked for, or none, while there is a `next` that goes on behind them."""

    items: list[ActivityItem]
    next: str | None = Field(description="The `cursor` of the page that follows; null: there is none.")
    total: int | None = Field(description="Counted up to 10,000, on the first page; null on others.")
    total_is_exact: bool
    within: int | None = Field(description="Of how many the longest or shortest are shown; null if they are by age.")


class FilterBody(Strict):
    """As the query of the list; what is left out does not matter, but something must be said."""

    model_config = ConfigDict(alias_generator=to_camel)

    status: list[ActivityStatus] | None = Field(
        default=None,
        description="Left out: for `:retry` those that ended without success, for `:cancel` those that have not ended.",
    )
    kind: RunKind | None = None
    job_id: Text | None = Field(default=None, description=_JOB)
    workflow_id: Text | None = None
    tenant_id: Text | None = None
    trigger: TriggerName | None = None
    since: Text | None = Field(default=None, alias="from", description=_SINCE)
    to: Text | None = Field(default=None, description=_UNTIL)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise PydanticCustomError("filter", "must say something: every run there is cannot be meant")
        return self


class ManyBody(Strict):
    """Which runs: by their ids, or by a filter."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        json_schema_extra={"example": {"ids": ["42", "order-4711"], "reason": "the disk is back", "dryRun": True}},
    )

    ids: Annotated[list[Text], Field(min_length=1, max_length=MOST_AT_ONCE)] | None = None
    filter: FilterBody | None = Field(default=None, description=f"The newest {MOST_AT_ONCE:,} that match.")
    cursor: Text | None = Field(
        default=None, description="`next` of the same order before: with `filter`, those that come after its last."
    )
    reason: Reason | None = None
    dry_run: bool = Field(default=False, description="Only counts, and says what would be refused.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise PydanticCustomError("which", "needs either ids or filter")
        if self.cursor is not None and self.filter is None:
            raise PydanticCustomError("cursor", "cursor goes with filter only")
        return self


class RunRefused(Shown):
    id: str
    code: str = Field(examples=["RUN_NOT_STOPPED"])
    message: str


class ManyOrdered(Shown):
    """What became of an order to many. A refusal of one does not hold up the others."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _DONE})

    matched: int = Field(description="How many there are.")
    possible: int = Field(description="How many of those were in a state for it.")
    done: int
    refused: list[RunRefused]
    limited: bool = Field(description="Whether more match than are ordered at a time.")
    next: str | None = Field(description="The `cursor` with which the same order goes on; null if these were all.")
