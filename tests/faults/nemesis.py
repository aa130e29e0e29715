"""A seeded plan of faults: the same seed is the same plan, strike by strike.

Whoever is struck is not struck again until it is back, the database has one fault at a time, and one instance at least is left
alone; beside that, faults come as they come, one in the middle of another.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.faults.arena import Arena

CARDS = {"kill": 3, "freeze": 1, "long freeze": 1, "restart": 1, "crash": 1}
"""Kinds are dealt from a shuffled deck, so that each comes again and again."""
PAUSES = (2.0, 7.0)
DOWN = {
    "kill": (0.5, 6.0),
    "freeze": (2.0, 9.0),  # less than what is left of a lease, at any time
    "long freeze": (16.0, 22.0),  # more than a lease
    "restart": (0.0, 2.0),
    "crash": (0.0, 2.0),
}
"""Seconds that each lasts."""
RECOVERING = 3.0
DATABASE = -1


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault of the plan."""

    at: float
    """Seconds from the beginning."""
    kind: str
    victim: int
    """The number of an instance, or DATABASE."""
    seconds: float


def plan(choose: random.Random, seconds: float, instances: int, cards: Mapping[str, int] = CARDS) -> list[Strike]:
    """Faults that all begin and end within so many seconds."""
    busy = dict.fromkeys([DATABASE, *range(instances)], 0.0)
    deck: list[str] = []
    strikes: list[Strike] = []
    at = choose.uniform(*PAUSES)
    while at < seconds:
        deck = deck or _shuffled(choose, cards)
        kind = next((card for card in deck if _victims(card, at, busy)), None)
        if kind is not None:
            deck.remove(kind)
            lasts = min(choose.uniform(*DOWN[kind]), seconds - at)
            victim = choose.choice(_victims(kind, at, busy))
            strikes.append(Strike(round(at, 2), kind, victim, round(lasts, 2)))
            busy[victim] = at + lasts + RECOVERING
        at += choose.uniform(*PAUSES)
    return strikes


def _shuffled(choose: random.Random, cards: Mapping[str, int]) -> list[str]:
    deck = [kind for kind, number in cards.items() for _ in range(number)]
    choose.shuffle(deck)
    return deck


def _victims(kind: str, at: float, busy: Mapping[int, float]) -> list[int]:
    """Whom it may strike now."""
    if kind in {"restart", "crash"}:
        return [DATABASE] if busy[DATABASE] <= at else []
    free = [number for number, until in busy.items() if number != DATABASE and until <= at]
    return free if len(free) > 1 else []


class Nemesis:
    """Carries a plan out, each strike in a thread of its own."""

    def __init__(self, arena: Arena, strikes: Sequence[Strike]) -> None:
        self._arena = arena
        self._strikes = strikes
        self._errors: list[BaseException] = []

    def run(self) -> None:
        """Until the last fault is over and all instances answer."""
        began = time.monotonic()
        threads = [threading.Thread(target=self._guarded, args=(strike,)) for strike in self._strikes]
        for strike, thread in zip(self._strikes, threads, strict=True):
            time.sleep(max(0.0, began + strike.at - time.monotonic()))
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _guarded(self, strike: Strike) -> None:
        try:
            self._deeds()[strike.kind](strike)
        except Exception as error:  # noqa: BLE001 - it is raised where the thread is waited for
            self._errors.append(error)

    def _deeds(self) -> dict[str, Callable[[Strike], None]]:
        return {
            "kill": self._kill,
            "freeze": self._freeze,
            "long freeze": self._freeze,
            "restart": self._restart,
            "crash": self._restart,
        }

    def _kill(self, strike: Strike) -> None:
        self._arena.instances.kill(strike.victim)
        time.sleep(strike.seconds)
        self._arena.instances.revive(strike.victim)

    def _freeze(self, strike: Strike) -> None:
        self._arena.instances.freeze(strike.victim)
        time.sleep(strike.seconds)
        self._arena.instances.thaw(strike.victim)

    def _restart(self, strike: Strike) -> None:
        self._arena.database.restart(crash=strike.kind == "crash", seconds=strike.seconds)
