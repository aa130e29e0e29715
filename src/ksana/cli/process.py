"""The serving process: from the bound socket to the flushed store, and what signals do in between.

First SIGTERM or SIGINT: no new work; what runs may end within `server.graceful_timeout`, and the rest is handed back; exit 0.
Second: the rest is handed back at once.
"""

import asyncio
import errno
import gc
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import timedelta

import uvicorn
import uvloop
from starlette.types import ASGIApp

from ksana import __version__, failpoints
from ksana.bootstrap import Instance, open_instance
from ksana.cli.protocol import BoundedProtocol
from ksana.domain.clock import Clock
from ksana.domain.errors import InvalidSetting
from ksana.domain.instance import Role
from ksana.engine.clock import SystemClock
from ksana.settings import Loaded
from ksana.telemetry import log

LAST_ANSWERS = timedelta(seconds=1)
"""How long answers that have begun may take to end, even if all of the grace is used up."""
LAST_WRITES = timedelta(seconds=5)
"""How long the database may take to confirm the last of what was asked for."""
BACKLOG = 2048
UNREAD_MILLISECONDS = 60_000
"""A client that has taken nothing for so long, though there is something for it, is cut off by the system."""
IDLE_SECONDS = 75
"""How long a connection stays open between two requests: longer than the pools of clients and balancers keep theirs (5 to 60 s by
default), so that it is they who close it, and no request meets a connection that is just being closed."""
YOUNG = 20_000
"""How many more objects there are before garbage is looked for: with Python's 700, a twelfth of a run's CPU goes into looking at
what hundreds of runs in flight are made of, and nearly all of it is in use."""
TICK = 1.0
"""How often the date that answers carry is made anew, in seconds."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(loaded: Loaded) -> None:
    """Serves until told to stop. KsanaError if it cannot begin."""
    failpoints.arm(os.environ)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(loaded, SystemClock()))


class Stop:
    """What signals ask for: an orderly end, then a quick one."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.urged = asyncio.Event()

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self._signalled, each)

    def _signalled(self, which: signal.Signals) -> None:
        log().info("told to stop", action="serve.stopping", signal=which.name, again=self.asked.is_set())
        (self.urged if self.asked.is_set() else self.asked).set()


class Server(uvicorn.Server):
    """uvicorn without its own handling of signals, with a moment from which it answers, and quiet while nobody asks."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()
        self._ending = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answering.set()

    async def main_loop(self) -> None:
        """As uvicorn has it, but once a second and not ten times: the end is told, and need not be looked for."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._ending.wait()

    def end(self, within: timedelta) -> None:
        """Takes no more requests; those that have begun may end."""
        self.config.timeout_graceful_shutdown = max(1, round(within.total_seconds()))
        self.should_exit = True
        self._ending.set()


async def _serve(loaded: Loaded, clock: Clock) -> None:
    stop = Stop()
    stop.listen()
    with closing(bind(loaded)) as listener:
        instance = await open_instance(loaded, clock, stop.asked, base_url(listener.getsockname()))
        if instance is None:
            return
        try:
            listen(listener, loaded)
            await _answer(instance, listener, stop, clock)
        finally:
            await _close(instance, stop)
    log().info("stopped", action="serve.stopped")


async def _close(instance: Instance, stop: Stop) -> None:
    """Flushes and lets go of the store. A database that answers nothing is not waited for: the process ends without it."""
    ending = asyncio.create_task(instance.close(), name="close")
    urged = asyncio.ensure_future(stop.urged.wait())
    await asyncio.wait([ending, urged], timeout=LAST_WRITES.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
    if not ending.done():
        await asyncio.wait([ending], timeout=LAST_ANSWERS.total_seconds())
    urged.cancel()
    if not ending.done():
        log().error("the database does not answer; stopped without it", action="serve.abandoned")
        os._exit(1)
    await ending


async def _answer(instance: Instance, listener: socket.socket, stop: Stop, clock: Clock) -> None:
    server = Server(configured(instance.app()))
    await instance.start()
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        await _until(server.answering, serving)
        if server.answering.is_set():
            announce(listener, instance.settings.instance.roles)
            await instance.executors.load()
            collect_again()
            await _until(stop.asked, serving)
    finally:
        began = clock.monotonic()
        grace = instance.settings.server.graceful_timeout
        await _drain(instance, grace, stop)
        used = timedelta(seconds=clock.monotonic() - began)
        server.end(LAST_ANSWERS if stop.urged.is_set() else max(grace - used, LAST_ANSWERS))
        await serving


def collect_again() -> None:
    """From now on garbage is looked for again (see `serve.start`), but not in what was loaded: that stays."""
    gc.freeze()
    gc.set_threshold(YOUNG)
    gc.enable()


async def _drain(instance: Instance, grace: timedelta, stop: Stop) -> None:
    """Lets the work end; a second signal cuts the grace to nothing."""
    draining = asyncio.create_task(instance.drain(grace), name="drain")
    await _until(stop.urged, draining)
    if not draining.done():
        await instance.drain(timedelta(0))
    await draining


async def _until(event: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Until the event is set or the task is done, whichever is first."""
    waiting = asyncio.ensure_future(event.wait())
    await asyncio.wait([waiting, task], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


def configured(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn serves the app."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        timeout_keep_alive=IDLE_SECONDS,
        ws="none",
        loop="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
    )


def bind(loaded: Loaded) -> socket.socket:
    """The address, ours but not yet listened on: calls are refused until the store is open. InvalidSetting if taken."""
    server = loaded.settings.server
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        told = f"{server.host} is not an address of this machine: {error.strerror}"
        raise InvalidSetting("server.host", told, source=loaded.sources["server.host"]) from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; every connection has it from its listener
        # An orderly close waits for the client to read, and so would the end of this process.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _taken(loaded, error) from None
    return listener


def listen(listener: socket.socket, loaded: Loaded) -> None:
    """From now on calls wait to be answered. Two that start at once can both bind; only one can listen."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        raise _taken(loaded, error) from None


def _taken(loaded: Loaded, error: OSError) -> InvalidSetting:
    server = loaded.settings.server
    hints = {
        errno.EADDRINUSE: ("server.port", "stop what uses it, or choose another port"),
        errno.EACCES: ("server.port", "ports below 1024 need more rights: choose another"),
        errno.EADDRNOTAVAIL: ("server.host", "this machine does not have that address: choose one of its own"),
    }
    name, hint = hints.get(error.errno or 0, ("server.port", "choose another address or port"))
    told = f"{server.host}:{server.port} cannot be listened on: {error.strerror}; {hint}"
    return InvalidSetting(name, told, source=loaded.sources[name])


def announce(listener: socket.socket, roles: Sequence[str]) -> None:
    """Says where to find it, once it answers."""
    base = base_url(listener.getsockname())
    places = {"health": f"{base}/health"}
    if Role.API in roles:
        places = {"API": f"{base}/api/v1", "docs": f"{base}/docs", "console": f"{base}/ui"}
    lines = [f"  {name + ':':<9}{place}" for name, place in places.items()]
    print(f"Ksana {__version__} is ready", *lines, sep="\n", flush=True)
    log().info("ready", action="serve.ready", version=__version__, roles=list(roles), **places)


def base_url(address: Sequence[object]) -> str:
    """What a person on this machine can open."""
    host, port = str(address[0]), address[1]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared with, not bound to
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
