"""Runs scenarios, prints what they found, and writes it down; exit code 1 if anything was violated."""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

from tests.faults.report import Result, table, write
from tests.faults.running import run
from tests.faults.scenarios import Scenario, scenarios
from tests.servers.base import MissingError
from tests.servers.machine import memory_folder

OUT = Path("faults-results")


def main() -> int:
    known = scenarios()
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--only", help=f"which, by name and separated by commas: {', '.join(known)}")
    parser.add_argument("--store", help="one store alone: sqlite, postgresql or mysql")
    parser.add_argument("--seed", type=int, help="as printed by an earlier run, to do the same again")
    parser.add_argument("--minutes", type=float, help="how long each scenario that can go on for any time takes")
    parser.add_argument("--gate", action="store_true", help="the small size, which tests use")
    parser.add_argument("--out", type=Path, default=OUT, help="where figures, pictures and logs go")
    chosen = parser.parse_args()
    if "TMPDIR" not in os.environ and (memory := memory_folder()) is not None:
        os.environ["TMPDIR"] = tempfile.tempdir = memory
    seed = random.SystemRandom().randrange(1_000_000) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    names = chosen.only.split(",") if chosen.only else list(known)
    results: list[Result] = []
    for name in names:
        for store in _stores(known[name], chosen.store):
            results += _run(known[name], store, seed, chosen)
    write(chosen.out, seed, results)
    print(table(results))
    print(f"written to {chosen.out}")
    return 1 if any(result.violations for result in results) else 0


def _stores(wanted: Scenario, only: str | None) -> list[str]:
    return [store for store in wanted.stores if only in {None, store}]


def _run(wanted: Scenario, store: str, seed: int, chosen: argparse.Namespace) -> list[Result]:
    print(f"{wanted.name} on {store}: {wanted.title} …", flush=True)
    try:
        result = run(wanted, store, seed=seed, full=not chosen.gate, minutes=chosen.minutes, out=chosen.out)
    except MissingError as missing:
        print(f"  skipped: {missing}")
        return []
    for text in result.violations:
        print(f"  VIOLATED: {text}", flush=True)
    return [result]


if __name__ == "__main__":
    sys.exit(main())
