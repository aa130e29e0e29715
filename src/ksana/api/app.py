"""The HTTP application, from what it is given: no globals, no back ends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from ksana import __version__
from ksana.api import console, docs, errors, openapi
from ksana.api.errors import Problems, Translation
from ksana.api.middleware import MAX_BODY, AnswersHead, Bounded, Guarded, Observed
from ksana.api.system import Probe, Refresh, system_router
from ksana.telemetry import Metrics

DESCRIPTION = "Decides when work runs, runs it, and accounts for every instant."


@dataclass(frozen=True, slots=True)
class Contract:
    """One contract's routes (whole paths), how its paths show problems, and which of them take larger bodies than others."""

    router: APIRouter
    translations: Sequence[Translation] = ()
    larger_bodies: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """What of the settings the API needs."""

    allowed_hosts: Sequence[str] = ()
    any_address: bool = False
    """Answer to every numeric address: a server that listens on all of its own cannot list them."""
    metrics_enabled: bool = True
    refresh_metrics: Refresh | None = None
    max_body: int = MAX_BODY
    attend: Callable[[], None] = lambda: None
    """Told that a request has come, which is not that of a prober."""
    contracts: Sequence[Contract] = field(default_factory=tuple)
    console_folder: Path = console.FOLDER
    """Where the built console is, if it is."""


def create_app(*, probe: Probe, metrics: Metrics, options: ApiOptions) -> FastAPI:
    """The application. It owns nothing that must be closed."""
    problems = Problems([each for contract in options.contracts for each in contract.translations])
    larger = {path: limit for contract in options.contracts for path, limit in contract.larger_bodies.items()}
    app = FastAPI(
        title="Ksana",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        middleware=[
            Middleware(Observed, metrics=metrics, problems=problems, attend=options.attend),
            Middleware(Guarded, hosts=options.allowed_hosts, any_address=options.any_address, problems=problems),
            Middleware(Bounded, problems=problems, limit=options.max_body, larger=larger),
            Middleware(AnswersHead),
        ],
    )
    app.state.probe = probe
    errors.install(app, problems)
    docs.install(app)
    console.install(app, options.console_folder)
    shown = metrics if options.metrics_enabled else None
    system = system_router(probe=probe, version=__version__, metrics=shown, refresh=options.refresh_metrics)
    for router in (system, *(contract.router for contract in options.contracts)):
        # Not `include_router`: with the first request, that would build every route again, which takes 0.3 s.
        app.router.routes.extend(router.routes)
    openapi.install(app)
    return app
