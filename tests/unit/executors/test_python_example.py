"""The functions of `examples/` do what the guide says."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.executors.processes import ROOT, Memory, given

from ksana import functions
from ksana.domain.outcome import Failed, Succeeded
from ksana.executors.python import PythonExecutor
from ksana.executors.python_functions import PythonOptions

PLACE = str(Path(ROOT) / "examples" / "functions")


@pytest.fixture
async def python(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PythonExecutor]:
    monkeypatch.setattr(functions, "_REGISTERED", {})
    sys.modules.pop("reports", None)
    executor = PythonExecutor(PythonOptions(modules=("reports",), path=(PLACE,)))
    yield executor
    await executor.close()
    sys.path.remove(PLACE)


async def test_the_functions_run_as_the_guide_says(python: PythonExecutor) -> None:
    greet = python.check({"function": "greet", "params": {"name": "Ada", "times": 2}})
    outcome = await python.execute(given(greet))
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"text": "Hello, Ada! Hello, Ada!"}
    beat = await python.execute(given(python.check({"function": "heartbeat"})))
    assert isinstance(beat, Succeeded)


async def test_an_attempt_goes_on_where_the_last_one_left_off(python: PythonExecutor) -> None:
    config = python.check({"function": "sum-orders", "params": {"day": "2026-03-01", "orders": [5, 6, 7]}})
    tools = Memory()
    outcome = await python.execute(given(config, tools, checkpoint={"count": 2, "total": 11}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"day": "2026-03-01", "total": 18}
    assert tools.checkpoints == [{"count": 3, "total": 18}]
    assert tools.text["stdout"] == "3 of 3\n"
    bad = python.check({"function": "sum-orders", "params": {"day": "2026-03-01", "orders": [-1]}})
    failed = await python.execute(given(bad))
    assert isinstance(failed, Failed)
    assert not failed.retryable
