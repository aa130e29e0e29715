"""The process that functions run in: one attempt after another, each told and answered in lines of JSON over a socket.

From Ksana comes once `{"modules": …}`, then `{"run": …}`, and while a function runs `{"cancel": true}` and, in answer to what it
saved, `{"kept": …}`. To Ksana go `{"ready": true}`, `{"save": …}` and, when a function has ended, `{"ended": …}`. What is printed
goes to the process's own output, where a mark ends each attempt.
"""

import asyncio
import importlib
import inspect
import os
import queue
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import orjson

from ksana.domain.errors import InvalidInput
from ksana.executors.python_signature import Signature
from ksana.functions import Final, Function, NodeContext, NotKept, registered

MAX_OUTPUT = 1_000_000
_ERROR_LENGTH = 1_000


class Channel:
    """The socket to Ksana. A thread reads it, so that a function hears of its cancellation while it works."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._sending = threading.Lock()
        self.orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()
        self.on_cancel: Callable[[], object] = lambda: None
        threading.Thread(target=self._read, name="ksana-channel", daemon=True).start()

    def send(self, message: Mapping[str, Any]) -> None:
        with self._sending:
            self._socket.sendall(orjson.dumps(message) + b"\n")

    def _read(self) -> None:
        for line in self._socket.makefile("rb"):
            message = orjson.loads(line)
            if "cancel" in message:
                self.cancelled.set()
                with suppress(RuntimeError):  # its event loop has just ended
                    self.on_cancel()
            elif "kept" in message:
                self.answers.put(message["kept"])
            else:
                self.orders.put(message)
        os._exit(0)  # Ksana has hung up


class Attempt:
    """Behind the NodeContext of one attempt."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._saving = threading.Lock()

    def save(self, what: str, value: Any) -> None:
        packed = _packed(value)
        if isinstance(packed, str):
            raise NotKept(f"the {what} {packed}")
        with self._saving:  # so that each gets its own answer
            self._channel.send({"save": what, "value": orjson.Fragment(packed)})
            refusal = self._channel.answers.get()
        if refusal is not None:
            raise NotKept(refusal)

    def cancelled(self) -> bool:
        return self._channel.cancelled.is_set()


def main(fd: int) -> None:
    """Serves until Ksana hangs up. What importing a module raises ends it, and stands on its standard error."""
    channel = Channel(fd)
    order = channel.orders.get()
    for module in order["modules"]:
        importlib.import_module(module)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]  # they are what Python opened itself
    channel.send({"ready": True})
    base, threads = str(order["directory"]), _threads()
    while True:
        _serve(channel, channel.orders.get(), base, threads)


def _serve(channel: Channel, order: Mapping[str, Any], base: str, threads: int) -> None:
    """One attempt. Its directory and its variables are gone when the next one begins."""
    variables = dict(os.environ)
    channel.cancelled.clear()
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as directory:
        os.chdir(directory)
        ended = _ended(channel, order["run"])
        marked = _marked(order["mark"].encode())
        os.chdir(base)
    if dict(os.environ) != variables:
        os.environ.clear()
        os.environ.update(variables)
    clean = marked and _threads() <= threads and not _has_children()
    channel.send({"ended": ended, "marked": marked, "clean": clean})


def _ended(channel: Channel, run: Mapping[str, Any]) -> dict[str, Any]:
    """What became of the function: `output`, or `error`, `final` if trying again would not help."""
    try:
        function = registered()[run["function"]]
        signature = _signature(function)
        arguments = signature.converted(run["params"])
        if signature.context is not None:
            arguments[signature.context] = NodeContext(**run["context"], link=Attempt(channel))
        returned = function.call(**arguments)
        if inspect.iscoroutine(returned):
            returned = asyncio.run(_cancellable(returned, channel))
        packed = _packed(returned)
        if isinstance(packed, str):
            return {"error": f"what the function returned {packed}", "final": True}
        return {"output": orjson.Fragment(packed)}
    except InvalidInput as error:
        return {"error": error.message, "final": True}
    except Final as error:
        return {"error": str(error)[:_ERROR_LENGTH] or "Final", "final": True}
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it ends the attempt, not the process
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:_ERROR_LENGTH], "final": False}


async def _cancellable(work: Coroutine[Any, Any, Any], channel: Channel) -> Any:
    """Runs it so that a cancellation arrives as such."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101
    channel.on_cancel = lambda: loop.call_soon_threadsafe(task.cancel)
    try:
        if channel.cancelled.is_set():
            task.cancel()
        return await work
    finally:
        channel.on_cancel = lambda: None


@cache
def _signature(function: Function) -> Signature:
    """Made once: that takes milliseconds."""
    return Signature.of(function)


def _packed(value: Any) -> bytes | str:
    """As JSON; or, as text, why that is not possible."""
    try:
        packed = orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        return f"is not JSON: {error}"
    return packed if len(packed) <= MAX_OUTPUT else f"is larger than {MAX_OUTPUT} bytes"


def _marked(mark: bytes) -> bool:
    """Writes the mark on both streams, after all that was printed. False if the function has closed one."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for fd in (1, 2):
            os.write(fd, mark)
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _threads() -> int:
    """Those that would go on working; libraries keep daemons for themselves."""
    return sum(not thread.daemon for thread in threading.enumerate())


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
