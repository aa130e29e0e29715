"""Whose schedules they are, jobs' or workflows', and the runs that they have made."""

from collections.abc import Sequence
from typing import Any

from ksana.api.contracts.keys import found_job, found_workflow
from ksana.api.contracts.schedules_showing import Owner, schedule_shown
from ksana.domain.errors import InvalidInput
from ksana.domain.ledger import Schedule
from ksana.store.base import Store


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
    if owner.workflow is None:
        return ()
    return (await store.schedules_of_workflows([owner.workflow.id])).get(owner.workflow.id, ())


async def shown_with_owners(store: Store, schedules: Sequence[Schedule]) -> list[dict[str, Any]]:
    jobs = await store.jobs_by_ids([each.job_id for each in schedules if each.job_id is not None])
    workflows = await store.workflows_by_ids([each.workflow_id for each in schedules if each.workflow_id is not None])
    return [
        schedule_shown(each, Owner(jobs.get(each.job_id or 0), workflows.get(each.workflow_id or 0)))
        for each in schedules
    ]
