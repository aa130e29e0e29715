"""What a node of a workflow is before it is work: left out by its condition, spread over items, or another workflow.

Its expressions and templates see `params` (the run's), `nodes` (what the nodes before it made), and, in an item, `item` and
`index`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from ksana.domain.dag import CONDITION_FALSE
from ksana.domain.errors import KsanaError, StoreFull, StoreUnavailable
from ksana.domain.execution import Claimed
from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.domain.states import JOBCHAIN_NODE_NAMES
from ksana.domain.values import immutable
from ksana.domain.workflow import MAX_DEPTH, MAX_ITEMS, WORKFLOW, Ended, NodeClaim
from ksana.engine.expressions import ExpressionFailed, items, truth
from ksana.executors.base import Place, rfc3339
from ksana.executors.templates import rendered_document
from ksana.executors.templates_filters import TemplateFailed
from ksana.store.base import Store
from ksana.store.workflow_requests import NewRun


class Starter(Protocol):
    async def child(self, key: str, params: Mapping[str, Any], depth: int, now: datetime) -> NewRun:
        """What a run for a node starts with. NotFound, InvalidInput."""


@immutable
class Surroundings:
    """What a node sees of its run."""

    place: Place
    params: Mapping[str, Any]
    nodes: Mapping[str, Mapping[str, Any]]
    planned_for: datetime

    @property
    def variables(self) -> dict[str, Any]:
        return {
            "params": self.params,
            "nodes": self.nodes,
            "item": self.place.item,
            "index": self.place.index,
            "scheduled_at": rfc3339(self.planned_for),
        }


@immutable
class LeaveOut:
    reason: str


@immutable
class SpreadOver:
    items: list[Any]


@immutable
class HandOver:
    run: NewRun


Decision = LeaveOut | SpreadOver | HandOver | Outcome | None
"""None: it is work for an executor."""


class Nodes:
    def __init__(self, store: Store, starter: Starter) -> None:
        self._store = store
        self._starter = starter

    async def ended_before(self, node: NodeClaim) -> Mapping[str, Ended]:
        """What the nodes that it sees have made. StoreUnavailable."""
        return await self._store.artifacts(node.run_id, sorted(node.snapshot.sees))

    async def decide(self, node: NodeClaim, seen: Surroundings, now: datetime) -> Decision:
        """What becomes of it before, or instead of, being run. StoreUnavailable."""
        given = node.snapshot.node
        at = "when"
        try:
            if not node.is_item:
                # In threads: over much data an expression can take a while.
                if given.when is not None and not await asyncio.to_thread(truth, given.when, seen.variables):
                    return LeaveOut(CONDITION_FALSE.reason)
                at = "forEach"
                if given.for_each is not None:
                    return await asyncio.to_thread(_spread, given.for_each.items, seen)
            if node.snapshot.spec.type == WORKFLOW:
                return await self._handed(node, seen, now)
        except ExpressionFailed as error:
            return Failed(f"{at}: {error}", retryable=False)
        except TemplateFailed as error:
            return Failed(f"params: {error}", retryable=False)
        return None

    async def _handed(self, node: NodeClaim, seen: Surroundings, now: datetime) -> Decision:
        if node.depth + 1 > MAX_DEPTH:
            return Failed(f"workflows run workflows deeper than {MAX_DEPTH} times here", retryable=False)
        config = node.snapshot.spec.config
        params = rendered_document(config["params"], seen.variables)
        try:
            run = await self._starter.child(config["workflowId"], params, node.depth + 1, now)
            return HandOver(replace(run, timeout=node.snapshot.node.timeout))
        except (StoreUnavailable, StoreFull):
            raise
        except KsanaError as error:
            return Failed(f"workflow {config['workflowId']}: {error.message}", retryable=False)


def surroundings(claimed: Claimed, node: NodeClaim, ended: Mapping[str, Ended]) -> Surroundings:
    nodes = {
        key: {"status": JOBCHAIN_NODE_NAMES[each.status], "artifact": each.artifact} for key, each in ended.items()
    }
    given = claimed.execution.input if node.is_item else {}
    place = Place(node.run_key, node.workflow_key, node.node_id, given.get("item"), given.get("index"))
    return Surroundings(place, node.params, nodes, claimed.execution.planned_for or claimed.execution.created_at)


def is_plain_work(node: NodeClaim) -> bool:
    """Whether there is nothing to be decided before it is run, as of most nodes."""
    given = node.snapshot.node
    has_terms = not node.is_item and (given.when is not None or given.for_each is not None)
    return not has_terms and node.snapshot.spec.type != WORKFLOW


def _spread(source: str | tuple[Any, ...], seen: Surroundings) -> Decision:
    found = list(source) if isinstance(source, tuple) else items(source, seen.variables, MAX_ITEMS)
    return SpreadOver(found) if found else Succeeded([])
