"""What the checker judges: what was asked for, what was done to the system, what the target saw, and what the database says.

Times are `time.monotonic()` unless a name says `wall`: one clock for all processes of the machine, and no fault moves it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.faults.hits import Hit

Outcome = Literal["ok", "fail", "info"]
"""Of an operation: it was acknowledged, it was refused, or nobody knows."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it was asked for, and what its job promises."""

    name: str
    cron: str = ""
    every: float = 0.0
    """Seconds; one of the two is given."""
    zone: str = "UTC"
    start_wall: float | None = None
    end_wall: float | None = None
    """No instant before, or after. `every` counts from `start_wall`."""
    at_most_once: bool = False
    retries: int = 0
    most_at_once: int | None = None
    """None: as many as may be."""
    may_miss: bool = False
    """Its policy lets late instants go, with a row that says so."""
    duration: float = 0.0
    """Seconds that an attempt takes, at the most."""
    judged: bool = True
    """Whether its instants are compared with the oracle's; not if it was made to fail."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request that changes something."""

    kind: Literal["create", "stop"]
    """A schedule is made; it is paused or deleted."""
    schedule: Schedule
    sent_wall: float
    answered_wall: float
    outcome: Outcome
    status: int = 0


@dataclass(slots=True)
class Band:
    """A fault while it lasts."""

    kind: str
    """kill, stop, term, database, network, …"""
    victim: str
    began: float
    ended: float | None = None

    def last(self, now: float) -> float:
        return now if self.ended is None else self.ended


class Bands:
    """The log of faults."""

    def __init__(self) -> None:
        self.all: list[Band] = []

    def begin(self, kind: str, victim: str) -> Band:
        band = Band(kind, victim, time.monotonic())
        self.all.append(band)
        return band

    def end(self, band: Band) -> None:
        if band.ended is None:
            band.ended = time.monotonic()

    @contextmanager
    def during(self, kind: str, victim: str) -> Iterator[Band]:
        band = self.begin(kind, victim)
        try:
            yield band
        finally:
            self.end(band)


@dataclass(frozen=True, slots=True)
class Execution:
    """A row of `executions`."""

    id: int
    schedule: str
    planned: float | None
    triggered_by: str
    status: str
    owner: str | None
    epoch: int
    attempt: int
    created_wall: float
    ended_wall: float | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A row of `attempts`."""

    execution: int
    epoch: int
    status: str
    owner: str
    began_wall: float
    ended_wall: float


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A row of `occurrences`: one instant, or a range of them with one fate."""

    schedule: str
    first: float
    last: float
    count: int
    outcome: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """A row of `instances`."""

    id: str
    name: str
    status: str
    lease_left: float
    """Seconds, by the database's clock; less than nothing if it ran out."""

    @property
    def pid(self) -> int:
        return int(self.name.rpartition(":")[2])


@dataclass(frozen=True, slots=True)
class Dump:
    """The database as it was at `wall`."""

    wall: float
    schedules: frozenset[str] = frozenset()
    executions: Sequence[Execution] = ()
    attempts: Sequence[AttemptRow] = ()
    occurrences: Sequence[Occurrence] = ()
    instances: Sequence[InstanceRow] = ()
    callbacks: Sequence[tuple[int, str]] = ()
    """Of each callback that was kept: its execution, and RECEIVED or IGNORED."""


@dataclass(slots=True)
class History:
    """Everything about one run of a scenario."""

    operations: list[Operation]
    hits: list[Hit]
    bands: list[Band]
    dump: Dump
    ended_seen: dict[int, str] = field(default_factory=dict)
    """Executions that were seen to have ended while the scenario ran, and how: they must have stayed so."""
    read_wall: float = 0.0
    """When the last of it was read: what is planned later is not judged."""
    settled: bool = False
    """Nothing was due or under way by then, so that whatever has not run by then never will."""
    wall_minus_mono: float = field(default_factory=lambda: time.time() - time.monotonic())
    pids: dict[int, str] = field(default_factory=dict)
    """Which instance each process was."""
    orphans: list[int] = field(default_factory=list)
    """Processes of commands that outlived what they belonged to."""
    slowness: float = 1.0
    """How many times longer everything takes because of what else this machine does: measured while Ksana is idle."""
    stall: float = 0.0
    """The longest that this machine kept the harness waiting for its turn: lateness below that is not the product's."""

    def mono(self, wall: float) -> float:
        return wall - self.wall_minus_mono


@dataclass(slots=True)
class Verdict:
    """What the checker found."""

    figures: dict[str, Any] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    targets: list[tuple[str, float, str]] = field(default_factory=list)
    """Schedule, planned instant, and executed, missed or LOST: for the picture."""

    def require(self, kept: object, otherwise: str) -> None:
        """Whatever was promised beside the invariants."""
        if not kept:
            self.violations.append(otherwise)
