"""`/api/v1/workflows` (document 001 §5, §6.1)."""

from collections.abc import Iterator
from typing import Annotated

from fastapi import Header, Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.console.workflow_became import became_of
from ksana.api.contracts.jobchain.graph_models import WorkflowGraph
from ksana.api.contracts.jobchain.graphs import jobs_of_workflow, workflow_graph
from ksana.api.contracts.jobchain.paths import RUNS, WORKFLOW, WORKFLOWS, VersionNumber, WorkflowId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.workflow_models import (
    StartBody,
    Started,
    ValidateBody,
    Validated,
    ValidateStored,
    VersionShown,
    VersionsShown,
    WorkflowBody,
    WorkflowChange,
    WorkflowShown,
    WorkflowsShown,
)
from ksana.api.contracts.jobchain.workflow_reading import (
    FIELDS,
    dag_to_validate,
    keepable,
    read_edit,
    read_start,
    read_workflow,
)
from ksana.api.contracts.jobchain.workflow_showing import (
    page_shown,
    started_shown,
    version_shown,
    version_summary,
    workflow_shown,
    workflows_shown,
)
from ksana.api.contracts.keys import found_workflow, possible
from ksana.api.contracts.shapes import answer, renamed
from ksana.api.contracts.values import Enabled, Include, Keyword, PageNumber, PageSize, printable
from ksana.api.services import Services, actor_of
from ksana.store.requests import PageRequest
from ksana.store.workflow_requests import WorkflowFilter

IdempotencyKey = Annotated[str | None, Header(description="The same key gives the same run; as `idempotencyKey`.")]
Traceparent = Annotated[str | None, Header(description="W3C trace context to go on with.")]


