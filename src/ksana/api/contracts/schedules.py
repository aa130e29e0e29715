"""Ksana's own contract for schedules: `/api/v1/schedules`, of any job or workflow. It translates, and decides nothing."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Any

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
    SchedulesShown,
)
from ksana.api.contracts.schedules_owners import owner_of, schedules_of, shown_with_owners
from ksana.api.contracts.schedules_showing import (
    SCHEDULES_WORDING,
    Owner,
    instants_shown,
    next_shown,
    occurrences_shown,
    page_shown,
    schedule_shown,
)
from ksana.api.contracts.schedules_spec import merged, read_spec
from ksana.api.contracts.shapes import answer, problems, renamed
from ksana.api.services import Services, actor_of
from ksana.api.times import parse_instant
from ksana.domain.errors import InvalidInput
from ksana.domain.events import Actor
from ksana.domain.ledger import Schedule
from ksana.engine.commands import ScheduleEdit
from ksana.store.requests import MAX_PAGE_SIZE, MAX_PAGED_ROWS, PageRequest

PREFIX = "/api/v1/schedules"
MOST_ROWS = 10_000
DAY = timedelta(days=1)
_FIELDS = {"size": "pageSize", "json": "input"}
ScheduleId = Annotated[str, Path(alias="id", description="The schedule's id.")]
Instant = Annotated[str | None, Query(description="RFC 3339, as in `2026-01-31T12:00:00Z`.")]


def schedules_contract(services: Services) -> Contract:
    """The routes of `/api/v1/schedules`."""
    router = APIRouter(tags=["Schedules"])
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
    async def every_schedule(
        job_id: Annotated[str | None, Query(alias="jobId", description="Of this job only.")] = None,
        workflow_id: Annotated[str | None, Query(alias="workflowId", description="Of this workflow only.")] = None,
        page: Annotated[int, Query(ge=1, le=MAX_PAGED_ROWS)] = 1,
        size: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, alias="pageSize")] = 20,
    ) -> Response:
        """A page of schedules, oldest first."""
        with renamed(_FIELDS):
            wanted = PageRequest(page, size)
        if job_id is not None or workflow_id is not None:
            return answer(await _page_of(services, await owner_of(services.store, job_id, workflow_id), wanted))
        found = await services.store.schedules(wanted)
        items = await shown_with_owners(services.store, found.items)
        return answer(page_shown(items, page=page, size=size, total=found.total or 0))


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
    ) -> Response:
        """Each planned instant with `from` ≤ planned < `to` and what became of it; the last 24 hours, if left out."""
        first, last = _span(since, until, services.clock.now())
        schedule = await found_schedule(services.store, schedule_id)
        rows = await services.store.occurrences(schedule.id, first, last, limit + 1)
        runs = [row.workflow_run_id for row in rows if row.workflow_run_id is not None]
        return answer(occurrences_shown(rows, limit, await services.store.workflow_run_keys(runs)))


def _span(since: str | None, until: str | None, now: datetime) -> tuple[datetime, datetime]:
    last = now if until is None else parse_instant(until, field="to")
    first = _day_before(last) if since is None else parse_instant(since, field="from")
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


async def _page_of(services: Services, owner: Owner, wanted: PageRequest) -> dict[str, Any]:
    of_owner = await schedules_of(services.store, owner)
    items = [schedule_shown(each, owner) for each in of_owner[wanted.offset : wanted.offset + wanted.size]]
    return page_shown(items, page=wanted.page, size=wanted.size, total=len(of_owner))


async def _answered(services: Services, schedule: Schedule) -> Response:
    return answer((await shown_with_owners(services.store, [schedule]))[0])
