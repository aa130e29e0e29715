"""All that a command has started ends with it: at its deadline, when it is cancelled, and when Ksana is killed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.unit.executors.processes import ROOT, Memory, are_gone, at_deadline, given, is_running, until

from ksana.domain.outcome import Failed, Succeeded, TimedOut
from ksana.executors.shell import ShellExecutor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process can leave its group unseen")

# Its own pid, that of a child, that of a grandchild, and that of one which has left the group and the session.
FAMILY = (
    """echo $$; sleep 60 & echo $!; sh -c 'sleep 60 & echo $!; wait' & setsid sh -c 'echo $$; exec sleep 60' & wait"""
)
SERVER = """
import asyncio
from tests.unit.executors.processes import given
from ksana.executors.shell import ShellExecutor
asyncio.run(ShellExecutor().execute(given({"cmd": 'exec > "$OUT"; ' + %r + '', "env": {"OUT": %r}})))
"""


async def family(tools: Memory) -> list[int]:
    return [int(line) for line in await tools.lines(4)]


async def test_the_whole_tree_ends_at_the_deadline() -> None:
    outcome, tools = await at_deadline(ShellExecutor().execute, {"cmd": FAMILY}, lines=4)
    assert isinstance(outcome, TimedOut)
    assert (outcome.error or "").startswith("still running after ")
    assert outcome.evidence.response_headers == {"exit-code": "-15"}
    assert not [pid for pid in await family(tools) if is_running(pid)]


async def test_what_does_not_heed_sigterm_is_killed_after_a_grace() -> None:
    cmd = "trap 'echo asked' TERM; echo $$; while :; do sleep 0.02; done"
    outcome, tools = await at_deadline(ShellExecutor().execute, {"cmd": cmd}, lines=2)
    assert isinstance(outcome, TimedOut)
    assert outcome.evidence.response_headers == {"exit-code": "-9"}
    pid, asked = await tools.lines(2)
    assert asked == "asked"
    assert not is_running(int(pid))


async def test_what_is_saved_in_the_grace_is_kept() -> None:
    cmd = """trap 'echo \\"late\\" > "$KSANA_CHECKPOINT"; exit 0' TERM; echo ready; while :; do sleep 0.02; done"""
    outcome, tools = await at_deadline(ShellExecutor().execute, {"cmd": cmd})
    assert isinstance(outcome, TimedOut)
    assert tools.checkpoints == ["late"]


async def test_a_cancellation_ends_the_whole_tree_and_passes() -> None:
    tools, executor = Memory(), ShellExecutor()
    running = asyncio.create_task(executor.execute(given({"cmd": FAMILY + "; pwd"}, tools)))
    pids = await family(tools)
    assert all(is_running(pid) for pid in pids)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [pid for pid in pids if is_running(pid)]


async def test_a_second_cancellation_is_not_held_up_and_leaves_nothing_behind() -> None:
    tools, executor = Memory(), ShellExecutor()
    cmd = "trap '' TERM; pwd; echo $$; while :; do sleep 0.02; done"
    running = asyncio.create_task(executor.execute(given({"cmd": cmd}, tools)))
    directory, pid = await tools.lines(2)
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    await executor.close()
    assert not is_running(int(pid))
    assert not os.path.exists(directory)  # noqa: PTH110, ASYNC240


async def test_a_cancellation_before_the_command_has_begun_leaves_nothing_behind() -> None:
    for steps in range(8):
        running = asyncio.create_task(ShellExecutor().execute(given({"cmd": "sleep 60"})))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        async with asyncio.timeout(0.9):  # less than the grace
            with pytest.raises(asyncio.CancelledError):
                await running


async def test_what_a_command_leaves_in_the_background_ends_with_it() -> None:
    tools = Memory()
    outcome = await ShellExecutor().execute(given({"cmd": "sleep 60 & echo $!; setsid sleep 60 & echo $!"}, tools))
    assert isinstance(outcome, Succeeded)
    assert not [line for line in await tools.lines(2) if is_running(int(line))]


async def test_a_command_whose_supervisor_is_killed_ends_too() -> None:
    tools = Memory()
    cmd = "echo $PPID; echo $$; sleep 60 & echo $!; wait"
    running = asyncio.create_task(ShellExecutor().execute(given({"cmd": cmd}, tools)))
    supervisor, *pids = [int(line) for line in await tools.lines(3)]
    os.kill(supervisor, signal.SIGKILL)
    outcome = await running
    assert isinstance(outcome, Failed)
    assert outcome.error == "killed by signal 9 (SIGKILL)"
    await are_gone(*pids)


async def test_the_whole_tree_ends_if_ksana_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = SERVER % ("pwd; " + FAMILY, str(out))
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=ROOT)
    await until(lambda: out.exists() and out.read_text().count("\n") >= 5)
    directory, *pids = out.read_text().split()
    assert all(is_running(int(pid)) for pid in pids)
    server.kill()
    await server.wait()
    await are_gone(*map(int, pids))
    await until(lambda: not Path(directory).exists())


async def test_a_flood_of_output_leaves_the_event_loop_to_others() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    outcome = await ShellExecutor().execute(given({"cmd": ["yes"]}, timeout=0.5))
    ticking.cancel()
    assert isinstance(outcome, TimedOut)
    assert ticks > 2
