"""Whose schedules they are, jobs' or workflows', and the runs that they have made."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ksana.api.contracts.keys import found_job, found_workflow
from ksana.api.contracts.schedules_showing import Owner, schedule_shown
from ksana.domain.errors import InvalidInput, NotFound
from ksana.domain.ledger import Schedule
from ksana.store.base import Store

T = TypeVar("T")


async def owner_of(store: Store, job_id: str | None, workflow_id: str | None) -> Owner:
    """The job or the workflow that is named. NotFound, InvalidInput unless it is one of them."""
    if job_id is None and workflow_id is None:
        raise InvalidInput("jobId", "is required; or workflowId, for a schedule of a workflow")
    if job_id is None:
        return Owner(workflow=await found_workflow(store, workflow_id or ""))
    if workflow_id is not None:
        raise InvalidInput("workflowId", "cannot be given with jobId: a schedule belongs to one of them")
    return Owner(job=await found_job(store, job_id))


async def schedules_of(store: Store, owner: Owner) -> Sequence[Schedule]:
    """By id."""
    if owner.job is not None:
        return (await store.schedules_of([owner.job.id])).get(owner.job.id, ())
    return () if owner.workflow is None else await store.schedules_of_workflow(owner.workflow.id)


async def shown_with_owners(store: Store, schedules: Sequence[Schedule]) -> list[dict[str, Any]]:
    jobs = await _each(store.job, (each.job_id for each in schedules))
    workflows = await _each(store.workflow, (each.workflow_id for each in schedules))
    return [schedule_shown(each, Owner(jobs.get(each.job_id), workflows.get(each.workflow_id))) for each in schedules]


async def _each(read: Callable[[int], Awaitable[T]], ids: Iterable[int | None]) -> Mapping[int | None, T]:
    """What is there of these."""

    async def one(each: int) -> T | None:
        try:
            return await read(each)
        except NotFound:  # deleted in between
            return None

    wanted = sorted({each for each in ids if each is not None})
    found = await asyncio.gather(*(one(each) for each in wanted))
    return {each: thing for each, thing in zip(wanted, found, strict=True) if thing is not None}
