"""A scenario within a scenario: a database and an instance of its own, for what has to be tried again and again from nothing.

Several go on at once, each in a thread: most of a trial is waiting. The witness is the arena's; names of jobs begin with the
trial's, so that its hits can be told from those of others.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests import prepared
from tests.faults.arena import FORGIVEN_SECONDS, Arena
from tests.faults.database import SQLITE, Database
from tests.faults.history import Bands, History
from tests.faults.hits import HitLog
from tests.faults.operations import Operator
from tests.faults.supervisor import Supervisor

ASKED_SECONDS = 60.0
"""How long a client goes on asking: longer than a lease lasts."""
QUIET_SECONDS = 45.0
LOOK_SECONDS = 0.05
ONLY = 0
"""The number of the trial's only instance."""
DISARMED = {"KSANA_FAILPOINT": "", "KSANA_FAILPOINT_LOG": ""}
_starting = threading.Lock()
"""The nursery takes one order at a time."""

R = TypeVar("R")


@dataclass
class Trial:
    """One database, one instance, and a client that does not give up."""

    name: str
    arena: Arena
    folder: Path
    database: Database
    instances: Supervisor
    operator: Operator
    bands: Bands
    log: HitLog
    """Its own reader: another thread has another."""
    deaths: int = 0
    client: httpx2.Client | None = None

    def start(self, **env: str) -> None:
        """Begins; does not wait, since it may be meant to die at once."""
        with _starting:
            self.instances.start(1, healthy=False, fresh=False, **env)
        self.client = httpx2.Client(base_url=self.instances.all[ONLY].base, timeout=10)
        self._wait()

    def _wait(self) -> None:
        """Until it answers, or has died: a request that waits for its start might ask for what has passed by then."""
        serving, deadline = self.instances.all[ONLY].serving, time.monotonic() + ASKED_SECONDS
        assert serving is not None
        while not self.instances.healthy(ONLY) and serving.process.poll() is None and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def revive(self) -> None:
        """Starts it anew, without a failpoint, if it has died."""
        serving = self.instances.all[ONLY].serving
        assert serving is not None
        if serving.process.poll() is None:
            return
        self.deaths += 1
        self.instances.kill(ONLY)
        with _starting:
            self.instances.restart(ONLY, healthy=False, **DISARMED)
        self._wait()

    def ask(self, method: str, path: str, body: Callable[[], Any] | None = None, key: str = "") -> httpx2.Response:
        """An answer that is not `later`, however often it takes; AssertionError if there is none in time."""
        assert self.client is not None
        deadline, told = time.monotonic() + ASKED_SECONDS, "nothing"
        headers = {"Idempotency-Key": key} if key else {}
        while time.monotonic() < deadline:
            try:
                answer = self.client.request(method, path, json=body() if body else None, headers=headers)
                if not answer.is_server_error:
                    return answer
                told = answer.text
            except httpx2.HTTPError as error:
                told = repr(error)
            self.revive()
            time.sleep(LOOK_SECONDS)
        raise AssertionError(f"{self.name}: {method} {path}: {told}; {self.instances.log(ONLY)[-2_000:]}")

    def until(self, path: str, condition: Callable[[Any], object]) -> Any:
        """Asks until the answer is so; AssertionError if it never is."""
        deadline = time.monotonic() + ASKED_SECONDS
        while True:
            found = self.ask("GET", path).json()
            if condition(found):
                return found
            assert time.monotonic() < deadline, f"{self.name}: {path} still answers {found}"
            time.sleep(LOOK_SECONDS)

    def settle(self) -> bool:
        """Until nothing is due or under way; False if something still is."""
        deadline = time.monotonic() + QUIET_SECONDS
        while time.monotonic() < deadline:
            self.revive()
            reader = self.database.reader
            if not reader.behind(time.time()) and not reader.under_way():
                return True
            time.sleep(LOOK_SECONDS)
        return False

    def history(self, *, settled: bool) -> History:
        dump = self.database.reader.dump()
        return History(
            operations=list(self.operator.operations),
            hits=[hit for hit in self.log.read() if hit.schedule.startswith(self.name)],
            bands=list(self.bands.all),
            dump=dump,
            read_wall=dump.wall + FORGIVEN_SECONDS,  # all has been waited for, even what was due just now
            settled=settled,
            pids=self.instances.places(),
            stall=self.arena.stall.longest,
        )

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        self.instances.close()


def trial(arena: Arena, name: str) -> Trial:
    """A new one, on the arena's server or in a file of its own."""
    folder, bands = arena.folder / name, Bands()
    folder.mkdir()
    url = f"sqlite:///{folder / 'ksana.db'}" if arena.store == SQLITE else arena.database.server.create_database()
    prepared.prepare(url)
    instances = Supervisor(folder, bands, {"KSANA_DATABASE_URL": url})
    kept = Database(url, None, None, url, bands)
    log = HitLog(arena.target.log)
    return Trial(name, arena, folder, kept, instances, Operator(instances.bases), bands, log)


def all_of(trials: Sequence[R], each: Callable[[R], Any], at_once: int) -> list[Any]:
    """What each comes to, so many at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(each, trials))
