"""Runs the benchmarks and prints their table; exit code 1 if a budget was missed."""

import argparse
import sys

from bench import dag, every_second, kills, plans, store, wakeups
from bench.report import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--executions", type=int, default=1_000_000, help="how long a history to claim from")
    parser.add_argument("--tasks", type=int, default=1_000, help="how many tasks fire each second")
    parser.add_argument("--seconds", type=int, default=30, help="for how long")
    parser.add_argument(
        "--only", choices=["store", "every-second", "dag", "kills", "plans", "wakeups"], help="one part alone"
    )
    chosen = parser.parse_args()
    parts = {
        "store": lambda: store.measure(chosen.executions),
        "every-second": lambda: every_second.measure(chosen.tasks, chosen.seconds),
        "dag": dag.measure,
        "kills": kills.measure,
        "plans": plans.measure,
        "wakeups": wakeups.measure,
    }
    lines = [line for name, part in parts.items() if chosen.only in {None, name} for line in part()]
    print(table(lines))
    return 1 if any(line.kept is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
