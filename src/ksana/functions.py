"""For those who write functions for `python` jobs: `from ksana.functions import NodeContext, function`.

    @function("sum-orders")
    def sum_orders(context: NodeContext, day: date, limit: int = 100) -> dict[str, int]:
        ...

A job names the function and its parameters: `{"function": "sum-orders", "params": {"day": "2026-03-01"}}`. The module must be
named in the setting `executor.python_modules`. The guide is `docs/guides/executors.md`. This module imports nothing but the
standard library, so that importing it costs a function's own tests nothing.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,127}")
_REGISTERED: "dict[str, Function]" = {}


class Final(Exception):
    """Raise it to say that trying again would not help: the attempt fails, and no other follows."""


class NotKept(Exception):
    """A checkpoint or an artifact was not kept; the text says why."""


@dataclass(frozen=True, slots=True)
class Function:
    """A registered function."""

    name: str
    call: Callable[..., Any]
    light: bool


def function(name: str, *, light: bool = False) -> Callable[[F], F]:
    """Registers a function under a name that jobs use. ValueError if the name cannot be used, or is taken.

    It runs in a process of its own, where it may block, spin or crash. With `light`, an `async` function runs inside the
    server instead, at no cost and with no protection: it must not block, and what it prints is not kept.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a function's name must be 1 to 128 of A-Z a-z 0-9 . _ -, not {name!r}")

    def register(call: F) -> F:
        if light and not iscoroutinefunction(call):
            raise ValueError(f"{name}: only an async function can be light")
        known = _REGISTERED.get(name)
        if known is not None and _origin(known.call) != _origin(call):
            raise ValueError(f"two functions are called {name!r}: {_origin(known.call)} and {_origin(call)}")
        _REGISTERED[name] = Function(name, call, light)
        return call

    return register


def registered() -> Mapping[str, Function]:
    """The functions of all modules that have been imported, by name."""
    return MappingProxyType(_REGISTERED)


class Link(Protocol):
    """What stands behind a NodeContext. Ksana's own leads to the server."""

    def save(self, what: str, value: Any) -> None: ...

    def cancelled(self) -> bool: ...


class Alone:
    """Behind a NodeContext that a test made: what is saved is kept in `saved`."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}
        self.asked_to_stop = False

    def save(self, what: str, value: Any) -> None:
        self.saved[what] = value

    def cancelled(self) -> bool:
        return self.asked_to_stop


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Which attempt this is, and what it may use."""

    run_id: str = "0"
    """The workflow run's; outside a workflow, the job's own run's."""
    node_id: str | None = None
    job: str = ""
    attempt: int = 1
    idempotency_key: str = ""
    """The same for every attempt: for whoever must not do the same thing twice."""
    scheduled_at: str = ""
    """The instant that the run is for, as in `2026-01-31T12:00:00Z`."""
    trace_id: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The run's, not the function's own."""
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Nodes upstream: `context.nodes["load"]["artifact"]`."""
    item: Any = None
    index: int | None = None
    checkpoint: Any = None
    """What an earlier attempt saved; None if there is nothing."""


@dataclass(frozen=True, kw_only=True)
class NodeContext(Facts):
    """The attempt, for a function in a process of its own. `NodeContext(params={…})` is enough for a test."""

    link: Link = field(default_factory=Alone, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """True once the attempt was asked to stop: about a second is left."""
        return self.link.cancelled()

    def save_checkpoint(self, value: Any) -> None:
        """Keeps JSON for the next attempt; returns when it is kept. NotKept if it is not."""
        self.link.save("checkpoint", value)

    def save_artifact(self, value: Any) -> None:
        """Keeps JSON for others while the function runs; what it returns, if not None, takes its place. NotKept likewise."""
        self.link.save("artifact", value)

    def log(self, text: str) -> None:
        """A line of the attempt's log; `print` does as well."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class LightLink(Protocol):
    """What stands behind a LightContext."""

    async def save_checkpoint(self, value: Any) -> None: ...

    async def save_artifact(self, value: Any) -> None: ...

    def log(self, text: str, stream: str = "stdout") -> None: ...


@dataclass(frozen=True, kw_only=True)
class LightContext(Facts):
    """The attempt, for a light function: what is saved is awaited, and a stop arrives as `asyncio.CancelledError`."""

    link: LightLink = field(repr=False, compare=False)

    async def save_checkpoint(self, value: Any) -> None:
        """Keeps JSON for the next attempt; returns when it is kept."""
        await self.link.save_checkpoint(value)

    async def save_artifact(self, value: Any) -> None:
        """Keeps JSON for others while the function runs; what it returns, if not None, takes its place."""
        await self.link.save_artifact(value)

    def log(self, text: str) -> None:
        """A line of the attempt's log."""
        self.link.log(f"{text}\n")


def _origin(call: Callable[..., Any]) -> str:
    return f"{getattr(call, '__module__', '?')}.{getattr(call, '__qualname__', '?')}"
