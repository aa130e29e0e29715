"""How much is measured, and how often."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The sizes of the full benchmark."""

    times: int = 3
    runs: int = 10_000
    in_flight: tuple[int, ...] = (64, 256)
    stores: tuple[str, ...] = ("sqlite", "postgresql", "mysql")
    instances: tuple[int, ...] = (1, 2)
    """How many processes share a database server; a file has one."""

    peer_runs: int = 2_000
    """Of each peer, most of which are slower."""
    nodes: int = 10_000
    """Of workflows, run at every size of graph."""
    chain: int = 1_000
    chains: int = 200
    each_second: int = 1_000
    each_ten_seconds: int = 10_000
    seconds_of_each_second: int = 20
    seconds_of_each_ten: int = 30
    """For how long schedules of each kind are watched."""
    schedules: int = 100_000
    """How many there are that are not due."""
    due: int = 10_000
    """How many fire at one instant."""
    idle_seconds: float = 30.0
    history: int = 1_000_000
    """How many runs have ended."""
    questions: int = 300
    """How often each is asked of the HTTP interface."""
    minutes: float = 10.0
    """How long the soak takes."""


QUICK = Options(
    times=1,
    runs=300,
    in_flight=(16,),
    stores=("sqlite",),
    peer_runs=100,
    nodes=100,
    chain=50,
    chains=30,
    each_second=20,
    each_ten_seconds=20,
    seconds_of_each_second=2,
    seconds_of_each_ten=10,
    schedules=500,
    due=50,
    idle_seconds=1.0,
    history=3_000,
    questions=10,
    minutes=0.2,
)
"""Sizes that only show that everything works; their figures mean nothing."""
