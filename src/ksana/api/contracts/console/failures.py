"""`/api/v1/failures`: what failed and nobody has acknowledged."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import ConfigDict, Field

from ksana.api.contracts.console.activity_showing import ActivityStatus, Target, shown
from ksana.api.contracts.console.targets import of_job, of_plan, of_workflow
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import Reason
from ksana.api.contracts.keys import found_job, found_workflow, possible
from ksana.api.contracts.queries import NoQuery, StrictQuery
from ksana.api.contracts.shapes import Shown, Strict, answer
from ksana.api.contracts.values import Text
from ksana.api.services import Services, actor_of
from ksana.api.times import parse_instant, rfc3339
from ksana.domain.errors import InvalidInput
from ksana.store.activity_requests import TargetNames
from ksana.store.console_requests import MOST_FAILURES, FailedTarget, TargetKind
from ksana.store.console_requests import Target as StoredTarget

FAILURES = "/api/v1/failures"
MOST_SHOWN = 200
_AT = "2026-01-31T12:00:00Z"
_TARGET: dict[str, Any] = {"kind": "job", "id": "ping", "name": "ping", "taskId": 1, "deleted": False}
_ITEM: dict[str, Any] = {
    "target": _TARGET,
    "count": 3,
    "countIsExact": False,
    "madeSince": _AT,
    "firstAt": _AT,
    "lastAt": _AT,
    "lastRunId": "42",
    "status": "FAILED",
    "error": "HTTP 503",
}


class FailureShown(Shown):
    """The failures of one target since its last acknowledgement."""

    target: Target
    count: int
    count_is_exact: bool = Field(description="False: there are more, older ones than were looked at.")
    made_since: str = Field(
        description="When the first that was made of them was: `from` of `/activity`, and of its `:retry`."
    )
    first_at: str = Field(description="When the first of them ended.")
    last_at: str = Field(description="When the last of them ended: what to acknowledge until.")
    last_run_id: str
    status: ActivityStatus = Field(description="Of the last of them.")
    error: str | None = Field(description="Likewise, its first line.")


class FailuresShown(Shown):
    """Newest first."""

    model_config = ConfigDict(json_schema_extra={"example": {"items": [_ITEM], "total": 1, "within": 2000}})

    items: list[FailureShown]
    total: int = Field(description="How many targets have failures.")
    within: int | None = Field(
        description="If there are more failures, how many of each kind, the newest, were looked at."
    )


class TargetBody(Strict):
    kind: Literal["job", "workflow", "plan"]
    id: Text = Field(min_length=1, max_length=64)


class AcknowledgeBody(Strict):
    """One target, or all."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"target": {"kind": "job", "id": "ping"}, "until": _AT, "reason": "seen"}}
    )

    target: TargetBody | None = None
    all: bool = False
    until: Text | None = Field(
        default=None, examples=[_AT], description="Covers what ended until then: `lastAt` of the list. Now if left out."
    )
    reason: Reason | None = None


class Acknowledged(Shown):
    model_config = ConfigDict(json_schema_extra={"example": {"target": _TARGET, "until": _AT}})

    target: Target | None = Field(description="Null: all.")
    until: str = Field(description="Until when failures are acknowledged by now; never earlier than before.")


class FailuresQuery(StrictQuery):
    size: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 50


class Failures:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, control = Permission.RUN_READ, Permission.RUN_CONTROL
        yield Route("GET", FAILURES, self.find, "What failed, by target", read, FailuresShown, (400,))
        path, told = f"{FAILURES}:acknowledge", "Acknowledge failures"
        yield Route("POST", path, self.acknowledge, told, control, Acknowledged, (400, 404))

    async def find(self, query: Annotated[FailuresQuery, Query()]) -> Response:
        """Runs of jobs that ended FAILED, TIMEOUT or FAILED_TIMEOUT, and runs of workflows and plans that ended FAILED, since
        somebody acknowledged it. A later success does not remove them: somebody should have seen it. Nodes, and runs
        that are nodes of others, are told by the outermost run; targets that were deleted are left out."""
        store = self._services.store
        found = await store.failures(query.size)
        names = await store.target_names([each.last for each in found.items])
        items = [_shown(each, names) for each in found.items]
        return answer({"items": items, "total": found.total, "within": None if found.whole else MOST_FAILURES})

    async def acknowledge(self, body: AcknowledgeBody, request: Request, _: NoQuery) -> Response:
        """Durable and audited. What fails later is told again."""
        if body.all == (body.target is not None):
            raise InvalidInput("target", "name one target, or say all")
        until = None if body.until is None else parse_instant(body.until, field="until")
        actor = actor_of(request, body.reason or "")
        stored, told = (None, None) if body.target is None else await self._found(body.target)
        held = await self._services.runs.acknowledge(stored, until, actor)
        return answer({"target": told, "until": rfc3339(held)})

    async def _found(self, named: TargetBody) -> tuple[StoredTarget, dict[str, Any]]:
        """NotFound."""
        store = self._services.store
        if named.kind == "job":
            job = await found_job(store, named.id)
            return StoredTarget(TargetKind.JOB, job.id), of_job(job)
        if named.kind == "workflow":
            workflow = await found_workflow(store, named.id)
            return StoredTarget(TargetKind.WORKFLOW, workflow.id), of_workflow(workflow)
        plan = await store.plan_by_key(possible("plan", named.id))
        return StoredTarget(TargetKind.PLAN, plan.id), of_plan(plan)


def _shown(found: FailedTarget, names: TargetNames) -> dict[str, Any]:
    last = shown(found.last, names)
    return {
        "target": last["target"],
        "count": found.count,
        "countIsExact": found.whole,
        "madeSince": rfc3339(found.made_since),
        "firstAt": rfc3339(found.first_at),
        "lastAt": rfc3339(found.last_at),
        "lastRunId": last["id"],
        "status": last["status"],
        "error": last["error"],
    }
