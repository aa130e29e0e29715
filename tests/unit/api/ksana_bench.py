"""The contracts of jobs and schedules on a real store, with a clock that tests move and a client without a network."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx2
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from tests.clock import FakeClock
from tests.prepared import prepare

from ksana.api.app import ApiOptions, create_app
from ksana.api.contracts.ksana import ksana_contract
from ksana.api.contracts.schedules import schedules_contract
from ksana.api.services import Services
from ksana.api.system import Health
from ksana.domain.errors import InvalidInput
from ksana.domain.events import SYSTEM
from ksana.domain.execution import Claim
from ksana.domain.job import JobSpec
from ksana.domain.ledger import Fired, Firing
from ksana.domain.schedule import decide_fire
from ksana.engine.commands import (
    JobCommands,
    JobEdit,
    NodeDefaults,
    PlanCommands,
    PlanOptions,
    Resolver,
    RunCommands,
    ScheduleCommands,
    WorkflowCommands,
    WorkflowRunCommands,
)
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.overview import Overviews
from ksana.engine.queries import Queries
from ksana.engine.signals import Signals
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http_config import checked_config
from ksana.settings import Settings
from ksana.store.requests import ClaimRequest, Ending, NewInstance, StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.store import SqlStore
from ksana.telemetry import Metrics

Json = dict[str, Any]
OPTIONS = StoreOptions(readers=1)
JOB: Json = {
    "name": "ping service",
    "http": {"method": "GET", "url": "https://example.com/ping"},
    "schedule": {"kind": "every", "every": "5m"},
}


def a_job(**given: Any) -> Json:
    return {**JOB, **given}


class Checks:
    """Knows `http`, as the registry does, and `noop`, which takes anything."""

    def check(self, job_type: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
        if job_type == "http":
            return checked_config(config, EgressPolicy())
        if job_type == "noop":
            return config
        raise InvalidInput("type", f"no executor of that type: {job_type}")


class Bench:
    """A store, the services over it, and short ways to make things happen to a job."""

    def __init__(self, store: SqlStore, clock: FakeClock) -> None:
        signals, queries = Signals(), Queries(store)
        self.store, self.clock = store, clock
        self.services = Services(
            store=store,
            clock=clock,
            queries=queries,
            jobs=JobCommands(store, clock, Checks(), signals),
            schedules=ScheduleCommands(store, clock, signals),
            runs=RunCommands(store, clock, signals, Measures(CollectorRegistry(), MeasureOptions())),
            workflows=WorkflowCommands(store, clock, Resolver(store, Checks(), NodeDefaults()), signals),
            workflow_runs=WorkflowRunCommands(store, clock, signals),
            plans=PlanCommands(store, clock, Resolver(store, Checks(), NodeDefaults()), signals, PlanOptions()),
            settings=Settings(),
            overviews=Overviews(store, clock),
        )
        self.api: httpx2.AsyncClient

    async def create(self, **given: Any) -> Json:
        answer = await self.api.post("/jobs", json=a_job(**given))
        assert answer.status_code == 201, answer.text
        return body(answer)

    async def fetch(self, job_id: str) -> Json:
        return body(await self.api.get(f"/jobs/{job_id}"))

    async def patch(self, job_id: str, **given: Any) -> Json:
        answer = await self.api.patch(f"/jobs/{job_id}", json=given)
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def fire(self, after: timedelta) -> list[Fired]:
        """Time passes, and then all that is due fires."""
        now = self.clock.advance(after)
        firings = []
        for schedule in (await self.store.due_schedules(now, 100)).schedules:
            assert schedule.next_planned_for is not None
            decision = decide_fire(schedule.spec, schedule.id, schedule.next_planned_for, now)
            firings.append(Firing(schedule.id, schedule.version, schedule.next_planned_for, decision))
        return list(await self.store.fire(firings, now))

    async def run_all(self, *, error: str | None = None, timed_out: bool = False) -> None:
        """Everything that is ready runs, and ends so."""
        for claimed in await self.store.claim(ClaimRequest("one", 100), self.clock.now()):
            claim = Claim(claimed.execution.id, claimed.execution.epoch)
            ending = Ending(claim, self.clock.now(), error=error)
            verb = self.store.time_out if timed_out else self.store.succeed if error is None else self.store.fail
            assert await verb(ending)

    async def respec(self, key: str, **changes: Any) -> JobSpec:
        """Another contract changes what document 002 cannot say."""
        job = await self.store.job_by_key(key)
        spec = replace(job.spec, **changes)
        return (await self.services.jobs.change(job.id, JobEdit(spec), SYSTEM)).job.spec


def body(answer: httpx2.Response) -> Json:
    found = answer.json()
    assert isinstance(found, dict), answer.text
    return found


def refusal(answer: httpx2.Response) -> tuple[int, str, str]:
    told = body(answer)
    assert set(told) == {"code", "message", "details", "request_id"}
    return answer.status_code, told["code"], told["details"].get("field", "")


@asynccontextmanager
async def benched(folder: Path, clock: FakeClock) -> AsyncIterator[Bench]:
    prepare(f"sqlite:///{folder / 'ksana.db'}")
    store = open_store(f"sqlite:///{folder / 'ksana.db'}", options=OPTIONS, clock=clock)
    bench = Bench(store, clock)
    current, app = _application()
    current.services = bench.services
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as api:
            bench.api = api
            await store.join(NewInstance("one", "one", "0", ("worker",), timedelta(days=1)))
            yield bench
    finally:
        await store.close()


class _Current:
    """Stands for the services of the test that runs."""

    services: Services

    def __getattr__(self, name: str) -> Any:
        return getattr(self.services, name)


@cache
def _application() -> tuple[_Current, FastAPI]:
    """The application, made once: its routes cost more than most tests."""
    current = _Current()
    services = cast("Services", current)
    contracts = [ksana_contract(services), schedules_contract(services)]
    return current, create_app(probe=_well, metrics=Metrics(), options=ApiOptions(contracts=contracts))


async def _well() -> Health:
    return Health.OK
