"""`/api/v1/jobs` (document 001 §4): what nodes of workflows run. Jobs of every contract are shown here."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BeforeValidator

from ksana.api.contracts.cronjob.values import empty_as_none, printable
from ksana.api.contracts.jobchain.job_models import JobBody, JobChange, JobShown, JobsShown
from ksana.api.contracts.jobchain.job_reading import config_named, read_edit, read_job
from ksana.api.contracts.jobchain.job_showing import job_shown, jobs_shown
from ksana.api.contracts.jobchain.paths import JOB, JOBS, JobId
from ksana.api.contracts.keys import found_job
from ksana.api.contracts.shapes import answer, problems
from ksana.api.services import Services, actor_of
from ksana.domain.job import NAME_LENGTH
from ksana.store.requests import MAX_PAGE_SIZE, MAX_PAGED_ROWS, JobFilter, PageRequest

PageNumber = Annotated[int, Query(ge=1, le=MAX_PAGED_ROWS, description="From 1.")]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Keyword = Annotated[str | None, Query(max_length=NAME_LENGTH, description="Part of the name.")]
Enabled = Annotated[bool | None, BeforeValidator(empty_as_none)]


class Jobs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def add_to(self, router: APIRouter) -> None:
        add = router.add_api_route
        add(
            JOBS,
            self.create,
            methods=["POST"],
            status_code=201,
            response_model=JobShown,
            responses=problems(400, 409),
            summary="Create a job",
        )
        add(JOBS, self.find, methods=["GET"], response_model=JobsShown, responses=problems(400), summary="List jobs")
        add(JOB, self.show, methods=["GET"], response_model=JobShown, responses=problems(404), summary="Show a job")
        add(
            JOB,
            self.change,
            methods=["PUT"],
            response_model=JobShown,
            responses=problems(400, 404, 409),
            summary="Change a job",
        )
        add(
            JOB,
            self.delete,
            methods=["DELETE"],
            status_code=204,
            responses=problems(404, 409),
            summary="Delete a job",
        )
        for order in (self.enable, self.disable):
            add(
                f"{JOB}:{order.__name__}",
                order,
                methods=["POST"],
                response_model=JobShown,
                responses=problems(404),
                summary=f"{order.__name__.capitalize()} a job",
            )

    async def create(self, body: JobBody, request: Request) -> Response:
        """Name and type are required, and in `configJson` what an executor of that type needs."""
        with config_named():
            draft = read_job(body, self._http_timeout)
            job = (await self._services.jobs.create(draft, actor_of(request))).job
        return answer(job_shown(job), status=201, headers={"Location": f"{JOBS}/{job.key}"})

    async def find(
        self,
        page: PageNumber = 1,
        size: PageSize = 20,
        keyword: Keyword = None,
        enabled: Enabled = None,
        job_type: Annotated[str | None, Query(alias="type", description="Of this type only.")] = None,
    ) -> Response:
        """A page of jobs, oldest first: those of other contracts as well."""
        filters = JobFilter(
            keyword=printable(keyword, field="keyword") if keyword else None,
            enabled=enabled,
            type=printable(job_type, field="type") if job_type else None,
        )
        return answer(jobs_shown(await self._services.store.jobs(filters, PageRequest(page, size))))

    async def show(self, job_id: JobId) -> Response:
        """The whole job."""
        return answer(job_shown(await found_job(self._services.store, job_id)))

    async def change(self, job_id: JobId, body: JobChange, request: Request) -> Response:
        """Only what is given changes; `configJson` is replaced as a whole, and is required with another `type`."""
        found = await found_job(self._services.store, job_id)
        with config_named():
            view = await self._services.jobs.amend(
                found.id, lambda view: read_edit(body, view.job, self._http_timeout), actor_of(request)
            )
        return answer(job_shown(view.job))

    async def enable(self, job_id: JobId, request: Request) -> Response:
        """Workflows may run it; its schedules, if it has any, go on with the first instant from now."""
        return await self._switched(job_id, request, enabled=True)

    async def disable(self, job_id: JobId, request: Request) -> Response:
        """No workflow that has it can be started, and its schedules pause; what runs may end."""
        return await self._switched(job_id, request, enabled=False)

    async def delete(self, job_id: JobId, request: Request) -> Response:
        """Its schedules are gone with it; what runs may end, and its history stays. Refused while workflows name it."""
        job = await found_job(self._services.store, job_id)
        await self._services.jobs.delete(job.id, actor_of(request))
        return Response(status_code=204)

    async def _switched(self, job_id: str, request: Request, *, enabled: bool) -> Response:
        job = await found_job(self._services.store, job_id)
        with config_named():
            view = await self._services.jobs.switch(job.id, actor_of(request), enabled=enabled)
        return answer(job_shown(view.job))

    @property
    def _http_timeout(self) -> timedelta:
        return self._services.settings.executor.request_timeout
