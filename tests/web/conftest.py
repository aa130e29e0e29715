"""A running `ksana serve` with the built console, and a browser that looks at it.

A module shares one server and one browser; a test gets a page of its own, which must not complain (`Console.complaints`).
The browser goes with its module: playwright's event loop counts as running for as long as it is there, and other tests have
loops of their own.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from ksana.api.console import FOLDER
from tests.contract.api.conftest import serving
from tests.prepared import prepare
from tests.servers import absence
from tests.servers.base import MissingError
from tests.servers.hints import how_to_install
from tests.web.twins import NEEDED, Call, without_command

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_GO = """to => {
    document.querySelector('h1').dataset.before = ''
    history.pushState({}, '', to)
    dispatchEvent(new PopStateEvent('popstate'))
}"""
PATIENCE_MILLIS = 20_000
"""After which what a test waits for counts as not coming."""
expect.set_options(timeout=PATIENCE_MILLIS)


@dataclass
class Console:
    """One page of the console, and what it did that it must not."""

    page: Page
    base: str
    asked: list[Call] = field(default_factory=list)
    """What was asked for with another method than GET."""
    complaints: list[str] = field(default_factory=list)
    """Errors in the browser's console (a violated security policy is one), exceptions, and requests to elsewhere."""

    def watch(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("request", self._asked)

    def open(self, path: str = "") -> "Console":
        """Loads a page of the console, and waits until it shows what it is about."""
        self.page.goto(f"{self.base}/ui{path}")
        return self._settled()

    def go(self, path: str) -> "Console":
        """Goes there as a link would, without another load, from another page."""
        self.page.evaluate(_GO, f"/ui{path}")
        self.page.wait_for_selector("h1:not([data-before])")
        return self._settled()

    def _settled(self) -> "Console":
        self.page.wait_for_selector("h1")
        self.page.wait_for_selector("[data-loading]", state="detached")
        return self

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location.get('url', '')}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.base}/", "data:", "blob:")):
            self.complaints.append(f"asked for {request.url}")
        elif request.method != "GET":
            url = urlsplit(request.url)
            query = dict(parse_qsl(url.query))
            self.asked.append(
                {"method": request.method, "path": url.path, "query": query, "body": request.post_data_json}
            )


Open = Callable[..., Console]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the module's database. A module that has one of its own has much in it before the server starts."""
    return prepared_database(tmp_path_factory)


def prepared_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("console") / "ksana.db"
    prepare(f"sqlite:///{file}")
    return file


@pytest.fixture(scope="module")
def api(database: Path) -> Iterator[httpx2.Client]:
    """A client of the module's server."""
    _require_console()
    with (
        serving(database.parent, f"sqlite:///{database}", {}) as server,
        httpx2.Client(base_url=server.base, timeout=30) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        absence.absent("chromium", MissingError("Chromium", how_to_install("chromium"), ", ".join(NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def asked() -> Iterator[list[Call]]:
    """What the module's pages have changed: all of it must be something that the console shows as a command, too."""
    calls: list[Call] = []
    yield calls
    if NEEDED.exists():  # `test_twins.py` tells where it does not
        assert without_command(calls) == []


@pytest.fixture
def console(api: httpx2.Client, browser: Browser, asked: list[Call]) -> Iterator[Open]:
    """Opens a page in a window of its own: `console("/runs", width=400, locale="zh-CN")`. At its end, none may have complained."""
    opened: list[Console] = []
    with ExitStack() as windows:

        def start(path: str = "", *, width: int = 1280, **options: Any) -> Console:
            context = browser.new_context(
                viewport={"width": width, "height": 800},
                **{"locale": "en-GB", "timezone_id": "Europe/Zurich"} | options,
            )
            windows.callback(context.close)
            context.set_default_timeout(PATIENCE_MILLIS)
            console = Console(context.new_page(), str(api.base_url).rstrip("/"), asked)
            console.watch()
            opened.append(console)
            return console.open(path)

        yield start
        complaints = [complaint for console in opened for complaint in console.complaints]
    assert complaints == []


def _require_console() -> None:
    if not (FOLDER / "index.html").exists():
        absence.absent("console", MissingError("The console", how_to_install("console"), str(FOLDER)))


AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
