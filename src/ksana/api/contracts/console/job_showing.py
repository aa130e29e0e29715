"""What became of jobs, and what comes next: for lists of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ksana.api.contracts.console.activity_showing import shown_all
from ksana.api.times import rfc3339_or_none
from ksana.domain.job import Contract, Job
from ksana.domain.ledger import Schedule
from ksana.domain.states import ScheduleStatus
from ksana.store.base import Store


async def runs_of(store: Store, jobs: Sequence[Job]) -> Mapping[int, Mapping[str, Any]]:
    """Of each of these jobs, by its number; a handful of questions, however many there are."""
    ids = [job.id for job in jobs]
    schedules = await store.schedules_of(ids)
    last = await store.last_ended(ids, nodes=False)
    runs = dict(zip(last, await shown_all(store, list(last.values())), strict=True))
    return {job.id: {**_made(job), "lastRun": runs.get(job.id), **next_of(schedules.get(job.id, ()))} for job in jobs}


def _made(job: Job) -> dict[str, Any]:
    task_id = job.id if job.spec.contract is Contract.CRONJOB else None
    return {"taskId": task_id, "contract": job.spec.contract.value, "version": job.version}


def next_of(schedules: Sequence[Schedule]) -> dict[str, Any]:
    """When the first of these fires next, how many they are, and whether they are held."""
    coming = min((each.next_fire_at for each in schedules if each.next_fire_at is not None), default=None)
    going_on = [each.status for each in schedules if each.status is not ScheduleStatus.FINISHED]
    paused = bool(going_on) and set(going_on) == {ScheduleStatus.PAUSED}
    return {"nextRunAt": rfc3339_or_none(coming), "schedules": len(schedules), "paused": paused}
