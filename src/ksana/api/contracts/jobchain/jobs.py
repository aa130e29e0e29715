"""`/api/v1/jobs` (document 001 §4): what nodes of workflows run. Jobs of every contract are shown here."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request, Response

from ksana.api.contracts.console.job_showing import runs_of
from ksana.api.contracts.jobchain.job_models import JobBody, JobChange, JobFound, JobShown, JobsShown
from ksana.api.contracts.jobchain.job_reading import config_named, read_edit, read_job
from ksana.api.contracts.jobchain.job_showing import job_shown, jobs_shown
from ksana.api.contracts.jobchain.paths import JOB, JOBS, JobId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.keys import found_job
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import Enabled, Include, Keyword, PageNumber, PageSize, printable
from ksana.api.services import Services, actor_of
from ksana.store.requests import JobFilter, PageRequest


class Jobs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, write = Permission.JOB_READ, Permission.JOB_WRITE
        yield Route("POST", JOBS, self.create, "Create a job", write, JobShown, (400, 409), 201)
        yield Route("GET", JOBS, self.find, "List jobs", read, JobsShown, (400,))
        yield Route("GET", JOB, self.show, "Show a job", read, JobFound, (400, 404))
        yield Route("PUT", JOB, self.change, "Change a job", write, JobShown, (400, 404, 409))
        yield Route("DELETE", JOB, self.delete, "Delete a job", write, None, (404, 409), 204)
        yield Route("POST", f"{JOB}:enable", self.enable, "Enable a job", write, JobShown, (404,))
        yield Route("POST", f"{JOB}:disable", self.disable, "Disable a job", write, JobShown, (404,))

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
        include: Include = None,
    ) -> Response:
        """A page of jobs, oldest first: those of other contracts as well. With `include=runs` each has its last run that has
        ended, when it runs next, and its schedules."""
        filters = JobFilter(
            keyword=printable(keyword, field="keyword") if keyword else None,
            enabled=enabled,
            type=printable(job_type, field="type") if job_type else None,
        )
        found = await self._services.store.jobs(filters, PageRequest(page, size))
        more = await runs_of(self._services.store, found.items) if include else {}
        return answer(jobs_shown(found, more))

    async def show(self, job_id: JobId, include: Include = None) -> Response:
        """The whole job; with `include=runs` also what the list tells of it then."""
        job = await found_job(self._services.store, job_id)
        more = await runs_of(self._services.store, [job]) if include else {}
        return answer({**job_shown(job), **more.get(job.id, {})})

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
