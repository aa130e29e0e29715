"""What scenarios have done: work that takes its time, and a pulse beside it."""

import time
from datetime import UTC, datetime

from tests.faults.arena import Arena
from tests.faults.history import Schedule
from tests.faults.operations import Wanted

AHEAD_SECONDS = 3.0
TIMEOUT_SECONDS = 120


def soon(seconds: float = AHEAD_SECONDS) -> float:
    """A whole second that is far enough ahead to make schedules for it."""
    return float(int(time.time() + seconds) + 1)


def once_at(wall: float) -> str:
    """A cron that is due at that second, and not again for a year."""
    at = datetime.fromtimestamp(wall, UTC)
    return f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"


def long_ones(
    arena: Arena, prefix: str, number: int, at: float, seconds: float, *, at_most_once: bool = False
) -> list[Wanted]:
    """Calls that all begin at that second and take so long; if they must be made again, they are answered at once."""
    return [
        (
            Schedule(name, cron=once_at(at), end_wall=at, at_most_once=at_most_once, most_at_once=1, duration=seconds),
            {"url": arena.target.url(name, f"slow/{seconds:g}", again="fast"), "timeout_seconds": TIMEOUT_SECONDS},
        )
        for name in (f"{prefix}{each}" for each in range(number))
    ]


def commands(arena: Arena, prefix: str, number: int, at: float, seconds: float) -> list[Wanted]:
    """The same as commands of this machine."""
    return [
        (Schedule(name, cron=once_at(at), end_wall=at, duration=seconds), {"cmd": arena.target.command(name, seconds)})
        for name in (f"{prefix}{each}" for each in range(number))
    ]


def pulse(arena: Arena, number: int, end: float, *, cron: str = "* * * * * *") -> list[Wanted]:
    """Small calls all along, by which it is seen that the rest goes on."""
    return [
        (Schedule(name, cron=cron, end_wall=end, most_at_once=1), {"url": arena.target.url(name)})
        for name in (f"pulse{each}" for each in range(number))
    ]


def begun(arena: Arena, wanted: list[Wanted], seconds: float = 20.0) -> bool:
    """Waits until the target has seen each of them begin."""
    names = {schedule.name for schedule, _ in wanted}
    return arena.target.wait(lambda hits: names <= {hit.schedule for hit in hits}, seconds)


def again(arena: Arena, names: set[str], seconds: float) -> bool:
    """Waits until the target has seen each of them a second time."""
    return arena.target.wait(lambda hits: all(sum(hit.schedule == name for hit in hits) > 1 for name in names), seconds)


def held_by(arena: Arena, number: int) -> set[str]:
    """The schedules whose runs this instance has just now."""
    pid = str(arena.instances.all[number].pid)
    owners = arena.database.reader.owners()
    return {name for name, each in owners.items() if any(instance.rpartition(":")[2] == pid for instance, _ in each)}


def busiest(arena: Arena, prefixes: tuple[str, ...]) -> tuple[int, set[str]]:
    """The instance that has most of this work, and what it has of it."""
    held = [
        (instance.number, {name for name in held_by(arena, instance.number) if name.startswith(prefixes)})
        for instance in arena.instances.all
    ]
    return max(held, key=lambda each: len(each[1]))
