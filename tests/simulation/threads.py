"""Threads of simulated processes: real ones, of which none runs unless the simulator waits for it.

The heartbeat has a thread of its own, with blocking waits. So that its real code runs here, `threading` is replaced in its
module: a wait, and a verb of the store, hand the turn back to the simulator, which gives it again when the time has come or
the answer is there. Whoever's turn it is, exactly one thread runs, so the seed still decides everything.
"""

import threading
from collections.abc import Callable
from typing import Any


class Vanished(BaseException):
    """The process is gone: its thread ends wherever it is."""


class SimulatedThread:
    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._turn, self._back = threading.Lock(), threading.Lock()
        self._turn.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._run, args=(target, args), daemon=True)
        self._vanished = False
        self._told: Any = None
        self.ended = False
        self.waits_for: SimulatedEvent | None = None
        self.wake_at: float | None = None
        """None: it does not wait for a time, but for an answer."""

    # By the simulator -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()
        self._back.acquire()

    def runnable(self) -> bool:
        if self.ended or self.wake_at is None:
            return False
        return self._seconds() >= self.wake_at or (self.waits_for is not None and self.waits_for.is_set())

    def resume(self, told: Any = None) -> None:
        """Its turn, until it waits again; `told` is the answer to what it waits for."""
        self._told = told
        self._turn.release()
        self._back.acquire()

    def vanish(self) -> None:
        if not self.ended:
            self._vanished = True
            self.resume()
        self._thread.join()

    def join(self) -> None:
        """Called by its own process when it stops: it has been told to end, and does so before anything else happens."""
        if not self.ended and self.wake_at is not None:
            self.resume()

    # By the thread itself ---------------------------------------------------------------------------------------------

    def sleep(self, event: "SimulatedEvent", timeout: float) -> None:
        self.waits_for, self.wake_at = event, self._seconds() + timeout
        self._pass_turn()

    def await_answer(self) -> Any:
        self.waits_for, self.wake_at = None, None
        return self._pass_turn()

    def _pass_turn(self) -> Any:
        self._back.release()
        self._turn.acquire()
        if self._vanished:
            raise Vanished
        return self._told

    def _run(self, target: Callable[..., None], args: tuple[Any, ...]) -> None:
        _CURRENT.thread = self
        try:
            target(*args)
        except Vanished:
            return
        finally:
            self.ended = True
            self._back.release()


class SimulatedEvent:
    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def wait(self, timeout: float) -> bool:
        if not self._set:
            current().sleep(self, timeout)
        return self._set


class _Current(threading.local):
    thread: SimulatedThread | None = None


_CURRENT = _Current()


def current() -> SimulatedThread:
    """The simulated thread that this is."""
    assert _CURRENT.thread is not None, "this would block the event loop"
    return _CURRENT.thread


class Threading:
    """What takes the place of the module `threading`: its threads are given to `adopt`."""

    Event = SimulatedEvent

    def __init__(self, seconds: Callable[[], float], adopt: Callable[[SimulatedThread], None]) -> None:
        self._seconds = seconds
        self._adopt = adopt

    def Thread(self, *, target: Callable[..., None], args: tuple[Any, ...], **_: object) -> SimulatedThread:  # noqa: N802
        thread = SimulatedThread(target, args, self._seconds)
        self._adopt(thread)
        return thread
