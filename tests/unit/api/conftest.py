"""An application with a health that tests set, and a client that talks to it without a network."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from fastapi import APIRouter, Body, Request
from pydantic import BaseModel

from ksana.api.app import ApiOptions, Contract, create_app
from ksana.api.console import FOLDER
from ksana.api.errors import Translation
from ksana.api.system import Health
from ksana.domain.errors import KsanaError
from ksana.telemetry import Metrics

Client = AbstractAsyncContextManager[httpx2.AsyncClient]


class Bench:
    """What a test turns: the health, the error that `/raise` raises, the options."""

    def __init__(self) -> None:
        self.health = Health.OK
        self.error: Exception = KsanaError("unset")
        self.metrics = Metrics()
        self.translations: Sequence[Translation] = ()
        self.attended = 0

    async def probe(self) -> Health:
        return self.health

    def attend(self) -> None:
        self.attended += 1

    @asynccontextmanager
    async def client(
        self,
        *,
        allowed_hosts: Sequence[str] = (),
        any_address: bool = False,
        metrics: bool = True,
        console_folder: Path = FOLDER,
    ) -> AsyncIterator[httpx2.AsyncClient]:
        contract = Contract(sample_router(lambda: self.error), self.translations)
        options = ApiOptions(
            allowed_hosts,
            any_address,
            metrics_enabled=metrics,
            max_body=1000,
            contracts=[contract],
            console_folder=console_folder,
            attend=self.attend,
        )
        app = create_app(probe=self.probe, metrics=self.metrics, options=options)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as client:
            yield client


class Thing(BaseModel):
    name: str
    sizes: list[int] = []


def sample_router(error: Callable[[], Exception]) -> APIRouter:
    outer, router = APIRouter(), APIRouter(prefix="/things")

    @router.post("")
    async def create(thing: Thing) -> Thing:
        return thing

    @router.post("/anything")
    async def anything(body: object = Body()) -> object:
        return body

    @router.post("/stream")
    async def stream(request: Request) -> int:
        return len(await request.body())

    @router.get("/raise")
    async def fail() -> None:
        raise error()

    @router.get("/{thing_id}")
    async def read(thing_id: int) -> int:
        return thing_id

    @router.post("/callbacks/{token}")
    async def call(token: str) -> str:
        return "done"

    outer.include_router(router, prefix="/sample")
    return outer


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
async def client(bench: Bench) -> AsyncIterator[httpx2.AsyncClient]:
    async with bench.client() as client:
        yield client
