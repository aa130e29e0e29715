"""Runs one scenario, and keeps what it leaves behind."""

import shutil
import time
from pathlib import Path

from tests.faults.arena import Arena, arena
from tests.faults.report import Result
from tests.faults.scenarios import Scenario
from tests.faults.timeline import draw


def run(
    wanted: Scenario, store: str, *, seed: int, full: bool, minutes: float | None = None, out: Path | None = None
) -> Result:
    """What it found. With `out`, its picture and the logs of its instances are kept there."""
    began = time.monotonic()
    with arena(
        store,
        full=full,
        minutes=minutes,
        seed=seed,
        proxy=wanted.proxy,
        env=wanted.env,
        fresh=wanted.fresh,
    ) as place:
        try:
            history, verdict = wanted.run(place)
        finally:
            if out is not None:
                _keep_logs(place, out / f"{wanted.name}-{store}")
    if out is not None:
        (out / f"{wanted.name}-{store}.svg").write_text(
            draw(f"{wanted.name} on {store}: {wanted.title}", history, verdict)
        )
    return Result(wanted.name, store, time.monotonic() - began, verdict.figures, verdict.violations)


def _keep_logs(place: Arena, folder: Path) -> None:
    place.instances.close()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(place.target.log, folder / "witness.log")
    for instance in place.instances.all:
        (folder / f"{instance.name}.log").write_text(place.instances.log(instance.number))
