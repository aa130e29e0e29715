"""The composition root: settings → store + engine + API. The only importer of concrete back ends.

`Instance` is one running Ksana: its store, its engine, its executors and its HTTP application. A new contract is an entry of
`_contracts`, a new executor one of `_executors`, a new back end a branch of `_open`.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import orjson
from fastapi import FastAPI

from ksana.api.app import ApiOptions, Contract, create_app
from ksana.api.contracts.audit import audit_contract
from ksana.api.contracts.console import console_contracts
from ksana.api.contracts.cronjob import cronjob_contract
from ksana.api.contracts.instances import instances_contract
from ksana.api.contracts.jobchain import jobchain_contract
from ksana.api.contracts.ksana import ksana_contract
from ksana.api.contracts.plans import plans_contract
from ksana.api.contracts.schedules import schedules_contract
from ksana.api.live.hub import Hub
from ksana.api.services import Services
from ksana.api.system import Health
from ksana.domain.clock import Clock
from ksana.domain.errors import (
    InvalidSetting,
    KsanaError,
    RuntimeUnavailable,
    StoreError,
    StoreInUse,
    StoreUnavailable,
    UnsafeRuntime,
)
from ksana.domain.instance import InstanceStatus, Role
from ksana.engine.audit import Report, audit_ledger
from ksana.engine.clock import Timekeeper
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
from ksana.engine.engine import Engine, EngineOptions, Shared
from ksana.engine.measures import MeasureOptions, Measures
from ksana.engine.membership import Member
from ksana.engine.overview import Overviews
from ksana.engine.plans.outside import Outside
from ksana.engine.queries import Queries
from ksana.engine.runner import CallbackOptions
from ksana.engine.scheduler import SchedulerOptions
from ksana.engine.signals import Signals
from ksana.engine.upkeep import RetentionOptions, purge_all
from ksana.executors.base import Executor
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.python import PythonExecutor
from ksana.executors.python_functions import python_options
from ksana.executors.registry import Executors
from ksana.executors.shell import ShellExecutor
from ksana.executors.shell_options import shell_options
from ksana.runtime.base import Lifetimes
from ksana.runtime.memory import MemoryRuntime
from ksana.runtime.sql import SqlRuntime
from ksana.settings import Loaded, Settings, endpoint
from ksana.settings.loading import Shown
from ksana.store.base import Store
from ksana.store.requests import Diagnosis, Purged, StoreOptions
from ksana.store.sql import migrate, open_for_reading, open_store
from ksana.telemetry import Metrics, log

T = TypeVar("T")
PRIVATE_DIRECTORY = 0o700
PRIVATE_FILES = 0o077
PROBE_PATIENCE = timedelta(seconds=2)
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
_SQLITE = "sqlite:///"
_JSON = "json://"


@dataclass(slots=True)
class Instance:
    """One Ksana, from its open store to its closed one."""

    settings: Settings
    store: Store
    clock: Clock
    metrics: Metrics
    executors: Executors
    signals: Signals
    measures: Measures
    workflows: WorkflowCommands
    plans: PlanCommands
    outside: Outside
    engine: Engine
    shown_settings: Sequence[Shown] = ()
    stopping: bool = field(default=False, init=False)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = Hub(self.store, self.clock)

    async def health(self) -> Health:
        """What `/health` says. Asks the database, for no longer than a prober waits."""
        if self.stopping:
            return Health.STOPPING
        try:
            async with asyncio.timeout(PROBE_PATIENCE.total_seconds()):
                answer = await self.store.ping()
        except (TimeoutError, KsanaError):
            return Health.DEGRADED
        if not answer.reachable:
            return Health.DEGRADED
        return Health.OK if self.outside.trouble is None else Health.UNSHOWN

    def app(self) -> FastAPI:
        """Its HTTP application."""
        server = self.settings.server
        bound = () if server.host in _WILDCARDS else (server.host,)
        options = ApiOptions(
            allowed_hosts=(*server.allowed_hosts, *bound),
            any_address=server.host in _WILDCARDS,
            metrics_enabled=self.settings.metrics.enabled,
            refresh_metrics=self._refresh,
            contracts=_contracts(self) if Role.API in self.settings.instance.roles else (),
            attend=self.store.attend,
        )
        return create_app(probe=self.health, metrics=self.metrics, options=options)

    async def start(self) -> None:
        """Starts the engine; if it cannot, what had begun is stopped again."""
        try:
            await self.engine.start()
        except BaseException:
            await self.drain(timedelta(0))
            raise

    async def drain(self, grace: timedelta) -> None:
        """No new work from now on; what runs may end within `grace`. The API still answers: results may yet come in. Streams of
        events go on until then, and end."""
        self.stopping = True
        try:
            await self.engine.stop(grace)
        except KsanaError as error:
            log().error("the engine did not stop cleanly", action="serve.stop_failed", err=error.message)
        finally:
            await self.hub.close()

    async def close(self) -> None:
        """Writes what has been asked for, and lets go of connections and the database."""
        self.stopping = True
        await self.executors.close()
        await self.outside.close()
        await self.store.close()

    async def _refresh(self) -> None:
        """Figures that are counted in the store. Without it, the last ones are shown."""
        self.measures.leading(self.engine.leadership.leads)
        try:
            self.measures.refresh(await self.store.figures())
            living = [each for each in await self.store.instances() if each.status is InstanceStatus.ALIVE]
            self.measures.living(len(living))
            figures = await self.store.plan_figures()
            up = self.outside.trouble is None
            self.measures.plans.refresh(figures, self.engine.keeper.findings, self.clock.now(), up=up)
        except KsanaError as error:
            log().warning("figures not counted", action="metrics.stale", err=error.message)


def _contracts(instance: Instance) -> Sequence[Contract]:
    store, clock, signals = instance.store, instance.clock, instance.signals
    services = Services(
        store=store,
        clock=clock,
        queries=Queries(store),
        jobs=JobCommands(store, clock, instance.executors, signals),
        schedules=ScheduleCommands(store, clock, signals),
        runs=RunCommands(store, clock, signals, instance.measures),
        workflows=instance.workflows,
        workflow_runs=WorkflowRunCommands(store, clock, signals),
        plans=instance.plans,
        settings=instance.settings,
        overviews=Overviews(store, clock),
        shown_settings=instance.shown_settings,
    )
    return [
        cronjob_contract(services),
        jobchain_contract(services),
        plans_contract(services),
        ksana_contract(services),
        schedules_contract(services),
        audit_contract(services),
        instances_contract(services),
        *console_contracts(services, instance.hub),
    ]


def _executors(settings: Settings) -> Executors:
    executor = settings.executor
    policy = EgressPolicy.parse(executor.egress, executor.egress_allow, field="executor.egress_allow")

    def http() -> Executor:
        from ksana.executors.http import MAX_READ, HttpExecutor, HttpOptions  # noqa: PLC0415 - 0.1 s, and no API needs it

        options = HttpOptions(
            policy=policy,
            connect_timeout=executor.connect_timeout,
            max_kept=executor.response_kept,
            max_read=max(MAX_READ, executor.response_kept),
        )
        return HttpExecutor(options)

    def wait() -> Executor:
        from ksana.executors.wait import WaitExecutor  # noqa: PLC0415 - it knows what a request may name, and so loads as much

        return WaitExecutor()

    return Executors(
        [ShellExecutor(shell_options(settings)), PythonExecutor(python_options(settings))],
        later={"http": http, "wait": wait},
    )


def _engine_options(settings: Settings, base_url: str) -> EngineOptions:
    scheduler, retention = settings.scheduler, settings.retention
    return EngineOptions(
        lifetimes=_lifetimes(settings),
        callback=CallbackOptions(
            settings.callback.base_url or _own_callbacks(settings, base_url), settings.callback.token_ttl
        ),
        member=_member(settings, base_url),
        workers=settings.executor.worker_pool_size,
        per_host=settings.executor.per_host or max(1, settings.executor.worker_pool_size * 3 // 4),
        scheduler=SchedulerOptions(scheduler.poll_interval, scheduler.ahead_seconds, scheduler.batch_limit),
        retention=RetentionOptions(retention.max_age, retention.max_runs, retention.interval),
    )


def _own_callbacks(settings: Settings, base_url: str) -> str:
    return f"{base_url}/api/v1/callbacks" if Role.API in settings.instance.roles else ""


def _member(settings: Settings, base_url: str) -> Member:
    """How this instance shows itself to the others."""
    instance = settings.instance
    works = Role.WORKER in instance.roles
    return Member(
        name=instance.name or f"{socket.gethostname()}:{os.getpid()}",
        roles=instance.roles,
        queues=instance.queues if works else (),
        places=settings.executor.worker_pool_size if works else 0,
        address=base_url if Role.API in instance.roles else "",
    )


def _assembled(settings: Settings, store: Store, clock: Clock, base_url: str) -> Instance:
    metrics, signals, executors = Metrics(), Signals(), _executors(settings)
    measures = Measures(metrics.registry, MeasureOptions(settings.metrics.max_tasks))
    defaults = NodeDefaults(settings.executor.request_timeout, settings.executor.node_timeout)
    resolver = Resolver(store, executors, defaults)
    workflows = WorkflowCommands(store, clock, resolver, signals)
    options = _engine_options(settings, base_url)
    plans = PlanCommands(store, clock, resolver, signals, PlanOptions(options.lifetimes.checkpoint))
    outside = open_outside(settings, store, clock)
    engine = Engine(store, clock, executors, options, Shared(signals, measures, outside), workflows)
    return Instance(settings, store, clock, metrics, executors, signals, measures, workflows, plans, outside, engine)


def open_outside(settings: Settings, store: Store, clock: Clock) -> Outside:
    """Where runtime state is shown. The store stands in for what may be away."""
    persistence, lifetimes = settings.executor.persistence, _lifetimes(settings)
    if persistence.store_type == "memory":
        return Outside(MemoryRuntime(lifetimes, clock=clock))
    in_store = SqlRuntime(store, lifetimes)
    if persistence.store_type == "sql" or settings.redis.url is None:
        return Outside(in_store)
    from ksana.runtime.redis import RedisRuntime  # noqa: PLC0415 - only those with Redis need the client

    return Outside(RedisRuntime.connect(settings.redis.url, persistence.namespace, lifetimes), in_store)


def _lifetimes(settings: Settings) -> Lifetimes:
    ttl = settings.executor.persistence.ttl
    return Lifetimes(ttl.checkpoint, ttl.projection, ttl.lock)


async def refuse_unsafe(outside: Outside) -> None:
    """UnsafeRuntime if what is chosen to show runtime state would forget some of it by itself. One that is away is not asked
    for long: it is waited for while Ksana works."""
    with suppress(RuntimeUnavailable):
        await outside.chosen.ping()


def store_options(settings: Settings) -> StoreOptions:
    """What of the settings the store needs. One connection writes, one keeps the heartbeat, one is to spare if that hangs, the
    others read. How long the database may take to come up is for whoever starts, not for each attempt."""
    database = settings.database
    readers = max(1, database.max_open_conns - 3)
    return StoreOptions(
        connect_timeout=min(database.connect_timeout, StoreOptions().connect_timeout),
        readers=readers,
        idle_readers=min(readers, database.max_idle_conns),
        connection_age=database.conn_max_lifetime,
    )


async def open_instance(loaded: Loaded, clock: Clock, stop: asyncio.Event, base_url: str) -> Instance | None:
    """An instance on a store of this version's schema, which others reach at `base_url`; None if it was told to stop before
    it got there.

    A database that is not up yet is waited for, `database.connect_timeout` long. StoreUnavailable, StoreInUse,
    SchemaMismatch, InvalidSetting.
    """
    refuse_lonely(loaded)
    prepare_directory(loaded)
    settings = loaded.settings
    if _file_of(settings.database.url) is None:
        clock = Timekeeper(clock)
    store = await _patiently(lambda: open_current(settings, clock), settings, clock, stop)
    if store is None:
        return None
    instance = _assembled(settings, store, clock, base_url)
    instance.shown_settings = loaded.shown()
    try:
        await refuse_unsafe(instance.outside)
    except UnsafeRuntime:
        await instance.close()
        raise
    return instance


def refuse_lonely(loaded: Loaded) -> None:
    """InvalidSetting for an instance that nobody can ask anything, on a database that no other can be on."""
    settings = loaded.settings
    if Role.API not in settings.instance.roles and _file_of(settings.database.url) is not None:
        told = (
            "without `api` it needs a database that others share: set database.url to a postgresql:// or mysql:// URL"
        )
        raise InvalidSetting("instance.roles", told, source=loaded.sources["instance.roles"])


def open_current(settings: Settings, clock: Clock) -> Store:
    """The store, its schema brought to this version first. Blocks."""
    url, options = settings.database.url, store_options(settings)
    if url.startswith(_JSON):
        from ksana.store.jsonfile import open_json_store  # noqa: PLC0415 - and how a file is read and written

        return open_json_store(url, options=options, clock=clock)
    upgrade_schema(url, options)
    return open_store(url, options=options, clock=clock)


async def audit_store(loaded: Loaded, clock: Clock, since: datetime, until: datetime) -> Report:
    """What `ksana audit` tells. Changes nothing, and may be asked while Ksana runs. StoreUnavailable, SchemaMismatch."""
    settings = loaded.settings
    url = settings.database.url
    if url.startswith(_JSON):
        told = "a JSON file keeps no ledger; ask the running Ksana instead: GET /api/v1/schedules:audit"
        raise InvalidSetting("database.url", told, source=loaded.sources["database.url"])
    if not _begun(url):
        raise StoreError(f"there is no database at {endpoint(url)} yet: `ksana serve` makes it")
    store = await asyncio.to_thread(open_for_reading, url, options=store_options(settings), clock=clock)
    try:
        return await audit_ledger(store, since, until, clock.now())
    finally:
        await store.close()


async def purge_store(loaded: Loaded, clock: Clock, retention: RetentionOptions) -> Purged:
    """What `ksana purge` does: everything that may go, at once. StoreInUse if a Ksana runs on an embedded database."""
    url = loaded.settings.database.url
    if not _begun(url):
        raise StoreError(f"there is no database at {endpoint(url)} yet: there is nothing to purge")
    store = await asyncio.to_thread(open_current, loaded.settings, clock)
    try:
        return await purge_all(store, retention, clock.now())
    finally:
        await store.close()


def upgrade_schema(url: str, options: StoreOptions) -> tuple[str | None, str]:
    """Brings the schema to this version; the revisions before and after. SchemaMismatch if it is newer already."""
    before, now = migrate.upgrade(url, options)
    if now != migrate.HEAD:
        log().warning("the schema is of a later version", action="store.schema_ahead", schema=now, ours=migrate.HEAD)
    if before != now:
        log().info("schema brought up to date", action="store.migrated", before=before, now=now)
    return before, now


def migrate_schema(loaded: Loaded) -> tuple[str | None, str]:
    """What `ksana migrate` does: the same, for a database that nobody serves from yet."""
    url = loaded.settings.database.url
    if url.startswith(_JSON):
        raise InvalidSetting(
            "database.url", "a JSON file has no schema to migrate", source=loaded.sources["database.url"]
        )
    prepare_directory(loaded)
    try:
        return upgrade_schema(url, store_options(loaded.settings))
    except StoreUnavailable as error:
        raise StoreUnavailable(_unreachable(url, error)) from error


async def _patiently(attempt: Callable[[], T], settings: Settings, clock: Clock, stop: asyncio.Event) -> T | None:
    """`attempt`, in a thread, again and again while the database is down and there is time; None if told to stop."""
    url, patience = settings.database.url, settings.database.connect_timeout
    deadline, pause = clock.monotonic() + patience.total_seconds(), 0.1
    while not stop.is_set():
        try:
            return await asyncio.to_thread(attempt)
        except StoreUnavailable as error:
            left = deadline - clock.monotonic()
            if left <= 0:
                raise StoreUnavailable(_unreachable(url, error)) from error
            log().warning(
                "waiting for the database", action="store.waiting", at=endpoint(url), seconds_left=round(left, 1)
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(pause, left))
            pause = min(pause * 2, 1.0)
    return None


def _unreachable(url: str, error: StoreUnavailable) -> str:
    hint = "start it, or correct database.url (KSANA_DATABASE_URL, --database-url)"
    return f"the database at {endpoint(url)} cannot be reached: {error.message.strip()}; {hint}"


def prepare_directory(loaded: Loaded) -> None:
    """The directory of an embedded database, for this user only. InvalidSetting if nothing can be written there."""
    os.umask(PRIVATE_FILES)
    file = _file_of(loaded.settings.database.url)
    if file is None:
        return
    directory = file.parent
    try:
        directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(loaded, directory, error.strerror or "it cannot be made") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise _unusable(loaded, directory, "it cannot be written to")


def _unusable(loaded: Loaded, directory: Path, reason: str) -> InvalidSetting:
    name = "database.url" if loaded.sources["database.url"] != "default" else "data_dir"
    told = f"the directory {directory} cannot be used: {reason}; make it writable for this user, or choose another"
    return InvalidSetting(name, told, source=loaded.sources[name])


def check_schema(settings: Settings) -> Diagnosis:
    """How the schema stands, without changing anything: `ok` only if it is this version's. StoreUnavailable."""
    url = settings.database.url
    if not _begun(url):
        return Diagnosis("schema", "warn", "there is no database yet: `ksana migrate` or `ksana serve` makes it")
    if url.startswith(_JSON):
        return Diagnosis("schema", "ok", "a JSON file has none")
    try:
        return schema_diagnosis(migrate.status(url, store_options(settings)))
    except StoreUnavailable as error:
        raise StoreUnavailable(_unreachable(url, error)) from error


