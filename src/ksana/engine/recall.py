"""An answer of the store that is not asked for again while nothing can have changed it.

On an embedded database nobody but this process writes, and it knows when it has: as long as it has not, whatever the store
answers is what it answered before. So an idle instance looks at its own clock every second, and at the database now and then.
Where others may write too, every look asks.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, ParamSpec, TypeVar

from ksana.store.base import Store

LOOK_ANYWAY = timedelta(seconds=15)
"""Asked after this time all the same: somebody may have been at the file with other tools, or there is a fault in this."""

P = ParamSpec("P")
T = TypeVar("T")


class Stillness:
    """Whether anything may have been written since a moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: int | None = None
        self._since: datetime | None = None

    def note(self, now: datetime) -> None:
        """To be called before the question is asked: what is written while it is answered counts as later."""
        self._seen, self._since = self._store.changes, now

    def lasts(self, now: datetime) -> bool:
        """False where nobody can tell, after a while, and if the clock went back."""
        if self._since is None or self._seen is None or self._seen != self._store.changes:
            return False
        return self._since <= now < self._since + LOOK_ANYWAY


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    about: tuple[object, ...]
    answer: T


class Recalled(Generic[P, T]):
    """A question to the store that is about nothing but what is stored: its answer must not depend on the time."""

    def __init__(self, store: Store, ask: Callable[P, Awaitable[T]]) -> None:
        self._ask = ask
        self._still = Stillness(store)
        self._known: _Known[T] | None = None

    async def __call__(self, now: datetime, *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer at `now`. Raises what the store raises."""
        about = (*args, *sorted(kwargs.items()))
        known = self._known
        if known is not None and known.about == about and self._still.lasts(now):
            return known.answer
        self._known = None  # one that fails must not be answered from memory the next time
        self._still.note(now)
        answer = await self._ask(*args, **kwargs)
        self._known = _Known(about, answer)
        return answer
