"""The reference pages name what there is."""

import re
from pathlib import Path

import httpx2

from ksana.api.errors import RULES

ROOT = Path(__file__).parents[3]


async def test_the_http_page_names_every_system_route(client: httpx2.AsyncClient) -> None:
    page = (ROOT / "docs/reference/http.md").read_text()
    paths = [path for path in (await client.get("/openapi.json")).json()["paths"] if not path.startswith("/sample")]
    assert paths
    assert [path for path in paths if f"`GET {path}`" not in page] == []


def test_the_http_page_names_every_code_of_the_error_table() -> None:
    page = (ROOT / "docs/reference/http.md").read_text()
    assert [error.code for error in RULES if f"`{error.code}`" not in page] == []


def test_the_log_page_names_every_action() -> None:
    page = (ROOT / "docs/operate/logs.md").read_text()
    sources = [*(ROOT / "src/ksana/api").rglob("*.py"), *(ROOT / "src/ksana/cli").rglob("*.py")]
    sources += [ROOT / "src/ksana/bootstrap.py"]
    actions = {found for source in sources for found in re.findall(r'(?<!_)action="([a-z_.]+)"', source.read_text())}
    assert actions
    assert sorted(action for action in actions if f"`{action}`" not in page) == []
