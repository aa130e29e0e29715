"""`/api/v1/runs/{runId}/nodes`: the nodes of a run, and orders to one of them (document 001 §7, document 000 §B2)."""

from collections.abc import Iterator
from typing import Any

import orjson
from fastapi import Request, Response

from ksana.api.contracts.bodies import optional_body
from ksana.api.contracts.jobchain.nodes_showing import in_order, node_detail, node_row, ordered_shown, retried_shown
from ksana.api.contracts.jobchain.paths import NODE, NODES, NodeId, RunId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import NodeDetail, NodeOrderBody, NodeOrdered, NodeRow
from ksana.api.contracts.keys import found_run, possible, possible_node
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import as_json
from ksana.api.services import Services, actor_of
from ksana.domain.errors import InvalidInput


class Nodes:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read, control = Permission.RUN_READ, Permission.RUN_CONTROL
        yield Route("GET", NODES, self.find, "List a run's nodes", read, list[NodeRow], (404,))
        yield Route("GET", NODE, self.show, "Show a node of a run", read, NodeDetail, (404,))
        orders = (
            (":retry", self.retry, "Retry a node"),
            (":complete", self.complete, "Complete a node by hand"),
            (":skip", self.skip, "Leave a node out"),
        )
        for suffix, handler, summary in orders:
            fails = (400, 404, 409)
            yield Route("POST", f"{NODE}{suffix}", handler, summary, control, NodeOrdered, fails, body=NodeOrderBody)

    async def find(self, run_id: RunId) -> Response:
        """All of them, from the start of the run on; items after the node that they belong to."""
        run = await found_run(self._services.store, run_id)
        return answer([node_row(node) for node in in_order(await self._services.store.run_nodes(run.id))])

    async def show(self, run_id: RunId, node_id: NodeId) -> Response:
        """With what every attempt of it sent and got."""
        store = self._services.store
        run = await found_run(store, run_id)
        node = await store.node_run(run.id, possible_node(node_id))
        return answer(node_detail(node, await store.attempts(node.execution.id)))

    async def retry(self, run_id: RunId, node_id: NodeId, request: Request) -> Response:
        """One that failed or was stopped runs again, and what was skipped because of it is decided anew; a run that had
        ended goes on. `attempt` is the one that is to be."""
        body, key = await optional_body(request, NodeOrderBody), possible("run", run_id)
        actor = actor_of(request, body.reason or "")
        node = await self._services.workflow_runs.retry_node(key, possible_node(node_id), actor)
        return answer(retried_shown(key, node))

    async def complete(self, run_id: RunId, node_id: NodeId, request: Request) -> Response:
        """One that failed, was stopped, runs or waits is SUCCESS, with this artifact, and what depends on it goes on."""
        body, key = await optional_body(request, NodeOrderBody), possible("run", run_id)
        artifact, checkpoint = _artifact(body), body.checkpoint
        as_json(checkpoint, field="checkpoint")
        actor = actor_of(request, body.reason or "")
        commands, node_id = self._services.workflow_runs, possible_node(node_id)
        node = await commands.complete_node(key, node_id, actor, artifact, checkpoint)
        return answer(ordered_shown(key, node))

    async def skip(self, run_id: RunId, node_id: NodeId, request: Request) -> Response:
        """One that has not begun, failed or was stopped is SKIPPED, and what depends on it goes on by its rule."""
        body, key = await optional_body(request, NodeOrderBody), possible("run", run_id)
        actor = actor_of(request, body.reason or "")
        node = await self._services.workflow_runs.skip_node(key, possible_node(node_id), actor)
        return answer(ordered_shown(key, node))


def _artifact(body: NodeOrderBody) -> Any:
    """What is given as JSON or, in document 000's way, as a text that holds it. InvalidInput."""
    if body.artifact_json is None:
        as_json(body.artifact, field="artifact")
        return body.artifact
    if body.artifact is not None:
        raise InvalidInput("artifactJson", "is another way to give the artifact: give one")
    as_json(body.artifact_json, field="artifactJson")
    if not isinstance(body.artifact_json, str):
        return body.artifact_json
    try:
        return orjson.loads(body.artifact_json)
    except orjson.JSONDecodeError as error:
        raise InvalidInput("artifactJson", f"is not JSON: {error}") from None
