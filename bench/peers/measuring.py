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
from collections.abc import Callable, Iterable, Mapping
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
"""and for nodes of graphs, that of the best of them, whatever its database. (Not for one chain alone: to commit each of its nodes
before the next one begins, and to do nothing else, is no ten times as quick as the best. See `dag`.)"""


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
    each: float | None = None
    """Ksana's rate by that of each peer, at the least;"""
    best: float | None = None
    """and by that of the best of them."""


HUEY, APSCHEDULER = Peer("huey"), Peer("apscheduler")
PROCRASTINATE = Peer("procrastinate", "postgresql")
DBOS, DBOS_ON_A_SERVER = Peer("dbos"), Peer("dbos", "postgresql")


def folder() -> Path:
    """Where the environments are."""
    return Path(os.environ.get("BENCH_PEERS") or Path(tempfile.gettempdir()) / "peers")


def measure(options: Options) -> list[Line]:
    with target() as called:
        lines = [
            *_runs(options, called, "sqlite", (HUEY, APSCHEDULER)),
            *_runs(options, called, "postgresql", (PROCRASTINATE,)),
        ]
    return [*lines, *_graphs(options)]


def _runs(options: Options, called: Called, store: str, peers: tuple[Peer, ...]) -> list[Line]:
    work = Work("runs", "runs/s", dict.fromkeys(peers, ("runs", str(options.peer_runs))), each=AHEAD[store])
    case = runs.Case(options.runs, max(options.in_flight))
    try:
        with databases(store) as place:
            return _in_turns(
                work,
                options.times,
                {NAMES[store]: lambda: runs.measure_once(case, place, called).per_second},
                partial(_rate, work=work, places={store: place}, url=called.url),
            )
    except MissingError as error:
        return [missing(f"runs: {each.told}", error) for each in peers]


def _graphs(options: Options) -> list[Line]:
    with databases("sqlite") as file:
        try:
            with databases("postgresql") as server:
                return _all_graphs(options, {"sqlite": file, "postgresql": server})
        except MissingError as error:
            lines = _all_graphs(options, {"sqlite": file})
            return [*lines, missing(f"nodes: {DBOS_ON_A_SERVER.told}", error)]


def _all_graphs(options: Options, places: Mapping[str, Databases]) -> list[Line]:
    layers, chain, few, many = dag.shapes(options)
    told = [
        (layers, ("layers", "10", "10"), FAR_AHEAD),
        (chain, ("chains", "1", str(options.chain)), None),
        *((shape, ("chains", str(shape.runs), "10"), FAR_AHEAD) for shape in (few, many)),
    ]
    lines: list[Line] = []
    for shape, what, budget in told:
        # Huey has no graphs, but pipelines; not long ones, since each task carries all that follow it.
        peers = [DBOS, DBOS_ON_A_SERVER, *([HUEY] if shape.runs > 1 else [])]
        work = Work(
            f"nodes, {shape.name}",
            "nodes/s",
            dict.fromkeys([peer for peer in peers if peer.store in places], what),
            best=budget,
        )
        own = {NAMES[store]: partial(dag.rate_of, shape, place) for store, place in places.items()}
        lines += _in_turns(work, options.times, own, partial(_rate, work=work, places=places, url=""))
    return lines


def _in_turns(
    work: Work, times: int, ours: Mapping[str, Callable[[], float]], theirs: Callable[[Peer], float]
) -> list[Line]:
    """The rates of Ksana by its databases and of its peers, measured one after the other each time; and the ratios of Ksana's on
    its first database to theirs."""
    present = [peer for peer in work.peers if peer.python.exists()]
    absent = [peer for peer in work.peers if peer not in present]
    lines = [missing(f"{work.name}: {peer.told}", "its environment is not there") for peer in absent]
    if not present:
        return lines
    rates: dict[Peer, list[float]] = {peer: [] for peer in present}
    own: dict[str, list[float]] = {name: [] for name in ours}
    for _ in range(times):
        for peer, found in rates.items():
            found.append(theirs(peer))
        for name, measured in own.items():
            measured.append(ours[name]())
    lines += [Line.of(f"{work.name}: Ksana on {name}", Spread.of(found), work.unit) for name, found in own.items()]
    ksana = Spread.of(next(iter(own.values())))
    for peer, found in rates.items():
        rate, budget = Spread.of(found), None if work.each is None else at_least(work.each)
        lines += [
            Line.of(f"{work.name}: {peer.told}", rate, work.unit),
            Line.of(f"{work.name}: Ksana by {peer.told}", ksana.over(rate), "x", budget),
        ]
    if len(present) > 1:
        lines.append(_by_the_best(work, ksana, rates))
    return [*lines, *_on_the_same_server(work, own, rates)]


def _on_the_same_server(
    work: Work, own: Mapping[str, list[float]], rates: Mapping[Peer, list[float]]
) -> Iterable[Line]:
    """Those of other databases than the first, each beside Ksana on the same."""
    for name, measured in list(own.items())[1:]:
        for peer, found in rates.items():
            if NAMES[peer.store] == name:
                ratio = Spread.of(measured).over(Spread.of(found))
                yield Line.of(f"{work.name}: Ksana on {name} by {peer.told}", ratio, "x")


def _by_the_best(work: Work, ksana: Spread, rates: Mapping[Peer, list[float]]) -> Line:
    best = max(rates, key=lambda peer: Spread.of(rates[peer]).median)
    budget = None if work.best is None else at_least(work.best)
    return Line.of(f"{work.name}: Ksana by the best, {best.told}", ksana.over(Spread.of(rates[best])), "x", budget)


def _rate(peer: Peer, work: Work, places: Mapping[str, Databases], url: str) -> float:
    """Of one run of its program, with a new database."""
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as name:
        settings = {
            "BENCH_TARGET": f"{url}/run",
            "BENCH_DATABASE": places[peer.store].fresh(Path(name)),
            "PYTHONPATH": str(ROOT),
        }
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
