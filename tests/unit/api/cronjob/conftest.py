"""The CronJob contract over a real store on a file, with the real executor's checks, and a client without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from tests.clock import FakeClock
from tests.contract.store.world import World, claim_of
from tests.prepared import prepare

from ksana.api.app import ApiOptions, create_app
from ksana.api.contracts.cronjob import cronjob_contract
from ksana.api.services import Services
from ksana.api.system import Health
from ksana.domain.execution import Claimed
from ksana.engine.commands import (
    JobCommands,
    NodeDefaults,
    PlanCommands,
    PlanOptions,
    Resolver,
    RunCommands,
    ScheduleCommands,
    WorkflowCommands,
    WorkflowRunCommands,
)
from ksana.engine.commands.runs import token_hash
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.overview import Overviews
from ksana.engine.queries import Queries
from ksana.engine.signals import Signals
from ksana.executors.http import HttpExecutor
from ksana.executors.registry import Executors
from ksana.settings import Settings
from ksana.store.requests import NewCallback, StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from ksana.telemetry import Metrics

TASK: dict[str, Any] = {"name": "t1", "cron_expr": "*/5 * * * *", "target_url": "http://127.0.0.1:9/get"}
Json = dict[str, Any]
OPTIONS = StoreOptions(readers=1)


@dataclass
class Desk:
    """What a test works with."""

    services: Services
    world: World
    clock: FakeClock

    def app(self, **settings: Any) -> FastAPI:
        services = replace(self.services, settings=replace(self.services.settings, **settings))
        options = ApiOptions(contracts=[cronjob_contract(services)])
        return create_app(probe=_healthy, metrics=Metrics(), options=options)

    @asynccontextmanager
    async def client(self, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
        transport = httpx2.ASGITransport(app=self.app(**settings))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as client:
            yield client

    async def claimed(self) -> Claimed:
        """The next run, which an instance runs from now on."""
        return (await self.world.claim(1))[0]

    async def pending(self, token: str) -> int:
        """The next run, which waits for a callback with this token."""
        claimed = await self.claimed()
        claim = claim_of(claimed)
        expires = self.clock.now() + timedelta(hours=1)
        assert await self.services.store.open_callback(NewCallback(claim, token_hash(token), expires))
        assert await self.services.store.await_callback(self.world.ending(claimed), expires)
        return claimed.execution.id


async def _healthy() -> Health:
    return Health.OK


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqlStore]:
    url = f"sqlite:///{tmp_path / 'ksana.db'}"
    prepare(url)
    opened = open_store(url, options=OPTIONS, clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
async def desk(store: SqlStore, clock: FakeClock) -> AsyncIterator[Desk]:
    signals, executors = Signals(), Executors([HttpExecutor()], plugins=[])
    services = Services(
        store=store,
        clock=clock,
        queries=Queries(store),
        jobs=JobCommands(store, clock, executors, signals),
        schedules=ScheduleCommands(store, clock, signals),
        runs=RunCommands(store, clock, signals, Measures(CollectorRegistry(), MeasureOptions())),
        workflows=WorkflowCommands(store, clock, Resolver(store, executors, NodeDefaults()), signals),
        workflow_runs=WorkflowRunCommands(store, clock, signals),
        plans=PlanCommands(store, clock, Resolver(store, executors, NodeDefaults()), signals, PlanOptions()),
        settings=Settings(),
        overviews=Overviews(store, clock),
    )
    yield Desk(services, World(store, clock), clock)
    await executors.close()


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[httpx2.AsyncClient]:
    async with desk.client() as client:
        yield client


async def created(client: httpx2.AsyncClient, **fields: Any) -> Json:
    """A task with these fields beside the required ones."""
    answer = await client.post("/api/v1/tasks", json={**TASK, **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def triggered(client: httpx2.AsyncClient, task_id: int, **body: Any) -> int:
    """A run of the task."""
    answer = await client.post(f"/api/v1/tasks/{task_id}/trigger", json=body)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["run_id"])


def refusal(answer: httpx2.Response) -> tuple[int, str, str | None]:
    """Status, code and field of an error in the one envelope."""
    told = answer.json()
    assert set(told) == {"code", "message", "details", "request_id"}, answer.text
    field = told["details"].get("field")
    if field is not None and answer.status_code == 400:
        assert told["message"].startswith(f"{field}: ")
    return answer.status_code, told["code"], field
