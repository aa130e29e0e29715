"""One request to Ksana and its answer, with the standard library alone."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ksana.client.errors import UNEXPECTED_ANSWER, UNREACHABLE, FacadeError, FacadeUnavailable

_NOT_NOW = frozenset({502, 503, 504})
"""Ksana without its database, or a proxy without Ksana."""


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """An order is given to whom it was meant for."""


class Caller:
    """Calls one Ksana. ValueError if the address is none."""

    def __init__(self, base: str, timeout: float) -> None:
        self._base = checked_base(base)
        self._timeout = timeout
        self._opener = build_opener(_NoRedirects)

    def get(self, path: str) -> dict[str, Any]:
        """FacadeError; FacadeUnavailable."""
        return self._read(self.ask("GET", path))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """FacadeError; FacadeUnavailable, and then it may have been done."""
        return self._read(self.ask("POST", path, body))

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """The answer as it came; nothing, if it has no content. FacadeError; FacadeUnavailable, and then it may have been
        done."""
        with self._asked(), self._opener.open(self._request(method, path, body), timeout=self._timeout) as answer:
            text: bytes = answer.read()
            return text

    def stream(self, path: str, accept: str, silence: float | None) -> Iterator[bytes]:
        """What comes, as it comes, until it ends; nothing for more than `silence` seconds counts as an end of the server's.
        FacadeError; FacadeUnavailable."""
        request = self._request("GET", path, None)
        request.add_header("Accept", accept)
        with self._asked(), self._opener.open(request, timeout=silence) as answer:
            while part := answer.read1():
                yield part

    def _request(self, method: str, path: str, body: Any) -> Request:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        # Only http and https get this far (`checked_base`).
        data = None if body is None else json.dumps(body).encode()
        return Request(self._base + path, data=data, headers=headers, method=method)  # noqa: S310

    @contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except HTTPError as error:
            with error:
                raise self._refused(error) from None
        # URLError and time-outs are OSErrors; a host that no name can have is a UnicodeError.
        except (OSError, HTTPException, UnicodeError) as error:
            why = str(getattr(error, "reason", error)) or type(error).__name__
            raise FacadeUnavailable(UNREACHABLE, f"{self._base} cannot be reached: {why}") from error

    def _read(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise FacadeError(UNEXPECTED_ANSWER, f"{self._base} answers, but not as Ksana does: {text[:100]!r}")
        return found

    def _refused(self, error: HTTPError) -> FacadeError:
        """The error envelope, or what stands in its place."""
        kind = FacadeUnavailable if error.code in _NOT_NOW else FacadeError
        try:
            told = self._read(error.read())
        except (FacadeError, OSError, HTTPException):
            told = {}
        details = told.get("details")
        return kind(
            str(told.get("code") or f"HTTP_{error.code}"),
            str(told.get("message") or f"{self._base} answers {error.code}"),
            details if isinstance(details, dict) else None,
        )


def checked_base(base: str) -> str:
    """The address without a slash at its end. ValueError."""
    try:
        parts = urlsplit(base)
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # its port is no number, or its brackets do not close
        fits = False
    if not fits or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(f"{base!r} is not the address of a Ksana, as http://127.0.0.1:7100 is")
    return base.rstrip("/")
