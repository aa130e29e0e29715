"""A worker process for test_processes.py: does one thing until nothing is left, and prints what it did.

python -m tests.contract.store.claimer URL INSTANCE claim|fire
"""

import asyncio
import json
import random
import sys
from datetime import UTC, datetime, timedelta

from ksana.domain.execution import Claim, Claimed
from ksana.domain.ledger import Firing
from ksana.domain.schedule import decide_fire
from ksana.engine.clock import SystemClock
from ksana.store.requests import ClaimRequest, Ending, StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from tests.clock import FakeClock

IDLE_ROUNDS = 60
FIRE_STEPS = 20


async def end(store: SqlStore, claimed: Claimed, seed: random.Random, log: list[list[object]]) -> None:
    claim = Claim(claimed.execution.id, claimed.execution.epoch)
    now = datetime.now(UTC)
    log.append(["claimed", claim.execution_id, claim.epoch])
    if seed.random() < 0.2 and claimed.execution.attempt < 3:
        await store.retry(Ending(claim, now, error="again"), now)
        return
    answers = await asyncio.gather(*(store.succeed(Ending(claim, now)) for _ in range(2)))
    log.extend(["succeeded", claim.execution_id, claim.epoch] for answer in answers if answer)


async def claim_all(store: SqlStore, instance: str) -> list[list[object]]:
    log: list[list[object]] = []
    seed, idle = random.Random(instance), 0
    later = datetime.now(UTC) + timedelta(hours=1)
    while idle < IDLE_ROUNDS:
        claimed = await store.claim(ClaimRequest(instance, seed.randint(1, 20)), later)
        idle = 0 if claimed else idle + 1
        await asyncio.gather(*(end(store, item, seed, log) for item in claimed))
    return log


async def fire_all(store: SqlStore, instance: str) -> list[list[object]]:
    """Fires what is due at each of a row of instants, as a leader that does not know of the others would."""
    log: list[list[object]] = []
    for step in range(1, FIRE_STEPS + 1):
        await fire_due(store, step, log)
    # What another had locked for a moment, though it was too late for it, has been passed over: a leader looks again.
    while await fire_due(store, FIRE_STEPS, log):
        pass
    return log


async def fire_due(store: SqlStore, step: int, log: list[list[object]]) -> bool:
    """False if nothing was due."""
    now = FakeClock().now() + timedelta(seconds=step)
    due = await store.due_schedules(now, 1_000)
    firings = [
        Firing(
            item.id, item.version, item.next_planned_for, decide_fire(item.spec, item.id, item.next_planned_for, now)
        )
        for item in due.schedules
        if item.next_planned_for is not None
    ]
    for fired in await store.fire(firings, now):
        log.extend(["fired", execution_id, 0] for execution_id in fired.execution_ids)
    return bool(firings)


async def work(url: str, instance: str, task: str) -> list[list[object]]:
    store = open_store(url, options=StoreOptions(readers=1), clock=SystemClock())
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    log = await (claim_all if task == "claim" else fire_all)(store, instance)
    await store.close()
    return log


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(*sys.argv[1:]))))
