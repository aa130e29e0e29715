"""`GET /api/v1/overview`: how all of it stands."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import ConfigDict, Field

from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.services import Services
from ksana.api.times import rfc3339
from ksana.engine.overview import MOST_HOURS, History, Overview
from ksana.store.console_requests import MOST_HISTORY

OVERVIEW = "/api/v1/overview"
_AT = "2026-01-31T12:00:00Z"
_STEP = {"at": _AT, "succeeded": 10, "failed": 1, "lateP50Millis": 3, "lateP99Millis": 20}
EXAMPLE: dict[str, Any] = {
    "at": _AT,
    "running": 3,
    "ready": 0,
    "retrying": 1,
    "awaitingCallback": 0,
    "waiting": 2,
    "failures": 4,
    "queues": [{"queue": "default", "ready": 0, "running": 3, "places": 16}],
    "instances": {"alive": 1, "lost": 0, "leader": "0199f0c4-6a10-7c3e-9b7e-3f0d8f8e2b11"},
    "history": {"stepSeconds": 300, "since": _AT, "steps": [_STEP]},
}


class QueueShown(Shown):
    queue: str
    ready: int = Field(description="What a worker could take now.")
    running: int
    places: int = Field(
        description="How many runs the living instances that serve it take at once, of all their queues together."
    )


class InstancesShown(Shown):
    alive: int
    lost: int = Field(description="Those whose heart stopped within the last hour.")
    leader: str | None


class StepShown(Shown):
    at: str = Field(examples=[_AT], description="When it begins.")
    succeeded: int
    failed: int
    late_p50_millis: int | None = Field(
        alias="lateP50Millis", description="How long after their instant scheduled runs began; null: none did."
    )
    late_p99_millis: int | None = Field(alias="lateP99Millis")


class HistoryShown(Shown):
    step_seconds: int
    since: str = Field(
        examples=[_AT],
        description=f"From when on it is whole: it is made of the newest {MOST_HISTORY:,} runs of jobs and of workflows.",
    )
    steps: list[StepShown] = Field(description="Oldest first.")


class OverviewShown(Shown):
    """What runs, waits and is due, and how it went. At most 5 s old."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    at: str
    running: int
    ready: int = Field(description="What a worker could take now.")
    retrying: int
    awaiting_callback: int
    waiting: int = Field(description="Because their job or workflow runs as often as it may.")
    failures: int = Field(description="Targets with failures that nobody has acknowledged: `total` of `/failures`.")
    queues: list[QueueShown] = Field(description="Those that have something to do, and those that somebody serves.")
    instances: InstancesShown
    history: HistoryShown


class OverviewQuery(StrictQuery):
    hours: Annotated[int, Field(ge=1, le=MOST_HOURS, description="How far back the history goes.")] = 6


class Overviews:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        yield Route("GET", OVERVIEW, self.show, "How all of it stands", Permission.RUN_READ, OverviewShown, (400,))

    async def show(self, query: Annotated[OverviewQuery, Query()]) -> Response:
        """Executions (runs of jobs and nodes of workflows) that have not ended, queues, instances, and the runs that ended in
        the last hours."""
        return answer(_shown(await self._services.overviews.of(query.hours)))


def _shown(found: Overview) -> dict[str, Any]:
    return {
        "at": rfc3339(found.at),
        "running": found.running,
        "ready": found.ready,
        "retrying": found.retrying,
        "awaitingCallback": found.awaiting_callback,
        "waiting": found.waiting,
        "failures": found.failures,
        "queues": [
            {"queue": each.queue, "ready": each.ready, "running": each.running, "places": each.places}
            for each in found.queues
        ],
        "instances": {
            "alive": found.instances.alive,
            "lost": found.instances.lost,
            "leader": found.instances.leader,
        },
        "history": _history(found.history),
    }


def _history(history: History) -> dict[str, Any]:
    return {
        "stepSeconds": history.step // timedelta(seconds=1),
        "since": rfc3339(history.since),
        "steps": [
            {
                "at": rfc3339(each.at),
                "succeeded": each.succeeded,
                "failed": each.failed,
                "lateP50Millis": each.late_p50,
                "lateP99Millis": each.late_p99,
            }
            for each in history.steps
        ],
    }
