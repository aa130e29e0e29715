"""The same work done by other programs and by Ksana, in turns: HTTP runs that are recorded, and nodes of graphs.

make bench ARGS="--only peers"

The environments are looked for in the folder that BENCH_PEERS names, else in `peers` of the temporary folder: `huey`,
`procrastinate`, `dbos` and `apscheduler`, each with a `bin/python` that has what the program beside this file says. Those that
are not there are told as such. Every peer writes to a store that is on the disk when a commit is answered.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.servers.base import MissingError

from bench import dag, runs
from bench.databases import NAMES, Databases, databases
from bench.options import Options
from bench.report import Line, at_least, missing
from bench.serving import Called, target
from bench.spread import Spread

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 900.0
AHEAD: Mapping[str, float] = {"sqlite": 10.0, "postgresql": 5.0}
"""How many times the rate of a peer on the same database, at the least, for runs;"""
FAR_AHEAD = 10.0
"""and for nodes of graphs."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program, and the database that it uses."""

    name: str
    store: str = "sqlite"

    @property
    def python(self) -> Path:
        return folder() / self.name / "bin" / "python"

    @property
    def told(self) -> str:
        return f"{self.name} on {NAMES[self.store]}"


@dataclass(frozen=True, slots=True)
class Work:
    """What Ksana and its peers are to do."""

    name: str
    unit: str
    peers: Mapping[Peer, tuple[str, ...]]
    """With what each peer's program is told to do."""
    budget: float
    """Ksana's rate by that of each peer, at the least."""


HUEY, APSCHEDULER = Peer("huey"), Peer("apscheduler")
PROCRASTINATE = Peer("procrastinate", "postgresql")


def folder() -> Path:
    """Where the environments are."""
    return Path(os.environ.get("BENCH_PEERS") or Path(tempfile.gettempdir()) / "peers")


def measure(options: Options) -> list[Line]:
    with target() as called:
        lines = [
            *_runs(options, called, "sqlite", (HUEY, APSCHEDULER)),
            *_runs(options, called, "postgresql", (PROCRASTINATE,)),
        ]
    return [*lines, *_graphs(options, "sqlite"), *_graphs(options, "postgresql")]


def _runs(options: Options, called: Called, store: str, peers: tuple[Peer, ...]) -> list[Line]:
    work = Work("runs", "runs/s", dict.fromkeys(peers, ("runs", str(options.peer_runs))), AHEAD[store])
    case = runs.Case(options.runs, max(options.in_flight))
    try:
        with databases(store) as place:
            return _in_turns(
                work,
                options.times,
                lambda: runs.measure_once(case, place, called).per_second,
                partial(_rate, work=work, place=place, url=called.url),
            )
    except MissingError as error:
        return [missing(f"runs: {each.told}", error) for each in peers]


def _graphs(options: Options, store: str) -> list[Line]:
    layers, chain, few, many = dag.shapes(options)
    dbos = Peer("dbos", store)
    works = [
        (layers, {dbos: ("layers", "10", "10")}),
        (chain, {dbos: ("chains", "1", str(options.chain))}),
        *(
            (shape, dict.fromkeys([dbos, HUEY] if store == HUEY.store else [dbos], ("chains", str(shape.runs), "10")))
            for shape in (few, many)
        ),
    ]
    try:
        with databases(store) as place:
            return [line for shape, peers in works for line in _graph(options, place, shape, peers)]
    except MissingError as error:
        return [missing(f"nodes: {dbos.told}", error)]


def _graph(options: Options, place: Databases, shape: dag.Shape, peers: Mapping[Peer, tuple[str, ...]]) -> list[Line]:
    work = Work(f"nodes, {shape.name}", "nodes/s", peers, FAR_AHEAD)
    theirs = partial(_rate, work=work, place=place, url="")
    return _in_turns(work, options.times, partial(dag.rate_of, shape, place), theirs)


def _in_turns(work: Work, times: int, ours: Callable[[], float], theirs: Callable[[Peer], float]) -> list[Line]:
    """The rates, and Ksana's by that of each, measured one after the other each time."""
    present = [peer for peer in work.peers if peer.python.exists()]
    absent = [peer for peer in work.peers if peer not in present]
    lines = [missing(f"{work.name}: {peer.told}", "its environment is not there") for peer in absent]
    if not present:
        return lines
    rates: dict[Peer, list[float]] = {peer: [] for peer in present}
    own: list[float] = []
    for _ in range(times):
        for peer, found in rates.items():
            found.append(theirs(peer))
        own.append(ours())
    ksana = Spread.of(own)
    lines.append(Line.of(f"{work.name}: Ksana on {NAMES[present[0].store]}", ksana, work.unit))
    for peer, found in rates.items():
        rate = Spread.of(found)
        lines += [
            Line.of(f"{work.name}: {peer.told}", rate, work.unit),
            Line.of(f"{work.name}: Ksana by {peer.told}", ksana.over(rate), "x", at_least(work.budget)),
        ]
    return lines


def _rate(peer: Peer, work: Work, place: Databases, url: str) -> float:
    """Of one run of its program, with a new database."""
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as name:
        settings = {"BENCH_TARGET": f"{url}/run", "BENCH_DATABASE": place.fresh(Path(name)), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [str(peer.python), "-m", f"bench.peers.with_{peer.name}", *work.peers[peer]],
            env={**os.environ, **settings},
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    if done.returncode:
        raise RuntimeError(f"{peer.told} failed: {done.stderr[-2_000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["per_second"])
