"""Pictures of every page of the console, of a real Ksana with believable data: `make screenshots`.

python -m tests.web.screenshots                  all of them, into build/screenshots
python -m tests.web.screenshots schedules home   those whose name begins so
python -m tests.web.screenshots --docs           those that the documentation shows, into docs/console
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from ksana.api.console import FOLDER
from tests.contract.api.conftest import serving, until
from tests.contract.api.witness import Witness
from tests.prepared import prepare
from tests.web.conftest import ARGUMENTS, NAMES
from tests.web.demo import aged, fill

ROOT = Path(__file__).parents[2]
ALL, SHOWN = ROOT / "build" / "screenshots", ROOT / "docs" / "console"
AGE = timedelta(hours=6)
MANY = 12
"""Of the steps in which the last hours are drawn."""
LANGUAGES = {"en": "en-GB", "zh": "zh-CN"}
THEMES = ("light", "dark")
WIDE, NARROW = 1280, 400
HEIGHT, TALLEST = 800, 2_000
PATIENCE_MILLIS = 30_000
FONT_HINT = (
    "No Chinese font is installed, so that Chinese is shown as boxes: apt install fonts-noto-cjk (and fonts-inter)"
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A page and where it is; `{job}` and the like are ids of the demonstration's things."""

    name: str
    path: str
    tall: bool = False
    """As much of the page as there is, not what fits on a screen."""
    shows: str = "h1"
    """What must be there before the picture is taken."""


PICTURES = (
    Picture("home", "", tall=True, shows="figure canvas"),
    Picture("runs", "/runs"),
    Picture("runs-failed", "/runs?status=FAILED,TIMEOUT"),
    Picture("run-failed", "/runs/{failed}", tall=True),
    Picture("run-callback", "/runs/{waiting}", tall=True),
    Picture("jobs", "/jobs"),
    Picture("job", "/jobs/{job}", tall=True),
    Picture("job-new", "/jobs/new", tall=True),
    Picture("schedules", "/schedules"),
    Picture("schedule", "/schedules/{schedule}", tall=True, shows="ol li"),
    Picture("schedule-fired", "/schedules/{fired}", tall=True, shows="ol li"),
    Picture("schedule-edit", "/schedules/{schedule}/edit", tall=True, shows="ol li"),
    Picture("workflows", "/workflows"),
    Picture("workflow", "/workflows/{workflow}", tall=True),
    Picture("workflow-new", "/workflows/new", tall=True),
    Picture("workflow-run", "/runs/warehouse-4", tall=True),
    Picture("workflow-run-failed", "/runs/warehouse-2", tall=True),
    Picture("plans", "/plans"),
    Picture("plan", "/plans/schema-12", tall=True),
    Picture("instances", "/instances"),
    Picture("audit", "/audit"),
    Picture("settings", "/settings"),
)
DOCUMENTED = (("home", "en", "light"), ("workflow-run", "en", "dark"), ("schedules", "zh", "light"))
"""Which of them the documentation shows."""


def main(arguments: Sequence[str]) -> int:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or not (FOLDER / "index.html").exists():
        print("It takes Chromium (apt install chromium) and the built console (make web).", file=sys.stderr)
        return 1
    if not _knows_chinese():
        print(FONT_HINT, file=sys.stderr)
    with _demonstration() as (base, ids), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        studio = Studio(browser, base, ids)
        if "--docs" in arguments:
            studio.take_documented()
        else:
            studio.take([each for each in PICTURES if not arguments or each.name.startswith(tuple(arguments))])
        browser.close()
    return 0


def _knows_chinese() -> bool:
    listed = shutil.which("fc-list")
    return listed is None or subprocess.run([listed, ":lang=zh"], capture_output=True, check=False).stdout != b""


@contextmanager
def _demonstration() -> Iterator[tuple[str, dict[str, str]]]:
    """A Ksana with its data in a folder that goes away, and the ids of what pictures are of."""
    witness = Witness()
    try:
        with TemporaryDirectory(prefix="ksana-screenshots-") as name:
            folder = Path(name)
            database = folder / "ksana.db"
            prepare(f"sqlite:///{database}")
            with (
                serving(folder, f"sqlite:///{database}", {}) as server,
                httpx2.Client(base_url=server.base, timeout=30) as api,
            ):
                fill(api, witness.target().url(""))
                aged(database, AGE)
                until(api, "/api/v1/overview", _is_spread)  # which is remembered for some seconds
                yield server.base, _ids(api)
    finally:
        witness.close()


def _is_spread(overview: dict[str, Any]) -> bool:
    return len([step for step in overview["history"]["steps"] if step["succeeded"]]) > MANY


def _ids(api: httpx2.Client) -> dict[str, str]:
    def first(path: str, field: str) -> str:
        return str(api.get(path).json()["items"][0][field])

    return {
        "failed": first("/api/v1/activity?status=FAILED&kind=job", "id"),
        "waiting": first("/api/v1/activity?status=CALLBACK_PENDING", "id"),
        "job": first("/api/v1/jobs?keyword=invoice", "jobId"),
        "schedule": first("/api/v1/schedules?keyword=backup", "id"),
        "fired": first("/api/v1/schedules?keyword=invoice", "id"),
        "workflow": first("/api/v1/workflows?keyword=warehouse", "workflowId"),
    }


@dataclass(frozen=True, slots=True)
class Studio:
    browser: Browser
    base: str
    ids: dict[str, str]

    def take(self, pictures: Sequence[Picture]) -> None:
        """Each in both themes and languages, and narrow."""
        ALL.mkdir(parents=True, exist_ok=True)
        for language in LANGUAGES:
            for theme in THEMES:
                self._take_all(pictures, language, theme, WIDE)
        self._take_all(pictures, "en", "light", NARROW)

    def take_documented(self) -> None:
        SHOWN.mkdir(parents=True, exist_ok=True)
        known = {each.name: each for each in PICTURES}
        for name, language, theme in DOCUMENTED:
            with self._window(language, theme, WIDE) as page:
                self._take(page, known[name], SHOWN / f"{name}.png")

    def _take_all(self, pictures: Sequence[Picture], language: str, theme: str, width: int) -> None:
        with self._window(language, theme, width) as page:
            for picture in pictures:
                narrow = "-narrow" if width == NARROW else ""
                self._take(page, picture, ALL / f"{picture.name}-{language}-{theme}{narrow}.png")

    @contextmanager
    def _window(self, language: str, theme: str, width: int) -> Iterator[Page]:
        context = self.browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            locale=LANGUAGES[language],
            timezone_id="Europe/Zurich",
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MILLIS)
        yield context.new_page()
        context.close()

    def _take(self, page: Page, picture: Picture, path: Path) -> None:
        width = WIDE if page.viewport_size is None else page.viewport_size["width"]
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.goto(f"{self.base}/ui{picture.path.format(**self.ids)}")
        page.wait_for_selector(picture.shows)
        page.wait_for_selector("[data-loading]", state="detached")
        page.wait_for_function("document.fonts.status === 'loaded'")
        if picture.tall:
            height = int(page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": width, "height": max(HEIGHT, min(height, TALLEST))})
        page.screenshot(path=path, animations="disabled")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
