"""What a request may look like before it is sent anywhere: its URL and its headers. Pure."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address

from yarl import URL

from ksana.domain.errors import InvalidInput
from ksana.executors.egress_policy import EgressPolicy

MAX_URL = 8_192
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384

_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,253})")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_AFTER_HOST = re.compile(r"[/?#]")
_NOT_OF_A_HOST = re.compile(r"[\x00-\x20\x7f\\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_UNSENDABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
# Those that frame the message or belong to the connection are ours; those that open metadata services are nobody's.
_REFUSED = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"),
        *("te", "trailer", "upgrade", "expect"),
        *("metadata", "metadata-flavor", "x-google-metadata-request"),
    }
)
_REFUSED_PREFIXES = ("x-ksana-", "x-aws-ec2-metadata-token")


def checked_url(text: str, policy: EgressPolicy, *, field: str = "url") -> URL:
    """The URL as it will be sent, without its fragment. InvalidInput if it is none, or if it is plain that it is denied.

    A name is not looked up here: what it leads to is checked when the socket is opened.
    """
    if len(text) > MAX_URL:
        raise InvalidInput(field, f"is longer than {MAX_URL} characters")
    if "://" not in text or _NOT_OF_A_HOST.search(_AFTER_HOST.split(text.split("://", 1)[1], 1)[0]):
        raise InvalidInput(field, "must be a whole address, as in https://example.com/path")
    if _CONTROL.search(text):
        raise InvalidInput(field, "must not contain control characters")
    try:
        url = URL(text).with_fragment(None)
        port, host = url.explicit_port, url.raw_host or ""
    except ValueError as error:
        raise InvalidInput(field, "must be a whole address, as in https://example.com/path") from error
    if url.scheme not in {"http", "https"}:
        raise InvalidInput(field, "must begin with http:// or https://")
    if url.raw_user is not None or url.raw_password is not None:
        raise InvalidInput(field, "must not contain a user or password: send them in an Authorization header")
    if port == 0:
        raise InvalidInput(field, "has no port 0 to connect to")
    refusal = _host_refusal(host, policy)
    if refusal is not None:
        raise InvalidInput(field, refusal)
    return url


def checked_headers(headers: Mapping[str, str], *, field: str = "headers") -> None:
    """InvalidInput names the first header, as in `headers.Host`, that must not be sent."""
    if len(headers) > MAX_HEADERS:
        raise InvalidInput(field, f"has more than {MAX_HEADERS} headers")
    seen: set[str] = set()
    size = 0
    for name, value in headers.items():
        path = f"{field}.{name}"
        lowered = name.lower()
        if not _TOKEN.fullmatch(name):
            raise InvalidInput(field, f"not the name of a header: {name[:128]!r}")
        if lowered in _REFUSED or lowered.startswith(_REFUSED_PREFIXES):
            raise InvalidInput(path, "must not be set by a job")
        if lowered in seen:
            raise InvalidInput(path, "is given twice")
        if _UNSENDABLE.search(value):
            raise InvalidInput(path, "must not contain line breaks or control characters")
        seen.add(lowered)
        size += len(name) + len(value.encode()) + 4
    if size > MAX_HEADER_BYTES:
        raise InvalidInput(field, f"is larger than {MAX_HEADER_BYTES} bytes")


@lru_cache(maxsize=4096)
def _host_refusal(host: str, policy: EgressPolicy) -> str | None:
    if ":" in host or _is_dotted_quad(host):
        reason = policy.classify(host)
        return f"{host} is not allowed as a target: {reason}" if reason else None
    # The system's resolver takes 127.1, 0x7f.1 and 2130706433 for 127.0.0.1. A name's last part is never a number, so
    # that whatever ends in one is such a form, and is refused rather than guessed at.
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return f"write the address {host} as four plain numbers, as in 192.0.2.1"
    if not _HOST_NAME.fullmatch(host):
        return "has no valid host name"
    reason = policy.classify_host(host)
    return f"{host} is not allowed as a target: {reason}" if reason else None


def _is_dotted_quad(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True
