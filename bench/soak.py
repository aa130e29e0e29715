"""Memory under load: the most runs that a `ksana serve` can make, for ten minutes; its memory must not grow in the second half.

make bench ARGS="--only soak --minutes 10"

Not among what `make bench` runs by itself. There are more schedules due each second than can be run, so that there is always a
backlog; the runs of a schedule that has one under way are skipped, so that the backlog itself does not grow. How many are skipped
is told: with none, it was not the full rate. Each costs two fifths of a run, as it is accounted for too: with a demand of far more
than can be run, most of the time would go there.
"""

import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.databases import FILE, rows
from bench.filling import Planned, fill_schedules
from bench.options import Options
from bench.processes import cpu_seconds, resident_bytes
from bench.report import Line, at_most
from bench.serving import Called, Served, serving, target
from bench.spread import Spread
from ksana.domain.job import ConcurrencyPolicy
from ksana.domain.schedule import ScheduleKind, ScheduleSpec

SCHEDULES = 1_000
EVERY = timedelta(milliseconds=200)
SAMPLE_SECONDS = 1.0
PART = 0.1
"""Of the time, over which memory is taken together. In the first half it may grow: SQLite's page caches fill (64 MB for the
writer, 16 MB for each reader), which takes some 300,000 runs."""
GROWTH = 1.05
IN_FLIGHT = {"WORKERS": "256", "KSANA_EXECUTOR_PER_HOST": "256"}
ENDED = "SELECT count(*) FROM executions WHERE status = '{}'"


def measure(options: Options) -> list[Line]:
    with target() as called, tempfile.TemporaryDirectory(prefix="ksana-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder / FILE}"
        fill_schedules(url, f"{called.url}/run", _planned(), ConcurrencyPolicy.SKIP)
        with serving(folder, settings=IN_FLIGHT) as served:
            megabytes, percent = _watched(served, called, 60 * options.minutes)
        done, skipped = (rows(url, ENDED.format(status))[0][0] for status in ("SUCCESS", "SKIPPED"))
    rates = [count / options.minutes / 60 for count in (done, skipped)]
    return _lines(f"{options.minutes:g} minutes at full rate", megabytes, percent, rates)


def _planned() -> list[Planned]:
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=10)
    anchors = [first + EVERY * number / SCHEDULES for number in range(SCHEDULES)]
    return [Planned(ScheduleSpec(kind=ScheduleKind.EVERY, every=EVERY, anchor=each), each) for each in anchors]


def _watched(served: Served, called: Called, seconds: float) -> tuple[list[float], float]:
    """Its memory every second, in megabytes, and how much of a core it used."""
    called.wait_for(1, 60)
    megabytes, began, worked = [], time.monotonic(), cpu_seconds([served.pid])
    while (elapsed := time.monotonic() - began) < seconds:
        time.sleep(SAMPLE_SECONDS)
        megabytes.append(resident_bytes([served.pid]) / 1_000_000)
        called.times()  # or else the target's own memory would grow
    return megabytes, 100 * (cpu_seconds([served.pid]) - worked) / elapsed


def _lines(name: str, megabytes: list[float], percent: float, rates: list[float]) -> list[Line]:
    part, half = max(1, int(len(megabytes) * PART)), len(megabytes) // 2
    first, middle, last = (
        statistics.median(each)
        for each in (megabytes[part : 2 * part], megabytes[half : half + part], megabytes[-part:])
    )
    return [
        Line.of(f"{name}: runs", Spread((rates[0],)), "runs/s"),
        Line.of(f"{name}: skipped, as the one before was under way", Spread((rates[1],)), "runs/s"),
        Line.of(f"{name}: CPU", Spread((percent,)), "% of a core"),
        Line.of(f"{name}: memory", Spread(tuple(megabytes)), "MB"),
        Line.of(f"{name}: memory at the end by that after the first tenth", Spread((last / first,)), "x"),
        Line.of(f"{name}: memory at the end by that after half of it", Spread((last / middle,)), "x", at_most(GROWTH)),
    ]
