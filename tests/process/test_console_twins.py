"""Whatever the console can change can be typed, too."""

import re
from pathlib import Path

from tests.process.conftest import Serve
from tests.web.twins import LOOKS

from ksana.cli.client.calls import CALLS

CONSOLE = Path(__file__).parents[2] / "web" / "src"
NOT_ASKING = {"client.ts", "schema.d.ts"}
ONLY_SHOWN = {("POST", "/api/v1/tasks")}
"""An example for who has nothing yet, which no button sends."""
_REQUEST = re.compile(r"\brequest\(")
_WRITTEN = re.compile(r"""\brequest\('([A-Z]+)', ['`]([^'`]+)['`]""")
_CHOSEN = re.compile(r"\$\{[^}]*\}")
Asked = tuple[str, str]


def written_in_the_console() -> list[Asked]:
    """Every method and path that it asks for."""
    sources = [file.read_text() for file in CONSOLE.rglob("*.ts*") if file.name not in NOT_ASKING]
    found = [each for source in sources for each in _WRITTEN.findall(source)]
    assert len(found) == sum(len(_REQUEST.findall(source)) for source in sources), "write them out where they are asked"
    return found


def meant(asked: Asked, known: set[Asked]) -> set[Asked]:
    """Those of the API; `…:${order}` is all that could stand there."""
    method, path = asked
    pattern = "[a-z-]+".join(re.escape(part) for part in _CHOSEN.split(path))
    return {each for each in known if each[0] == method and re.fullmatch(pattern, each[1])}


def nameless(asked: Asked) -> Asked:
    """Whatever its ids are called."""
    return asked[0], re.sub(r"{\w+}", "{}", asked[1])


def test_each_change_that_the_console_can_ask_for_is_a_command(serve: Serve) -> None:
    paths = serve().get("/openapi.json").json()["paths"]
    known = {(method.upper(), path) for path, by in paths.items() for method in by}
    asked = {asked: meant(asked, known) for asked in written_in_the_console()}
    assert [each for each, found in asked.items() if not found] == []
    changes = {each for found in asked.values() for each in found if each[0] != "GET"} - ONLY_SHOWN
    typed = {nameless((call.method, call.path)) for call in CALLS.values()}
    assert {each for each in changes if nameless(each) not in typed and not each[1].endswith(LOOKS)} == set()
