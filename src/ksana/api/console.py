"""The built console at `/ui`: one page whose router is the browser's, and its hashed files, compressed when they were built.

The folder is looked at for each request, so that a console that is built while Ksana runs is there with the next load.
"""

import asyncio
import errno
import hashlib
import re
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

FOLDER = Path(__file__).parents[1] / "console_assets"
SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Mantine writes style elements while it runs; nothing writes scripts."""
UNBUILT_SECURITY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
FOR_EVER = "public, max-age=31536000, immutable"
"""For files whose name changes with their content."""
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Best first, and what the names of such files end with."""
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+")
"""One segment that neither begins with a dot nor has a slash or a backslash: it cannot lead out of its folder."""
_UNBUILT = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Ksana</title><link rel="icon" href="data:,"></head>
<body><p>The console is not built: run <code>make web</code>, which needs Node.js 20.19 or later and npm's registry; the API is
described at <a href="/docs">/docs</a>.</p></body>
</html>
"""


def install(app: FastAPI, folder: Path) -> None:
    """Adds the console to `app`; it is no part of the API's description."""

    @app.get("/ui/assets/{name:path}", include_in_schema=False)
    async def asset(name: str, request: Request) -> Response:
        found = await asyncio.to_thread(_compressed, folder / "assets", name, request.headers.get("accept-encoding"))
        if found is None:
            raise HTTPException(404, "the console has no such file: reload the page, it may have been built anew")
        return found

    @app.get("/ui", include_in_schema=False)
    @app.get("/ui/{path:path}", include_in_schema=False)
    async def page(request: Request, path: str = "") -> Response:
        return await asyncio.to_thread(_page, folder, path, request.headers.get("if-none-match"))


def _compressed(folder: Path, name: str, accepted: str | None) -> Response | None:
    """A hashed file, in the best encoding that there is and the client takes; None if there is no such file."""
    kind = _type_of(name)
    if kind is None:
        return None
    headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    for encoding in wanted_encodings(accepted):
        body = _read(folder / f"{name}{_ENCODINGS[encoding]}")
        if body is not None:
            return Response(body, media_type=kind, headers={**headers, "Content-Encoding": encoding})
    body = _read(folder / name)
    return None if body is None else Response(body, media_type=kind, headers=headers)


def _page(folder: Path, path: str, known: str | None) -> Response:
    """A file beside the page (its icon), else the page itself, whatever the path: the browser's router reads that."""
    kind = _type_of(path)
    body = None if kind is None else _read(folder / path)
    if body is None:
        kind, body = "text/html", _read(folder / "index.html")
    if body is None:
        return HTMLResponse(_UNBUILT, headers=_page_headers(UNBUILT_SECURITY))
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = _page_headers(SECURITY) | {"ETag": tag}
    if knows(known, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _page_headers(security: str) -> dict[str, str]:
    return {"Content-Security-Policy": security, "Cache-Control": "no-cache"}


def wanted_encodings(accepted: str | None) -> list[str]:
    """Those of ours that an Accept-Encoding header names, best first; one with `q=0` is refused, not named."""
    named = dict(map(_quality, (accepted or "").split(",")))
    others = named.get("*", 0.0)
    return [encoding for encoding in _ENCODINGS if named.get(encoding, others) > 0]


def _quality(part: str) -> tuple[str, float]:
    """`gzip;q=0.5` as name and weight; what cannot be read weighs nothing."""
    name, _, parameters = part.partition(";")
    weight = re.fullmatch(r"\s*q=(\d(?:\.\d{0,3})?)\s*", parameters)
    return name.strip().lower(), float(weight[1]) if weight else 0.0 if parameters.strip() else 1.0


def knows(header: str | None, tag: str) -> bool:
    """Whether an If-None-Match header says that the client has the file with this tag."""
    told = {each.strip().removeprefix("W/") for each in (header or "").split(",")}
    return tag in told or "*" in told


def _type_of(name: str) -> str | None:
    """The media type by the name's ending; None for what cannot be the name of a file here."""
    return _TYPES.get(Path(name).suffix) if _FILE_NAME.fullmatch(name) else None


def _read(file: Path) -> bytes | None:
    """None if there is no such file, as of a name that is too long to be one's."""
    try:
        return file.read_bytes()
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.EISDIR, errno.ENAMETOOLONG}:
            raise
        return None
