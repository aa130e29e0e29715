"""What a node and a call cost in counts that no machine can change: statements, commits, and functions that are called."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from bench.dag import SQLITE, Nothing, chain, complete, layers, running
from tests.contract.store.counting import before_commits, counting
from tests.unit.executors.attempts import attempt
from tests.unit.executors.witness import witness_on_loopback

from ksana import executors
from ksana.domain.events import SYSTEM
from ksana.domain.outcome import Succeeded
from ksana.engine.commands import WorkflowDraft
from ksana.executors.http import HttpExecutor
from ksana.store.sql import writer

CHAIN, CALLS, RUNS = 30, 40, 40
OURS = str(Path(executors.__file__).parent)
AROUND = 30
"""Statements around the nodes: the start of the run, its end, and what looks after an engine."""


async def test_a_node_of_a_chain_is_five_statements_and_one_commit(tmp_path: Path) -> None:
    async with running(SQLITE.fresh(tmp_path)) as (store, workflows):
        workflow = await workflows.create(WorkflowDraft("chain", chain(CHAIN)), SYSTEM)
        await complete(store, workflows, workflow.key)
        with counting(store) as count:
            await complete(store, workflows, workflow.key)
    assert count.commits <= CHAIN + 6
    assert count.statements <= 5 * CHAIN + AROUND, count.statements
    assert count.foreign == set()


async def test_a_node_of_a_chain_changes_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SLOW_COMMIT_SECONDS", float("inf"))  # however slow the disk is
    async with running(SQLITE.fresh(tmp_path)) as (store, workflows):
        workflow = await workflows.create(WorkflowDraft("chain", chain(CHAIN)), SYSTEM)
        threads: list[int] = []
        with before_commits(store, lambda: threads.append(threading.get_ident())):
            await complete(store, workflows, workflow.key)
        here = threads.count(threading.get_ident())
    assert here >= CHAIN
    assert len(threads) - here <= 6  # of what looks after an engine


async def test_nodes_that_are_ready_together_share_their_statements(tmp_path: Path) -> None:
    async with running(SQLITE.fresh(tmp_path)) as (store, workflows):
        workflow = await workflows.create(WorkflowDraft("layers", layers(100)), SYSTEM)
        await complete(store, workflows, workflow.key)
        with counting(store) as count:
            await complete(store, workflows, workflow.key)
    assert count.statements <= 150 + AROUND


async def test_runs_that_start_together_share_their_statements(tmp_path: Path) -> None:
    async with running(SQLITE.fresh(tmp_path)) as (store, workflows):
        workflow = await workflows.create(WorkflowDraft("short", layers(10)), SYSTEM)
        await complete(store, workflows, workflow.key)
        with counting(store) as count:
            await complete(store, workflows, workflow.key, RUNS)
    assert count.statements <= 5 * RUNS
    assert count.foreign == set()


async def test_what_is_worked_out_when_a_workflow_is_made_is_not_worked_out_again_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Any] = []

    def check(_: Nothing, config: Any) -> Any:
        checked.append(config)
        return config

    monkeypatch.setattr(Nothing, "check", check)
    async with running(SQLITE.fresh(tmp_path)) as (store, workflows):
        workflow = await workflows.create(WorkflowDraft("chain", chain(CHAIN)), SYSTEM)
        assert len(checked) == CHAIN
        await complete(store, workflows, workflow.key)
    assert len(checked) == CHAIN


@contextmanager
def counting_calls() -> Iterator[list[int]]:
    """How many of Ksana's own functions this thread calls meanwhile, or goes on with."""
    calls = [0]

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        calls[0] += event == "call" and OURS in frame.f_code.co_filename

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def test_a_call_of_a_target_is_few_calls_of_functions() -> None:
    async with witness_on_loopback() as witness:
        http = HttpExecutor()
        call = attempt({"url": witness.url("/"), "method": "POST", "body": '{"a": 1}'})
        try:
            await http.execute(call)
            with counting_calls() as calls:
                for _ in range(CALLS):
                    assert isinstance(await http.execute(call), Succeeded)
        finally:
            await http.close()
    assert calls[0] / CALLS <= 51
