"""The composition root: settings → store + engine + API. The only importer of concrete back ends.

`Instance` is one running Ksana: its store, its background services in the order they start, and its HTTP application. A new
part of the engine joins it as a `Service`; a new contract as an entry of `_contracts`.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from fastapi import FastAPI

from ksana.api.app import ApiOptions, Contract, create_app
from ksana.api.system import Health
from ksana.domain.clock import Clock
from ksana.domain.errors import InvalidSetting, KsanaError, StoreError, StoreInUse, StoreUnavailable
from ksana.settings import Loaded, Settings, endpoint
from ksana.store.base import Store
from ksana.store.requests import Diagnosis, StoreOptions
from ksana.store.sql import migrate, open_store
from ksana.telemetry import Metrics, log

T = TypeVar("T")
PRIVATE_DIRECTORY = 0o700
PRIVATE_FILES = 0o077
PROBE_PATIENCE = timedelta(seconds=2)
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
_SQLITE = "sqlite:///"


class Service(Protocol):
    """Something that works in the background between `start` and `stop`."""

    async def start(self) -> None:
        """Begins; raises what makes it impossible."""

    async def stop(self, grace: timedelta) -> None:
        """Takes no new work from now on, lets what runs end within `grace`, and hands the rest back.

        Harmless if it never started; called again with a shorter grace, it ends the sooner.
        """


@dataclass(slots=True)
class Instance:
    """One Ksana, from its open store to its closed one."""

    settings: Settings
    store: Store
    metrics: Metrics
    services: Sequence[Service] = ()
    stopping: bool = field(default=False, init=False)

    async def health(self) -> Health:
        """What `/health` says. Asks the database, for no longer than a prober waits."""
        if self.stopping:
            return Health.STOPPING
        try:
            async with asyncio.timeout(PROBE_PATIENCE.total_seconds()):
                answer = await self.store.ping()
        except (TimeoutError, KsanaError):
            return Health.DEGRADED
        return Health.OK if answer.reachable else Health.DEGRADED

    def app(self) -> FastAPI:
        """Its HTTP application."""
        server = self.settings.server
        bound = () if server.host in _WILDCARDS else (server.host,)
        options = ApiOptions(
            allowed_hosts=(*server.allowed_hosts, *bound),
            any_address=server.host in _WILDCARDS,
            metrics_enabled=self.settings.metrics.enabled,
            contracts=_contracts(self),
        )
        return create_app(probe=self.health, metrics=self.metrics, options=options)

    async def start(self) -> None:
        """Starts the services, in order; if one cannot, those before it are stopped again."""
        try:
            for service in self.services:
                await service.start()
        except BaseException:
            await self.drain(timedelta(0))
            raise

    async def drain(self, grace: timedelta) -> None:
        """No new work from now on; what runs may end within `grace`. The API still answers: results may yet come in."""
        self.stopping = True
        endings = [service.stop(grace) for service in reversed(self.services)]
        for outcome in await asyncio.gather(*endings, return_exceptions=True):
            if isinstance(outcome, BaseException):
                log().error("a service did not stop cleanly", action="serve.stop_failed", exc_info=outcome)

    async def close(self) -> None:
        """Writes what has been asked for, and lets go of the database."""
        self.stopping = True
        await self.store.close()


def _contracts(instance: Instance) -> Sequence[Contract]:  # noqa: ARG001 - they will be built from it
    return ()


def _services(settings: Settings, store: Store, clock: Clock) -> Sequence[Service]:  # noqa: ARG001 - likewise
    return ()


def store_options(settings: Settings) -> StoreOptions:
    """What of the settings the store needs. One connection writes, one keeps the heartbeat, the others read."""
    database = settings.database
    readers = max(1, database.max_open_conns - 2)
    return StoreOptions(
        connect_timeout=database.connect_timeout,
        readers=readers,
        idle_readers=min(readers, database.max_idle_conns),
        connection_age=database.conn_max_lifetime,
    )


async def open_instance(loaded: Loaded, clock: Clock, stop: asyncio.Event) -> Instance | None:
    """An instance on a store of this version's schema; None if it was told to stop before it got there.

    A database that is not up yet is waited for, `database.connect_timeout` long. StoreUnavailable, StoreInUse,
    SchemaMismatch, InvalidSetting.
    """
    prepare_directory(loaded)
    settings = loaded.settings
    store = await _patiently(lambda: open_current(settings, clock), settings, clock, stop)
    if store is None:
        return None
    return Instance(settings, store, Metrics(), _services(settings, store, clock))


def open_current(settings: Settings, clock: Clock) -> Store:
    """The store, its schema brought to this version first. Blocks."""
    url, options = settings.database.url, store_options(settings)
    upgrade_schema(url, options)
    return open_store(url, options=options, clock=clock)


def upgrade_schema(url: str, options: StoreOptions) -> tuple[str | None, str]:
    """Brings the schema to this version; the revisions before and after. SchemaMismatch if it is newer already."""
    before, now = migrate.upgrade(url, options)
    if before != now:
        log().info("schema brought up to date", action="store.migrated", before=before, now=now)
    return before, now


def migrate_schema(loaded: Loaded) -> tuple[str | None, str]:
    """What `ksana migrate` does: the same, for a database that nobody serves from yet."""
    prepare_directory(loaded)
    url = loaded.settings.database.url
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
    url = loaded.settings.database.url
    if not url.startswith(_SQLITE):
        return
    directory = Path(url.removeprefix(_SQLITE)).parent
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
    try:
        return schema_diagnosis(migrate.status(url, store_options(settings)))
    except StoreUnavailable as error:
        raise StoreUnavailable(_unreachable(url, error)) from error


async def examine(loaded: Loaded, clock: Clock) -> list[Diagnosis]:
    """What `ksana doctor` says. Changes nothing."""
    url, options = loaded.settings.database.url, store_options(loaded.settings)
    if not _begun(url):
        return [Diagnosis("store", "warn", f"there is no database at {endpoint(url)} yet: `ksana serve` makes it")]
    try:
        state = await asyncio.to_thread(migrate.status, url, options)
    except StoreUnavailable as error:
        return [Diagnosis("store", "fail", _unreachable(url, error))]
    except KsanaError as error:
        return [Diagnosis("store", "fail", error.message)]
    found = [Diagnosis("store", "ok", f"reachable at {endpoint(url)}"), schema_diagnosis(state)]
    return [*found, *(await _diagnose_open(url, options, clock))] if state.state == "current" else found


def _begun(url: str) -> bool:
    """False for an embedded database whose file is not there: to look at it would make it."""
    try:
        return not url.startswith(_SQLITE) or Path(url.removeprefix(_SQLITE)).exists()
    except OSError as error:
        raise StoreError(
            f"{endpoint(url)} cannot be looked at: {error.strerror}; choose another with --data-dir"
        ) from None


def schema_diagnosis(state: migrate.SchemaStatus) -> Diagnosis:
    """The schema, for people."""
    match state.state:
        case "current":
            return Diagnosis("schema", "ok", f"at {state.current}, this version's")
        case "empty":
            return Diagnosis("schema", "warn", "there are no tables yet: `ksana migrate` or `ksana serve` makes them")
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
