"""The jobs and schedules of a simulated world: every policy that the queue and the ledger have, busy enough to collide."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ksana.domain.job import ConcurrencyPolicy, Contract, ExecutionMode, JobSpec, RecoveryRule
from ksana.domain.retry import RetryPolicy
from ksana.domain.schedule import MisfirePolicy, ScheduleKind, ScheduleSpec, next_instant
from ksana.store.requests import NewJob, NewSchedule
from tests.simulation.memory_ledger import create_job

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND = timedelta(seconds=1)
RETRY = RetryPolicy(max_attempts=3, delay=SECOND, multiplier=2.0)
JOBS: dict[str, dict[str, Any]] = {
    "parallel": {"concurrency": ConcurrencyPolicy.PARALLEL, "retry": RETRY, "timeout": 9 * SECOND},
    "one": {"max_concurrency": 1, "queue_limit": 3, "retry": RETRY, "timeout": 3 * SECOND},
    "two": {"max_concurrency": 2, "queue_limit": 5, "timeout": 6 * SECOND},
    "skips": {
        "concurrency": ConcurrencyPolicy.SKIP,
        "max_concurrency": 1,
        "retry": RetryPolicy(2, SECOND),
        "timeout": 5 * SECOND,
    },
    "once": {"concurrency": ConcurrencyPolicy.PARALLEL, "recovery": RecoveryRule.FAIL, "timeout": 4 * SECOND},
    "async": {
        "mode": ExecutionMode.ASYNC,
        "max_concurrency": 2,
        "queue_limit": 2,
        "callback_timeout": 6 * SECOND,
        "timeout": 3 * SECOND,
    },
}


@dataclass(frozen=True, slots=True)
class Planned:
    """What the ledger of a schedule must have, worked out here: `first`, and every `step` from there on."""

    schedule_id: int
    first: datetime
    step: timedelta | None

    def instants(self, until: datetime) -> list[datetime]:
        if self.step is None:
            return [self.first] if self.first <= until else []
        return [self.first + n * self.step for n in range((until - self.first) // self.step + 1)]


def furnish(world: "World") -> list[Planned]:
    """Makes the jobs; what is planned."""
    planned: list[Planned] = []
    policies = list(MisfirePolicy)
    for number, (name, changes) in enumerate(JOBS.items(), 1):
        step = world.random.choice((2, 3, 5, 7)) * SECOND
        shape: dict[str, Any] = {
            "misfire": policies[number % len(policies)],
            "misfire_grace": world.random.choice((1, 5, 60)) * SECOND,
            "jitter": world.random.choice((timedelta(0), SECOND)),
        }
        spec = ScheduleSpec(ScheduleKind.EVERY, every=step, anchor=world.now(), **shape)
        if name == "two":
            spec = ScheduleSpec(ScheduleKind.CRON, cron="*/5 * * * * *", **shape)
            step = 5 * SECOND
        elif name == "once":
            spec = replace(spec, every=step)
        first = world.now() + step
        _create(world, name, spec, changes)
        planned.append(Planned(number, first, step))
    return planned


def _create(world: "World", name: str, spec: ScheduleSpec, changes: dict[str, Any]) -> None:
    job = JobSpec(name=name, type="scripted", config={}, contract=Contract.CRONJOB, **changes)
    schedule = NewSchedule(f"s-{name}", spec, next_instant(spec, world.now()))
    create_job(world.tables, NewJob(f"j-{name}", job, schedule), world.now())
