"""Where runtime state is shown now: in the place that was chosen or, while that is away, in the one that stands in for it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ksana.domain.errors import RuntimeStateError, RuntimeUnavailable, UnsafeRuntime
from ksana.runtime.base import RuntimeState
from ksana.telemetry import log

T = TypeVar("T")
OWN = "sql"
"""Where what is shown is as durable as what it is made from."""
SHARED = "redis"
"""Where others than Ksana may have a tenant's lock."""


class Outside:
    """`standby` is the store's own, which is there as long as Ksana can work at all; None where it was chosen itself."""

    def __init__(self, chosen: RuntimeState, standby: RuntimeState | None = None) -> None:
        self.chosen = chosen
        self._standby = standby
        self.trouble: str | None = None
        """Why the standby is used."""
        self.stale = chosen.name != OWN
        """Whether what is shown there may lack something, and is to be made anew."""

    @property
    def now(self) -> RuntimeState:
        return self.chosen if self.trouble is None or self._standby is None else self._standby

    @property
    def shared(self) -> bool:
        """Whether locks there mean something to others."""
        return self.now.name == SHARED

    async def use(self, what: Callable[[RuntimeState], Awaitable[T]]) -> T:
        """The answer of where it is now; if that is away, of the standby. RuntimeUnavailable if that is, too."""
        state = self.now
        try:
            return await what(state)
        except RuntimeUnavailable as error:
            if state is not self.chosen or self._standby is None:
                raise
            self.lose(error)
            return await what(self._standby)

    def lose(self, error: RuntimeStateError) -> None:
        """The chosen one cannot be used."""
        if self.trouble is None and self._standby is not None:
            log().warning(
                "runtime state is not shown where it should be",
                action="runtime.degraded",
                store=self.chosen.name,
                instead=self._standby.name,
                err=error.message,
            )
            self.trouble, self.stale = error.message, True

    async def look(self) -> bool:
        """Whether the chosen one can be used; asks it. It is not used again before `regain`."""
        try:
            await self.chosen.ping()
        except (RuntimeUnavailable, UnsafeRuntime) as error:
            self.lose(error)
            if self.trouble is not None:
                self.trouble = error.message
            return False
        return True

    def regain(self) -> None:
        """The chosen one is used from now on. What it lacks is shown there next; whatever happens meanwhile is shown at once."""
        if self.trouble is not None:
            log().info("runtime state is shown where it should be", action="runtime.regained", store=self.chosen.name)
            self.trouble, self.stale = None, True

    async def close(self) -> None:
        await self.chosen.close()
        if self._standby is not None:
            await self._standby.close()
