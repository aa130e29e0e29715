"""What went wrong between us and a target, in words. No address that a name was resolved to, and no Python, gets into them."""

import asyncio
import errno
import os
import socket

import aiohttp
from yarl import URL

from ksana.domain.durations import format_duration
from ksana.executors.egress import BrokenOff, Outgoing
from ksana.executors.egress_names import Denied
from ksana.executors.http_evidence import Exchange

NETWORK_ERRORS = (aiohttp.ClientError, OSError, asyncio.IncompleteReadError)

_SPOKEN = {
    errno.ECONNREFUSED: "connection refused by {}",
    errno.ECONNRESET: "{} closed the connection",
    errno.EPIPE: "{} closed the connection",
    errno.EHOSTUNREACH: "{} cannot be reached",
    errno.ENETUNREACH: "{} cannot be reached",
    errno.ETIMEDOUT: "{} did not take the connection",
    errno.EMFILE: "no connection to {}: too many open files",
}


def denial(error: BaseException) -> Denied | None:
    """The policy's refusal, if that is what stopped a connection."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return inner if isinstance(inner, Denied) else None


def spoken(error: BaseException, request: Outgoing | None) -> str:
    """The error for people: short, and naming the target as the job does."""
    where = _where(request.url) if request else "the target"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {where} is not valid: {_certificate(error)}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"no TLS with {where}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _unresolved(error, request)
    if isinstance(error, BrokenOff):
        return f"{where} closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError | asyncio.IncompleteReadError):
        return f"the answer of {where} broke off"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer of {where} is not valid HTTP"
    if isinstance(error, OSError):
        return _of_number(error, where)
    return f"the connection to {where} failed"


def overdue(exchange: Exchange, timeout: str) -> str:
    """The total deadline passed: how far the attempt had come by then."""
    if exchange.status is None:
        return f"no answer within {timeout}"
    return f"answered {exchange.status}, but not to the end within {timeout}"


def unconnected(request: Outgoing) -> str:
    """The deadline for connecting passed."""
    return f"no connection to {_where(request.url)} within {format_duration(request.connect_timeout)}"


def _of_number(error: OSError, where: str) -> str:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    number = inner.errno
    if number is None:
        return f"the connection to {where} failed"
    if number in _SPOKEN:
        return _SPOKEN[number].format(where)
    # Not its own text: that may hold the address that was tried.
    return f"the connection to {where} failed: {os.strerror(number).lower()}"


def _unresolved(error: aiohttp.ClientConnectorDNSError, request: Outgoing | None) -> str:
    host = request.url.host if request else "the target"
    if error.os_error.errno == socket.EAI_AGAIN:
        return f"the name {host} could not be looked up"
    return f"there is no host {host}"


def _certificate(error: aiohttp.ClientConnectorCertificateError) -> str:
    return str(getattr(error.certificate_error, "verify_message", "") or "it could not be verified")


def _where(url: URL) -> str:
    host = f"[{url.host}]" if url.host and ":" in url.host else url.host
    return f"{host}:{url.port}"
