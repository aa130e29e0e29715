"""The scenarios: a module for each family, a function for each scenario, found by their names (F1, F2, … as RELIABILITY has them).

To add one: write a function in a module here and mark it with `@scenario`. It gets an arena, does its faults, and returns the
checker's verdict with whatever it found beside. `python -m tests.faults --only NAME` runs it, and so does the gate, unless it says
`gate=False`.
"""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from tests.faults.arena import Arena
from tests.faults.history import History, Verdict

SERVERS = ("postgresql", "mysql")
Body = Callable[[Arena], tuple[History, Verdict]]


@dataclass(frozen=True)
class Scenario:
    """One fault, and what must hold."""

    name: str
    title: str
    stores: tuple[str, ...]
    run: Body
    gate: bool = True
    """Whether it has a size of seconds, which every change must pass."""
    proxy: bool = False
    """Whether its instances reach the database through a proxy."""
    env: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False
    """Whether its instances are interpreters of their own, as when something is loaded before them."""


_known: dict[str, Scenario] = {}


def scenario(
    name: str,
    title: str,
    *,
    stores: tuple[str, ...] = SERVERS,
    gate: bool = True,
    proxy: bool = False,
    env: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Callable[[Body], Body]:
    """Makes a function a scenario."""

    def mark(body: Body) -> Body:
        assert name not in _known, f"two scenarios are called {name}"
        _known[name] = Scenario(name, title, stores, body, gate, proxy, env or {}, fresh)
        return body

    return mark


def scenarios() -> dict[str, Scenario]:
    """All of them, by name."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return dict(sorted(_known.items(), key=lambda item: (len(item[0]), item[0])))
