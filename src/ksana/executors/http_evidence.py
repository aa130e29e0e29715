"""What was sent and what came back, noted while it happens, so that an attempt that is cut short can still tell.

Secrets never get into the evidence: the values of credential headers become `***`, and wherever these values or the callback
token turn up again (in a URL, a body, an answer that echoes them), `***` stands in their place.
"""

import codecs
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ksana.domain.outcome import Evidence
from ksana.executors.egress import Outgoing

HIDDEN = "***"
SHORTEST_SECRET = 8
"""Shorter values are hidden in their header only: replaced everywhere, `1` or `true` would leave nothing readable."""

_SENSITIVE = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
_SENSITIVE_PARTS = ("token", "secret", "password")
_TEXT_CODECS = ("utf", "ascii", "latin", "iso8859", "cp", "gb", "big5", "shift", "euc", "koi8", "mac")
_ZIPPED = {"gzip": 31, "x-gzip": 31, "deflate": 15}


@lru_cache(maxsize=4096)
def is_sensitive(header: str) -> bool:
    """Whether the value of this header is a secret."""
    lowered = header.lower()
    return lowered in _SENSITIVE or any(part in lowered for part in _SENSITIVE_PARTS)


@dataclass(slots=True)
class Exchange:
    """One attempt's request and answer, as far as they have come."""

    method: str
    url: str
    token: str | None = None
    """The callback's; it is hidden wherever it appears."""
    max_kept: int = 1_000_000
    request: Outgoing | None = None
    earlier: list[str] = field(default_factory=list)
    """The URLs that redirected here."""
    status: int | None = None
    response_headers: dict[str, str] = field(default_factory=dict)
    kept: bytearray = field(default_factory=bytearray)
    bytes_read: int = 0
    complete: bool = False
    """The whole body has been read."""

    def sending(self, request: Outgoing) -> None:
        """This request goes out now; an earlier one has been redirected."""
        if self.request is not None:
            self.earlier.append(str(self.request.url))
        self.request = request
        self.method, self.url = request.method, str(request.url)
        self.status, self.response_headers = None, {}

    def answered(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The head of an answer has come."""
        self.status = status
        for name, value in headers:
            text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            known = self.response_headers.get(name)
            self.response_headers[name] = text if known is None else f"{known}, {text}"

    def received(self, chunk: bytes) -> None:
        """A part of the body has come; what is beyond `max_kept` is counted and dropped."""
        self.bytes_read += len(chunk)
        room = self.max_kept - len(self.kept)
        if room > 0:
            self.kept += chunk[:room]

    def header(self, name: str) -> str | None:
        """A header of the answer, whatever its case."""
        return next((value for known, value in self.response_headers.items() if known.lower() == name), None)

    def text(self) -> tuple[str | None, bool]:
        """The body as far as it was kept, and whether that is all of it; None if it is packed in a way that is not read."""
        data, whole = bytes(self.kept), self.complete and self.bytes_read <= self.max_kept
        packing = (self.header("content-encoding") or "identity").strip().lower()
        if packing != "identity" and data:
            if packing not in _ZIPPED:
                return None, False
            data, unpacked = _unzipped(data, _ZIPPED[packing], self.max_kept)
            whole = whole and unpacked
        decoder = codecs.getincrementaldecoder(_charset(self.header("content-type")))("replace")
        # Of a body that was cut, half a character at its end is left out.
        return decoder.decode(data, final=whole), whole

    def evidence(self) -> Evidence:
        """All of it, without the secrets.

        `request` holds `method`, `url` and `headers`; `redirected_from` (the earlier URLs) if it was redirected; and `notes`
        if the body of the answer is not whole: `response_truncated` and `response_bytes_read`.
        """
        headers: Mapping[str, str] = self.request.headers if self.request else {}
        hide = _Hiding(self.token, headers)
        text, whole = self.text() if self.status is not None else (None, True)
        request: dict[str, Any] = {"method": self.method, "url": hide.text(self.url), "headers": hide.headers(headers)}
        if self.earlier:
            request["redirected_from"] = [hide.text(url) for url in self.earlier]
        if not whole:
            request["notes"] = {"response_truncated": True, "response_bytes_read": self.bytes_read}
        sent = self.request.body if self.request else None
        return Evidence(
            request=request,
            request_body=None if sent is None else hide.text(sent.decode("utf-8", "replace")),
            response_code=self.status,
            response_headers=hide.headers(self.response_headers),
            response_body=None if text is None else hide.text(text),
        )


class _Hiding:
    """Puts `***` in the place of secrets."""

    def __init__(self, token: str | None, headers: Mapping[str, str]) -> None:
        values = {token} if token else set()
        for name, value in headers.items():
            if is_sensitive(name):
                # "Bearer abc" may come back as "abc".
                values |= {text for text in (value, value.rpartition(" ")[2]) if len(text) >= SHORTEST_SECRET}
        # The longest first: one secret may be a part of another.
        self._secrets = sorted(values, key=len, reverse=True)

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: HIDDEN if is_sensitive(name) else self.text(value) for name, value in headers.items()}


def _unzipped(data: bytes, window: int, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of what was packed, and whether that is all. What cannot be unpacked gives what could."""
    unpacker = zlib.decompressobj(wbits=window)
    try:
        opened = unpacker.decompress(data, limit)
    except zlib.error:
        return b"", False
    return opened, unpacker.eof


def _charset(content_type: str | None) -> str:
    """The codec that the answer names, if it is one for text; UTF-8 otherwise."""
    for part in (content_type or "").split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.lower() == "charset":
            try:
                found = codecs.lookup(value.strip("\"' ")).name
            except (LookupError, ValueError):
                break
            return found if found.startswith(_TEXT_CODECS) and found != "utf-7" else "utf-8"
    return "utf-8"
