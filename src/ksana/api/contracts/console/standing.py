"""`GET /api/v1/runs/{runId}/standing`, `…/nodes/{nodeId}/items`: how a run stands, without what its nodes made.

What a picture of a run that goes on asks for again and again: as large as its definition, however many items it works on.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from ksana.api.contracts.console.items import ItemsShown, item_shown
from ksana.api.contracts.jobchain.graph_models import EdgeShown, GraphNode, NodeState
from ksana.api.contracts.jobchain.graphs import Jobs, edges_shown, jobs_of_run, snapshot_node
from ksana.api.contracts.jobchain.nodes_showing import state_of, status_name
from ksana.api.contracts.jobchain.paths import NODE, RUN, NodeId, RunId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import NodeName, RunName
from ksana.api.contracts.jobchain.workflow_showing import page_shown
from ksana.api.contracts.keys import found_run, possible_node
from ksana.api.contracts.queries import NoQuery, StrictQuery
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.services import Services
from ksana.domain.states import JOBCHAIN_RUN_NAMES, ExecutionStatus
from ksana.store.requests import PageRequest
from ksana.store.view_requests import HowFar, RunStanding


class StandingNode(GraphNode):
    state: NodeState
    reason: str | None = Field(description="Why it was skipped, stopped or completed by hand.")
    items: dict[NodeName, int] | None = Field(
        examples=[{"SUCCESS": 4980, "RUNNING": 20}],
        description="Of a node that works on items, how many stand how; empty before they are known.",
    )


class StandingShown(Shown):
    """A run as a graph, without what its nodes made."""

    run_id: str
    workflow_id: str
    status: RunName
    nodes: list[StandingNode]
    edges: list[EdgeShown]


class ItemsQuery(StrictQuery):
    page: int = Query(1, ge=1)
    size: int = Query(25, ge=1, le=100)
    status: NodeName | None = Query(None, description="Only those that stand like this.")


class Standing:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        read = Permission.RUN_READ
        yield Route("GET", f"{RUN}/standing", self.show, "How a run stands", read, StandingShown, (400, 404))
        yield Route("GET", f"{NODE}/items", self.items, "List the items of a node", read, ItemsShown, (400, 404))

    async def show(self, run_id: RunId, _: NoQuery) -> Response:
        """Its graph with the state of every node, the items of each counted by state; without artifacts."""
        found = await self._services.store.run_standing((await found_run(self._services.store, run_id)).id)
        return answer(standing_shown(found, await jobs_of_run(self._services.store, found.snapshot)))

    async def items(self, run_id: RunId, node_id: NodeId, query: Annotated[ItemsQuery, Query()]) -> Response:
        """In their order, without artifacts."""
        run = await found_run(self._services.store, run_id)
        wanted = None if query.status is None else list(_how_far(query.status))
        page = PageRequest(query.page, query.size)
        found = await self._services.store.node_items(run.id, possible_node(node_id), wanted, page)
        return answer(page_shown(found, item_shown))


def standing_shown(found: RunStanding, jobs: Jobs) -> dict[str, Any]:
    """As `StandingShown`."""
    states = {node.node_id: node for node in found.nodes}
    nodes = []
    for node in found.snapshot.dag.nodes:
        now = states[node.id]
        counts = None if node.for_each is None else _by_name(found.items.get(node.id, {}))
        drawn = snapshot_node(node, found.snapshot.nodes[node.id], jobs)
        nodes.append({**drawn, "state": state_of(now), "reason": now.reason, "items": counts})
    return {
        "runId": found.run.key,
        "workflowId": found.run.workflow_key,
        "status": JOBCHAIN_RUN_NAMES[found.run.status],
        "nodes": nodes,
        "edges": edges_shown(found.snapshot.dag),
    }


def _by_name(counts: Mapping[HowFar, int]) -> dict[str, int]:
    named: dict[str, int] = {}
    for how_far, count in counts.items():
        name = status_name(how_far.status, tried=how_far.tried, deferred=how_far.deferred)
        named[name] = named.get(name, 0) + count
    return named


def _how_far(name: str) -> Iterator[HowFar]:
    """All that have this name."""
    for status, tried, deferred in product(ExecutionStatus, (False, True), (False, True)):
        if status_name(status, tried=tried, deferred=deferred) == name:
            yield HowFar(status, tried, deferred)
