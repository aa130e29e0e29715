"""Several real processes on one database: no execution is claimed twice, no transition is applied twice."""

import json
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest

from ksana.domain.clock import EPOCH
from ksana.domain.job import ConcurrencyPolicy, Job
from ksana.domain.states import ExecutionStatus
from ksana.store.requests import ExecutionFilter, PageRequest
from tests.contract.store.claimer import FIRE_STEPS
from tests.contract.store.world import World

PROCESSES = 3
pytestmark = pytest.mark.parametrize("back_end", ["postgresql", "mysql"], indirect=True)


def run_workers(url: str, task: str = "claim") -> list[list[list[object]]]:
    """What each of several workers, started together, says it did."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.contract.store.claimer", url, f"worker-{number}", task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    return [json.loads(output) for output in outputs]


async def check(world: World, jobs: list[Job], logs: list[list[list[object]]], expected: int) -> None:
    said = Counter(tuple(entry) for log in logs for entry in log)
    assert [entry for entry, times in said.items() if times > 1] == []
    succeeded = Counter(entry[1] for entry in said if entry[0] == "succeeded")
    assert set(succeeded.values()) == {1}
    assert len(succeeded) == expected
    page = await world.store.executions(ExecutionFilter(statuses=frozenset({ExecutionStatus.SUCCESS})), PageRequest())
    assert page.total == expected
    for job in jobs:
        assert await world.store.active_counts(job.id) == {}


async def test_processes_share_a_queue_without_overlap(url: str, world: World) -> None:
    job = await world.job()
    for _ in range(300):
        await world.enqueue(job)
    logs = run_workers(url)
    await check(world, [job], logs, 300)
    assert sum(1 for log in logs if log) > 1, "one process did everything: the test proved nothing"


async def test_processes_share_limited_jobs_without_losing_a_wake_up(url: str, world: World) -> None:
    jobs = [await world.job(limit=1 + number % 3) for number in range(6)]
    for number in range(180):
        await world.enqueue(jobs[number % len(jobs)])
    await check(world, jobs, run_workers(url), 180)


async def test_processes_that_all_believe_they_lead_fire_each_instant_once(url: str, world: World) -> None:
    job = await world.job(concurrency=ConcurrencyPolicy.PARALLEL)
    schedules = [await world.every(job, timedelta(seconds=1)) for _ in range(30)]
    logs = run_workers(url, "fire")
    fired = [entry[1] for log in logs for entry in log]
    assert len(fired) == len(set(fired)) == len(schedules) * FIRE_STEPS
    planned = [
        (row.execution_id, row.count)
        for schedule in schedules
        for row in await world.store.occurrences(schedule.id, EPOCH, world.clock.now() + timedelta(days=1), 1_000)
    ]
    assert {execution_id for execution_id, _ in planned} == set(fired)
    assert (await world.store.executions(ExecutionFilter(job_id=job.id), PageRequest())).total == len(fired)
