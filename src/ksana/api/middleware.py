"""What every request passes, from the outside in: observed, guarded (host, origin), bounded (body). Pure ASGI.

`Observed` is outermost so that every answer, also a refusal, has its request id, its headers, its line and its figures.
"""

import random
import re
import time
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi.exceptions import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ksana.api.errors import Problem, Problems, http_problem, internal_problem, target_of
from ksana.telemetry import Metrics, bound, log

MAX_BODY = 1_000_000
MAX_PATH_SHOWN = 200
UNMATCHED = "unmatched"
CLIENT_GONE = 499
"""The status a line shows when the client went away before it was answered."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
CONTENT_SECURITY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": CONTENT_SECURITY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SECURITY_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
# Ids tell requests apart and are no secret; the system's own random numbers take ten times longer.
_NUMBERS = random.Random()  # noqa: S311
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~\-]{0,63}")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SECRET_AFTER = "callbacks/"  # noqa: S105 - a part of a path
_PROBES = frozenset({"/health", "/metrics", "/api/v1/healthz"})


def request_id_of(offered: str | None) -> str:
    """The client's id for this request if it is harmless, else a new one."""
    return offered if offered and _REQUEST_ID.fullmatch(offered) else f"{_NUMBERS.getrandbits(128):032x}"


def header(scope: Scope, name: bytes) -> str | None:
    """The first with this name, which is in lower case, as names are here."""
    for each, value in scope["headers"]:
        if each == name:
            return str(value, "latin-1")
    return None


def route_of(scope: Scope) -> str:
    """The template of the matched path. A router included below a prefix knows its whole path only in its context."""
    context = scope.get("fastapi", {}).get("effective_route_context")
    for known in (context, scope.get("route")):
        path = getattr(known, "path_format", None) or getattr(known, "path", None)
        if isinstance(path, str) and path:
            return path
    return UNMATCHED


def shown_path(scope: Scope, route: str) -> str:
    """The path for the log; the template instead where a part of the path is a secret."""
    if any("token" in name for name in scope.get("path_params", {})):
        return route
    before, found, _ = str(scope.get("path", "")).partition(SECRET_AFTER)
    if found:  # also where nothing matched: a slash too many, say
        return f"{before[:MAX_PATH_SHOWN]}{SECRET_AFTER}…"
    return str(scope.get("path", ""))[:MAX_PATH_SHOWN]


async def refuse(problem: Problem, problems: Problems, scope: Scope, send: Send) -> None:
    """Answer with the problem, from outside the application."""
    request_id = scope.get("state", {}).get("request_id", "")
    response = problems.response(problem, target=target_of(scope), request_id=request_id)
    await response(scope, _nothing, send)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


