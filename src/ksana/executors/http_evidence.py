"""What was sent and what came back, noted while it happens, so that an attempt that is cut short can still tell.

Secrets never get into the evidence: the values of credential headers become `***`, and wherever these values or the callback
token turn up again (in a URL, a body, an answer that echoes them), `***` stands in their place.
"""

import codecs
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from ksana.domain.outcome import Evidence
from ksana.executors.egress_connection import Answer, Headers
from ksana.executors.egress_request import Outgoing, Parts
from ksana.executors.sensitive import is_sensitive

HIDDEN = "***"
SHORTEST_SECRET = 8
"""Shorter values are hidden in their header only: replaced everywhere, `1` or `true` would leave nothing readable."""

_ESCAPED_BY_DOTNET = re.compile("[\"&'+<>`\\\\\x7f-\uffff]")
_TEXT_CODECS = ("utf", "ascii", "latin", "iso8859", "cp", "gb", "big5", "shift", "euc", "koi8", "mac")
# Whatever else it is asked for, Python looks for it on the disk and remembers for ever that there is none.
_KNOWN_CODECS = frozenset(
    {*aliases, *aliases.values(), "koi8_t", "koi8_u", "cp720", "cp737", "cp856", "cp874", "cp875"}
)
_ZIPPED = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}


@dataclass(slots=True)
class Exchange:
    """One attempt's request and answer, as far as they have come."""

    method: str
    url: str
    token: str | None = None
    """The callback's; it is hidden wherever it appears."""
    request: Outgoing | None = None
    answer: Answer | None = None
    earlier: list[str] | None = None
    """The URLs that redirected here."""
    holds_json: bool = False
    """Whether the answer calls itself JSON and was kept whole; known with the evidence."""

    def sending(self, request: Outgoing, answer: Answer) -> None:
        """This request goes out now; an earlier one has been redirected."""
        if self.request is not None:
            self.earlier = [*(self.earlier or ()), self.request.frame.address]
        self.request, self.answer = request, answer

    @property
    def status(self) -> int | None:
        return None if self.answer is None else self.answer.status

    def header(self, name: bytes) -> str | None:
        """A header of the answer, whose name is given in lower case."""
        value = None if self.answer is None else self.answer.header(name)
        return None if value is None else value.decode("utf-8", "replace")

    def evidence(self) -> Evidence:
        """All of it, without the secrets.

        `request` holds `method`, `url` and `headers`; `redirected_from` (the earlier URLs) if it was redirected; and `notes`
        if the body of the answer is not whole: `response_truncated` and `response_bytes_read`.
        """
        answer, sent = self.answer, self.request
        hide = _Hiding(self.token, sent.frame.parts if sent else None)
        request = self._request(hide)
        body = None if sent is None or sent.frame.text is None else hide.text(sent.frame.text)
        if answer is None or answer.status is None:
            return Evidence(request, body)
        headers, media, packing = _read(answer.headers, hide)
        text, whole = _text(answer, media, packing)
        if not whole:
            request["notes"] = {"response_truncated": True, "response_bytes_read": answer.bytes_read}
        self.holds_json = whole and media.is_json
        return Evidence(request, body, answer.status, headers, None if text is None else hide.text(text))

    def _request(self, hide: "_Hiding") -> dict[str, Any]:
        if self.request is None:
            return {"method": self.method, "url": hide.text(self.url), "headers": {}}
        frame = self.request.frame
        shown = {"method": frame.method, "url": hide.text(frame.address), "headers": hide.headers(self.request.headers)}
        if self.earlier:
            shown["redirected_from"] = [hide.text(url) for url in self.earlier]
        return shown


