"""The JobChain contract beside those of documents 002 and 003, on a real store, with a client without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpx2
from fastapi import FastAPI
from tests.clock import FakeClock
from tests.prepared import prepare
from tests.unit.api.ksana_bench import OPTIONS, Bench, Json, body

from ksana.api.app import ApiOptions, create_app
from ksana.api.contracts.cronjob import cronjob_contract
from ksana.api.contracts.jobchain import jobchain_contract
from ksana.api.contracts.ksana import ksana_contract
from ksana.api.services import Services
from ksana.api.system import Health
from ksana.store.sql import open_store
from ksana.telemetry import Metrics

JOBS = "/api/v1/jobs"
URL = "https://example.com/ping"
JOB: Json = {"name": "demo-job", "type": "http", "configJson": {"method": "GET", "url": URL}}
RETRY: Json = {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 2.0}


def a_job(**given: Any) -> Json:
    return {**JOB, **given}


class World(Bench):
    """A Bench whose jobs are made and changed at `/api/v1/jobs`."""

    async def create(self, **given: Any) -> Json:
        answer = await self.api.post(JOBS, json=a_job(**given))
        assert answer.status_code == 201, answer.text
        return body(answer)

    async def fetch(self, job_id: str) -> Json:
        answer = await self.api.get(f"{JOBS}/{job_id}")
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def put(self, job_id: str, **given: Any) -> Json:
        answer = await self.api.put(f"{JOBS}/{job_id}", json=given)
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def found(self, **query: Any) -> list[str]:
        """The names in the page."""
        answer = await self.api.get(JOBS, params=query)
        assert answer.status_code == 200, answer.text
        return [item["name"] for item in body(answer)["items"]]


def told(answer: httpx2.Response) -> tuple[int, str, Json]:
    """Status, code and details of an error in the one envelope."""
    envelope = body(answer)
    assert set(envelope) == {"code", "message", "details", "request_id"}
    return answer.status_code, envelope["code"], envelope["details"]


@asynccontextmanager
async def opened(folder: Path, clock: FakeClock) -> AsyncIterator[World]:
    url = f"sqlite:///{folder / 'ksana.db'}"
    prepare(url)
    store = open_store(url, options=OPTIONS, clock=clock)
    world = World(store, clock)
    _CURRENT.services = world.services
    app = _application()
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as api:
            world.api = api
            yield world
    finally:
        await store.close()


class _Current:
    """Stands for the services of the test that runs."""

    services: Services

    def __getattr__(self, name: str) -> Any:
        return getattr(self.services, name)


_CURRENT = _Current()


@cache
def _application() -> FastAPI:
    """The application, made once, when there are services to make it for: its routes cost more than most tests."""
    services = cast("Services", _CURRENT)
    contracts = [cronjob_contract(services), jobchain_contract(services), ksana_contract(services)]
    return create_app(probe=_well, metrics=Metrics(), options=ApiOptions(contracts=contracts))


async def _well() -> Health:
    return Health.OK
