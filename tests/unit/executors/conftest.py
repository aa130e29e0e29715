"""A witness, and executors that are closed with the test."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.unit.executors.witness import Witness, witness_on_loopback

from ksana.executors.egress_names import Resolver
from ksana.executors.http import HttpExecutor, HttpOptions

MakeExecutor = Callable[..., HttpExecutor]


@pytest.fixture
async def witness() -> AsyncIterator[Witness]:
    async with witness_on_loopback() as running:
        yield running


@pytest.fixture
async def make_executor() -> AsyncIterator[MakeExecutor]:
    made: list[HttpExecutor] = []

    def make(resolver: Resolver | None = None, **options: Any) -> HttpExecutor:
        made.append(HttpExecutor(HttpOptions(**options), resolver=resolver))
        return made[-1]

    yield make
    for executor in made:
        await executor.close()


@pytest.fixture
def http(make_executor: MakeExecutor) -> HttpExecutor:
    return make_executor()
