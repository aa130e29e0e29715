"""What became of workflows, and what comes next: for lists of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ksana.api.contracts.console.activity_showing import shown_all
from ksana.api.contracts.console.job_showing import next_of
from ksana.domain.workflow import WorkflowSummary
from ksana.store.base import Store

RECENT = 10
"""Runs of each."""


async def became_of(store: Store, workflows: Sequence[WorkflowSummary]) -> Mapping[str, Mapping[str, Any]]:
    """Of each of these workflows, by its id."""
    schedules = await store.schedules_of_workflows([each.id for each in workflows])
    newest = await store.newest_runs([each.key for each in workflows], RECENT)
    shown = iter(await shown_all(store, [run for runs in newest.values() for run in runs]))
    recent = {key: [next(shown) for _ in runs] for key, runs in newest.items()}
    return {
        each.key: {"recentRuns": recent.get(each.key, []), **next_of(schedules.get(each.id, ()))} for each in workflows
    }