async def examine(loaded: Loaded, clock: Clock) -> list[Diagnosis]:
    """What `ksana doctor` says. Changes nothing."""
    url, options = loaded.settings.database.url, store_options(loaded.settings)
    if not _begun(url):
        return [Diagnosis("store", "warn", f"there is no database at {endpoint(url)} yet: `ksana serve` makes it")]
    if url.startswith(_JSON):
        return [await asyncio.to_thread(_examine_json, _json_path(url))]
    try:
        state = await asyncio.to_thread(migrate.status, url, options)
    except StoreUnavailable as error:
        return [Diagnosis("store", "fail", _unreachable(url, error))]
    except KsanaError as error:
        return [Diagnosis("store", "fail", error.message)]
    found = [Diagnosis("store", "ok", f"reachable at {endpoint(url)}"), schema_diagnosis(state)]
    return [*found, *(await _diagnose_open(url, options, clock))] if state.usable else found


def _examine_json(path: Path) -> Diagnosis:
    try:
        jobs = orjson.loads(path.read_bytes())["jobs"]
    except OSError as error:
        return Diagnosis("store", "fail", f"{path} cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        return Diagnosis("store", "fail", f"{path} is not a file of jobs: at its next start Ksana sets it aside")
    return Diagnosis("store", "ok", f"{path} has {len(jobs)} jobs")


def _begun(url: str) -> bool:
    """False for an embedded database whose file is not there: to look at it would make it."""
    file = _file_of(url)
    try:
        return file is None or file.exists()
    except OSError as error:
        raise StoreError(
            f"{endpoint(url)} cannot be looked at: {error.strerror}; choose another with --data-dir"
        ) from None


def _file_of(url: str) -> Path | None:
    """The file of an embedded database; None for a server."""
    if url.startswith(_JSON):
        return _json_path(url)
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def _json_path(url: str) -> Path:
    from ksana.store.jsonfile import json_path  # noqa: PLC0415 - as in `open_current`

    return json_path(url)


def schema_diagnosis(state: migrate.SchemaStatus) -> Diagnosis:
    """The schema, for people."""
    match state.state:
        case "current":
            return Diagnosis("schema", "ok", f"at {state.current}, this version's")
        case "empty":
            return Diagnosis("schema", "warn", "there are no tables yet: `ksana migrate` or `ksana serve` makes them")
        case "ahead":
            told = f"at {state.current}, of a later version, which this one can work with: upgrade it soon"
            return Diagnosis("schema", "warn", told)
        case "older":
            told = f"at {state.current}, this version needs {state.head}: `ksana migrate` or `ksana serve` upgrades it"
            return Diagnosis("schema", "warn", told)
        case _:
            return Diagnosis("schema", "fail", f"at {state.current}, newer than this version knows: upgrade Ksana")


async def _diagnose_open(url: str, options: StoreOptions, clock: Clock) -> list[Diagnosis]:
    try:
        store = await asyncio.to_thread(open_store, url, options=options, clock=clock)
    except StoreInUse:
        return [Diagnosis("use", "warn", "a running Ksana holds the database: stop it to examine further")]
    except KsanaError as error:
        return [Diagnosis("store", "fail", error.message)]
    try:
        return list(await store.diagnose())
    except KsanaError as error:
        return [Diagnosis("store", "fail", error.message)]
    finally:
        await store.close()