class Workflows:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, write = Permission.CHAIN_READ, Permission.CHAIN_WRITE
        one, versions = WORKFLOW, f"{WORKFLOW}/versions"
        yield Route("POST", WORKFLOWS, self.create, "Create a workflow", write, WorkflowShown, (400, 409), 201)
        yield Route("GET", WORKFLOWS, self.find, "List workflows", read, WorkflowsShown, (400,))
        yield Route("GET", one, self.show, "Show a workflow", read, WorkflowShown, (404,))
        yield Route("PUT", one, self.change, "Change a workflow", write, WorkflowShown, (400, 404, 409))
        yield Route("DELETE", one, self.delete, "Delete a workflow", write, None, (404,), 204)
        yield Route("GET", f"{one}/graph", self.graph, "Draw a workflow", read, WorkflowGraph, (404,))
        yield Route("GET", versions, self.versions, "List a workflow's versions", read, VersionsShown, (400, 404))
        path = f"{versions}/{{version}}"
        yield Route("GET", path, self.version, "Show a version of a workflow", read, VersionShown, (400, 404))
        yield Route("POST", f"{one}:enable", self.enable, "Enable a workflow", write, WorkflowShown, (404,))
        yield Route("POST", f"{one}:disable", self.disable, "Disable a workflow", write, WorkflowShown, (404,))
        yield Route("POST", f"{WORKFLOWS}:validate", self.validate, "Check a dag", read, Validated, (400,))
        yield Route(
            "POST",
            f"{one}:validate",
            self.validate_for,
            "Check a dag for a workflow",
            read,
            Validated,
            (400, 404),
            body=ValidateStored,
        )
        yield Route(
            "POST",
            f"{one}:start",
            self.start,
            "Start a workflow",
            Permission.RUN_WRITE,
            Started,
            (400, 404, 409),
            201,
            body=StartBody,
            more={200: {"model": Started, "description": "The run was there already: its id or key was known."}},
        )

    async def create(self, body: WorkflowBody, request: Request) -> Response:
        """Its dag is checked as a whole: nodes, dependencies, jobs, configs, expressions. It is kept as it was given."""
        with renamed(FIELDS):
            workflow = await self._services.workflows.create(read_workflow(body), actor_of(request))
        location = {"Location": f"{WORKFLOWS}/{workflow.key}"}
        return answer(workflow_shown(workflow), status=201, headers=location)

    async def find(
        self,
        page: PageNumber = 1,
        size: PageSize = 20,
        keyword: Keyword = None,
        enabled: Enabled = None,
        include: Include = None,
    ) -> Response:
        """A page of workflows, oldest first, without their dags. With `include=runs` each has its newest runs, when it runs
        next, and its schedules."""
        filters = WorkflowFilter(printable(keyword, field="keyword") if keyword else None, enabled)
        found = await self._services.store.workflows(filters, PageRequest(page, size))
        more = await became_of(self._services.store, found.items) if include else {}
        return answer(workflows_shown(found, more))

    async def show(self, workflow_id: WorkflowId) -> Response:
        """The whole workflow."""
        return answer(workflow_shown(await found_workflow(self._services.store, workflow_id)))

    async def change(self, workflow_id: WorkflowId, body: WorkflowChange, request: Request) -> Response:
        """Only what is given changes. Another definition is a new version; runs that go on keep theirs."""
        key = possible("workflow", workflow_id)
        with renamed(FIELDS):
            workflow = await self._services.workflows.change(
                key, lambda workflow: read_edit(body, workflow), actor_of(request)
            )
        return answer(workflow_shown(workflow))

    async def delete(self, workflow_id: WorkflowId, request: Request) -> Response:
        """It and its schedules are gone; its runs go on, and stay to be read."""
        await self._services.workflows.delete(possible("workflow", workflow_id), actor_of(request))
        return Response(status_code=204)

    async def graph(self, workflow_id: WorkflowId) -> Response:
        """Nodes with their jobs, and edges (§3.4)."""
        workflow = await found_workflow(self._services.store, workflow_id)
        return answer(workflow_graph(workflow, await jobs_of_workflow(self._services.store, workflow)))

    async def versions(self, workflow_id: WorkflowId, page: PageNumber = 1, size: PageSize = 20) -> Response:
        """Every definition that it had, newest first."""
        workflow = await found_workflow(self._services.store, workflow_id)
        found = await self._services.store.workflow_versions(workflow.id, PageRequest(page, size))
        return answer(page_shown(found, version_summary))

    async def version(self, workflow_id: WorkflowId, version: VersionNumber) -> Response:
        """One of them, with its dag."""
        workflow = await found_workflow(self._services.store, workflow_id)
        return answer(version_shown(await self._services.store.workflow_version(workflow.id, version)))

    async def enable(self, workflow_id: WorkflowId, request: Request) -> Response:
        """It can be started."""
        return await self._switched(workflow_id, request, enabled=True)

    async def disable(self, workflow_id: WorkflowId, request: Request) -> Response:
        """It cannot be started, by nobody and no schedule; what runs goes on."""
        return await self._switched(workflow_id, request, enabled=False)

    async def validate(self, body: ValidateBody) -> Response:
        """All that creating it would check. Nothing is stored."""
        dag = await self._services.workflows.validate(keepable(body.dag))
        return answer({"valid": True, "nodes": len(dag.nodes)})

    async def validate_for(self, workflow_id: WorkflowId, request: Request) -> Response:
        """All that changing it would check: the dag that is given or, without one, its own. Nothing is stored."""
        body = await optional_body(request, ValidateStored)
        workflow = await found_workflow(self._services.store, workflow_id)
        dag = await self._services.workflows.validate(dag_to_validate(body, workflow), workflow.key)
        return answer({"valid": True, "nodes": len(dag.nodes)})

    async def start(
        self,
        workflow_id: WorkflowId,
        request: Request,
        idempotency_key: IdempotencyKey = None,
        traceparent: Traceparent = None,
    ) -> Response:
        """A run, now. A `runId` or key that is known gives the run that it made (200), and makes no other."""
        wanted = read_start(await optional_body(request, StartBody), idempotency_key, traceparent)
        with renamed(FIELDS):
            started = await self._services.workflows.start(possible("workflow", workflow_id), wanted, actor_of(request))
        status, location = 201 if started.created else 200, {"Location": f"{RUNS}/{started.run.key}"}
        return answer(started_shown(started.run), status=status, headers=location)

    async def _switched(self, workflow_id: str, request: Request, *, enabled: bool) -> Response:
        key = possible("workflow", workflow_id)
        return answer(workflow_shown(await self._services.workflows.switch(key, actor_of(request), enabled=enabled)))
