"""The event loop of one simulated process: asyncio's own tasks and futures, run one callback at a time by the simulator.

Callbacks run in the order in which they were asked for, as asyncio promises: which process runs next, when an answer comes and
when time passes is chosen by the seed, but nothing happens here that could not happen in a real process.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ProcessLoop(asyncio.AbstractEventLoop):
    def __init__(self, seconds: Callable[[], float]) -> None:
        self.time = seconds  # type: ignore[method-assign]
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self.tasks: list[asyncio.Task[Any]] = []
        """Kept, so that those of a process that vanished are never collected in the middle of something."""
        self.failures: list[str] = []
        """What nobody caught."""

    # For the simulator ------------------------------------------------------------------------------------------------

    def runnable(self) -> bool:
        """Whether a callback is ready at this moment."""
        now = self.time()
        while self._timers and self._timers[0][0] <= now:
            handle = heapq.heappop(self._timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)
        while self._ready and self._ready[0].cancelled():
            self._ready.popleft()
        return bool(self._ready)

    def run_one(self) -> None:
        """The next callback."""
        handle = self._ready.popleft()
        events._set_running_loop(self)
        try:
            handle._run()
        finally:
            events._set_running_loop(None)

    def next_timer(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def bury(self) -> None:
        """Forgets everything, quietly: what was under way here never goes on."""
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine = task.get_coro()
            if not task.done() and isinstance(coroutine, Coroutine):
                with suppress(Exception):
                    coroutine.close()
        self.tasks.clear()
        self._ready.clear()
        self._timers.clear()

    # For asyncio ------------------------------------------------------------------------------------------------------

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)
        self.tasks.append(task)
        if len(self.tasks) > 256:
            self.tasks = [each for each in self.tasks if not each.done()]
        return task

    def run_in_executor(self, _: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """At once: what the engine leaves to threads here is to wait for one that is about to end."""
        future: asyncio.Future[T] = self.create_future()
        future.set_result(func(*args))
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")
