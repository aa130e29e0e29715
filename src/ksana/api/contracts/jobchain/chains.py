"""`/api/v1/chains` (document 000 §B1): workflows by their old name, with document 000's shapes, statuses and messages."""

import json
from collections.abc import Iterator
from typing import Any

import orjson
from fastapi import Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.jobchain.chain_models import (
    ChainBody,
    ChainShown,
    ChainsShown,
    ChainStarted,
    ChainUpdate,
    chain_problems,
)
from ksana.api.contracts.jobchain.paths import CHAIN, CHAINS, ChainId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.workflow_models import StartBody
from ksana.api.contracts.jobchain.workflow_reading import FIELDS, keepable, read_start
from ksana.api.contracts.jobchain.workflow_showing import page_shown, workflow_shown, workflow_summary
from ksana.api.contracts.jobchain.workflows import IdempotencyKey, Traceparent
from ksana.api.contracts.keys import found_workflow, possible
from ksana.api.contracts.shapes import answer, renamed
from ksana.api.contracts.values import Enabled, Keyword, PageNumber, PageSize, printable
from ksana.api.services import Services, actor_of
from ksana.domain.errors import InvalidDag
from ksana.domain.workflow import Workflow, WorkflowSummary
from ksana.engine.commands import WorkflowDraft, WorkflowEdit
from ksana.store.requests import PageRequest
from ksana.store.workflow_requests import WorkflowFilter


class Chains:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, write = Permission.CHAIN_READ, Permission.CHAIN_WRITE
        told, starts, body = chain_problems, Permission.RUN_WRITE, StartBody
        yield Route("POST", CHAINS, self.create, "Create a chain", write, ChainShown, (400,), told=told)
        yield Route("GET", CHAINS, self.find, "List chains", read, ChainsShown, (400,), told=told)
        yield Route("GET", CHAIN, self.show, "Show a chain", read, ChainShown, (400,), told=told)
        yield Route("PUT", CHAIN, self.update, "Replace a chain", write, ChainShown, (400, 409), told=told)
        yield Route("POST", f"{CHAIN}:enable", self.enable, "Enable a chain", write, ChainShown, (400,), told=told)
        yield Route("POST", f"{CHAIN}:disable", self.disable, "Disable a chain", write, ChainShown, (400,), told=told)
        start, fails = f"{CHAIN}:start", (400, 409)
        yield Route("POST", start, self.start, "Start a chain", starts, ChainStarted, fails, body=body, told=told)

    async def create(self, body: ChainBody, request: Request) -> Response:
        """As a workflow, of which the dag is given as a text."""
        enabled = True if body.enabled is None else body.enabled
        draft = WorkflowDraft(body.name, _dag(body.dag_json), body.description or "", enabled)
        with renamed(FIELDS):
            return answer(_chain(await self._services.workflows.create(draft, actor_of(request))))

    async def find(
        self, page: PageNumber = 1, size: PageSize = 20, keyword: Keyword = None, enabled: Enabled = None
    ) -> Response:
        """A page of chains, oldest first, without their dags."""
        filters = WorkflowFilter(printable(keyword, field="keyword") if keyword else None, enabled)
        found = await self._services.store.workflows(filters, PageRequest(page, size))
        return answer(page_shown(found, _summary))

    async def show(self, chain_id: ChainId) -> Response:
        """The whole chain."""
        return answer(_chain(await found_workflow(self._services.store, chain_id)))

    async def update(self, chain_id: ChainId, body: ChainUpdate, request: Request) -> Response:
        """All of it, if it is still at that version; always a new version, even if nothing is different."""
        edit = WorkflowEdit(
            name=body.name,
            dag=_dag(body.dag_json),
            description=body.description or "",
            enabled=body.enabled,
            expected_version=body.version,
            always_new=True,
        )
        key = possible("workflow", chain_id)
        with renamed(FIELDS):
            return answer(_chain(await self._services.workflows.change(key, lambda _: edit, actor_of(request))))

    async def enable(self, chain_id: ChainId, request: Request) -> Response:
        """It can be started."""
        return await self._switched(chain_id, request, enabled=True)

    async def disable(self, chain_id: ChainId, request: Request) -> Response:
        """It cannot be started; what runs goes on."""
        return await self._switched(chain_id, request, enabled=False)

    async def start(
        self,
        chain_id: ChainId,
        request: Request,
        idempotency_key: IdempotencyKey = None,
        traceparent: Traceparent = None,
    ) -> Response:
        """A run, now; another with each start, unless an id or a key says otherwise."""
        wanted = read_start(await optional_body(request, StartBody), idempotency_key, traceparent)
        with renamed(FIELDS):
            started = await self._services.workflows.start(possible("workflow", chain_id), wanted, actor_of(request))
        return answer({"runId": started.run.key})

    async def _switched(self, chain_id: str, request: Request, *, enabled: bool) -> Response:
        key = possible("workflow", chain_id)
        return answer(_chain(await self._services.workflows.switch(key, actor_of(request), enabled=enabled)))


def _dag(text: str) -> Any:
    """InvalidDag."""
    try:
        return keepable(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise InvalidDag("dagJson", f"is not JSON: {error}") from None


def _chain(workflow: Workflow) -> dict[str, Any]:
    fields = _renamed(workflow_shown(workflow))
    # As PostgreSQL writes the jsonb that document 000 keeps it in.
    text = json.dumps(fields.pop("dag"), ensure_ascii=False)
    return {**fields, "dagJson": text}


def _summary(workflow: WorkflowSummary) -> dict[str, Any]:
    return _renamed(workflow_summary(workflow))


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    return {("chainId" if name == "workflowId" else name): value for name, value in fields.items()}
