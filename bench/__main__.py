"""Runs the benchmarks and prints their table; exit code 1 if a budget was missed."""

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bench import api, dag, growth, idle, kills, lateness, plans, runs, soak, start, store, wakeups
from bench.databases import NAMES
from bench.options import QUICK, Options
from bench.peers import measuring as peers
from bench.plot import draw
from bench.report import Line, table, write_json

Part = Callable[[Options], list[Line]]
RESULTS = Path(__file__).with_name("results.json")
PARTS: Mapping[str, Part] = {
    "runs": runs.measure,
    "store": store.measure,
    "growth": growth.measure,
    "api": api.measure,
    "soak": soak.measure,
    "lateness": lateness.measure,
    "idle": idle.measure,
    "start": start.measure,
    "dag": dag.measure,
    "peers": peers.measure,
    "kills": lambda _: kills.measure(),
    "plans": lambda _: plans.measure(),
    "wakeups": lambda _: wakeups.measure(),
}

ALONE = frozenset({"soak"})
"""Parts that run only when they are asked for."""


def main() -> int:
    chosen = _parser().parse_args()
    options = _options(chosen)
    lines: list[Line] = []
    for name in chosen.only or [name for name in PARTS if name not in ALONE]:
        lines += _measured(name, options)
        write_json(chosen.json, lines)
    print(table(lines))
    _draw(lines, chosen.plot)
    return 1 if any(line.kept is False for line in lines) else 0


def _measured(name: str, options: Options) -> list[Line]:
    print(f"measuring {name} …", file=sys.stderr, flush=True)
    try:
        return [replace(line, part=name) for line in PARTS[name](options)]
    except Exception as error:  # noqa: BLE001 - what the other parts took an hour to measure must not be lost
        traceback.print_exc()
        return [Line(name, f"failed: {error}", "", kept=False, part=name)]


def _draw(lines: list[Line], path: Path) -> None:
    try:
        draw(lines, path)
    except ImportError as error:
        print(f"no picture: {error} (`make bench` installs what it needs)", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts alone")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, to see that it works; the figures mean nothing"
    )
    parser.add_argument("--times", type=int, help="how often each is measured")
    parser.add_argument("--runs", type=int, help="how many HTTP runs")
    parser.add_argument("--in-flight", type=int, nargs="+", help="how many of them at a time")
    parser.add_argument("--stores", nargs="+", choices=NAMES, help="the databases")
    parser.add_argument("--instances", type=int, nargs="+", choices=(1, 2), help="how many share a database server")
    parser.add_argument("--history", type=int, help="how many runs have ended")
    parser.add_argument("--schedules", type=int, help="how many schedules are not due")
    parser.add_argument("--minutes", type=float, help="how long the soak takes")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures are written")
    parser.add_argument("--plot", type=Path, default=RESULTS.with_suffix(".png"), help="where they are drawn")
    return parser


def _options(chosen: argparse.Namespace) -> Options:
    names = [field.name for field in fields(Options)]
    given: dict[str, Any] = {name: value for name, value in vars(chosen).items() if name in names and value is not None}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return replace(QUICK if chosen.quick else Options(), **{**given, **lists})


if __name__ == "__main__":
    sys.exit(main())
