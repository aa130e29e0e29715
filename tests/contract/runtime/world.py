"""Short ways to what the suite about runtime state speaks of."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from ksana.domain.errors import KsanaError
from ksana.runtime.base import Checkpoint, Kind, PlanProjection, RuntimeState, TaskProjection
from ksana.store.requests import StoreOptions
from ksana.store.sql import open_store
from ksana.store.sql.rows import Statement
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.clock import FakeClock

NAMESPACE = "executor"
NOON = datetime(2025, 11, 24, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
POLL_SECONDS = 0.005
_EMPTY = Statement("DELETE FROM runtime_state")

everywhere = pytest.mark.parametrize(
    "back_end",
    [
        pytest.param("memory", id="memory"),
        pytest.param("redis", id="redis", marks=pytest.mark.redis),
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
        pytest.param("mysql", id="mysql", marks=pytest.mark.mysql),
    ],
    indirect=True,
)
"""For tests whose answer depends on how a database locks rows."""


class World:
    """A runtime state, and the means to let time pass for it."""

    def __init__(self, runtime: RuntimeState, clock: FakeClock, raw: "Redis | None" = None) -> None:
        self.runtime = runtime
        self._clock = clock
        self._raw = raw

    async def outlive(self, ttl: timedelta, kind: Kind, key: str) -> None:
        """Returns when what has had its last change just now, and lives for `ttl`, is gone."""
        if self._raw is None:
            self._clock.advance(ttl)
            return
        raw = self._raw
        await until(lambda: _gone(raw, f"{NAMESPACE}:{kind}:{key}"))


@asynccontextmanager
async def emptied_store(url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    """A store whose database was used before, and holds no runtime state."""
    store = open_store(url, options=StoreOptions(readers=2), clock=clock)
    try:
        await store.writer.submit(_emptied, None)
        yield store
    finally:
        await store.close()


def _emptied(tx: Tx, commands: list[None]) -> list[int | KsanaError]:
    return [tx.changed(_EMPTY) for _ in commands]


async def _gone(raw: "Redis", key: str) -> bool:
    return not await raw.exists(key)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 - a server's keys have no event
        await asyncio.sleep(POLL_SECONDS)


def checkpoint(*stages: str, version: int = 1, **context: Any) -> Checkpoint:
    return Checkpoint(len(stages) - 1, stages, NOON, context, version)


def task(task_id: str = "task-1", **changes: Any) -> TaskProjection:
    defaults: dict[str, Any] = {
        "tenant_id": "tenant-1",
        "plan_id": "plan-1",
        "status": "RUNNING",
        "pause_requested": False,
        "stage_names": ("stage-0", "stage-1"),
        "last_completed_stage_index": 0,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return TaskProjection(task_id, **{**defaults, **changes})


def plan(plan_id: str = "plan-1", **changes: Any) -> PlanProjection:
    defaults: dict[str, Any] = {
        "status": "RUNNING",
        "task_ids": ("task-1", "task-2"),
        "progress": 0.5,
        "max_concurrency": 5,
        "created_at": NOON,
        "updated_at": NOON,
    }
    return PlanProjection(plan_id, **{**defaults, **changes})
