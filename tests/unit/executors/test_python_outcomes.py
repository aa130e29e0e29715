"""How a function ends, what it is told, and what becomes of what it wrote."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.unit.executors.processes import ROOT, Memory, are_gone, at_deadline, given, is_running, node

from ksana.domain.errors import StoreUnavailable
from ksana.domain.outcome import Failed, Outcome, Succeeded, TimedOut
from ksana.executors.base import AttemptLost
from ksana.executors.python import PythonExecutor
from ksana.executors.python_functions import PythonOptions

SAMPLES = "tests.unit.executors.python_samples"
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
async def python() -> AsyncIterator[PythonExecutor]:
    executor = PythonExecutor(PythonOptions(modules=(SAMPLES,)))
    yield executor
    await executor.close()


async def called(python: PythonExecutor, name: str, tools: Memory | None = None, /, **more: Any) -> Outcome:
    """The outcome of a function, whose parameters are `params`; those of the run are `of_run`."""
    config = {"function": name, "params": more.pop("params", {})}
    return await python.execute(given(config, tools, params=more.pop("of_run", {}), **more))


def output(outcome: Outcome) -> Any:
    assert isinstance(outcome, Succeeded), outcome
    return outcome.output


async def test_what_a_function_returns_is_the_output(python: PythonExecutor) -> None:
    outcome = await called(python, "add", params={"left": 1})
    assert output(outcome) == 11
    assert outcome.evidence.request == {"function": "add"}
    assert outcome.evidence.request_body == '{"left":1}'


async def test_parameters_become_what_the_function_says_they_are(python: PythonExecutor) -> None:
    params = {"day": "2026-03-01", "window": {"first": 3, "last": 5}, "names": ["b", "a", "b"]}
    assert output(await called(python, "typed", params=params)) == ["2026-03-01", "Window", 2, ["a", "b"]]


async def test_templates_are_filled_in(python: PythonExecutor) -> None:
    params = {"left": "{{ nodes.load.artifact.rows }}", "right": "{{ params.more }}"}
    nodes = {"load": {"status": "SUCCESS", "artifact": {"rows": 30}}}
    assert output(await called(python, "add", params=params, nodes=nodes, of_run={"more": 4})) == 34
    kept = {"whole": "{{ params.more }}", "within": ["{{ nodes.load.artifact }}"], "text": "{{ params.more }} rows"}
    outcome = await called(python, "anything", params=kept, nodes=nodes, of_run={"more": 4})
    assert output(outcome) == {"whole": 4, "within": [{"rows": 30}], "text": "4 rows"}
    outcome = await called(python, "add", params={"left": "{{ params.none }}"})
    assert isinstance(outcome, Failed)
    assert not outcome.retryable


async def test_a_function_is_told_which_attempt_it_is(python: PythonExecutor) -> None:
    nodes = {"load": {"status": "SUCCESS", "artifact": [1]}}
    outcome = await called(
        python, "told", nodes=nodes, of_run={"a": 1}, place=node(item="x", index=2), checkpoint={"at": 5}
    )
    assert output(outcome) == {
        "run": "run-1",
        "node": "load",
        "attempt": 2,
        "params": {"a": 1},
        "load": nodes["load"],
        "item": "x",
        "index": 2,
        "checkpoint": {"at": 5},
    }


async def test_what_it_prints_is_the_log_of_its_own_attempt(python: PythonExecutor) -> None:
    for times in (1, 3):
        tools = Memory()
        outcome = await called(python, "noisy", tools, params={"times": times})
        assert output(outcome) is None
        assert tools.text == {"stdout": "grüezi\nlogged\nfrom a command\n" * times, "stderr": "oh\n" * times}
        assert (outcome.evidence.response_body or "").count("\n") == 4 * times


async def test_attempts_share_a_process_but_neither_directory_nor_variables(
    python: PythonExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KSANA_DATABASE_URL", "postgresql://k:s3cret@db/k")
    monkeypatch.setenv("PYTHONPATH", "/s3cret")
    first, second = [output(await called(python, "surroundings")) for _ in range(2)]
    assert first["pid"] == second["pid"] != os.getpid()
    assert first["cwd"] != second["cwd"]
    assert second["left"] == []
    assert set(second["env"]) <= {"PATH", "HOME", "LANG", "TZ"} | {name for name in second["env"] if name[:3] == "LC_"}
    assert "s3cret" not in str(second)


async def test_a_function_may_save_while_it_runs(python: PythonExecutor) -> None:
    tools = Memory()
    assert output(await called(python, "saving", tools, params={"value": {"at": 1}})) == "kept"
    assert tools.checkpoints == [{"at": 1}]
    assert tools.artifacts == [{"half": {"at": 1}}]


async def test_a_function_hears_that_something_was_not_kept(python: PythonExecutor) -> None:
    assert output(await called(python, "saving", Memory(StoreUnavailable("away")), params={"value": 1})) == "away"
    outcome = await called(python, "saving-no-json")
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("NotKept: the checkpoint is not JSON")


async def test_an_attempt_that_is_no_longer_ours_is_ended(python: PythonExecutor) -> None:
    outcome = await called(python, "saving", Memory(AttemptLost()), params={"value": 1})
    assert outcome == Failed("no longer ours", retryable=False, evidence=outcome.evidence)


@pytest.mark.parametrize(
    ("name", "params", "error", "retryable"),
    [
        ("raising", {}, "ValueError: no such thing", True),
        ("giving-up", {}, "it will never work", False),
        ("leaving", {}, "SystemExit: 3", True),
        ("dying", {}, "the function's process died: exit code 3", True),
        ("dying", {"code": 0}, "the function's process died: exit code 0", True),
        ("killed", {}, "the function's process died: signal 9", True),
        ("no-json", {}, "what the function returned is not JSON: Type is not JSON serializable: object", False),
        ("too-large", {}, "what the function returned is larger than 1000000 bytes", False),
        ("add", {"left": "{{ attempt }}x"}, "params.left: Input should be a valid integer", False),
        ("not-there", {}, "function: no function of that name; there are: add, anything, ", False),
    ],
)
async def test_every_other_end_fails(
    python: PythonExecutor, name: str, params: Any, error: str, retryable: bool
) -> None:
    tools = Memory()
    outcome = await called(python, name, tools, params=params)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(error)
    assert outcome.retryable is retryable
    assert ("Traceback" in tools.text["stderr"]) is (name in ("raising", "leaving"))


async def test_a_process_that_died_is_replaced(python: PythonExecutor) -> None:
    await called(python, "killed")
    assert output(await called(python, "add", params={"left": 1})) == 11


@linux
@pytest.mark.parametrize("name", ["leaving-a-child", "leaving-a-thread", "closing-its-output"])
async def test_a_process_that_is_not_as_it_was_is_not_used_again(python: PythonExecutor, name: str) -> None:
    before = output(await called(python, "async"))
    left = output(await called(python, name))
    after = output(await called(python, "async"))
    assert before != after
    assert not is_running(before)
    assert name == "closing-its-output" or not is_running(left)


@linux
async def test_a_process_is_replaced_after_so_many_attempts() -> None:
    python = PythonExecutor(PythonOptions(modules=(SAMPLES,), reuse=2))
    first, second, third = [output(await called(python, "async")) for _ in range(3)]
    assert first == second != third
    assert not is_running(first)
    await python.close()
    assert not is_running(third)


async def test_attempts_run_side_by_side(python: PythonExecutor) -> None:
    outcomes = await asyncio.gather(*(called(python, "async", params={"seconds": 0.05}) for _ in range(3)))
    assert len({output(outcome) for outcome in outcomes}) == 3


async def test_a_function_that_keeps_the_interpreters_lock_holds_up_nobody(python: PythonExecutor) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    outcome, _ = await at_deadline(python.execute, {"function": "spinning", "params": {}})
    ticking.cancel()
    assert isinstance(outcome, TimedOut)
    assert (outcome.error or "").startswith("still running after ")
    assert ticks > 2


@linux
async def test_a_function_has_a_moment_to_stop_at_its_deadline(python: PythonExecutor) -> None:
    outcome, tools = await at_deadline(python.execute, {"function": "patient", "params": {}})
    assert isinstance(outcome, TimedOut)
    assert tools.checkpoints == ["asked to stop"]
    assert not is_running(int((await tools.lines(1))[0]))


@linux
async def test_a_cancellation_ends_the_function_with_all_it_started_and_passes(python: PythonExecutor) -> None:
    tools = Memory()
    running = asyncio.create_task(called(python, "patient", tools))
    child = int((await tools.lines(1))[0])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_running(child)
    assert tools.checkpoints == ["asked to stop"]


async def test_an_async_function_is_cancelled(python: PythonExecutor) -> None:
    tools = Memory()
    running = asyncio.create_task(called(python, "async", tools, params={"seconds": 60}))
    await tools.lines(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tools.checkpoints == ["cancelled"]


async def test_a_cancellation_while_its_process_starts_leaves_nothing_behind(python: PythonExecutor) -> None:
    running = asyncio.create_task(called(python, "add", params={"left": 1}))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_light_function_runs_in_the_server(python: PythonExecutor) -> None:
    tools = Memory()
    assert output(await called(python, "light", tools)) == os.getpid()
    assert tools.text["stdout"] == "light\n"
    assert tools.checkpoints == ["light"]
    outcome = await called(python, "light", params={"seconds": 60}, timeout=0.05)
    assert isinstance(outcome, TimedOut)
    assert outcome.error == "still running after 50ms"


@pytest.mark.parametrize(
    ("params", "error", "retryable"),
    [
        ({"fail": "final"}, "never", False),
        ({"fail": "its own"}, "TimeoutError: its own", True),
        ({"fail": 5}, "params.fail: Input should be a valid string", False),
    ],
)
async def test_a_light_function_fails_as_others_do(
    python: PythonExecutor, params: Any, error: str, retryable: bool
) -> None:
    outcome = await called(python, "light", params=params)
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.retryable) == (error, retryable)


def test_it_works_the_same_on_the_event_loop_of_the_server() -> None:
    async def main() -> None:
        python, tools = PythonExecutor(PythonOptions(modules=(SAMPLES,))), Memory()
        assert output(await called(python, "noisy", tools)) is None
        assert tools.text == {"stdout": "grüezi\nlogged\nfrom a command\n", "stderr": "oh\n"}
        assert isinstance(await called(python, "killed"), Failed)
        await python.close()

    uvloop.run(main())


SERVER = """
import asyncio, sys
from tests.unit.executors.processes import Memory, given
from ksana.executors.python import PythonExecutor
from ksana.executors.python_functions import PythonOptions

class Printing(Memory):
    def log(self, text, stream="stdout"):
        print(text, end="", flush=True)

config = {"function": "patient", "params": {}}
asyncio.run(PythonExecutor(PythonOptions(modules=(%r,))).execute(given(config, Printing())))
"""


@linux
async def test_the_process_and_all_it_started_end_if_ksana_is_killed() -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER % SAMPLES, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    async with asyncio.timeout(5):
        child = int(await server.stdout.readline())
    worker = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[1])  # noqa: ASYNC240
    assert is_running(worker)
    server.kill()
    await server.wait()
    await are_gone(child, worker)
