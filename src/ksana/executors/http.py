"""The executor that calls a URL: document 002 §17's agreement, document 003's callbacks, and the egress rules."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

from ksana import __version__, failpoints
from ksana.domain.durations import format_duration
from ksana.domain.outcome import Failed, Outcome, TimedOut
from ksana.executors.base import ExecutionContext
from ksana.executors.egress import EgressClient
from ksana.executors.egress_connection import Answer, Bounds
from ksana.executors.egress_errors import ConnectTimeout, Denied
from ksana.executors.egress_names import Resolver
from ksana.executors.egress_policy import EgressPolicy
from ksana.executors.http_answer import settled
from ksana.executors.http_config import checked_config
from ksana.executors.http_errors import NETWORK_ERRORS, overdue, spoken, unconnected
from ksana.executors.http_evidence import Exchange
from ksana.executors.http_prepared import PreparedJobs
from ksana.executors.http_request import REDIRECTS, Sender, Unsendable, compose, redirected
from ksana.telemetry import log

MAX_REDIRECTS = 3
MAX_READ = 10_000_000


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How all jobs are called, whatever they say themselves."""

    policy: EgressPolicy = field(default_factory=EgressPolicy)
    connect_timeout: timedelta = timedelta(seconds=10)
    """For a job that names none: from asking for a connection until it stands, TLS included."""
    max_read: int = MAX_READ
    """Bytes of an answer that are read; then the connection is closed."""
    max_kept: int = 1_000_000
    """Bytes of an answer, unpacked, that are kept, and up to which JSON becomes the output."""
    user_agent: str = f"ksana/{__version__}"
    connections: int = 1_000
    """Open at once, to all targets together. Attempts beyond that wait for one, within their connect timeout."""


class HttpExecutor:
    """Sends one request an attempt. 2xx succeeds; 408, 429, 5xx and a broken network may be tried again; the rest is final."""

    type: ClassVar[str] = "http"
    keeps_deadline: ClassVar[bool] = True

    def __init__(self, options: HttpOptions | None = None, *, resolver: Resolver | None = None) -> None:
        self._options = options or HttpOptions()
        self._client = EgressClient(self._options.policy, connections=self._options.connections, resolver=resolver)
        self._sender = Sender(self._options.policy, self._options.user_agent, self._options.connect_timeout)
        self._prepared = PreparedJobs(self._sender)
        self._bounds = Bounds(self._options.max_read, self._options.max_kept)
        self._following = replace(self._bounds, unread=REDIRECTS)

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """The config of a job with its defaults filled in. InvalidInput names the part that is wrong, as in `url`."""
        return checked_config(config, self._options.policy)

    async def execute(self, context: ExecutionContext) -> Outcome:
        """Calls the target once. Raises nothing; if it is cancelled, the connection is closed and the cancellation passes."""
        exchange = _exchange(context)
        try:
            return await self._call(context, exchange)
        except Unsendable as error:
            return Failed(str(error), retryable=False, evidence=exchange.evidence())
        except TimeoutError as error:
            return TimedOut(_late(error, context, exchange), evidence=exchange.evidence())
        except NETWORK_ERRORS as error:
            return _broken(error, context, exchange)
        except Exception as error:  # noqa: BLE001 - whatever it is, the attempt must end with an outcome
            return _unexpected(error, context, exchange)

    async def close(self) -> None:
        """Closes every connection. Harmless if it never ran."""
        await self._client.close()

    async def _call(self, context: ExecutionContext, exchange: Exchange) -> Outcome:
        # One deadline over all of it. Whoever waits keeps it: a place among the connections, and the connection.
        expires_at = asyncio.get_running_loop().time() + context.timeout.total_seconds()
        prepared = self._prepared.of(context.job.spec.config)
        request = compose(context, prepared, self._sender)
        bounds = self._following if prepared.target.follow_redirects else self._bounds
        for _ in range(MAX_REDIRECTS + 1):
            answer = Answer(bounds, without_body=request.frame.method == "HEAD")
            exchange.sending(request, answer)
            failpoints.reach("send.before", ConnectionResetError)
            await self._client.send(request, answer, expires_at=expires_at)
            failpoints.reach("send.after", ConnectionResetError)
            location = exchange.header(b"location") if answer.status in bounds.unread else None
            if location is None:
                return settled(context, exchange)
            request = redirected(request, answer.status or 0, location, self._options.policy)
        raise Unsendable(f"redirected more than {MAX_REDIRECTS} times")


def _exchange(context: ExecutionContext) -> Exchange:
    config = context.job.spec.config
    token = context.callback.token if context.callback else None
    return Exchange(str(config.get("method") or "GET"), str(config.get("url") or ""), token)


def _late(error: TimeoutError, context: ExecutionContext, exchange: Exchange) -> str:
    if isinstance(error, ConnectTimeout) and exchange.request is not None:
        return unconnected(exchange.request)
    return overdue(exchange, format_duration(context.timeout))


def _broken(error: BaseException, context: ExecutionContext, exchange: Exchange) -> Outcome:
    if isinstance(error, Denied):
        log().warning("target denied", action="http.denied", run_id=context.execution.id, reason=error.reason)
        host = exchange.request.url.host if exchange.request else "that"
        return Failed(f"{host} is not allowed as a target", retryable=False, evidence=exchange.evidence())
    if exchange.status is not None and not 200 <= exchange.status < 300:
        return settled(context, exchange)  # the status has said it all
    return Failed(spoken(error, exchange.request), evidence=exchange.evidence())


def _unexpected(error: Exception, context: ExecutionContext, exchange: Exchange) -> Outcome:
    log().error(
        "an http attempt failed unexpectedly",
        action="http.unexpected",
        run_id=context.execution.id,
        job_id=context.job.id,
        exc_info=error,
    )
    return Failed("the request failed unexpectedly: see the log", evidence=exchange.evidence())
