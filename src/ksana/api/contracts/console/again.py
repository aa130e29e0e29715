"""`/api/v1/jobs/{jobId}:run` and `/api/v1/runs/{runId}:retry`: any job run now, and any run once more."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Header, Path, Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.console.again_models import JobRan, RunBody, RunRetried
from ksana.api.contracts.console.orders import orders_of
from ksana.api.contracts.jobchain.paths import JOB, RUN, RUNS, JobId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import OrderBody
from ksana.api.contracts.jobchain.workflows import Traceparent
from ksana.api.contracts.keys import found_job, possible
from ksana.api.contracts.shapes import answer, renamed
from ksana.api.contracts.values import as_json, trace_of
from ksana.api.services import Services, actor_of
from ksana.domain.errors import NotFound
from ksana.domain.events import Actor
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.states import CRONJOB_NAMES, JOBCHAIN_RUN_NAMES
from ksana.engine.commands import RunRequest

FIELDS = {"idempotency_key": "Idempotency-Key", "json": "input"}
IdempotencyKey = Annotated[str | None, Header(description="The same key gives the same run.")]
AnyRunId = Annotated[
    str, Path(alias="runId", description="A number is the run of a job, anything else the run of a workflow.")
]


class Again:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        may, fails = Permission.RUN_WRITE, (400, 404, 409)
        yield Route("POST", f"{JOB}:run", self.run, "Run a job now", may, JobRan, fails, 202, RunBody)
        may = Permission.RUN_CONTROL
        yield Route("POST", f"{RUN}:retry", self.retry, "Retry a run", may, RunRetried, fails, body=OrderBody)

    async def run(
        self,
        job_id: JobId,
        request: Request,
        idempotency_key: IdempotencyKey = None,
        traceparent: Traceparent = None,
    ) -> Response:
        """One run, at once, subject to the job's limit; its schedules stay as they are. A disabled job can be run, too."""
        body = await optional_body(request, RunBody)
        given = body.input or {}
        as_json(given, field="input")
        job = await found_job(self._services.store, job_id)
        wanted = RunRequest(given, idempotency_key, trace_of(traceparent))
        with renamed(FIELDS):
            enqueued = await self._services.jobs.run(job.id, wanted, actor_of(request, body.reason or ""))
        run = enqueued.execution
        shown = {"runId": str(run.id), "jobId": job.key, "status": CRONJOB_NAMES[run.status]}
        return answer(shown, status=202, headers={"Location": f"{RUNS}/{run.id}"})

    async def retry(
        self,
        run_id: AnyRunId,
        request: Request,
        idempotency_key: IdempotencyKey = None,
        traceparent: Traceparent = None,
    ) -> Response:
        """Of a job's run that has ended: another run of the job with the same input, now. Of a workflow's: as `:retry-failed`,
        which needs no key, since it is refused while the run goes on."""
        body = await optional_body(request, OrderBody)
        actor = actor_of(request, body.reason or "")
        if run_id.isascii() and run_id.isdigit():
            return await self._job_run(run_id, RunRequest({}, idempotency_key, trace_of(traceparent)), actor)
        ordered = await self._services.workflow_runs.retry_failed(possible("run", run_id), actor)
        run = ordered.run
        shown = {"runId": run.key, "kind": "workflow", "status": JOBCHAIN_RUN_NAMES[run.status], "retryOf": None}
        return answer({**shown, "reopened": ordered.reopened})

    async def _job_run(self, run_id: str, wanted: RunRequest, actor: Actor) -> Response:
        if len(run_id) > len(str(LARGEST_INTEGER)):
            raise NotFound("run", run_id[:40])
        with renamed(FIELDS):
            run = await orders_of(self._services).retry_run(int(run_id), wanted, actor)
        shown = {"runId": str(run.id), "kind": "job", "status": CRONJOB_NAMES[run.status]}
        return answer({**shown, "retryOf": str(int(run_id)), "reopened": None})
