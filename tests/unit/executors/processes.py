"""For tests of executors that start processes: tools that remember, and looking whether a process is there."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.executors.attempts import attempt

from ksana.domain.outcome import Outcome
from ksana.executors.base import ExecutionContext, Place

PATIENCE_SECONDS = 30.0
ROOT = str(Path(__file__).parents[3])


class Memory:
    """Tools that remember. `refusal` is raised in place of keeping anything."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.refusal = refusal
        self.checkpoints: list[Any] = []
        self.artifacts: list[Any] = []
        self.text = {"stdout": "", "stderr": ""}
        self._changed = asyncio.Event()

    async def save_checkpoint(self, value: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.checkpoints.append(value)
        self._changed.set()

    async def save_artifact(self, value: Any) -> None:
        self.artifacts.append(value)

    def log(self, text: str, stream: str = "stdout") -> None:
        self.text[stream] += text
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something was logged or saved that makes it true."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def lines(self, count: int) -> list[str]:
        """The first lines of standard output, once there are so many."""
        await self.until(lambda: self.text["stdout"].count("\n") >= count)
        return self.text["stdout"].splitlines()[:count]


def given(
    config: Mapping[str, Any], tools: Memory | None = None, *, timeout: float = 10.0, **more: Any
) -> ExecutionContext:
    """The usual attempt, with tools and whatever else is named."""
    input = more.pop("input", None)  # noqa: A001 - the name it has in the domain
    return replace(attempt(config, timeout=timeout, input=input), tools=tools or Memory(), **more)


async def at_deadline(
    execute: Callable[[ExecutionContext], Awaitable[Outcome]], config: Mapping[str, Any], *, lines: int = 1
) -> tuple[Outcome, Memory]:
    """The outcome of work that outlives its deadline, which is longer where it could not write so many lines before.

    A busy machine may not even have started it after half a second.
    """
    for timeout in (0.5, 2.0, 8.0):
        tools = Memory()
        outcome = await execute(given(config, tools, timeout=timeout))
        if tools.text["stdout"].count("\n") >= lines:
            return outcome, tools
    raise AssertionError(f"not {lines} lines before any deadline: {tools.text}")


def node(item: Any = None, index: int | None = None) -> Place:
    return Place(run_id="run-1", workflow_id="wf-1", node_id="load", item=item, index=index)


def is_running(pid: int) -> bool:
    """Whether it is there, and not only its grave."""
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what nobody can tell us about: another process's doings. TimeoutError after a while."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def are_gone(*pids: int) -> None:
    """Waits until none of them runs."""
    await until(lambda: not any(is_running(pid) for pid in pids))
