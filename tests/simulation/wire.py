"""The way from a simulated process to the database and back: each verb is a request that the simulator applies and answers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation import threads
from tests.simulation.memory_store import Call

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import World

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Request:
    """A verb under way: asked for, then applied (or not), then answered."""

    process: "Process"
    call: Call[Any]
    caller: "asyncio.Future[Any] | threads.SimulatedThread"
    due_at: float
    """When the next thing can happen to it: it is on its way until then."""
    applied: bool = False
    answer: Any = None
    """A value, or the error that is raised."""

    def deliver(self) -> None:
        """The caller goes on with the answer, unless it has gone away."""
        if isinstance(self.caller, threads.SimulatedThread):
            self.caller.resume(self.answer)
        elif not self.caller.done():
            if isinstance(self.answer, BaseException):
                self.caller.set_exception(self.answer)
            else:
                self.caller.set_result(self.answer)


@dataclass(slots=True, eq=False)
class Message:
    """A hint on its way to another process."""

    process: "Process"
    hint: str
    due_at: float


class SimulatedWire:
    def __init__(self, world: "World", process: "Process") -> None:
        self._world = world
        self._process = process

    async def ask(self, call: Call[T]) -> T:
        future: asyncio.Future[T] = self._process.loop.create_future()
        self._world.asked(self._process, call, future)
        return await future

    def ask_blocking(self, call: Call[T]) -> T:
        thread = threads.current()
        self._world.asked(self._process, call, thread)
        answer = thread.await_answer()
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]

    def tell_others(self, hint: str) -> None:
        self._world.told(self._process, hint)

    def listen(self, listener: Callable[[str], None]) -> bool:
        self._process.listener = listener
        return self._world.mood.carries_hints
