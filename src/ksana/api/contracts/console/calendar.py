"""`GET /api/v1/jobs/{jobId}/calendar`: a job's ledger by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any

from fastapi import Query, Response

from ksana.api.app import Contract
from ksana.api.contracts.console.calendar_models import CalendarShown
from ksana.api.contracts.jobchain.paths import JOB, JobId
from ksana.api.contracts.jobchain.routes import Permission, needing
from ksana.api.contracts.keys import found_job
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import answer, problems
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.api.times import rfc3339_or_none
from ksana.domain.calendar import ONE_DAY, InstantRange, day_edges, spread_over_days
from ksana.domain.cron import load_zone
from ksana.domain.errors import InvalidInput
from ksana.domain.schedule import ScheduleSpec
from ksana.domain.states import OccurrenceOutcome
from ksana.store.view_requests import JobLedger

MOST_DAYS = 400
MOST_ROWS = 200_000
USUAL = timedelta(days=35)
_NAMES = {OccurrenceOutcome.FIRED: "ran", OccurrenceOutcome.SKIPPED: "skipped", OccurrenceOutcome.MISSED: "missed"}
_EARLIEST, _LATEST = date(1970, 1, 1), date(9990, 1, 1)


class CalendarQuery(StrictQuery):
    from_: str | None = Query(None, alias="from", description="The first day, as in 2026-10-01; 35 days before `to`.")
    to: str | None = Query(None, description="The day after the last; tomorrow, if left out.")
    timezone: str = Query("UTC", max_length=64, description="In which days are counted, as in Europe/Zurich.")


@dataclass(frozen=True, slots=True)
class Days:
    first: date
    edges: Sequence[datetime]


def calendar_contract(services: Services) -> Contract:
    router, store = new_router("Console"), services.store

    @router.get(
        f"{JOB}/calendar",
        response_model=CalendarShown,
        responses=problems(400, 404),
        summary="What became of a job's planned instants, by day",
        openapi_extra=needing(Permission.JOB_READ),
    )
    async def calendar(job_id: JobId, query: Annotated[CalendarQuery, Query()]) -> Response:
        """The ledger of all its schedules, those that were deleted too, at most 400 days of it and 200,000 rows."""
        days = read_days(query, services.clock.now())
        job = await found_job(store, job_id)
        ledger = await store.job_ledger(job.id, days.edges, MOST_ROWS)
        schedules = (await store.schedules_of([job.id])).get(job.id, ())
        counted = count_days(ledger, days, {each.id: each.spec for each in schedules})
        since = _later(await store.ledger_since(), days.edges[ledger.whole_from], days.edges[0])
        partial = ledger.whole_from > 0
        return answer(
            {"timezone": query.timezone, "days": counted, "since": rfc3339_or_none(since), "partial": partial}
        )

    return Contract(router)


def read_days(query: CalendarQuery, now: datetime) -> Days:
    """InvalidInput."""
    zone = load_zone(query.timezone)
    until = now.astimezone(zone).date() + ONE_DAY if query.to is None else _date(query.to, "to")
    first = max(until - USUAL, _EARLIEST) if query.from_ is None else _date(query.from_, "from")
    if until <= first:
        raise InvalidInput("to", "must be after from")
    if (until - first).days > MOST_DAYS:
        raise InvalidInput("to", f"must be at most {MOST_DAYS} days after from")
    return Days(first, day_edges(first, until, zone))


def _date(text: str, field: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(field, "must be a day, as in 2026-10-01") from None
    if not _EARLIEST <= day <= _LATEST:
        raise InvalidInput(field, f"must be between {_EARLIEST} and {_LATEST}")
    return day


def count_days(ledger: JobLedger, days: Days, specs: Mapping[int, ScheduleSpec]) -> list[dict[str, Any]]:
    """Each day with its counts; ranges on the days that they reach over."""
    counted = [{"ran": 0, "skipped": 0, "missed": 0, "failed": 0} for _ in pairwise(days.edges)]
    for each in ledger.counts:
        counted[each.day][_NAMES[each.outcome]] += each.count
        counted[each.day]["failed"] += each.failed
    for part in ledger.ranges:
        spec = specs.get(part.schedule_id)
        for day, count in spread_over_days(spec, InstantRange(part.first, part.last, part.count), days.edges):
            counted[day][_NAMES[part.outcome]] += count
    return [
        {
            "date": (days.first + number * ONE_DAY).isoformat(),
            "planned": counts["ran"] + counts["skipped"] + counts["missed"],
            **counts,
        }
        for number, counts in enumerate(counted)
    ]


def _later(kept: datetime | None, counted: datetime, beginning: datetime) -> datetime | None:
    """From when on it is whole, unless it is from the beginning."""
    since = counted if kept is None else max(kept, counted)
    return since if since > beginning else None
