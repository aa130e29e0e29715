"""The executors there are: Ksana's own, and plug-ins that name themselves in the entry points `ksana.executors`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ksana.domain.errors import InvalidInput
from ksana.executors.base import Executor
from ksana.telemetry import log

GROUP = "ksana.executors"


class Executors:
    """Executors by type. A plug-in is loaded when its type is first asked for; a broken one is logged and left out.

    An entry point is named for its type and leads to what makes the executor when called without arguments: its class, say.
    Where two have one type, Ksana's own is taken, then the first that was found.
    """

    def __init__(
        self,
        executors: Iterable[Executor],
        *,
        later: Mapping[str, Callable[[], Executor]] | None = None,
        plugins: Iterable[EntryPoint] | None = None,
    ) -> None:
        """`later` makes those, by type, that take long to load: when `load` is called, or one is asked for before. `plugins` are
        looked for among what is installed unless they are given."""
        self._ready: dict[str, Executor] = {executor.type: executor for executor in executors}
        self._later = dict(later or {})
        self._plugins = plugins
        self._waiting: dict[str, EntryPoint] | None = None

    def get(self, type_: str) -> Executor:
        """The executor of that type; InvalidInput, saying which there are, if there is none."""
        found = self._ready.get(type_) or self._made_now(type_) or self._loaded(type_)
        if found is None:
            raise InvalidInput("type", f"no executor of that type: {type_[:64]}; there are: {', '.join(self.types())}")
        return found

    def check(self, type_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config with its defaults. InvalidInput names `type`, or the part of the config that is wrong."""
        return self.get(type_).check(config)

    def types(self) -> list[str]:
        """The types there are, in order of the alphabet; of plug-ins not yet loaded, as their entry points name them."""
        return sorted({*self._ready, *self._later, *self._found()})

    async def load(self) -> None:
        """Makes what was put off, in a thread, so that others can go on. One that fails is logged, and fails again when it is
        asked for."""
        for type_, make in list(self._later.items()):
            try:
                executor = await asyncio.to_thread(make)
            except Exception as error:  # noqa: BLE001 - it says nothing about the others
                log().error("an executor cannot be used", action="executors.broken", type=type_, exc_info=error)
                continue
            self._ready.setdefault(type_, executor)
            self._later.pop(type_, None)

    async def close(self) -> None:
        """Closes all. One that fails is logged and does not keep the others from it."""
        for type_, executor in self._ready.items():
            try:
                await executor.close()
            except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
                log().error("an executor did not close", action="executors.close_failed", type=type_, exc_info=error)

    def _found(self) -> dict[str, EntryPoint]:
        if self._waiting is None:
            points = entry_points(group=GROUP) if self._plugins is None else self._plugins
            self._waiting = {}
            for point in points:
                if point.name not in self._ready and point.name not in self._later:
                    self._waiting.setdefault(point.name, point)
        return self._waiting

    def _made_now(self, type_: str) -> Executor | None:
        make = self._later.get(type_)
        if make is None:
            return None
        executor = self._ready[type_] = make()
        del self._later[type_]
        return executor

    def _loaded(self, type_: str) -> Executor | None:
        point = self._found().pop(type_, None)
        if point is None:
            return None
        try:
            executor = _made(point)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            log().error(
                "a plug-in could not be used",
                action="executors.plugin_broken",
                type=type_,
                at=point.value,
                exc_info=error,
            )
            return None
        self._ready[type_] = executor
        return executor


def _made(point: EntryPoint) -> Executor:
    executor: Executor = point.load()()
    if executor.type != point.name:
        raise TypeError(f"it calls itself {executor.type!r}")
    for method in ("check", "execute", "close"):
        if not callable(getattr(executor, method, None)):
            raise TypeError(f"it has no method {method!r}")
    return executor
