"""Random graphs, outcomes, rules, items and orders, step by step against a model that decides everything anew each time.

The model knows nothing of tallies, rows or transactions: it has a state for each node and the rules in plain words.
"""

import asyncio
import tempfile
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.contract.store.world import ANNA
from tests.unit.engine.conftest import simulated
from tests.unit.engine.workflow_world import Flow

from ksana.domain.errors import Conflict
from ksana.domain.states import JOBCHAIN_RUN_NAMES

RULES = ["all_success", "all_done", "all_failed", "one_success", "one_failed", "none_failed"]
DECIDED = {"upstream_failed", "upstream_skipped", "not_all_failed", "none_failed"}
ENDED = {"SUCCESS", "FAILED", "SKIPPED", "STOPPED"}


@dataclass
class Node:
    needs: list[str]
    rule: str
    items: int | None = None
    status: str = "PENDING"
    reason: str = ""
    ran: bool = False
    by_hand: bool = False
    item_states: list[str] = field(default_factory=list)

    @property
    def effect(self) -> str:
        if self.status == "SKIPPED":
            return "FAILED" if self.reason == "upstream_failed" else "SKIPPED"
        return "FAILED" if self.status == "STOPPED" else self.status

    @property
    def undecided(self) -> bool:
        return (self.status == "SKIPPED" and self.reason in DECIDED) or (self.status == "STOPPED" and not self.ran)


class Refused(Exception):
    """The order cannot be given now."""


class Model:
    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        self.status = "RUNNING"
        self.decide()

    # What goes on by itself -----------------------------------------------------------------------------------------

    def decide(self) -> None:
        moved = self.status == "RUNNING"
        while moved:
            moved = False
            for node in self.nodes.values():
                verdict = self._verdict(node) if node.status == "PENDING" else "wait"
                if verdict == "run":
                    self._begin(node)
                elif verdict != "wait":
                    node.status, node.reason = "SKIPPED", verdict
                moved = moved or verdict != "wait"
        self._end()

    def _verdict(self, node: Node) -> str:
        before = [self.nodes[each].effect for each in node.needs]
        done = all(each in {"SUCCESS", "FAILED", "SKIPPED"} for each in before)
        table: dict[str, Callable[[], str]] = {
            "all_done": lambda: "run",
            "all_success": lambda: "run" if set(before) <= {"SUCCESS"} else _because(before),
            "all_failed": lambda: "run" if set(before) <= {"FAILED"} else "not_all_failed",
            "one_success": lambda: "run" if "SUCCESS" in before else _because(before),
            "one_failed": lambda: "run" if "FAILED" in before else "none_failed",
            "none_failed": lambda: "upstream_failed" if "FAILED" in before else "run",
        }
        if (node.rule == "one_success" and "SUCCESS" in before) or (node.rule == "one_failed" and "FAILED" in before):
            return "run"
        return table[node.rule]() if done else "wait"

    def _begin(self, node: Node) -> None:
        node.status, node.ran, node.reason, node.by_hand = "RUNNING", True, "", False
        if node.items == 0:
            node.status = "SUCCESS"
        elif node.items is not None:
            again = {"FAILED", "STOPPED"}
            states = node.item_states or ["FAILED"] * node.items
            node.item_states = ["RUNNING" if state in again else state for state in states]

    def _end(self) -> None:
        states = [node.status for node in self.nodes.values()]
        if self.status in {"RUNNING", "STOPPING"} and set(states) <= ENDED:
            if self.status == "STOPPING":
                self.status = "STOPPED"
            else:
                self.status = "FAILED" if "FAILED" in states else "STOPPED" if "STOPPED" in states else "SUCCESS"

    def work(self) -> list[tuple[str, int | None]]:
        """What somebody works on: nodes, and items of nodes."""
        found: list[tuple[str, int | None]] = []
        for key, node in self.nodes.items():
            if node.status == "RUNNING" and node.items is None:
                found.append((key, None))
            elif node.status == "RUNNING":
                found += [(key, place) for place, state in enumerate(node.item_states) if state == "RUNNING"]
        return found

    def ended(self, key: str, place: int | None, state: str) -> None:
        node = self.nodes[key]
        if place is None:
            node.status = state
        else:
            node.item_states[place] = state
            if "RUNNING" not in node.item_states:
                node.status = "FAILED" if "FAILED" in node.item_states else "SUCCESS"
        self.decide()

    # What a person says -----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        if self.status not in {"RUNNING", "STOPPING"}:
            raise Refused
        self.status = "STOPPING"
        for node in self.nodes.values():
            if node.status == "PENDING":
                node.status = "STOPPED"
        self._end()

    def resume(self) -> None:
        if self.status not in {"FAILED", "STOPPED"}:
            raise Refused
        self._again({key for key, node in self.nodes.items() if node.status in {"FAILED", "STOPPED"}}, set())

    def retry(self, key: str) -> None:
        if self.status == "STOPPING" or self.nodes[key].status not in {"FAILED", "STOPPED"}:
            raise Refused
        self._again({key}, {key})

    def complete(self, key: str) -> None:
        node = self.nodes[key]
        if node.status == "RUNNING":
            node.status, node.by_hand = "SUCCESS", True
            self.decide()
        elif node.status == "SUCCESS" and node.by_hand:
            return  # said once more
        elif node.status in {"FAILED", "STOPPED"} and self.status != "STOPPING":
            self._said(key, "SUCCESS", "")
        else:
            raise Refused

    def skip(self, key: str) -> None:
        node = self.nodes[key]
        if node.status == "SKIPPED" and node.by_hand:
            return
        if node.status == "PENDING" and self.status == "RUNNING":
            node.status, node.reason, node.by_hand = "SKIPPED", "skipped_by_hand", True
            self.decide()
        elif node.status in {"FAILED", "STOPPED"} and self.status != "STOPPING":
            self._said(key, "SKIPPED", "skipped_by_hand")
        else:
            raise Refused

    def _said(self, key: str, status: str, reason: str) -> None:
        node = self.nodes[key]
        node.status, node.reason, node.ran, node.by_hand = status, reason, True, True
        for each in self._hanging_on({key}):
            self.nodes[each].status = "PENDING"
        self.status = "RUNNING"
        self.decide()

    def _again(self, keys: set[str], asked: set[str]) -> None:
        before = deepcopy(self.nodes), self.status
        waiting = list(keys)
        while waiting:
            for each in self.nodes[waiting.pop()].needs:
                if each not in keys and self.nodes[each].status == "STOPPED" and not self.nodes[each].ran:
                    keys.add(each)
                    waiting.append(each)
        for key in keys | self._hanging_on(keys):
            self.nodes[key].status = "PENDING"
        self.status = "RUNNING"
        self.decide()
        if any(self.nodes[key].status == "SKIPPED" for key in asked):
            # By the rules it would not run: that is not what was asked for.
            self.nodes, self.status = before
            raise Refused

    def _hanging_on(self, keys: Iterable[str]) -> set[str]:
        found: set[str] = set()
        reached = set(keys)
        while True:
            more = {
                key
                for key, node in self.nodes.items()
                if key not in found and node.undecided and (reached | found) & set(node.needs)
            } - reached
            if not more:
                return found
            found |= more


