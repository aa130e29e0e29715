"""Ksana's own contract for schedules: `/api/v1/schedules`, of any job or workflow. It translates, and decides nothing."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from ksana.api.app import Contract
from ksana.api.contracts.keys import found_job, found_schedule, found_workflow
from ksana.api.contracts.schedules_models import (
    MOST_SHOWN,
    PARTS,
    InstantsShown,
    OccurrencesShown,
    PreviewBody,
    ScheduleBody,
    ScheduleChange,
    ScheduleShown,
    SchedulesQuery,
    SchedulesShown,
)
from ksana.api.contracts.schedules_owners import owner_of, schedules_of, shown_with_owners
from ksana.api.contracts.schedules_showing import (
    SCHEDULES_WORDING,
    instants_shown,
    next_shown,
    occurrence_shown,
    occurrences_shown,
    page_shown,
    schedule_shown,
)
from ksana.api.contracts.schedules_spec import merged, read_spec
from ksana.api.contracts.shapes import answer, problems, renamed
from ksana.api.routing import new_router
from ksana.api.services import Services, actor_of
from ksana.api.times import parse_instant
from ksana.domain.cron import EARLIEST
from ksana.domain.errors import InvalidInput
from ksana.domain.events import Actor
from ksana.domain.ledger import Occurrence, Schedule
from ksana.engine.commands import ScheduleEdit
from ksana.store.base import Store
from ksana.store.requests import EVERY_SCHEDULE, Page, PageRequest

PREFIX = "/api/v1/schedules"
MOST_ROWS = 10_000
DAY = timedelta(days=1)
_FIELDS = {"size": "pageSize", "json": "input"}
ScheduleId = Annotated[str, Path(alias="id", description="The schedule's id.")]
Instant = Annotated[str | None, Query(description="RFC 3339, as in `2026-01-31T12:00:00Z`.")]


def schedules_contract(services: Services) -> Contract:
    """The routes of `/api/v1/schedules`."""
    router = new_router("Schedules")
    _add_preview(router, services)
    _add_collection(router, services)
    _add_schedule(router, services)
    _add_orders(router, services)
    _add_instants(router, services)
    return Contract(router)


def _add_preview(router: APIRouter, services: Services) -> None:
    @router.post(
        f"{PREFIX}:preview", response_model=InstantsShown, responses=problems(400), summary="Preview a schedule"
    )
    async def preview(body: PreviewBody) -> Response:
        """The next instants of a definition that is not saved; what is wrong with it is named."""
        now = services.clock.now()
        spec = read_spec(body.model_dump(include=set(PARTS)), SCHEDULES_WORDING, now=now)
        after = now if body.after is None else parse_instant(body.after, field="after")
        return answer(await asyncio.to_thread(instants_shown, spec, after, body.count))


def _add_collection(router: APIRouter, services: Services) -> None:
    @router.post(
        PREFIX,
        status_code=201,
        response_model=ScheduleShown,
        responses=problems(400, 404),
        summary="Create a schedule",
    )
    async def create(body: ScheduleBody, request: Request) -> Response:
        """A further schedule of a job, or one of a workflow. It starts paused if its job is disabled."""
        owner = await owner_of(services.store, body.job_id, body.workflow_id)
        spec = read_spec(body.model_dump(include=set(PARTS)), SCHEDULES_WORDING, now=services.clock.now())
        with renamed(_FIELDS):
            schedule = await services.schedules.create(
                None if owner.job is None else owner.job.id,
                spec,
                actor_of(request),
                paused=body.paused,
                inputs=body.input,
                workflow_id=None if owner.workflow is None else owner.workflow.id,
            )
        location = {"Location": f"{PREFIX}/{schedule.key}"}
        return answer(schedule_shown(schedule, owner), status=201, headers=location)

    @router.get(PREFIX, response_model=SchedulesShown, responses=problems(400, 404), summary="List schedules")
    async def every_schedule(query: Annotated[SchedulesQuery, Query()]) -> Response:
        """A page of schedules, oldest first. Those of one job or workflow cannot be narrowed further."""
        found = await _matching(services.store, query)
        items = await shown_with_owners(services.store, found.items)
        if query.include:
            await _add_last(services.store, found.items, items)
        return answer(page_shown(items, page=query.page, size=query.page_size, total=found.total or 0))


def _add_schedule(router: APIRouter, services: Services) -> None:
    path = f"{PREFIX}/{{id}}"

    @router.get(path, response_model=ScheduleShown, responses=problems(404), summary="Get a schedule")
    async def read(schedule_id: ScheduleId) -> Response:
        """The schedule, and where it stands."""
        return await _answered(services, await found_schedule(services.store, schedule_id))

    async def change(schedule_id: ScheduleId, body: ScheduleChange, request: Request) -> Response:
        """Only what is given changes, from now on; with `version`, only if nobody has changed it since."""
        return await _answered(services, await _changed(services, schedule_id, body, actor_of(request)))

    for method in ("PATCH", "PUT"):
        router.add_api_route(
            path,
            change,
            methods=[method],
            response_model=ScheduleShown,
            responses=problems(400, 404, 409),
            summary="Change a schedule",
            operation_id=f"change_schedule_{method.lower()}",
        )

    @router.delete(path, status_code=204, responses=problems(404), summary="Delete a schedule")
    async def delete(schedule_id: ScheduleId, request: Request) -> Response:
        """It fires no more; its ledger stays."""
        schedule = await found_schedule(services.store, schedule_id)
        await services.schedules.delete(schedule.key, actor_of(request))
        return Response(status_code=204)


def _add_orders(router: APIRouter, services: Services) -> None:
    @router.post(
        f"{PREFIX}/{{id}}/pause", response_model=ScheduleShown, responses=problems(404), summary="Pause a schedule"
    )
    async def pause(schedule_id: ScheduleId, request: Request) -> Response:
        """It does not fire until it is resumed; what passes is in its ledger then."""
        schedule = await found_schedule(services.store, schedule_id)
        return await _answered(services, await services.schedules.pause(schedule.key, actor_of(request)))

    @router.post(
        f"{PREFIX}/{{id}}/resume", response_model=ScheduleShown, responses=problems(404), summary="Resume a schedule"
    )
    async def resume(schedule_id: ScheduleId, request: Request) -> Response:
        """It goes on with the first instant from now."""
        schedule = await found_schedule(services.store, schedule_id)
        return await _answered(services, await services.schedules.resume(schedule.key, actor_of(request)))


def _add_instants(router: APIRouter, services: Services) -> None:
    @router.get(
        f"{PREFIX}/{{id}}/next",
        response_model=InstantsShown,
        responses=problems(400, 404),
        summary="The next instants of a schedule",
    )
    async def upcoming(schedule_id: ScheduleId, count: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = 10) -> Response:
        """Its next instants, in UTC and in its zone. Of a paused one, those that would follow."""
        schedule = await found_schedule(services.store, schedule_id)
        return answer(await asyncio.to_thread(next_shown, schedule, services.clock.now(), count))

    @router.get(
        f"{PREFIX}/{{id}}/occurrences",
        response_model=OccurrencesShown,
        responses=problems(400, 404),
        summary="The ledger of a schedule",
    )
    async def ledger(
        schedule_id: ScheduleId,
        since: Annotated[Instant, Query(alias="from")] = None,
        until: Annotated[Instant, Query(alias="to")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
        order: Annotated[Literal["oldest", "newest"], Query(description="Which come first.")] = "oldest",
    ) -> Response:
        """Each planned instant with `from` ≤ planned < `to` and what became of it; the last 24 hours, if left out. With
        `order=newest` all of the past, if left out; `next` is then the `to` of the rest."""
        newest = order == "newest"
        first, last = _span(since, until, services.clock.now(), EARLIEST if newest else None)
        schedule = await found_schedule(services.store, schedule_id)
        rows = await services.store.occurrences(schedule.id, first, last, limit + 1, newest=newest)
        runs = await _workflow_runs(services.store, rows)
        return answer(occurrences_shown(rows, limit, runs, newest=newest))


def _span(
    since: str | None, until: str | None, now: datetime, first_of_all: datetime | None
) -> tuple[datetime, datetime]:
    last = now if until is None else parse_instant(until, field="to")
    first = (first_of_all or _day_before(last)) if since is None else parse_instant(since, field="from")
    if last < first:
        raise InvalidInput("to", "is before from")
    return first, last


def _day_before(instant: datetime) -> datetime:
    try:
        return instant - DAY
    except OverflowError:
        return instant


async def _changed(services: Services, schedule_id: str, body: ScheduleChange, actor: Actor) -> Schedule:
    found = await found_schedule(services.store, schedule_id)
    if body.job_id is not None and (await found_job(services.store, body.job_id)).id != found.job_id:
        raise InvalidInput("jobId", "cannot be changed: make another schedule for that job")
    if (
        body.workflow_id is not None
        and (await found_workflow(services.store, body.workflow_id)).id != found.workflow_id
    ):
        raise InvalidInput("workflowId", "cannot be changed: make another schedule for that workflow")
    given = body.model_dump(include=set(PARTS), exclude_unset=True)

    def edit(schedule: Schedule) -> ScheduleEdit:
        parts = merged(schedule.spec, given, SCHEDULES_WORDING)
        spec = read_spec(parts, SCHEDULES_WORDING, now=services.clock.now(), previous=schedule.spec)
        return ScheduleEdit(spec, body.input, body.version)

    return await services.schedules.amend(found.key, edit, actor)


async def _matching(store: Store, query: SchedulesQuery) -> Page[Schedule]:
    with renamed(_FIELDS):
        wanted = PageRequest(query.page, query.page_size)
    if query.job_id is None and query.workflow_id is None:
        return await store.schedules(wanted, query.filters)
    if query.filters != EVERY_SCHEDULE:
        raise InvalidInput("keyword", "keyword, status and kind cannot be combined with jobId or workflowId")
    of_owner = await schedules_of(store, await owner_of(store, query.job_id, query.workflow_id))
    return Page(of_owner[wanted.offset : wanted.offset + wanted.size], len(of_owner), wanted.page, wanted.size)


async def _add_last(store: Store, schedules: Sequence[Schedule], shown: Sequence[dict[str, Any]]) -> None:
    """What became of the last instant of each."""
    rows = await store.last_occurrences([each.id for each in schedules])
    runs = await _workflow_runs(store, rows.values())
    for schedule, item in zip(schedules, shown, strict=True):
        last = rows.get(schedule.id)
        item["last"] = None if last is None else occurrence_shown(last, runs)


async def _workflow_runs(store: Store, rows: Iterable[Occurrence]) -> Mapping[int, str]:
    return await store.workflow_run_keys([row.workflow_run_id for row in rows if row.workflow_run_id is not None])


async def _answered(services: Services, schedule: Schedule) -> Response:
    return answer((await shown_with_owners(services.store, [schedule]))[0])
