"""Reads on through the journal and misses nothing.

Ids are given out before a commit and become visible after it. Where several write, a lower one can so appear after a higher
one: ids that were passed over are remembered, and looked for until whoever got them must have committed or given up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ksana.domain.clock import Clock
from ksana.domain.events import Event
from ksana.store.base import Store

AT_ONCE = 1_000
"""How many events are read in one go. Of more, only the newest are."""
LOOK_BACK = 200
"""How many ids before the newest are looked at in the beginning: some of them may not be visible yet."""
PATIENCE_SECONDS = 10.0
"""How long an id that was passed over is looked for."""
MOST_GAPS = 2_000
"""Ids that are remembered. The oldest are forgotten first: transactions that failed leave ids that nobody ever has."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Events in order; `skipped`: there were more before them."""

    events: Sequence[Event]
    skipped: bool = False


class EventReader:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._last = 0
        self._gaps: dict[int, float] = {}
        """Ids that were passed over, and until when each is looked for."""

    @property
    def position(self) -> int:
        """The last id before which nothing can be missing: who goes on from here gets everything, some of it again."""
        return min(self._gaps) - 1 if self._gaps else self._last

    @property
    def waits_for_gaps(self) -> bool:
        return bool(self._gaps)

    async def begin(self) -> None:
        """What there is now counts as read, but for ids that are not visible yet."""
        newest = await self._store.newest_event_id()
        if self._store.shared:
            first = max(0, newest - LOOK_BACK)
            seen = [event.id for event in await self._store.events(first, LOOK_BACK) if event.id <= newest]
            self._remember([first, *seen])
        self._last = newest

    async def read(self) -> Passed:
        """What came since, those that come late first. If it fails, all of it is still to come."""
        passed = await self.since(self._last)
        late = await self._late()  # after all else that may fail: what it finds is looked for no longer
        if passed.events:
            ids = [event.id for event in passed.events]
            if self._store.shared:
                self._remember(ids if passed.skipped else [self._last, *ids])
            self._last = ids[-1]
        return Passed([*late, *passed.events], passed.skipped)

    async def since(self, after: int) -> Passed:
        """What came after that one; of very much, the newest."""
        found = await self._store.events(after, AT_ONCE)
        if len(found) < AT_ONCE:
            return Passed(found)
        newest = await self._store.newest_event_id()
        return Passed(await self._store.events(max(found[-1].id, newest) - AT_ONCE, AT_ONCE), skipped=True)

    async def _late(self) -> list[Event]:
        if not self._gaps:
            return []
        found = await self._store.events_by_ids(list(self._gaps))
        arrived, now = {event.id for event in found}, self._clock.monotonic()
        self._gaps = {each: until for each, until in self._gaps.items() if each not in arrived and now < until}
        return list(found)

    def _remember(self, seen: Sequence[int]) -> None:
        """What lies between these ids."""
        until = self._clock.monotonic() + PATIENCE_SECONDS
        for before, after in pairwise(seen):
            # A sequence can leap: there is no use in more than are kept.
            self._gaps |= dict.fromkeys(range(max(before + 1, after - MOST_GAPS), after), until)
        for oldest in list(self._gaps)[: max(0, len(self._gaps) - MOST_GAPS)]:
            del self._gaps[oldest]
