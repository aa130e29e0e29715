"""Items of a fan-out in a list."""

from typing import Any

from ksana.api.contracts.jobchain.graph_models import NodeState
from ksana.api.contracts.jobchain.nodes_showing import state_of
from ksana.api.contracts.shapes import Shown
from ksana.store.view_requests import NodeBrief


class ItemShown(NodeState):
    node_id: str
    reason: str | None


class ItemsShown(Shown):
    page: int
    size: int
    total: int
    items: list[ItemShown]


def item_shown(item: NodeBrief) -> dict[str, Any]:
    return {"nodeId": item.node_id, **state_of(item), "reason": item.reason}
