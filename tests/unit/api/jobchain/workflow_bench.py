"""The contracts over an instance on simulated time: its services stepped by hand, its targets scripted, a real store below."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx2
from fastapi import FastAPI
from tests.clock import FakeClock
from tests.prepared import prepare
from tests.unit.api.ksana_bench import OPTIONS, Json, body
from tests.unit.engine.simulation import Simulation

from ksana.api.app import ApiOptions, create_app
from ksana.api.contracts.console import console_contract
from ksana.api.contracts.cronjob import cronjob_contract
from ksana.api.contracts.jobchain import jobchain_contract
from ksana.api.contracts.plans import plans_contract
from ksana.api.contracts.schedules import schedules_contract
from ksana.api.services import Services
from ksana.api.system import Health
from ksana.domain.outcome import Failed, Outcome, Succeeded
from ksana.engine.overview import Overviews
from ksana.executors.base import ExecutionContext
from ksana.settings import Settings, load
from ksana.store.sql import open_store
from ksana.telemetry import Metrics

WORKFLOWS, RUNS, CHAINS = "/api/v1/workflows", "/api/v1/runs", "/api/v1/chains"
SCHEDULES, CALLBACKS = "/api/v1/schedules", "/api/v1/callbacks"


def node(name: str, *after: str, **given: Any) -> Json:
    """One that does what the test says."""
    return {"id": name, "type": "scripted", "cfg": {"says": name}, "dependsOn": list(after), **given}


def waiting(name: str, *after: str) -> Json:
    """One that waits for a person, or a callback."""
    return {"id": name, "type": "wait", "dependsOn": list(after)}


def dag(*nodes: Json, **given: Any) -> Json:
    return {"nodes": list(nodes), **given}


class Desk:
    """What a test works with."""

    def __init__(self, sim: Simulation, api: httpx2.AsyncClient) -> None:
        self.sim, self.api = sim, api
        self.store, self.clock = sim.store, sim.clock
        self.failing: set[str] = set()
        sim.target.answer = self._answer

    def _answer(self, context: ExecutionContext) -> Outcome:
        said = str(context.job.spec.config.get("says"))
        return Failed(f"{said} failed", retryable=False) if said in self.failing else Succeeded({"made": said})

    async def create(self, *nodes: Json, workflow_id: str | None = None, **given: Any) -> Json:
        name = given.pop("name", workflow_id or "demo")
        sent = {"name": name, "dag": dag(*nodes, **given)} | ({"workflowId": workflow_id} if workflow_id else {})
        answer = await self.api.post(WORKFLOWS, json=sent)
        assert answer.status_code == 201, answer.text
        return body(answer)

    async def start(self, *nodes: Json, run: str = "r", **given: Any) -> str:
        """A run of a new workflow of these nodes, as far as it comes."""
        workflow = await self.create(*nodes, workflow_id=f"w-{run}", **given)
        answer = await self.api.post(f"{WORKFLOWS}/{workflow['workflowId']}:start", json={"runId": run})
        assert answer.status_code == 201, answer.text
        await self.sim.settle()
        return run

    async def run(self, run: str = "r") -> Json:
        return await self.get(f"{RUNS}/{run}")

    async def nodes(self, run: str = "r") -> dict[str, Json]:
        return {each["nodeId"]: each for each in (await self.run(run))["nodes"]}

    async def get(self, path: str, **query: Any) -> Json:
        answer = await self.api.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def order(self, path: str, **given: Any) -> Json:
        """An order that is taken, and then what follows from it."""
        answer = await self.api.post(path, json=given) if given else await self.api.post(path)
        assert answer.status_code == 200, answer.text
        await self.sim.settle()
        return body(answer)


def told(answer: httpx2.Response) -> tuple[int, str, Json]:
    """Status, code and details of an error."""
    envelope = body(answer)
    assert {"code", "message", "details", "request_id"} <= set(envelope)
    return answer.status_code, envelope["code"], envelope["details"]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Desk]:
    url, clock = f"sqlite:///{folder / 'ksana.db'}", FakeClock()
    prepare(url)
    store = open_store(url, options=OPTIONS, clock=clock)
    sim = Simulation(store, clock)
    await sim.join()
    CURRENT.services = _services(sim)
    CURRENT.health = Health.OK
    transport = httpx2.ASGITransport(app=application(), raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as api:
            yield Desk(sim, api)
    finally:
        await store.close()


def _services(sim: Simulation) -> Services:
    return Services(
        store=sim.store,
        clock=sim.clock,
        queries=sim.queries,
        jobs=sim.jobs,
        schedules=sim.schedules,
        runs=sim.runs,
        workflows=sim.workflows,
        workflow_runs=sim.workflow_runs,
        plans=sim.plans,
        settings=Settings(),
        overviews=Overviews(sim.store, sim.clock),
        shown_settings=load(environ={"KSANA_DATABASE_URL": "postgresql://ksana:secret@db/ksana"}).shown(),
    )


class _Current:
    """Stands for the services, and the health, of the test that runs."""

    services: Services
    health: Health
    settings = Settings()
    """What the routes are made from, also where no test has services."""

    def __getattr__(self, name: str) -> Any:
        if name == "services":
            raise AttributeError(name)
        return getattr(self.services, name)


CURRENT = _Current()


async def _probe() -> Health:
    return CURRENT.health


@cache
def application() -> FastAPI:
    """The application, made once: its routes cost more than most tests."""
    services = cast("Services", CURRENT)
    made = (cronjob_contract, jobchain_contract, plans_contract, schedules_contract, console_contract)
    contracts = [contract(services) for contract in made]
    return create_app(probe=_probe, metrics=Metrics(), options=ApiOptions(contracts=contracts))
