"""Two hundred kills: a process changes jobs as fast as it can and is killed with SIGKILL at any moment; then the file is opened.

Run as a program, this file is the torturer. It forks the victim from a process in which everything is imported, so that a
round costs little more than to open the store. The victim says over a pipe what it found, what it is about to do (`?`) and what
was acknowledged (`!`); a write to a pipe survives its writer. What was acknowledged must be found, and what was only begun
may be: a key has at most one operation under way.
"""

import asyncio
import gc
import json
import os
import random
import select
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ksana.domain.job import Job
from ksana.domain.ledger import Firing, Schedule
from ksana.domain.schedule import FireDecision, ScheduleKind, ScheduleSpec
from ksana.engine.clock import SystemClock
from ksana.store.base import Store
from ksana.store.jsonfile import open_json_store
from ksana.store.requests import JobChange, JobFilter, NewJob, NewSchedule, PageRequest, StoreOptions
from tests.contract.store.world import ANNA, http_spec

KILLS = 200
SEED = 20_260_101
AT_ONCE = 4
MOST_ACKNOWLEDGED = 8
MOST_JOBS = 12
LONGEST_DELAY_SECONDS = 0.006
"""A write takes a few milliseconds: the kill falls anywhere within one."""
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVERY_HOUR = ScheduleSpec(kind=ScheduleKind.EVERY, every=HOUR, anchor=START)

Value = list[object] | None
"""A job's name and how often it fired; None if it is not there."""


