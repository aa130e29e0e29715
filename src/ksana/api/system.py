"""Is it up, which version is it, what are its figures: `/health`, `/api/v1/healthz`, `/api/v1/version`, `/metrics`."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from ksana.api.routing import new_router
from ksana.telemetry import METRICS_TYPE, Metrics


class Health(StrEnum):
    """What the process can do now."""

    OK = "ok"
    UNSHOWN = "unshown"  # it works, but what plans do is not shown where it should be
    DEGRADED = "degraded"  # the store cannot be reached
    STOPPING = "stopping"  # told to stop; running work is ending

    @property
    def works(self) -> bool:
        """Whether it takes work."""
        return self in {Health.OK, Health.UNSHOWN}

    @property
    def word(self) -> Literal["ok", "degraded", "stopping"]:
        """As others are told."""
        if self is Health.STOPPING:
            return "stopping"
        return "ok" if self is Health.OK else "degraded"


Probe = Callable[[], Awaitable[Health]]
"""Asks for the health now; answers within a few seconds, and never raises."""


async def is_stopping(request: Request) -> bool:
    """Whether the server waits for its last answers: one that has no end must end now."""
    return await request.app.state.probe() is Health.STOPPING


class HealthBody(BaseModel):
    """Only the status: who may not see more, sees no more."""

    status: Literal["ok", "degraded", "stopping"]


class _Metrics(PlainTextResponse):
    media_type = METRICS_TYPE


Refresh = Callable[[], Awaitable[None]]
"""Brings figures up to date that are counted only when somebody asks. Never raises."""


def system_router(*, probe: Probe, version: str, metrics: Metrics | None, refresh: Refresh | None = None) -> APIRouter:
    """The routes; `/metrics` only if there are metrics to show."""
    router = new_router("system")

    @router.get("/health", responses={503: {"model": HealthBody, "description": "degraded or stopping"}})
    async def health(response: Response) -> HealthBody:
        """Whether this instance can work: 200 and `ok`, or `degraded` while Redis, if it is used, is away; else 503."""
        state = await probe()
        response.status_code = 200 if state.works else 503
        response.headers["Cache-Control"] = "no-store"
        return HealthBody(status=state.word)

    @router.get("/api/v1/healthz", response_class=PlainTextResponse)
    async def healthz() -> PlainTextResponse:
        """The same as text, as document 003 has it."""
        state = await probe()
        return PlainTextResponse(state.word, status_code=200 if state.works else 503)

    @router.get("/api/v1/version", response_class=PlainTextResponse)
    async def show_version() -> PlainTextResponse:
        """The version, as `v0.1.0`."""
        return PlainTextResponse(f"v{version}")

    if metrics is not None:
        _add_metrics(router, metrics, refresh)
    return router


def _add_metrics(router: APIRouter, metrics: Metrics, refresh: Refresh | None) -> None:
    @router.get("/metrics", response_class=_Metrics)
    async def show_metrics() -> Response:
        """The figures, for Prometheus."""
        if refresh is not None:
            await refresh()
        return Response(metrics.render(), media_type=METRICS_TYPE)
