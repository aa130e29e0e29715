"""The Ksana contract, document 002 §8: `/jobs`, without a prefix. It translates, and decides nothing."""

from collections.abc import AsyncIterator
from typing import Annotated

import orjson
from fastapi import APIRouter, Header, Path, Query, Request, Response

from ksana.api.app import Contract
from ksana.api.contracts.keys import found_job
from ksana.api.contracts.ksana_models import JobBody, JobChange, JobShown, RunShown
from ksana.api.contracts.ksana_reading import FIELDS, named_as_written, read_edit, read_job
from ksana.api.contracts.ksana_showing import KSANA_WORDING, job_shown
from ksana.api.contracts.shapes import answer, problems, renamed
from ksana.api.routing import new_router
from ksana.api.services import Services, actor_of
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.events import Actor
from ksana.domain.states import ScheduleStatus
from ksana.engine.commands import RunRequest
from ksana.engine.queries import JobView
from ksana.store.requests import MAX_PAGE_SIZE, JobFilter, PageRequest

MOST_LISTED = 10_000
JobId = Annotated[str, Path(alias="id", description="The job's id; the integer of document 003 is taken, too.")]


def ksana_contract(services: Services) -> Contract:
    """The routes of `/jobs`."""
    router = new_router("Jobs (002)", "/jobs")
    _add_collection(router, services)
    _add_job(router, services)
    _add_orders(router, services)
    return Contract(router)


def _add_collection(router: APIRouter, services: Services) -> None:
    @router.post("", status_code=201, response_model=JobShown, responses=problems(400, 409), summary="Create a job")
    async def create(body: JobBody, request: Request) -> Response:
        """`id` may be left out; what is said about timeout and retries nowhere else comes from the settings `jobs.…`."""
        with named_as_written(body.type):
            draft = read_job(body, services.settings.jobs, KSANA_WORDING, services.clock.now())
            view = await services.jobs.create(draft, actor_of(request))
        return answer(job_shown(view), status=201, headers={"Location": f"/jobs/{view.job.key}"})

    @router.get("", response_model=list[JobShown], responses=problems(400), summary="List jobs")
    async def every_job(
        limit: Annotated[int | None, Query(ge=1, le=MOST_LISTED, description="All, if left out.")] = None,
        after: Annotated[str | None, Query(description="Goes on after the job with this id.")] = None,
    ) -> Response:
        """All jobs, oldest first, as an array: those of other contracts as well."""
        begin = 0 if after is None else await _position(services, after)
        listed = [orjson.dumps(job_shown(view)) async for view in _walk(services, begin, limit)]
        return Response(b"[" + b",".join(listed) + b"]", media_type="application/json")


def _add_job(router: APIRouter, services: Services) -> None:
    @router.get("/{id}", response_model=JobShown, responses=problems(404), summary="Get a job")
    async def read(job_id: JobId) -> Response:
        """The job, when it runs next, and how its last run ended."""
        return answer(job_shown(await _view(services, job_id)))

    @router.patch("/{id}", response_model=JobShown, responses=problems(400, 404, 409), summary="Change a job")
    async def change(job_id: JobId, body: JobChange, request: Request) -> Response:
        """Only what is given changes: in `http` single parts, in `schedule` single parts too unless it has a `kind`."""
        return answer(job_shown(await _changed(services, job_id, body, actor_of(request))))

    @router.delete("/{id}", status_code=204, responses=problems(404), summary="Delete a job")
    async def delete(job_id: JobId, request: Request) -> Response:
        """It runs no more; what runs may end, and its history stays."""
        job = await found_job(services.store, job_id)
        await services.jobs.delete(job.id, actor_of(request))
        return Response(status_code=204)


def _add_orders(router: APIRouter, services: Services) -> None:
    @router.post(
        "/{id}/run-now",
        status_code=202,
        response_model=RunShown,
        responses=problems(400, 404, 409),
        summary="Run a job now",
    )
    async def run_now(
        job_id: JobId,
        request: Request,
        key: Annotated[
            str | None, Header(alias="Idempotency-Key", description="The same key again answers with the same run.")
        ] = None,
    ) -> Response:
        """One run, at once; `next_run_at` stays. A paused job can be run, too."""
        job = await found_job(services.store, job_id)
        with renamed(FIELDS):
            enqueued = await services.jobs.run(job.id, RunRequest(idempotency_key=key), actor_of(request))
        run = enqueued.execution
        return answer({"run_id": str(run.id), "job_id": job.key, "status": run.status.value}, status=202)

    @router.post("/{id}/pause", response_model=JobShown, responses=problems(404), summary="Pause a job")
    async def pause(job_id: JobId, request: Request) -> Response:
        """`enabled` becomes false: it does not run until it is resumed."""
        job = await found_job(services.store, job_id)
        return answer(job_shown(await services.jobs.switch(job.id, actor_of(request), enabled=False)))

    @router.post("/{id}/resume", response_model=JobShown, responses=problems(404), summary="Resume a job")
    async def resume(job_id: JobId, request: Request) -> Response:
        """`enabled` becomes true: it goes on with the first instant from now."""
        job = await found_job(services.store, job_id)
        return answer(job_shown(await _resumed(services, job.id, actor_of(request))))


async def _view(services: Services, job_id: str) -> JobView:
    return await services.queries.of(await found_job(services.store, job_id))


async def _changed(services: Services, job_id: str, body: JobChange, actor: Actor) -> JobView:
    job = await found_job(services.store, job_id)
    with named_as_written(job.spec.type):
        now = services.clock.now()
        return await services.jobs.amend(job.id, lambda view: read_edit(body, view, KSANA_WORDING, now), actor)


async def _resumed(services: Services, job_id: int, actor: Actor) -> JobView:
    """A schedule that was paused by itself, at `/api/v1/schedules`, goes on as well: a job that is resumed runs."""
    view = await services.jobs.switch(job_id, actor, enabled=True)
    if view.schedule is None or view.schedule.status is not ScheduleStatus.PAUSED:
        return view
    await services.schedules.resume(view.schedule.key, actor)
    return await services.queries.job(job_id)


async def _position(services: Services, after: str) -> int:
    try:
        return (await found_job(services.store, after)).id
    except NotFound:
        raise InvalidInput("after", "no job has this id") from None


async def _walk(services: Services, after: int, limit: int | None) -> AsyncIterator[JobView]:
    """The jobs that follow, page by page, so that none is read twice and none is counted."""
    while limit is None or limit > 0:
        size = MAX_PAGE_SIZE if limit is None else min(limit, MAX_PAGE_SIZE)
        page = await services.queries.jobs(JobFilter(), PageRequest(size=size, before_id=after))
        for view in page.items:
            yield view
        if len(page.items) < size:
            return
        after = page.items[-1].job.id
        limit = None if limit is None else limit - size
