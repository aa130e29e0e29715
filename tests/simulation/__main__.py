"""`python -m tests.simulation --seed 7 --steps 20000`: one world; `--seeds 100`: that many, from `--seed` on.

Of a seed that fails, the shortest run that shows it is printed: a violation ends a run in the step in which it is seen, and
one that is seen only at the end is looked for with fewer steps.
"""

import argparse
import sys
import time

from tests.simulation.search import Found, shortest, simulate
from tests.simulation.trace import lines


def main() -> int:
    wanted = _arguments()
    began, steps, found = time.perf_counter(), 0, 0
    for seed in range(wanted.seed, wanted.seed + wanted.seeds):
        result = simulate(seed, wanted.steps)
        steps += result.steps
        if result.violation is not None:
            found += 1
            _tell(shortest(result, wanted.steps), wanted.lines)
    seconds = time.perf_counter() - began
    pace = f"{steps / seconds * 60:,.0f} steps a minute"
    print(f"{wanted.seeds} seeds, {found} with violations; {steps:,} steps in {seconds:.1f} s, {pace}")
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--steps", type=int, default=10_000, help="of each, before the quiet end")
    parser.add_argument("--lines", type=int, default=60, help="of the trace that leads to a violation")
    return parser.parse_args()


def _tell(found: Found, most: int) -> None:
    print(f"seed {found.seed}: {found.violation} (--steps {found.asked}, in step {found.steps})")
    for line in lines(list(found.trace)[-most:]):
        print(f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