def _because(before: list[str]) -> str:
    return "upstream_failed" if "FAILED" in before else "upstream_skipped"


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for place in range(draw(st.integers(1, 7))):
        needs = draw(st.lists(st.sampled_from(sorted(nodes)), unique=True, max_size=3)) if nodes else []
        rule = draw(st.sampled_from(RULES)) if needs else "all_success"
        nodes[f"n{place}"] = Node(needs, rule, draw(st.sampled_from([None, None, None, 0, 2, 3])))
    return nodes


def document(nodes: dict[str, Node]) -> list[dict[str, Any]]:
    return [
        {
            "id": key,
            "type": "scripted",
            "cfg": {},
            "dependsOn": node.needs,
            "triggerRule": node.rule,
            **({} if node.items is None else {"forEach": {"items": list(range(node.items)), "maxParallel": 3}}),
        }
        for key, node in nodes.items()
    ]


async def live(nodes: dict[str, Node], data: st.DataObject, directory: Path) -> None:
    async with simulated(directory, workers=64) as sim:  # nobody waits for a place
        flow = Flow(sim)
        flow.hold()
        run = await flow.start(document(nodes))
        await sim.settle()
        model = Model(nodes)
        await compare(flow, run, model)
        for _ in range(data.draw(st.integers(0, 14))):
            await step(flow, run, model, data)
            await compare(flow, run, model)


async def step(flow: Flow, run: str, model: Model, data: st.DataObject) -> None:
    choices = ["end"] * 6 if model.work() else []
    choice = data.draw(st.sampled_from([*choices, "retry", "complete", "skip", "stop", "resume"]))
    note(f"{choice} {model.status}")
    if choice == "end":
        key, place = data.draw(st.sampled_from(model.work()))
        state = data.draw(st.sampled_from(["SUCCESS", "SUCCESS", "FAILED"]))
        await flow.end(key if place is None else f"{key}[{place}]", failed=state == "FAILED")
        model.ended(key, place, state)
        return
    key = data.draw(st.sampled_from(sorted(model.nodes)))
    note(key)
    given: dict[str, tuple[Callable[[], None], Callable[[], Any]]] = {
        "retry": (lambda: model.retry(key), lambda: flow.orders.retry_node(run, key, ANNA)),
        "complete": (lambda: model.complete(key), lambda: flow.orders.complete_node(run, key, ANNA, 1, None)),
        "skip": (lambda: model.skip(key), lambda: flow.orders.skip_node(run, key, ANNA)),
        "stop": (model.stop, lambda: flow.orders.stop(run, ANNA)),
        "resume": (model.resume, lambda: flow.orders.resume(run, ANNA)),
    }
    expected, order = given[choice]
    try:
        expected()
        refused = False
    except Refused:
        refused = True
    try:
        await order()
        told = False
    except Conflict:
        told = True
    assert refused == told, f"{choice} {key}: {'not ' if refused else ''}refused"
    await flow.simulation.settle()


async def compare(flow: Flow, run: str, model: Model) -> None:
    found = {key: status for key, status in (await flow.statuses(run)).items() if "[" not in key}
    assert found == {key: node.status for key, node in model.nodes.items()}
    assert JOBCHAIN_RUN_NAMES[(await flow.reread(run)).status] == model.status
    items = {key: status for key, status in (await flow.statuses(run)).items() if "[" in key}
    for key, node in model.nodes.items():
        if node.status == "RUNNING" and node.items:
            assert [items[f"{key}[{place}]"] for place in range(node.items)] == node.item_states


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(nodes=graphs(), data=st.data())
def test_whatever_happens_to_a_run_is_what_the_model_says(nodes: dict[str, Node], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(live(nodes, data, Path(directory)))
