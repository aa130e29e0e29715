"""`GET /api/v1/forecast`: what is planned, worked out from the schedules."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Query, Response

from ksana.api.app import Contract
from ksana.api.contracts.console.forecast_models import ForecastShown
from ksana.api.contracts.console.forecast_showing import hours_shown, targets_shown
from ksana.api.contracts.console.remembered import Remembered
from ksana.api.contracts.jobchain.routes import Permission, needing
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import answer, problems
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.api.times import parse_instant, rfc3339
from ksana.domain.errors import InvalidInput
from ksana.domain.forecast import HOUR, Span
from ksana.store.base import Store

PATH = "/api/v1/forecast"
LONGEST = timedelta(hours=48)
MOST_SCHEDULES = 10_000
REMEMBERED_SECONDS = 20.0


class ForecastQuery(StrictQuery):
    from_: str | None = Query(None, alias="from", description="RFC 3339; now if not given.")
    until: str | None = Query(
        None, description="RFC 3339; an hour after `from` if not given, at most 48 hours after it."
    )
    by: Literal["target", "hour"] = Query("target")
    size: int = Query(100, ge=1, le=1_000, description="Of `by=target`: how many targets are shown.")


def forecast_contract(services: Services) -> Contract:
    router, store = new_router("Console"), services.store
    remembered: Remembered[dict[str, Any]] = Remembered(services.clock, REMEMBERED_SECONDS)

    @router.get(
        PATH,
        response_model=ForecastShown,
        responses=problems(400),
        summary="What is planned between two instants",
        openapi_extra=needing(Permission.JOB_READ),
    )
    async def forecast(query: Annotated[ForecastQuery, Query()]) -> Response:
        """What the active schedules of enabled jobs and workflows have planned with `from` ≤ planned < `until`. An instant whose
        jitter leads past `until` may be left out. An answer is given again for 20 s."""
        span = _span(query, services.clock.now())
        question = (query.from_, query.until, query.by, query.size)
        return answer(await remembered.get(question, lambda: _worked_out(store, query, span)))

    return Contract(router)


def _span(query: ForecastQuery, now: datetime) -> Span:
    first = now if query.from_ is None else parse_instant(query.from_, field="from")
    try:
        until = first + HOUR if query.until is None else parse_instant(query.until, field="until")
    except OverflowError:
        raise InvalidInput("from", "is too far ahead") from None
    if until < first:
        raise InvalidInput("until", "is before from")
    if until - first > LONGEST:
        raise InvalidInput("until", "must be at most 48 hours after from")
    return Span(first, until)


async def _worked_out(store: Store, query: ForecastQuery, span: Span) -> dict[str, Any]:
    planned = await store.planned_schedules(span.until, MOST_SCHEDULES)
    limited = len(planned) == MOST_SCHEDULES
    if query.by == "hour":
        found = await asyncio.to_thread(hours_shown, planned, span)
    else:
        found = await asyncio.to_thread(targets_shown, planned, span, query.size, limited=limited)
    return {"from": rfc3339(span.first), "until": rfc3339(span.until), **found, "limited": limited}