def secrets_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The values of these headers that are hidden wherever they appear, the longest first: one may be a part of another."""
    values: set[str] = set()
    for name, value in headers.items():
        if is_sensitive(name):
            # "Bearer abc" may come back as "abc".
            values |= {text for text in (value, value.rpartition(" ")[2]) if len(text) >= SHORTEST_SECRET}
    return tuple(sorted(set().union(*map(_spellings, values)), key=len, reverse=True))


def _spellings(secret: str) -> set[str]:
    """As it is, and as those write it who escape it for a URL, or for JSON: as little as must be, PHP, and .NET."""
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    marked = _ESCAPED_BY_DOTNET.sub(lambda found: f"\\u{ord(found[0]):04X}", secret)
    return {secret, quote(secret, safe=""), plain, plain.replace("/", r"\/"), marked}


class _Hiding:
    """Puts `***` in the place of secrets."""

    __slots__ = ("_by_name", "_secrets")

    def __init__(self, token: str | None, parts: Parts | None) -> None:
        secrets = () if parts is None else parts.secrets
        self._secrets = secrets if token is None else sorted({token, *secrets}, key=len, reverse=True)
        self._by_name = token is not None or parts is None or parts.sensitive

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Of a request."""
        if not self._by_name:
            return headers
        return {name: HIDDEN if is_sensitive(name) else self.text(value) for name, value in headers.items()}


class _Media(NamedTuple):
    """What a Content-Type means."""

    charset: str
    """The codec that it names, if it is one for text; UTF-8 otherwise."""
    is_json: bool


def _read(headers: Headers, hide: _Hiding) -> tuple[dict[str, str], _Media, bytes]:
    """The headers of an answer as they are shown, what its body is, and how that is packed."""
    shown: dict[str, str] = {}
    media, packing = _PLAIN, b""
    for raw, value in headers:
        name, role = _named(raw)
        if role == "secret":
            shown[name] = HIDDEN
            continue
        text = hide.text(value.decode("utf-8", "replace"))
        shown[name] = f"{shown[name]}, {text}" if name in shown else text
        if role == "content-type":
            media = _media(value) if media is _PLAIN else media
        elif role == "content-encoding":
            packing = packing or value.strip().lower()
    return shown, media, packing


@lru_cache(maxsize=4096)
def _named(raw: bytes) -> tuple[str, str]:
    """The name of a header, and what it is for where that matters."""
    name = raw.decode("utf-8", "replace")
    return name, "secret" if is_sensitive(name) else name.lower()


def _text(answer: Answer, media: _Media, packing: bytes) -> tuple[str | None, bool]:
    """The body as far as it was kept, and whether that is all of it; None if it is packed in a way that is not read."""
    data, limit = answer.kept, answer.bounds.max_kept
    whole = answer.complete and answer.bytes_read <= limit
    if packing and packing != b"identity" and data:
        if packing not in _ZIPPED:
            return None, False
        data, unpacked = _unzipped(data, _ZIPPED[packing], limit)
        whole = whole and unpacked
    if whole:
        return data.decode(media.charset, "replace"), True
    # Half a character at its end is left out.
    return codecs.getincrementaldecoder(media.charset)("replace").decode(data), False


def _unzipped(data: bytes | bytearray, window: int, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of what was packed, and whether that is all. What cannot be unpacked gives what could."""
    unpacker = zlib.decompressobj(wbits=window)
    try:
        opened = unpacker.decompress(data, limit)
    except zlib.error:
        return b"", False
    return opened, unpacker.eof


@lru_cache(maxsize=1024)
def _media(content_type: bytes) -> _Media:
    kind, *parameters = content_type.decode("utf-8", "replace").split(";")
    kind = kind.strip().lower()
    return _Media(_charset(parameters), kind == "application/json" or kind.endswith("+json"))


def _charset(parameters: list[str]) -> str:
    for part in parameters:
        name, _, value = part.strip().partition("=")
        if name.lower() == "charset":
            wanted = normalize_encoding(value.strip("\"' ")).lower()
            if wanted not in _KNOWN_CODECS:
                break
            found = codecs.lookup(wanted).name
            return found if found.startswith(_TEXT_CODECS) and found != "utf-7" else "utf-8"
    return "utf-8"


_PLAIN = _Media("utf-8", is_json=False)
