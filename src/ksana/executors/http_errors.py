"""What went wrong between us and a target, in words. No address that a name was resolved to, and no Python, gets into them."""

import errno
import os
import socket

from yarl import URL

from ksana.domain.durations import format_duration
from ksana.executors.egress_errors import BrokenOff, EgressError, Incomplete, NotConnected, NotHttp, NoTls, Unresolved
from ksana.executors.egress_request import Outgoing
from ksana.executors.http_evidence import Exchange

NETWORK_ERRORS = (EgressError, OSError)

_SPOKEN = {
    errno.ECONNREFUSED: "connection refused by {}",
    errno.ECONNRESET: "{} closed the connection",
    errno.EPIPE: "{} closed the connection",
    errno.EHOSTUNREACH: "{} cannot be reached",
    errno.ENETUNREACH: "{} cannot be reached",
    errno.ETIMEDOUT: "{} did not take the connection",
    errno.EMFILE: "no connection to {}: too many open files",
}


def spoken(error: BaseException, request: Outgoing | None) -> str:
    """The error for people: short, and naming the target as the job does."""
    where = _where(request.url) if request else "the target"
    match error:
        case NoTls(complaint=None):
            return f"no TLS with {where}"
        case NoTls(complaint=complaint):
            return f"the certificate of {where} is not valid: {complaint}"
        case Unresolved(cause=cause):
            return _unresolved(cause, request)
        case NotConnected(cause=cause):
            return _of_number(cause, where)
        case BrokenOff():
            return f"{where} closed the connection without an answer"
        case Incomplete():
            return f"the answer of {where} broke off"
        case NotHttp():
            return f"the answer of {where} is not valid HTTP"
        case OSError():
            return _of_number(error, where)
        case _:
            return f"the connection to {where} failed"


def overdue(exchange: Exchange, timeout: str) -> str:
    """The total deadline passed: how far the attempt had come by then."""
    if exchange.status is None:
        return f"no answer within {timeout}"
    return f"answered {exchange.status}, but not to the end within {timeout}"


def unconnected(request: Outgoing) -> str:
    """The deadline for connecting passed."""
    return f"no connection to {_where(request.url)} within {format_duration(request.frame.connect_timeout)}"


def _of_number(error: OSError, where: str) -> str:
    number = error.errno
    if number is None:
        return f"the connection to {where} failed"
    if number in _SPOKEN:
        return _SPOKEN[number].format(where)
    # Not its own text: that may hold the address that was tried.
    return f"the connection to {where} failed: {os.strerror(number).lower()}"


def _unresolved(error: OSError, request: Outgoing | None) -> str:
    host = request.url.host if request else "the target"
    if error.errno == socket.EAI_AGAIN:
        return f"the name {host} could not be looked up"
    return f"there is no host {host}"


def _where(url: URL) -> str:
    host = f"[{url.host}]" if url.host and ":" in url.host else url.host
    return f"{host}:{url.port}"
