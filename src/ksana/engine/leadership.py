"""Who goes first. One instance leads, by a lease in the store; its token is the leader's term.

Nothing that must not happen twice hangs on it: the ledger's key, cursors and epochs see to that, whoever leads. The leader
does at once what others leave to it, so that the work is done once and not by all; what stays undone a little longer, because
the leader is gone, slow or hangs, any of the others does (`headstart`). What only one may do, the leader does alone.

The lease is renewed with the instance's own, by the heartbeat's thread. Whoever could not renew it for a while does not lead
any more, whether or not it has heard so: a process that was stopped wakes up and knows.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf

from ksana.domain.clock import Clock
from ksana.domain.errors import KsanaError
from ksana.domain.instance import LEADER, LEASE, MARGIN, Lease
from ksana.engine.loop import Periodic, Round
from ksana.store.base import Store
from ksana.telemetry import log

LOOK_AGAIN = timedelta(seconds=5)
HEADSTART = timedelta(milliseconds=500)
"""How long the others leave to the leader what is due: longer than it takes to fire a thousand at once."""


class Leadership:
    """A Periodic: stands for election whenever nobody leads."""

    name = "leadership"
    interval = timedelta(seconds=1)

    def __init__(self, store: Store, clock: Clock, owner: Callable[[], str | None]) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._lease: Lease | None = None
        self._until = -inf
        self._stood_down = False
        """Whether it gives its lease back, and has not heard yet what became of that."""
        self.on_elected: Callable[[], None] = _nothing

    @property
    def lease(self) -> Lease | None:
        """What it leads by, as far as is known."""
        return self._lease

    @property
    def leads(self) -> bool:
        return self._lease is not None and self._clock.monotonic() < self._until

    @property
    def headstart(self) -> timedelta:
        """How long to leave to the leader what is due."""
        return timedelta(0) if self.leads else HEADSTART

    async def run_once(self, now: datetime) -> Round:
        owner = self._owner()
        if owner is None or self.leads or self._stood_down:
            return Round()
        held = await self._store.lock(LEADER)
        if held is not None and held.owner != owner:
            return Round(0, max(held.expires_at, now + self.interval / 10))
        began = self._clock.monotonic()
        lease = await self._store.acquire_lock(LEADER, owner, LEASE)
        if lease is None:
            return Round()
        self.assume(lease, began + (LEASE - MARGIN).total_seconds())
        log().info("leads", action="instance.leads", instance_id=owner, term=lease.token)
        self.on_elected()
        return Round(1)

    def assume(self, lease: Lease, until: float = inf) -> None:
        """It leads by this lease, until then at the latest, by the monotonic clock."""
        self._lease, self._until, self._stood_down = lease, until, False

    def renewed(self, lease: Lease, at: float) -> None:
        """The heartbeat that began then has renewed it. Called by its thread."""
        if self._lease is lease:
            self._until, self._stood_down = at + (LEASE - MARGIN).total_seconds(), False

    def stand_down(self, lease: Lease) -> None:
        """It does not lead any more from now on, though it has the lease: to be called before that is given back, so that no two
        lead at once. By the heartbeat's thread, which then says whether it was renewed or lost."""
        if self._lease is lease:
            self._until, self._stood_down = -inf, True

    def lose(self, lease: Lease) -> None:
        """Somebody else may lead now."""
        if self._lease is lease:
            self._lease, self._until, self._stood_down = None, -inf, False
            log().warning("leads no more", action="instance.leads_no_more", term=lease.token)

    async def resign(self) -> None:
        """Another may lead at once."""
        if self._lease is None:
            return
        lease, self._lease = self._lease, None
        try:
            await self._store.release_lock(lease)
        except KsanaError as error:
            log().warning("the lease has to run out", action="instance.not_resigned", err=error.message)


class Led:
    """A Periodic that the leader does alone."""

    def __init__(self, periodic: Periodic, leadership: Leadership) -> None:
        self.name = periodic.name
        self.interval = periodic.interval
        self._periodic = periodic
        self._leadership = leadership

    async def run_once(self, now: datetime) -> Round:
        # One that is seldom due must not be put off for long by a moment without a leader.
        return await self._periodic.run_once(now) if self._leadership.leads else Round(0, now + LOOK_AGAIN)


def _nothing() -> None:
    """Nobody wants to know."""
