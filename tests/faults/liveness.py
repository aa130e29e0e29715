"""I11: how soon work goes on after a fault."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tests.faults.history import AttemptRow, Band, History
from tests.faults.hits import Hit
from tests.faults.matching import EARLY, Limits, by_fire

SURVIVED_SECONDS = 10.0
"""An instance that was away for less still has its lease: 15 s from the last heartbeat, and one each 5 s."""


def takeovers(history: History) -> list[float]:
    """For each attempt that was broken off by a fault of its instance: seconds from the fault to the next attempt. Time in
    which the database was away does not count, since nobody could take anything over."""
    owners = _Owners(history)
    found: list[float] = []
    for hits in by_fire(history.hits).values():
        ordered = sorted(hits, key=lambda hit: hit.began)
        for before, after in pairwise(ordered):
            fault = _fault(history.bands, owners.place(before), before.began, after.began)
            if fault is not None:
                found.append(after.began - fault.began - _away(history, fault.began, after.began))
    return found


def recoveries(history: History, limits: Limits) -> list[float]:
    """For each fault that is over: seconds from its end until a run came on time again."""
    idle = limits.idle + limits.forgiven
    on_time = sorted(
        hit.began
        for hit in history.hits
        if hit.planned is not None and 0 <= hit.began_wall - hit.planned + EARLY < idle
    )
    found: list[float] = []
    for band in history.bands:
        after = next((began for began in on_time if band.ended is not None and began >= band.ended), None)
        if after is not None and band.ended is not None:
            found.append(after - band.ended)
    return found


def shares(history: History) -> dict[str, float]:
    """Which part of the attempts each instance did."""
    pids = {row.id: history.pids.get(row.pid, "") for row in history.dump.instances}
    done: dict[str, int] = dict.fromkeys(history.pids.values(), 0)
    for row in history.dump.attempts:
        done[pids.get(row.owner, "")] = done.get(pids.get(row.owner, ""), 0) + 1
    return {name: number / max(1, len(history.dump.attempts)) for name, number in sorted(done.items())}


def latenesses(history: History) -> list[float]:
    """Of first attempts, sorted."""
    first: dict[tuple[str, float | None], float] = {}
    for hit in history.hits:
        if hit.planned is not None:
            first[hit.fire] = min(first.get(hit.fire, float("inf")), hit.began_wall - hit.planned)
    return sorted(first.values())


class _Owners:
    """Which instance made an attempt: the row of the same run that began last before the target saw it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._rows: dict[str, list[AttemptRow]] = defaultdict(list)
        for row in sorted(history.dump.attempts, key=lambda row: row.began_wall):
            self._rows[str(row.execution)].append(row)
        self._places = {row.id: history.pids.get(row.pid, "") for row in history.dump.instances}

    def place(self, hit: Hit) -> str:
        before = [row for row in self._rows[hit.run] if row.began_wall <= hit.began_wall + EARLY]
        return self._places.get(before[-1].owner, "") if before else ""


def _fault(bands: Sequence[Band], place: str, begin: float, end: float) -> Band | None:
    """What cost the instance its work: the first death, or else the last time that it was away for long, or at all."""
    found = [band for band in bands if band.victim == place and begin <= band.began <= end]
    deaths = [band for band in found if band.kind in {"kill", "term"}]
    long = [band for band in found if band.last(end) - band.began >= SURVIVED_SECONDS]
    return deaths[0] if deaths else long[-1] if long else found[-1] if found else None


def _away(history: History, begin: float, end: float) -> float:
    """For how long nobody could reach the database."""
    places = set(history.pids.values())
    spans = [
        (band.began, band.ended)
        for band in history.bands
        if band.kind in {"database", "network"} and band.ended is not None and band.victim not in places
    ]
    return sum(max(0.0, min(end, over) - max(begin, began)) for began, over in spans)
