"""The witness: a real HTTP target that behaves as its path says and keeps every request that reaches it.

| path | what it does |
| --- | --- |
| `/ok…` | 200 and a small JSON object |
| `/status/<n>` | answers with that status |
| `/flaky/<k>` | 503 to the first k, then 200; `/async-flaky/<k>`: then 202 |
| `/slow/<seconds>` | 200 after that time |
| `/hold…` | answers when the test calls `release`, or never, if the caller goes away first |
| `/never…` | never answers |
| `/drip…` | 200, then a byte at a time without end |
| `/reset…` | breaks the connection off |
| `/bytes/<n>` | 200 and n bytes of text |
| `/redirect…` | 302 to `/ok` |
| `/retry-after/<seconds>` | 429 with `Retry-After` to the first, then 200 |
| `/async…` | 202; the callback is for the test to make |
| `/async-early…` | makes the callback (SUCCESS) and answers 202 only when that is done |
"""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web

from tests.servers.machine import LOOPBACK

PATIENCE = 20.0
"""Seconds after which what should have happened counts as not happening; nothing waits this long when all is well."""
DRIP_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Callback:
    """Where a request says that its result is to be reported."""

    url: str
    token: str


@dataclass(eq=False, slots=True)
class Hit:
    """One request that reached the witness, and what became of it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    at: datetime
    held: bool = False
    """It waits for `release`."""
    gone: bool = False
    """The caller went away before it had its answer."""
    reported: tuple[int, str] | None = None
    """Status and text of the answer to an early callback."""

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def callback(self) -> Callback:
        """From the JSON body, or else from the headers."""
        try:
            told = self.json()
            return Callback(told["callback_url"], told["callback_token"])
        except (ValueError, KeyError, TypeError):
            return Callback(self._header("callback-url"), self._header("callback-token"))

    def _header(self, ending: str) -> str:
        found = [value for name, value in self.headers.items() if name.endswith(ending)]
        assert found, f"no {ending} in the headers {self.headers} nor in the body {self.body!r}"
        return found[0]


Predicate = Callable[[Sequence[Hit]], object]


@dataclass(eq=False, slots=True)
class _Space:
    """What one test sees: its own requests."""

    hits: list[Hit] = field(default_factory=list)
    holds: dict[int, "asyncio.Future[int]"] = field(default_factory=dict)


class Witness:
    """The server: one thread with one event loop. `target` gives a test its own corner of it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._spaces: dict[str, _Space] = {}
        self._names = (f"t{number}" for number in itertools.count(1))
        self._loop = asyncio.new_event_loop()
        self._runner = web.AppRunner(self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        self._port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="witness")
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE)

    def target(self) -> "Target":
        name = next(self._names)
        self._spaces[name] = _Space()
        return Target(self, self._spaces[name], f"http://{LOOPBACK}:{self._port}/{name}")

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def wait_for(self, space: _Space, predicate: Predicate, timeout: float) -> list[Hit]:
        with self._changed:
            met = self._changed.wait_for(lambda: predicate(space.hits), timeout)
            assert met, f"after {timeout:g} s the witness has seen only {space.hits}"
            return list(space.hits)

    def release(self, space: _Space, hit: Hit, status: int) -> None:
        """Lets a held request have its answer; nothing if its caller is gone."""

        def answer() -> None:
            future = space.holds.get(id(hit))
            if future is not None and not future.done():
                future.set_result(status)

        self._loop.call_soon_threadsafe(answer)

    async def _start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, 0).start()
        self._port = int(self._runner.addresses[0][1])

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{space}/{mode:[^/]+}{rest:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        space = self._spaces[request.match_info["space"]]
        mode, rest = request.match_info["mode"], request.match_info["rest"]
        hit = Hit(
            request.method,
            f"/{mode}{rest}",
            request.rel_url.raw_query_string,
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
            datetime.now(UTC),
        )
        with self._changed:
            earlier = sum(other.path == hit.path for other in space.hits)
            space.hits.append(hit)
            self._changed.notify_all()
        try:
            return await _Answer(self, space, request, hit, earlier).make(mode, rest.strip("/").partition("/")[0])
        except (asyncio.CancelledError, ConnectionError):
            self._note(hit, gone=True, held=False)
            raise

    def _note(self, hit: Hit, **what: object) -> None:
        with self._changed:
            for name, value in what.items():
                setattr(hit, name, value)
            self._changed.notify_all()

    async def hold(self, space: _Space, hit: Hit) -> int:
        """Until the test releases it; the status to answer with."""
        space.holds[id(hit)] = asyncio.get_running_loop().create_future()
        self._note(hit, held=True)
        try:
            return await space.holds[id(hit)]
        finally:
            del space.holds[id(hit)]
            self._note(hit, held=False)

    async def report(self, hit: Hit) -> None:
        """Makes the callback that the request asks for."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(hit.callback.url, json={"status": "SUCCESS", "data": {"early": True}}) as answer,
        ):
            self._note(hit, reported=(answer.status, await answer.text()))


@dataclass(slots=True)
class _Answer:
    """What one path answers."""

    witness: Witness
    space: _Space
    request: web.Request
    hit: Hit
    earlier: int

    async def make(self, mode: str, first: str) -> web.StreamResponse:
        made: Callable[[str], Any] = getattr(self, f"_{mode.replace('-', '_')}", self._unknown)
        answer = made(first)
        return await answer if asyncio.iscoroutine(answer) else answer  # type: ignore[no-any-return]

    def _ok(self, _: str) -> web.Response:
        return web.json_response({"ok": True, "path": self.hit.path})

    def _unknown(self, _: str) -> web.Response:
        return web.json_response({"ok": False, "unknown": self.hit.path}, status=404)

    def _status(self, status: str) -> web.Response:
        return web.Response(status=int(status), text=f"status {status}")

    def _flaky(self, failures: str) -> web.Response:
        return self._status("503") if self.earlier < int(failures) else self._ok("")

    def _async_flaky(self, failures: str) -> web.Response:
        return self._status("503") if self.earlier < int(failures) else self._async("")

    async def _slow(self, seconds: str) -> web.Response:
        await asyncio.sleep(float(seconds))
        return self._ok("")

    async def _hold(self, _: str) -> web.Response:
        return web.Response(status=await self.witness.hold(self.space, self.hit), text="released")

    async def _never(self, _: str) -> web.Response:
        await asyncio.Event().wait()
        return self._ok("")

    async def _drip(self, _: str) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(self.request)
        while True:
            await answer.write(b".")
            await asyncio.sleep(DRIP_SECONDS)

    def _reset(self, _: str) -> web.Response:
        if self.request.transport is not None:
            self.request.transport.abort()
        return self._ok("")

    def _bytes(self, size: str) -> web.Response:
        return web.Response(text="x" * int(size))

    def _redirect(self, _: str) -> web.Response:
        space = self.request.match_info["space"]
        return web.Response(status=302, headers={"Location": f"/{space}/ok"})

    def _retry_after(self, seconds: str) -> web.Response:
        return self._ok("") if self.earlier else web.Response(status=429, headers={"Retry-After": seconds})

    def _async(self, _: str) -> web.Response:
        return web.json_response({"accepted": True}, status=202)

    async def _async_early(self, _: str) -> web.Response:
        await self.witness.report(self.hit)
        return self._async("")


class Target:
    """One test's corner of the witness: its own paths, its own requests."""

    def __init__(self, witness: Witness, space: _Space, base: str) -> None:
        self._witness = witness
        self._space = space
        self.base = base

    def url(self, path: str = "/ok") -> str:
        """The address of a path of the table above; anything may follow it, to tell requests apart (`/ok/first`)."""
        return self.base + path

    @property
    def hits(self) -> list[Hit]:
        """Every request so far, in order."""
        return list(self._space.hits)

    def at(self, path: str) -> list[Hit]:
        """The requests to one path so far."""
        return [hit for hit in self._space.hits if hit.path == path]

    def wait_for(self, predicate: Predicate, timeout: float = PATIENCE) -> list[Hit]:
        """Waits until the requests so far satisfy the predicate, and returns them."""
        return self._witness.wait_for(self._space, predicate, timeout)

    def wait_hits(self, count: int = 1, path: str | None = None, timeout: float = PATIENCE) -> list[Hit]:
        """Waits for that many requests (to one path, if given), and returns them."""

        def those(hits: Sequence[Hit]) -> list[Hit]:
            return [hit for hit in hits if path is None or hit.path == path]

        return those(self.wait_for(lambda hits: len(those(hits)) >= count, timeout))

    def wait_held(self, count: int = 1) -> list[Hit]:
        """Waits until exactly that many requests are held at once, and returns them, oldest first."""
        hits = self.wait_for(lambda hits: sum(hit.held for hit in hits) == count)
        return [hit for hit in hits if hit.held]

    def wait_gone(self, hit: Hit) -> None:
        """Waits until the caller of that request has given up."""
        self.wait_for(lambda _: hit.gone)

    def release(self, hit: Hit, status: int = 200) -> None:
        """Lets a held request have its answer."""
        self._witness.release(self._space, hit, status)

    def release_all(self) -> None:
        for hit in self.hits:
            self._witness.release(self._space, hit, 200)
