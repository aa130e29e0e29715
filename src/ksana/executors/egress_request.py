"""A request as bytes. What is the same for every attempt of a job is written once, in a frame around what is not."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from yarl import URL

from ksana.domain.values import immutable
from ksana.executors.egress_connection import Origin


@immutable
class Parts:
    """The headers of a frame but `Host`, which is its own."""

    before: Mapping[str, str]
    """Those that come before the attempt's."""
    after: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    """Of the attempt's headers, in lower case, those that the job has given itself."""
    secrets: tuple[str, ...] = ()
    """Values among them that must not be shown, the longest first."""
    sensitive: bool = False
    """Whether there is any header among them whose value must not be shown."""


@immutable
class Frame:
    """All of a request but the headers of the single attempt."""

    method: str
    url: URL
    body: bytes | None
    parts: Parts
    connect_timeout: timedelta
    origin: Origin
    address: str
    """The URL as text."""
    text: str | None
    """The body as text."""
    head: bytes
    """As on the wire, up to where the attempt's headers begin."""
    tail: bytes

    def request(self, headers: Mapping[str, str]) -> "Outgoing":
        """The request with an attempt's headers. ValueError if one of them would break out of its line."""
        data = b"".join((self.head, _lines(headers), self.tail))
        return Outgoing(self, {**self.parts.before, **headers, **self.parts.after}, data)


@dataclass(slots=True)
class Outgoing:
    """One request, whole: nothing is added to it on the way out."""

    frame: Frame
    headers: Mapping[str, str]
    """All of them."""
    data: bytes

    @property
    def url(self) -> URL:
        return self.frame.url


def framed(method: str, url: URL, body: bytes | None, parts: Parts, connect_timeout: timedelta) -> Frame:
    """ValueError if one of the headers would break out of its line."""
    parts = replace(parts, before={"Host": url.host_port_subcomponent or "", **parts.before})
    return Frame(
        method,
        url,
        body,
        parts,
        connect_timeout,
        origin=Origin(url.scheme, url.raw_host or "", url.port or 0),
        address=str(url),
        text=None if body is None else body.decode("utf-8", "replace"),
        head=f"{method} {url.raw_path_qs} HTTP/1.1\r\n".encode("ascii") + _lines(parts.before),
        tail=b"".join((_lines(parts.after), b"\r\n", body or b"")),
    )


def _lines(headers: Mapping[str, str]) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header would break out of its line")
    return lines.encode()
