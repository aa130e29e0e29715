"""The pages for people: API documentation that works without the internet.

No page has an inline script, and none loads anything from another host.
"""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

ASSETS = "/docs/assets"
_BASE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# Swagger UI and Redoc write style elements while they run, and Redoc searches in a worker that it makes from a blob.
DOCS_SECURITY = (
    f"{_BASE}; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self'; worker-src blob:"
)
_SWAGGER_START = """\
window.addEventListener("load", () => {
  SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#swagger",
    deepLinking: true,
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
  });
});
"""
_SWAGGER = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ksana API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{ASSETS}/swagger-ui.css">
<script src="{ASSETS}/swagger-ui-bundle.js" defer></script>
<script src="/docs/start.js" defer></script>
</head>
<body><div id="swagger"></div></body>
</html>
"""
_REDOC = f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ksana API</title>
<link rel="icon" href="data:,">
</head>
<body>
<redoc spec-url="/openapi.json"></redoc>
<script src="{ASSETS}/redoc.standalone.js"></script>
</body>
</html>
"""


def install(app: FastAPI) -> None:
    """Adds the pages to `app`; none of them is part of the API's description."""
    assets = Path(str(files("fastapi_offline"))) / "static"
    app.mount(ASSETS, StaticFiles(directory=assets), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return _page(_SWAGGER, DOCS_SECURITY)

    @app.get("/docs/start.js", include_in_schema=False)
    async def start() -> Response:
        return Response(_SWAGGER_START, media_type="text/javascript")

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> HTMLResponse:
        return _page(_REDOC, DOCS_SECURITY)

    @app.get("/", include_in_schema=False)
    async def root() -> RedirectResponse:
        return RedirectResponse("/ui")


def _page(html: str, security: str) -> HTMLResponse:
    return HTMLResponse(html, headers={"Content-Security-Policy": security})
