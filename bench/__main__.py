"""Runs the benchmarks and prints their table; exit code 1 if a budget was missed."""

import argparse
import sys

from bench import store
from bench.report import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--executions", type=int, default=1_000_000, help="how long a history to claim from")
    chosen = parser.parse_args()
    lines = store.measure(chosen.executions)
    print(table(lines))
    return 1 if any(line.kept is False for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
