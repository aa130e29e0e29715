"""The dispatcher: claims what is ready, as much as this instance has room for, and hands it to the workers.

While there is room, the earliest goes first. As soon as more is ready than there is room for, shares (jobs, workflows,
tenants) are served in turn, so that a backlog of one delays the others by no more than its share; and no host that is called
may take all the places.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ksana.domain.execution import Claimed
from ksana.engine.loop import Round
from ksana.engine.recall import Recalled
from ksana.engine.workers import Workers
from ksana.store.base import Store
from ksana.store.requests import ClaimRequest, Room

LOOK_OFTEN = timedelta(milliseconds=50)
LOOK_ON = timedelta(milliseconds=200)
"""How often to look for work that others add, where nobody can tell us: while there is some, and when there was none lately."""
LATELY = timedelta(seconds=10)
SLOW = timedelta(milliseconds=500)
IN_VAIN = timedelta(milliseconds=20)
GATHERING = timedelta(milliseconds=10)
"""How long, with more work waiting than there is room for, a free place may wait for others to be free too."""
SPACING = timedelta(milliseconds=20)
"""The shortest time between two looks for work that nobody has told us of."""


@dataclass(frozen=True, slots=True)
class DispatcherOptions:
    poll_interval: timedelta = timedelta(seconds=1)
    """How often to look for what other instances have added."""
    queues: tuple[str, ...] = ("default",)
    per_lane: int | None = None
    """How many executions may call one host at a time."""


class Dispatcher:
    """A Periodic. `owner` says under which instance id to claim; None while this instance has no lease."""

    name = "dispatcher"

    def __init__(
        self,
        store: Store,
        workers: Workers,
        owner: Callable[[], str | None],
        options: DispatcherOptions,
        on_backlog: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_backlog = on_backlog
        self.interval = options.poll_interval
        self._store = store
        self._next_ready_at = Recalled(store, store.next_ready_at)
        self._workers = workers
        self._owner = owner
        self._options = options
        self._told = True
        self._room = Room(0, {})
        """What there was for the last claim."""
        self._free_since: datetime | None = None
        self._served = ""
        """The share that was served last, when they are served in turn."""
        self._in_turn = False
        """More is ready than may be taken, because all places are taken or all that one host may have."""
        self._search_at: datetime | None = None
        self._in_vain = 0
        self._vain_until: datetime | None = None
        """Not before then: what was ready did not fit."""
        self._untold = False
        self._worked_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._next_at: datetime | None = None
        """When the next will be ready, as the last look found."""
        self._claims = 0
        self.claim_under_way: int | None = None
        """The number of the claim whose answer has not come yet: what it took is not with the workers."""

    def look_by_itself(self) -> None:
        """Others may add work, and nobody can tell us."""
        self._untold = True

    def expect_work(self) -> None:
        """There is something to claim: no need to ask first."""
        self._told = True

    def expect_room(self) -> bool:
        """A place is free. Whether there is anything to be had for it: if the last claim left something, or found only what did
        not fit."""
        self._told = self._told or self._in_turn or self._in_vain > 0
        return self._told

    async def run_once(self, now: datetime) -> Round:
        owner = self._owner()
        if owner is None or self._workers.free <= 0:
            self._free_since = None
            return Round()  # the end of a run wakes us
        if self._in_turn and (wait_until := self._gathering(now)) is not None:
            return Round(0, wait_until)
        if not self._told and (nothing := await self._nothing_yet(now)) is not None:
            return nothing
        told, self._told, self._looked_at, self._next_at = self._told, False, now, None
        claimed = await self._claim(self._request(owner, now), now)
        if self._owner() != owner:
            # The lease it was claimed by is over: others have it, or will. If it is not after all, the watch hands it back.
            self._told = True
            return Round()
        for each in claimed:
            self._workers.start(each)
            self._worked_at = now
            self._served = each.share
        full = len(claimed) == self._room.places
        self._in_turn = full or self._some_lane_is_full()
        self._free_since = None
        if claimed and self._in_turn:
            self._on_backlog()
        if full and self._workers.free > 0:
            # A place became free while the claim was under way, when nobody knew yet that there is more.
            self._told = True
            return Round(len(claimed), now)
        if full:
            return Round(len(claimed))  # the end of a run wakes us
        if not claimed and told:
            # Nothing may have come of what we were told: to look tells whether anything is ready, or when it will be.
            return Round(0, now + SPACING)
        return Round(len(claimed), self._look_again_at(now, claimed))

    async def _nothing_yet(self, now: datetime) -> Round | None:
        """When to look again if there is nothing to claim now. Asking takes no lock and writes nothing: an idle instance costs
        its database next to nothing."""
        if not self._due(now) and (looked_at := self._just_looked(now)) is not None:
            return Round(0, looked_at + SPACING)
        if self._untold:
            self.interval = min(self._options.poll_interval, self._look(now))
        self._looked_at = now
        self._next_at = await self._next_ready_at(now, self._options.queues)
        if not self._due(now):
            return Round(0, self._next_at)
        in_vain = self._vain_until is not None and now < self._vain_until
        return Round(0, self._vain_until) if in_vain else None

    def _due(self, now: datetime) -> bool:
        return self._next_at is not None and self._next_at <= now

    def _just_looked(self, now: datetime) -> datetime | None:
        looked_at = self._looked_at
        return looked_at if looked_at is not None and looked_at <= now < looked_at + SPACING else None

    def _some_lane_is_full(self) -> bool:
        most = self._options.per_lane
        return most is not None and any(number >= most for number in self._workers.lanes.values())

    def _look(self, now: datetime) -> timedelta:
        busy = self._worked_at is not None and now - self._worked_at < LATELY
        return LOOK_OFTEN if busy else LOOK_ON

    async def _claim(self, request: ClaimRequest, now: datetime) -> Sequence[Claimed]:
        self._claims += 1
        self.claim_under_way = self._claims
        try:
            return await self._store.claim(request, now)
        finally:
            self.claim_under_way = None

    def _room_now(self) -> Room:
        """Asked again by the store when the claim's turn has come, in its thread: until it answers, nobody here looks at it."""
        lanes = {} if self._options.per_lane is None else self._workers.lanes
        self._room = Room(self._workers.free, lanes)
        return self._room

    def _request(self, owner: str, now: datetime) -> ClaimRequest:
        room, queues = self._room_now(), self._options.queues
        first = self._claims % len(
            queues
        )  # each in its turn, so that a backlog of one does not keep the others waiting
        return ClaimRequest(
            owner,
            room.places,
            queues[first:] + queues[:first],
            in_turn_after=self._served if self._in_turn else None,
            per_lane=self._options.per_lane,
            lanes=room.lanes,
            search=self._must_search(now),
            latest=self._room_now,
        )

    def _must_search(self, now: datetime) -> bool:
        """If a host has all that it may have, what comes first may not fit. While calls are quick, every share's turn comes soon;
        only behind slow ones is it worth to look far, and not each time."""
        if self._options.per_lane is None:
            return True
        if not self._workers.slow_lanes(SLOW) or (self._search_at is not None and now < self._search_at):
            return False
        self._search_at = now + SLOW
        return True

    def _look_again_at(self, now: datetime, claimed: Sequence[Claimed]) -> datetime:
        """With room left, one more look tells when the next will be ready. What is ready but does not fit, or is just being
        claimed by another, is looked at less and less often."""
        if claimed:
            self._in_vain, self._vain_until = 0, None
            return now + SPACING
        self._in_vain += 1
        self._vain_until = now + min(self._options.poll_interval, IN_VAIN * 2.0 ** min(self._in_vain - 1, 10))
        return self._vain_until

    def _gathering(self, now: datetime) -> datetime | None:
        """Until when to wait for more places to be free; None: claim now. One claim costs little more for many than for one."""
        if self._free_since is None or now < self._free_since:
            self._free_since = now
        if 4 * self._workers.free >= 3 * self._workers.size or now - self._free_since >= GATHERING:
            return None
        return self._free_since + GATHERING
