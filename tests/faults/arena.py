"""Where a scenario takes place: a database, a target, instances, a log of faults; at the end, everything as one history."""

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from tests.faults.database import Database, database
from tests.faults.history import Bands, History
from tests.faults.operations import Operator, Wanted
from tests.faults.stall import Stall, slowness
from tests.faults.supervisor import Supervisor
from tests.faults.target import Target

QUIET_SECONDS = 60.0
"""At the most, until everything that was begun has ended: lease 15 s, a retry, and the longest attempt."""
SAMPLE_SECONDS = 2.0
LOOK_SECONDS = 0.2
FORGIVEN_SECONDS = 1.1


@dataclass
class Arena:
    """All that a scenario works with."""

    store: str
    full: bool
    """Or else the size for the gate: seconds."""
    minutes: float | None
    """How long a full one may take, if somebody has said so."""
    seed: int
    folder: Path
    bands: Bands
    database: Database
    target: Target
    instances: Supervisor
    operator: Operator
    stall: Stall
    choose: random.Random = field(init=False)
    _samples: dict[int, str] = field(default_factory=dict)
    _settled: bool = False
    _slowness: float = field(default_factory=slowness)

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)

    def create(self, *wanted: Wanted) -> None:
        """Makes schedules; AssertionError unless all are acknowledged: a scenario begins with a healthy system."""
        made = self.operator.create(wanted)
        refused = [(each.schedule.name, each.outcome, each.status) for each in made if each.outcome != "ok"]
        assert not refused, refused

    def settle(self, seconds: float = QUIET_SECONDS) -> bool:
        """Until nothing is due or under way; False if something still is after that time. The checker says what."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(SQLAlchemyError):  # it is down just now
                if not self.database.reader.behind(time.time()) and not self.database.reader.under_way():
                    time.sleep(FORGIVEN_SECONDS)  # so that the checker need not forgive what was due just now
                    self._settled = True
                    return True
            time.sleep(LOOK_SECONDS)
        return False

    def history(self) -> History:
        """Everything, as it is now."""
        dump = self.database.reader.dump()
        hits = self.target.hits()
        return History(
            operations=list(self.operator.operations),
            hits=hits,
            bands=list(self.bands.all),
            dump=dump,
            ended_seen=dict(self._samples),
            read_wall=dump.wall,
            settled=self._settled,
            pids=self.instances.places(),
            orphans=[pid for hit in hits if hit.ended is None for pid in hit.pids if alive(pid)],
            slowness=max(self._slowness, slowness()),
            stall=self.stall.longest,
        )

    def sample(self, ended: threading.Event) -> None:
        """Reads now and then which executions have ended, so that one that changes afterwards is noticed."""
        while not ended.wait(SAMPLE_SECONDS):
            try:
                found = self.database.reader.ended()
            except SQLAlchemyError:
                continue  # it is down just now
            self._samples = found | self._samples


@contextmanager
def arena(
    store: str, *, full: bool, minutes: float | None, seed: int, proxy: bool, env: Mapping[str, str], fresh: bool
) -> Iterator[Arena]:
    """A new one; everything that it started ends with it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ksana-faults-")))
        folder.chmod(0o755)
        bands = Bands()
        kept = stack.enter_context(database(store, folder, bands, with_proxy=proxy))
        target = stack.enter_context(Target(folder))
        supervisor = Supervisor(folder, bands, {"KSANA_DATABASE_URL": kept.through, **env}, fresh=fresh)
        stack.callback(supervisor.close)
        stall = stack.enter_context(Stall())
        made = Arena(
            store, full, minutes, seed, folder, bands, kept, target, supervisor, Operator(supervisor.bases), stall
        )
        ended = threading.Event()
        sampling = threading.Thread(target=made.sample, args=(ended,), daemon=True)
        sampling.start()
        stack.callback(sampling.join)
        stack.callback(ended.set)
        yield made


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
