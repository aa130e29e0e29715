"""`GET /api/v1/workflows/{workflowId}/grid`: the newest runs of a workflow, and how each node of each stands."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from ksana.api.app import Contract
from ksana.api.contracts.jobchain.paths import WORKFLOW, WorkflowId
from ksana.api.contracts.jobchain.routes import Permission, needing
from ksana.api.contracts.jobchain.run_models import NodeName, RunName
from ksana.api.contracts.keys import found_workflow
from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.shapes import Shown, answer, problems
from ksana.api.routing import new_router
from ksana.api.services import Services
from ksana.api.times import rfc3339, rfc3339_or_none
from ksana.domain.states import JOBCHAIN_NODE_NAMES, JOBCHAIN_RUN_NAMES
from ksana.domain.workflow import Workflow
from ksana.domain.workflow_run import WorkflowRun
from ksana.store.requests import PageRequest
from ksana.store.view_requests import NodeCell
from ksana.store.workflow_requests import RunFilter

MOST_CELLS = 20_000
"""Nodes of all runs together: of a workflow as large as they get, one run."""
_AT = "2026-01-31T12:00:00Z"


class CellShown(Shown):
    status: NodeName
    attempt: int = Field(examples=[1])
    duration_millis: int | None = Field(examples=[120], description="From its start to its end; null before its end.")


class GridRun(Shown):
    run_id: str = Field(examples=["order-4711"])
    status: RunName
    created_at: str = Field(examples=[_AT])
    started_at: str | None
    ended_at: str | None
    trigger: str = Field(examples=["schedule"])
    nodes: dict[str, CellShown] = Field(description="By their ids, without the items of a fan-out.")


class GridShown(Shown):
    """Runs by nodes."""

    nodes: list[str] = Field(
        description="In the order of the newest definition, then those that only earlier runs have."
    )
    runs: list[GridRun] = Field(description="Newest first.")
    limited: bool = Field(description="Fewer than were asked for: no more than 20,000 nodes are shown at once.")


class GridQuery(StrictQuery):
    size: int = Query(25, ge=1, le=100, description="How many runs.")


def grid_contract(services: Services) -> Contract:
    router, store = new_router("Console"), services.store

    @router.get(
        f"{WORKFLOW}/grid",
        response_model=GridShown,
        responses=problems(400, 404),
        summary="The newest runs of a workflow by nodes",
        openapi_extra=needing(Permission.RUN_READ),
    )
    async def grid(workflow_id: WorkflowId, query: Annotated[GridQuery, Query()]) -> Response:
        """Its newest runs, and how each node of each stands."""
        workflow = await found_workflow(store, workflow_id)
        found = await store.workflow_runs(RunFilter(workflow_key=workflow.key), PageRequest(size=query.size))
        cells = await store.node_cells([run.id for run in found.items], MOST_CELLS)
        return answer(grid_shown(workflow, found.items, cells))

    return Contract(router)


def grid_shown(
    workflow: Workflow, runs: Sequence[WorkflowRun], cells: Mapping[int, Sequence[NodeCell]]
) -> dict[str, Any]:
    """As `GridShown`; runs without cells did not fit."""
    defined = [node.id for node in workflow.spec.dag.nodes]
    names = dict.fromkeys([*defined, *(cell.node_id for of_run in cells.values() for cell in of_run)])
    shown = [_run(run, cells[run.id]) for run in runs if run.id in cells]
    return {"nodes": list(names), "runs": shown, "limited": len(shown) < len(runs)}


def _run(run: WorkflowRun, cells: Sequence[NodeCell]) -> dict[str, Any]:
    return {
        "runId": run.key,
        "status": JOBCHAIN_RUN_NAMES[run.status],
        "createdAt": rfc3339(run.created_at),
        "startedAt": rfc3339_or_none(run.started_at),
        "endedAt": rfc3339_or_none(run.ended_at),
        "trigger": run.trigger.value,
        "nodes": {cell.node_id: _cell(cell) for cell in cells},
    }


def _cell(cell: NodeCell) -> dict[str, Any]:
    took = None if cell.started_at is None or cell.ended_at is None else cell.ended_at - cell.started_at
    return {
        "status": JOBCHAIN_NODE_NAMES[cell.status],
        "attempt": cell.attempt,
        "durationMillis": None if took is None else max(0, took // timedelta(milliseconds=1)),
    }
