"""What Ksana costs while nothing is due: CPU and memory with 100,000 schedules, on a real `ksana serve`.

make bench ARGS="--only idle"
"""

import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.databases import FILE
from bench.filling import Planned, fill_schedules
from bench.options import Options
from bench.processes import cpu_seconds, resident_bytes
from bench.report import Line, at_most
from bench.serving import serving
from bench.spread import Spread
from ksana.domain.schedule import ScheduleKind, ScheduleSpec

SETTLING_SECONDS = 5.0
"""After the start, before anything is counted."""
CORE_PERCENT = 1.0
MEGABYTES = 150.0


@dataclass(frozen=True, slots=True)
class Cost:
    percent: float
    """Of one core."""
    megabytes: float


def measure(options: Options) -> list[Line]:
    name = f"idle with {options.schedules:,} schedules"
    with tempfile.TemporaryDirectory(prefix="ksana-bench-") as folder:
        fill_not_due(Path(folder), options.schedules)
        costs = [_measured(Path(folder), options.idle_seconds) for _ in range(options.times)]
    percent, megabytes = Spread.of(each.percent for each in costs), Spread.of(each.megabytes for each in costs)
    return [
        Line.of(f"{name}: CPU", percent, "% of a core", at_most(CORE_PERCENT)),
        Line.of(f"{name}: memory", megabytes, "MB", at_most(MEGABYTES)),
    ]


def fill_not_due(folder: Path, schedules: int) -> None:
    """A new database in the folder, with schedules that are due each day, the first in some hours."""
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=6)
    planned = []
    for number in range(schedules):
        anchor = first + timedelta(milliseconds=500 * number)
        spec = ScheduleSpec(kind=ScheduleKind.EVERY, every=timedelta(days=1), anchor=anchor)
        planned.append(Planned(spec, anchor))
    fill_schedules(f"sqlite:///{folder / FILE}", "http://127.0.0.1:9/", planned)


def _measured(folder: Path, seconds: float) -> Cost:
    with serving(folder) as served:
        time.sleep(SETTLING_SECONDS)
        began, worked = time.monotonic(), cpu_seconds([served.pid])
        time.sleep(seconds)
        percent = 100 * (cpu_seconds([served.pid]) - worked) / (time.monotonic() - began)
        return Cost(percent, resident_bytes([served.pid]) / 1_000_000)
