"""The plug-in of `examples/` is what the guide says that a plug-in is: found by its entry point, checked and run."""

import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.unit.executors.processes import ROOT, Memory, given

from ksana.domain.errors import InvalidInput
from ksana.domain.outcome import Succeeded, TimedOut
from ksana.executors.registry import GROUP, Executors

EXAMPLE = Path(ROOT) / "examples" / "ksana-plugin-echo"


@pytest.fixture
def executors() -> Iterator[Executors]:
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    sys.path.append(str(EXAMPLE / "src"))
    yield Executors([], plugins=[EntryPoint(name, value, GROUP) for name, value in declared.items()])
    sys.path.remove(str(EXAMPLE / "src"))


async def test_it_is_found_by_its_entry_point_and_runs(executors: Executors) -> None:
    assert executors.types() == ["echo"]
    config = executors.check("echo", {"text": "hello"})
    tools = Memory()
    assert await executors.get("echo").execute(given(config, tools)) == Succeeded({"text": "hello", "attempt": 2})
    assert tools.text["stdout"] == "hello\n"
    await executors.close()


async def test_it_names_what_is_wrong_and_keeps_its_deadline(executors: Executors) -> None:
    with pytest.raises(InvalidInput, match="text: must be a string"):
        executors.check("echo", {})
    config = executors.check("echo", {"text": "late", "seconds": 60})
    assert isinstance(await executors.get("echo").execute(given(config, timeout=0.01)), TimedOut)


def test_no_example_is_known_unless_it_is_installed() -> None:
    assert "echo" not in Executors([]).types()
