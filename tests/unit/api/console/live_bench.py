"""What the console asks about time and history, on an instance on simulated time, with a client without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.clock import FakeClock
from tests.prepared import prepare
from tests.unit.api.jobchain.workflow_bench import _services
from tests.unit.api.ksana_bench import OPTIONS, Json, body
from tests.unit.engine.simulation import Simulation

from ksana.api.app import ApiOptions, create_app
from ksana.api.contracts.console.calendar import calendar_contract
from ksana.api.contracts.console.events import events_contract
from ksana.api.contracts.console.forecast import forecast_contract
from ksana.api.contracts.console.grid import grid_contract
from ksana.api.live.hub import Hub
from ksana.api.system import Health
from ksana.store.sql import open_store
from ksana.telemetry import Metrics


@dataclass
class Console:
    sim: Simulation
    hub: Hub
    api: httpx2.AsyncClient
    clock: FakeClock

    async def get(self, path: str, **query: Any) -> Json:
        answer = await self.api.get(f"/api/v1{path}", params=query)
        assert answer.status_code == 200, answer.text
        return body(answer)

    async def refused(self, path: str, **query: Any) -> tuple[int, str]:
        """The status, and the field that is named."""
        answer = await self.api.get(f"/api/v1{path}", params=query)
        return answer.status_code, body(answer)["details"].get("field", "")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Console]:
    url, clock = f"sqlite:///{folder / 'ksana.db'}", FakeClock()
    prepare(url)
    store = open_store(url, options=OPTIONS, clock=clock)
    sim = Simulation(store, clock)
    await sim.join()
    services, hub = _services(sim), Hub(store, clock)
    made = (forecast_contract, calendar_contract, grid_contract)
    contracts = [events_contract(services, hub), *(contract(services) for contract in made)]
    app = create_app(probe=_well, metrics=Metrics(), options=ApiOptions(contracts=contracts))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:7100") as api:
            yield Console(sim, hub, api, clock)
    finally:
        await hub.close()
        await store.close()


async def _well() -> Health:
    return Health.OK
