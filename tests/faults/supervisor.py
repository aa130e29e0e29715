"""Instances of Ksana as processes: started, killed, frozen and restarted by number, each fault written down with its time.

Each is in a session of its own, on a port that it keeps over restarts. Signals go to processes that were started here, by
their number, and to no other.
"""

import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from tests.faults.history import Band, Bands
from tests.process.conftest import PATIENCE, Serving, begin
from tests.servers.machine import free_port

HEALTH_SECONDS = 30.0
LOOK_SECONDS = 0.05
FOR_ALL = {"LOG_LEVEL": "info", "KSANA_SERVER_GRACEFUL_TIMEOUT": "2s"}


@dataclass
class Instance:
    """One place for a process: several may have it, one after another."""

    number: int
    port: int
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """What its processes get beside what all get."""
    fresh: bool = False
    """Whether they are interpreters of their own, as another program is."""
    serving: Serving | None = None
    pids: list[int] = field(default_factory=list)
    down: Band | None = None
    """While it is killed, or frozen."""
    lives: int = 0

    @property
    def name(self) -> str:
        return f"i{self.number}"

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.pids[-1]

    @property
    def alive(self) -> bool:
        """Runs, and is not frozen."""
        return self.serving is not None and self.down is None


class Supervisor:
    """Starts `count` instances on one database."""

    def __init__(self, folder: Path, bands: Bands, env: Mapping[str, str], *, fresh: bool = False) -> None:
        self._folder = folder
        self._bands = bands
        self._fresh = fresh
        self.env = {**FOR_ALL, **env}
        """What every process gets from now on."""
        self.all: list[Instance] = []

    def start(self, count: int, *, healthy: bool = True, fresh: bool = False, **env: str) -> None:
        """More instances, at once; `env` is for these, and stays over restarts."""
        for _ in range(count):
            number = len(self.all)
            folder = self._folder / f"i{number}"
            folder.mkdir()
            self.all.append(Instance(number, free_port(), folder, env, fresh))
            self._begin(self.all[-1], {})
        if healthy:
            for instance in self.all[-count:]:
                self.wait_healthy(instance.number)

    def kill(self, number: int) -> Band:
        """`kill -9`: the fault lasts until it is restarted and answers."""
        instance = self.all[number]
        band = instance.down if instance.down is not None else self._bands.begin("kill", instance.name)
        self._end(instance, signal.SIGKILL)
        instance.down = band
        return band

    def terminate(self, number: int) -> tuple[Band, int]:
        """SIGTERM, and waits for its end; its exit code."""
        instance = self.all[number]
        band = self._bands.begin("term", instance.name)
        code = self._end(instance, signal.SIGTERM)
        instance.down = band
        return band, code

    def freeze(self, number: int) -> Band:
        """SIGSTOP."""
        instance = self.all[number]
        assert instance.serving is not None
        instance.down = self._bands.begin("stop", instance.name)
        instance.serving.process.send_signal(signal.SIGSTOP)
        return instance.down

    def thaw(self, number: int) -> None:
        """SIGCONT."""
        instance = self.all[number]
        if instance.serving is not None and instance.down is not None:
            instance.serving.process.send_signal(signal.SIGCONT)
            self._up(instance)

    def restart(self, number: int, *, healthy: bool = True, **env: str) -> None:
        """A new process in the place of one that has ended; `env` is for this one only."""
        instance = self.all[number]
        assert instance.serving is None, f"{instance.name} runs"
        self._begin(instance, env)
        if healthy:
            self.wait_healthy(number)

    def revive(self, number: int) -> None:
        """Restarts it until it stays, as whoever watches over services does: one that finds no database ends by itself."""
        deadline = time.monotonic() + 3 * HEALTH_SECONDS
        self.restart(number, healthy=False)
        while not self.healthy(number):
            instance = self.all[number]
            assert instance.serving is not None
            assert time.monotonic() < deadline, f"{instance.name} does not come up: {instance.serving.lines}"
            if instance.serving.process.poll() is not None:
                self._end(instance, signal.SIGKILL)
                self.restart(number, healthy=False)
            time.sleep(LOOK_SECONDS)
        self._up(self.all[number])

    def wait_healthy(self, number: int, seconds: float = HEALTH_SECONDS) -> float:
        """Until it answers /health with 200; for how long that took. AssertionError with its log if it ended instead."""
        instance, began = self.all[number], time.monotonic()
        while not self.healthy(number):
            assert instance.serving is not None
            code = instance.serving.process.poll()
            assert code is None, f"{instance.name} ended with {code}: {instance.serving.lines}"
            assert time.monotonic() - began < seconds, f"{instance.name} gave no good answer: {instance.serving.lines}"
            time.sleep(LOOK_SECONDS)
        self._up(instance)
        return time.monotonic() - began

    def healthy(self, number: int) -> bool:
        return self.health(number) == httpx2.codes.OK

    def health(self, number: int) -> int:
        """The status of /health; 0 if there is no answer."""
        try:
            return httpx2.get(f"{self.all[number].base}/health", timeout=2).status_code
        except httpx2.HTTPError:
            return 0

    def bases(self) -> list[str]:
        """Where those that can answer are."""
        return [instance.base for instance in self.all if instance.alive]

    def places(self) -> dict[int, str]:
        """Which instance each process, dead or alive, was."""
        return {pid: instance.name for instance in self.all for pid in instance.pids}

    def log(self, number: int) -> str:
        """All that its processes have written so far."""
        instance = self.all[number]
        now = "".join(instance.serving.lines) if instance.serving is not None else ""
        return "".join(path.read_text() for path in sorted(instance.folder.glob("*.log"))) + now

    def close(self) -> None:
        for instance in self.all:
            if instance.serving is not None:
                self._end(instance, signal.SIGKILL)

    def _begin(self, instance: Instance, env: Mapping[str, str]) -> None:
        process = begin(
            "serve",
            "--port",
            str(instance.port),
            cwd=instance.folder,
            env={**self.env, **instance.env, **env},
            fresh=self._fresh or instance.fresh,
        )
        instance.serving = Serving(process)
        instance.serving.read()
        instance.pids.append(process.pid)
        instance.lives += 1

    def _end(self, instance: Instance, how: signal.Signals) -> int:
        serving = instance.serving
        assert serving is not None
        serving.process.send_signal(how)
        if how is not signal.SIGKILL:
            with suppress(ProcessLookupError):
                serving.process.send_signal(signal.SIGCONT)
        code = serving.process.wait(PATIENCE)
        serving.close()
        (instance.folder / f"life-{instance.lives:03}.log").write_text("".join(serving.lines))
        instance.serving = None
        return code

    def _up(self, instance: Instance) -> None:
        if instance.down is not None:
            self._bands.end(instance.down)
            instance.down = None
