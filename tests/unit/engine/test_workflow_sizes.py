"""Large graphs, on a real store and simulated time: all of it runs, once, in order."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.engine.conftest import simulated
from tests.unit.engine.workflow_world import Flow, node

from ksana.domain.dag_reading import read_dag
from ksana.domain.states import RunStatus


def layers(width: int, depth: int) -> list[dict[str, Any]]:
    """Every node depends on every node of the layer before."""
    return [
        node(f"l{layer}-{place}", *(f"l{layer - 1}-{before}" for before in range(width) if layer))
        for layer in range(depth)
        for place in range(width)
    ]


def chain(length: int) -> list[dict[str, Any]]:
    return [node(f"n{place}", *([f"n{place - 1}"] if place else [])) for place in range(length)]


def fan(width: int) -> list[dict[str, Any]]:
    middle = [node(f"n{place}", "first") for place in range(width)]
    return [node("first"), *middle, node("last", *(f"n{place}" for place in range(width)))]


@pytest.mark.parametrize(
    ("name", "nodes"),
    [("ten by ten, fully connected", layers(10, 10)), ("a row of 1,000", chain(1_000)), ("5,000 at once", fan(5_000))],
    ids=["connected", "chain", "fan"],
)
async def test_large_graphs_run_to_their_end_in_order(name: str, nodes: list[dict[str, Any]], tmp_path: Path) -> None:
    async with simulated(tmp_path, workers=500) as sim:
        flow = Flow(sim)
        run = await flow.run(nodes)
        assert (await flow.reread(run)).status is RunStatus.SUCCESS, name
        places = {key: place for place, key in enumerate(flow.order)}
        assert len(flow.order) == len(places) == len(nodes)
        assert all(places[before] < places[each["id"]] for each in nodes for before in each["dependsOn"])


async def test_a_failure_at_the_top_skips_five_thousand(tmp_path: Path) -> None:
    async with simulated(tmp_path) as sim:
        flow = Flow(sim)
        flow.fails("n0")
        run = await flow.run(chain(5_000))
        assert (await flow.reread(run)).status is RunStatus.FAILED
        assert flow.order == ["n0"]
        assert sum(status == "SKIPPED" for status in (await flow.statuses(run)).values()) == 4_999


def test_ten_thousand_nodes_are_read() -> None:
    assert len(read_dag({"nodes": chain(10_000)}).graph) == 10_000
