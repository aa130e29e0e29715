"""The Plans contract beside the others, over an instance on simulated time whose stages do what a test says, by tenant."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.unit.api.jobchain.workflow_bench import opened as opened_desk
from tests.unit.api.jobchain.workflow_bench import told
from tests.unit.api.ksana_bench import Json, body
from tests.unit.engine.plan_world import STAGES, Rollout, stage
from tests.unit.engine.simulation import Simulation

__all__ = ["AT", "PLANS", "RUNS", "STAGES", "TENANTS", "Json", "PlanDesk", "a_plan", "body", "opened", "stage", "told"]

PLANS, TENANTS, RUNS = "/api/v1/plans", "/api/v1/tenants", "/api/v1/runs"
AT = "2026-01-01T00:00:00Z"


def a_plan(*tenants: Any, **given: Any) -> Json:
    stages = [stage(name) for name in STAGES]
    return {"planId": "p", "name": "rollout", "stages": stages, "tenants": list(tenants or ("a",)), **given}


class PlanDesk:
    """What a test works with."""

    def __init__(self, sim: Simulation, api: httpx2.AsyncClient) -> None:
        self.sim, self.api, self.clock = sim, api, sim.clock
        self.rollout = Rollout(sim)

    async def create(self, *tenants: Any, **given: Any) -> Json:
        """A plan that has not begun."""
        answer = await self.api.post(PLANS, json=a_plan(*tenants, **given))
        assert answer.status_code == 201, answer.text
        return body(answer)

    async def run(self, *tenants: Any, **given: Any) -> Json:
        """One that has, as far as it comes."""
        made = await self.create(*tenants, **{"maxConcurrency": 10, **given, "autoStart": True})
        await self.rollout.settle()
        return await self.plan(made["planId"])

    async def plan(self, plan_id: str = "p") -> Json:
        return await self.get(f"{PLANS}/{plan_id}")

    async def task(self, tenant: str = "a", **query: Any) -> Json:
        return await self.get(f"{TENANTS}/{tenant}/task", **query)

    async def checkpoint(self, tenant: str = "a", **query: Any) -> Json:
        return await self.get(f"{TENANTS}/{tenant}/checkpoint", **query)

    async def get(self, path: str, **query: Any) -> Json:
        answer = await self.api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def post(self, path: str, **given: Any) -> httpx2.Response:
        return await self.api.post(path, json=given) if given else await self.api.post(path)

    async def order(self, path: str, **given: Any) -> Json:
        """An order that is taken, and then what follows from it."""
        answer = await self.post(path, **given)
        assert answer.status_code == 200, answer.text
        await self.rollout.settle()
        return body(answer)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[PlanDesk]:
    async with opened_desk(folder) as desk:
        yield PlanDesk(desk.sim, desk.api)
