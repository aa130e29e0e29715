"""Functions that behave in every way in which functions do. Their processes import this module by its name."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ksana.functions import Final, LightContext, NodeContext, NotKept, function


@dataclass
class Window:
    first: int
    last: int


@function("add")
def add(left: int, right: int = 10) -> int:
    return left + right


@function("typed")
def typed(day: date, window: Window, *, names: set[str]) -> list[Any]:
    return [day.isoformat(), type(window).__name__, window.last - window.first, sorted(names)]


@function("anything")
def anything(**more: Any) -> dict[str, Any]:
    return more


@function("told")
def told(context: NodeContext) -> dict[str, Any]:
    return {
        "run": context.run_id,
        "node": context.node_id,
        "attempt": context.attempt,
        "params": context.params,
        "load": context.nodes.get("load"),
        "item": context.item,
        "index": context.index,
        "checkpoint": context.checkpoint,
    }


@function("noisy")
def noisy(context: NodeContext, times: int = 1) -> None:
    for _ in range(times):
        print("grüezi")
        context.log("logged")
        print("oh", file=sys.stderr)
        subprocess.run(["/bin/echo", "from a command"], check=True)


@function("surroundings")
def surroundings() -> dict[str, Any]:
    found = {
        "pid": os.getpid(),
        "cwd": str(Path.cwd()),
        "env": dict(os.environ),
        "left": [str(path) for path in Path().iterdir()],
    }
    os.environ["LEFT_BEHIND"] = "1"
    Path("left-behind").touch()
    return found


@function("saving")
def saving(context: NodeContext, value: Any) -> str:
    context.save_artifact({"half": value})
    try:
        context.save_checkpoint(value)
    except NotKept as error:
        return str(error)
    return "kept"


@function("saving-no-json")
def saving_no_json(context: NodeContext) -> None:
    context.save_checkpoint(object())


@function("raising")
def raising() -> None:
    raise ValueError("no such thing")


@function("giving-up")
def giving_up() -> None:
    raise Final("it will never work")


@function("leaving")
def leaving(code: int = 3) -> None:
    sys.exit(code)


@function("dying")
def dying(code: int = 3) -> None:
    os._exit(code)


@function("killed")
def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@function("no-json")
def no_json() -> object:
    return object()


@function("too-large")
def too_large() -> str:
    return "x" * 1_100_000


@function("spinning")
def spinning(context: NodeContext) -> None:
    print("spinning", flush=True)
    ctypes.PyDLL(None).sleep(60)  # which keeps the interpreter's lock, as a loop in C does


@function("patient")
def patient(context: NodeContext) -> None:
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    while not context.cancelled:
        time.sleep(0.01)
    context.save_checkpoint("asked to stop")


@function("leaving-a-child")
def leaving_a_child() -> int:
    return subprocess.Popen(["sleep", "60"]).pid


@function("leaving-a-thread")
def leaving_a_thread() -> int:
    threading.Thread(target=time.sleep, args=(60,)).start()
    return os.getpid()


@function("closing-its-output")
def closing_its_output() -> int:
    os.close(1)
    return 1


@function("async")
async def asynchronous(context: NodeContext, seconds: float = 0) -> int:
    print("waiting", flush=True)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        context.save_checkpoint("cancelled")
        raise
    return os.getpid()


@function("light", light=True)
async def light(context: LightContext, seconds: float = 0, fail: str | None = None) -> int:
    context.log("light")
    await context.save_checkpoint("light")
    await asyncio.sleep(seconds)
    if fail == "final":
        raise Final("never")
    if fail:
        raise TimeoutError(fail)
    return os.getpid()