class Observed:
    """Request ids, security headers, the access log, the figures, and the answer to what nobody expected."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, problems: Problems, attend: Callable[[], None]) -> None:
        self._app = app
        self._metrics = metrics
        self._problems = problems
        self._attend = attend

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] not in _PROBES:
            self._attend()
        request_id = request_id_of(header(scope, b"x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        with bound({"request_id": request_id}):
            await _Exchange(scope, send, request_id).run(self._app, receive, self._metrics, self._problems)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._scope = scope
        self._send = send
        self._request_id = request_id
        self._status: int | None = None
        self._began = time.perf_counter()

    async def run(self, app: ASGIApp, receive: Receive, metrics: Metrics, problems: Problems) -> None:
        try:
            await app(self._scope, receive, self.send)
        except Exception as error:  # this is the last one that can still answer in the envelope
            log().error("unexpected error", action="http.crashed", error=type(error).__name__, exc_info=error)
            if self._status is not None:
                raise  # the answer has begun: only breaking the connection tells the client that it is not whole
            await refuse(internal_problem(), problems, self._scope, self.send)
        finally:
            self._account(metrics)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            own = [each for each in message["headers"] if each[0] != b"x-request-id"]
            given = {name for name, _ in own}
            more = [each for each in _SECURITY_HEADERS if each[0] not in given]
            message["headers"] = [*own, (b"x-request-id", self._request_id.encode("latin-1")), *more]
        await self._send(message)

    def _account(self, metrics: Metrics) -> None:
        seconds = time.perf_counter() - self._began
        route = route_of(self._scope)
        status = self._status if self._status is not None else CLIENT_GONE
        metrics.request(self._scope["method"], route, status, seconds)
        quiet = status < 400 and route in _PROBES
        write = log().debug if quiet else log().warning if status >= 500 else log().info
        write(
            f"{self._scope['method']} {status}",
            action="http.request",
            method=self._scope["method"],
            path=shown_path(self._scope, route),
            route=route,
            status=status,
            latency_ms=round(seconds * 1000, 3),
        )


class Guarded:
    """Answers only to the names this server is known by, and changes nothing for a page of another site.

    The API is open on loopback. Without these two checks any web page that a person on this machine visits could call it:
    by resolving its own name to 127.0.0.1 (the Host check stops it), or by a plain form post (the Origin check does).
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], problems: Problems, any_address: bool = False) -> None:
        self._app = app
        self._hosts = LOOPBACK_NAMES | {host.lower() for host in hosts}
        self._any_address = any_address
        self._problems = problems

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._refusal(scope) if scope["type"] == "http" else None
        if problem is not None:
            await refuse(problem, self._problems, scope, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # there are none, and these checks are for requests
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not self._is_ours(host_name(str(named[0], "latin-1"))):
            told = (
                "this server does not answer to that host name: call it by its address, or add the name to the setting"
            )
            return Problem(421, "MISDIRECTED_REQUEST", f"{told} server.allowed_hosts")
        if scope.get("method") not in _SAFE_METHODS and self._foreign(Headers(scope=scope)):
            return Problem(403, "CROSS_ORIGIN", "a page of another site must not change anything here")
        return None

    def _is_ours(self, name: str | None) -> bool:
        # A web page can make a name of its own lead here, but not an address.
        return name is not None and (name in self._hosts or (self._any_address and _is_address(name)))

    def _foreign(self, headers: Headers) -> bool:
        """Browsers say where a request comes from; programs say nothing, and are not what this is against."""
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site not in {"same-origin", "none"}
        origin = headers.get("origin")
        return origin is not None and not _same_origin(origin, headers["host"])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=256)
def host_name(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        name, _port = parts.hostname, parts.port
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host and not parts.path and not parts.query
    return name.removesuffix(".") if plain and name else None


def _same_origin(origin: str, host: str) -> bool:
    parts = urlsplit(origin) if "://" in origin else None
    return parts is not None and parts.netloc.lower() == host.lower()


class Bounded:
    """Refuses bodies over `limit` bytes: at once where the length is told, else when they grow past it. `larger` has the
    paths (what they begin with) that take more."""

    def __init__(
        self, app: ASGIApp, *, problems: Problems, limit: int = MAX_BODY, larger: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._problems = problems
        self._limit = limit
        self._larger = dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = (header(scope, b"content-length") or "") if scope["type"] == "http" else ""
        limit = self._limit_of(str(scope.get("path", "")))
        if told.isascii() and told.isdigit() and int(told) > limit:
            await refuse(http_problem(_too_large(limit)), self._problems, scope, send)
        else:
            await self._app(scope, self._counted(receive, limit), send)

    def _limit_of(self, path: str) -> int:
        return next((limit for prefix, limit in self._larger.items() if path.startswith(prefix)), self._limit)

    def _counted(self, receive: Receive, limit: int) -> Receive:
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > limit:
                raise _too_large(limit)
            return message

        return counted


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {limit} bytes", headers={"Connection": "close"})


class AnswersHead:
    """HEAD is asked of the routes as GET; the server sends no body to whoever asked so. Load balancers probe with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)