def test_what_was_acknowledged_is_there_after_two_hundred_kills(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    module = ".".join(Path(__file__).relative_to(root).with_suffix("").parts)
    command = [sys.executable, "-m", module, str(tmp_path / "jobs.json")]
    torturer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert torturer.returncode == 0, torturer.stdout[-2_000:] + torturer.stderr[-4_000:]
    told = json.loads(torturer.stdout)
    assert told["kills"] == KILLS
    assert told["acknowledged"] > KILLS
    assert not list(tmp_path.glob("*.bad*"))


# The victim ---------------------------------------------------------------------------------------------------------------


class Victim:
    def __init__(self, store: Store, pipe: int, dice: random.Random) -> None:
        self.store = store
        self.pipe = pipe
        self.dice = dice
        self.jobs: dict[str, Job] = {}
        self.schedules: dict[int, Schedule] = {}

    def say(self, *words: object) -> None:
        os.write(self.pipe, json.dumps(words).encode() + b"\n")

    async def live(self) -> None:
        await self._look()
        number = 0
        while True:
            known = self.dice.sample(sorted(self.jobs), min(len(self.jobs), self.dice.randrange(AT_ONCE)))
            number += 1
            new = [self._create(f"job-{os.getpid()}-{number}")] if len(self.jobs) < MOST_JOBS else []
            await asyncio.gather(*new, *(self._touch(key) for key in known))

    async def _look(self) -> None:
        page = PageRequest(size=500)
        self.jobs = {job.key: job for job in (await self.store.jobs(JobFilter(), page)).items}
        self.schedules = {each.job_id or 0: each for each in (await self.store.schedules(page)).items}
        self.say("=", {key: self._value(job) for key, job in self.jobs.items()})

    def _value(self, job: Job) -> Value:
        cursor = self.schedules[job.id].next_planned_for
        assert cursor is not None
        return [job.spec.name, (cursor - START) // HOUR]

    async def _create(self, key: str) -> None:
        self.say("?", key, [key, 1])
        new = NewSchedule(f"s-{key}", EVERY_HOUR, START + HOUR)
        job = await self.store.create_job(NewJob(key, http_spec(key), new))
        self.say("!", key, [key, 1])
        for schedule in (await self.store.schedules_of([job.id]))[job.id]:
            self.jobs[key], self.schedules[job.id] = job, schedule

    async def _touch(self, key: str) -> None:
        await self.dice.choice([self._delete, self._rename, self._fire])(self.jobs[key])

    async def _delete(self, job: Job) -> None:
        self.say("?", job.key, None)
        assert await self.store.delete_job(job.id, ANNA)
        self.say("!", job.key, None)
        del self.jobs[job.key]

    async def _rename(self, job: Job) -> None:
        name = f"{job.key}+{job.version}"
        wanted = [name, self._value(job)[1]]  # type: ignore[index]
        self.say("?", job.key, wanted)
        self.jobs[job.key] = await self.store.change_job(JobChange(job.id, http_spec(name)))
        self.say("!", job.key, wanted)

    async def _fire(self, job: Job) -> None:
        schedule = self.schedules[job.id]
        cursor = schedule.next_planned_for
        assert cursor is not None
        wanted = [job.spec.name, (cursor - START) // HOUR + 1]
        self.say("?", job.key, wanted)
        decision = FireDecision((cursor,), (), cursor + HOUR, cursor + HOUR)
        [fired] = await self.store.fire([Firing(schedule.id, schedule.version, cursor, decision)], cursor)
        assert not fired.lost
        self.say("!", job.key, wanted)
        self.schedules[job.id] = await self.store.schedule(schedule.id)


async def _live(path: str, pipe: int, seed: int) -> None:
    store = open_json_store(f"json://{path}", options=StoreOptions(readers=1), clock=SystemClock())
    await Victim(store, pipe, random.Random(seed)).live()


async def _warm_up(path: str) -> None:
    store = open_json_store(f"json://{path}", options=StoreOptions(readers=1), clock=SystemClock())
    await store.close()


# The torturer -------------------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """What the victims have said: for each key what was acknowledged last, and what was begun since."""

    acknowledged: dict[str, Value] = field(default_factory=dict)
    begun: dict[str, Value] = field(default_factory=dict)
    answers: int = 0

    def hear(self, line: bytes) -> None:
        mark, *words = json.loads(line)
        if mark == "=":
            self.compare(words[0])
        elif mark == "?":
            self.begun[words[0]] = words[1]
        else:
            self.begun.pop(words[0])
            self.acknowledged[words[0]] = words[1]
            self.answers += 1

    def compare(self, found: dict[str, Value]) -> None:
        for key in {*found, *self.acknowledged, *self.begun}:
            allowed = [self.acknowledged.get(key), *([self.begun[key]] if key in self.begun else [])]
            if found.get(key) not in allowed:
                raise SystemExit(f"{key} is {found.get(key)}, and should be one of {allowed}")
        self.acknowledged, self.begun = dict(found), {}


def torture(path: str) -> None:
    dice, memory = random.Random(SEED), Memory()
    asyncio.run(_warm_up(path))
    gc.freeze()  # so that the victims do not copy what they only inherit
    for round_ in range(KILLS + 1):
        reading, writing = os.pipe()
        victim = os.fork()
        if victim == 0:
            _die(path, writing, SEED + round_)
        os.close(writing)
        try:
            _watch(reading, victim, memory, dice)
        finally:
            os.close(reading)
    print(json.dumps({"kills": KILLS, "acknowledged": memory.answers}))


def _die(path: str, pipe: int, seed: int) -> None:
    try:
        asyncio.run(_live(path, pipe, seed))
    finally:
        os._exit(1)


def _watch(reading: int, victim: int, memory: Memory, dice: random.Random) -> None:
    """Listens for so many answers, lets it live a moment more, kills it, and hears what it had still said."""
    wanted = memory.answers + dice.randrange(MOST_ACKNOWLEDGED)
    rest = b""
    looked = False
    while not (looked and memory.answers >= wanted):
        data = os.read(reading, 65_536)
        if not data:
            raise SystemExit(f"the victim ended by itself: {os.waitpid(victim, 0)}")
        looked = True
        rest = _hear(rest + data, memory)
    select.select([], [], [], dice.uniform(0, LONGEST_DELAY_SECONDS))
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    while data := os.read(reading, 65_536):
        rest = _hear(rest + data, memory)


def _hear(data: bytes, memory: Memory) -> bytes:
    *lines, rest = data.split(b"\n")
    for line in lines:
        memory.hear(line)
    return rest


if __name__ == "__main__":
    torture(sys.argv[1])
