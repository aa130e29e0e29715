"""How a command ends, what becomes of what it wrote, and what it is told."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.unit.executors.processes import Memory, given, node

from ksana.domain.errors import InvalidInput, StoreUnavailable
from ksana.domain.outcome import Failed, Succeeded
from ksana.executors.base import AttemptLost
from ksana.executors.shell import ShellExecutor
from ksana.executors.shell_options import ShellOptions, account_of

QUICK = ShellOptions(poll=timedelta(milliseconds=20))


async def output_of(cmd: str | list[str], options: ShellOptions | None = None, **more: Any) -> str:
    """What a command that succeeds wrote to its standard output."""
    env = more.pop("env", {})
    outcome = await ShellExecutor(options).execute(given({"cmd": cmd, "env": env}, **more))
    assert isinstance(outcome, Succeeded), outcome
    return str(outcome.output["stdout"])


async def test_exit_code_0_succeeds_with_what_was_written() -> None:
    tools = Memory()
    outcome = await ShellExecutor().execute(
        given({"cmd": "echo out; echo err >&2", "env": {"SECRET": "s3cret"}}, tools)
    )
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"exitCode": 0, "stdout": "out\n"}
    assert tools.text == {"stdout": "out\n", "stderr": "err\n"}
    evidence = outcome.evidence
    assert evidence.request == {"cmd": "echo out; echo err >&2", "env": ["SECRET"], "cwd": None}
    assert evidence.response_headers == {"exit-code": "0"}
    assert sorted((evidence.response_body or "").split()) == ["err", "out"]
    assert "s3cret" not in repr(evidence)


async def test_another_exit_code_fails_with_the_last_line_of_standard_error() -> None:
    outcome = await ShellExecutor().execute(
        given({"cmd": "echo first >&2; echo 'no such table' >&2; echo >&2; exit 3"})
    )
    assert isinstance(outcome, Failed)
    assert outcome.error == "exit code 3: no such table"
    assert outcome.retryable
    assert outcome.evidence.response_headers == {"exit-code": "3"}


@pytest.mark.parametrize(
    ("cmd", "error"),
    [
        ("exit 9", "exit code 9"),
        ("kill -9 $$", "killed by signal 9 (SIGKILL)"),
        ("kill -SEGV $$", "killed by signal 11 (SIGSEGV)"),
        ("kill 0", "killed by signal 15 (SIGTERM)"),
        (["no-such-command"], "exit code 127: no-such-command: No such file or directory"),
        (["/etc/passwd"], "exit code 126: /etc/passwd: Permission denied"),
    ],
)
async def test_every_other_end_fails_and_may_be_tried_again(cmd: str | list[str], error: str) -> None:
    outcome = await ShellExecutor().execute(given({"cmd": cmd}))
    assert isinstance(outcome, Failed)
    assert outcome.error == error
    assert outcome.retryable


async def test_a_long_last_line_is_cut() -> None:
    outcome = await ShellExecutor().execute(given({"cmd": "printf 'x%.0s' $(seq 500) >&2; exit 1"}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"exit code 1: {'x' * 200}…"


async def test_a_list_is_run_without_a_shell() -> None:
    assert await output_of(["echo", "$HOME; ls", "*"]) == "$HOME; ls *\n"


async def test_output_is_handed_on_as_it_comes_in_whole_characters_and_its_end_is_kept() -> None:
    tools = Memory()
    cmd = "printf '\\303'; sleep 0.05; printf '\\274ber\\n'; yes 0123456789abcde | head -c 200000; printf '\\377'"
    outcome = await ShellExecutor().execute(given({"cmd": cmd}, tools))
    assert isinstance(outcome, Succeeded)
    assert tools.text["stdout"].startswith("über\n")
    assert tools.text["stdout"].endswith("\ufffd")
    assert len(tools.text["stdout"]) == 200_000 + 6
    assert len(outcome.output["stdout"].encode()) <= 65_536 + 2
    assert outcome.output["stdout"].endswith("0123456789abcde\n\ufffd")


async def test_json_in_the_artifact_file_is_the_output() -> None:
    outcome = await ShellExecutor().execute(given({"cmd": """echo '{"rows": 3}' > "$KSANA_ARTIFACT" """}))
    assert isinstance(outcome, Succeeded)
    assert outcome.output == {"rows": 3}


@pytest.mark.parametrize(
    ("cmd", "reason"),
    [
        ('echo rows > "$KSANA_ARTIFACT"', "artifact.json is not JSON"),
        ('ln -s /etc/passwd "$KSANA_ARTIFACT"', "artifact.json cannot be read: too many levels of symbolic links"),
        ('mkfifo "$KSANA_ARTIFACT"', "artifact.json is not a plain file"),
        ('echo 1 > x; ln x "$KSANA_ARTIFACT"', "artifact.json is not a plain file"),
        ('head -c 1000001 /dev/zero > "$KSANA_ARTIFACT"', "artifact.json is larger than 1000000 bytes"),
    ],
)
async def test_an_artifact_that_cannot_be_taken_fails_for_good(cmd: str, reason: str) -> None:
    outcome = await ShellExecutor().execute(given({"cmd": cmd}))
    assert isinstance(outcome, Failed)
    assert outcome.error == f"the command ended well, but {reason}"
    assert not outcome.retryable


async def test_a_command_is_told_which_attempt_it_is_and_nothing_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_DATABASE_URL", "postgresql://k:s3cret@db/k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("WANTED", "yes")
    context: dict[str, Any] = {"params": {"day": "monday"}, "place": node(item={"a": 1}, index=3)}
    written = await output_of(["env"], ShellOptions(env=("WANTED", "KSANA_DATABASE_URL")), env={"OWN": "1"}, **context)
    told = dict(line.split("=", 1) for line in written.splitlines())
    assert set(told) - {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"} == {
        *("PATH", "LC_TIME", "WANTED", "OWN", "KSANA_RUN_ID", "KSANA_NODE_ID", "KSANA_JOB", "KSANA_ATTEMPT"),
        *("KSANA_IDEMPOTENCY_KEY", "KSANA_TRACE_ID", "KSANA_PARAMS", "KSANA_ARTIFACT", "KSANA_CHECKPOINT"),
        *("KSANA_ITEM", "KSANA_INDEX", "KSANA_SCHEDULED_AT"),
    }
    assert told["KSANA_RUN_ID"] == "run-1"
    assert told["KSANA_NODE_ID"] == "load"
    assert told["KSANA_JOB"] == "nightly"
    assert told["KSANA_ATTEMPT"] == "2"
    assert json.loads(told["KSANA_PARAMS"]) == {"day": "monday"}
    assert json.loads(told["KSANA_ITEM"]) == {"a": 1}
    assert told["KSANA_INDEX"] == "3"
    assert "s3cret" not in written


async def test_values_reach_a_command_as_variables_which_no_shell_reads() -> None:
    env = {"WHO": "{{ params.who }}", "ROWS": "{{ nodes.load.artifact.rows }}", "RUN": "{{ run_id }}/{{ attempt }}"}
    who = "$(touch /tmp/pwned); `id` \" '"
    nodes = {"load": {"status": "SUCCESS", "artifact": {"rows": [1, 2]}}}
    written = await output_of('echo "$WHO|$ROWS|$RUN"', env=env, params={"who": who}, nodes=nodes)
    assert written == f"{who}|[1, 2]|42/2\n"


@pytest.mark.parametrize(
    ("env", "params", "reason"),
    [
        ({"A": "{{ params.none }}"}, {}, "the template failed"),
        ({"A": "{{ params.nul }}"}, {"nul": "\0"}, "env.A: has a NUL character"),
        ({}, {"long": "x" * 132_000}, "env.KSANA_PARAMS: is longer than"),
    ],
)
async def test_a_value_that_no_variable_can_hold_fails_for_good(env: Any, params: Any, reason: str) -> None:
    outcome = await ShellExecutor().execute(given({"cmd": "true", "env": env}, params=params))
    assert isinstance(outcome, Failed)
    assert reason in outcome.error
    assert not outcome.retryable


async def test_each_attempt_has_a_private_directory_that_is_removed() -> None:
    written = await output_of(
        "pwd; umask; stat -c %a .; touch file; echo $KSANA_ARTIFACT; tty; readlink /proc/self/fd/0"
    )
    directory, umask, mode, artifact, terminal, stdin = written.splitlines()
    assert (umask, mode, terminal, stdin) == ("0077", "700", "not a tty", "/dev/null")
    assert Path(artifact).parent == Path(directory)
    assert not os.path.exists(directory)  # noqa: PTH110, ASYNC240


async def test_an_earlier_checkpoint_is_there_and_a_new_one_is_kept_whatever_the_end() -> None:
    tools = Memory()
    cmd = 'cat "$KSANA_CHECKPOINT"; echo \'{"at": 8}\' > "$KSANA_CHECKPOINT"; exit 1'
    outcome = await ShellExecutor().execute(given({"cmd": cmd}, tools, checkpoint={"at": 7}))
    assert isinstance(outcome, Failed)
    assert tools.text["stdout"] == '{"at":7}'
    assert tools.checkpoints == [{"at": 8}]


async def test_a_checkpoint_is_kept_while_the_command_runs(tmp_path: Path) -> None:
    signal = tmp_path / "go"
    cmd = 'echo 1 > "$KSANA_CHECKPOINT"; until [ -e "$GO" ]; do sleep 0.01; done'

    class Going(Memory):
        async def save_checkpoint(self, value: Any) -> None:
            await super().save_checkpoint(value)
            signal.touch()

    tools = Going()
    outcome = await ShellExecutor(QUICK).execute(given({"cmd": cmd, "env": {"GO": str(signal)}}, tools))
    assert isinstance(outcome, Succeeded)
    assert tools.checkpoints == [1]


async def test_an_unchanged_or_unusable_checkpoint_is_not_kept() -> None:
    tools = Memory()
    await ShellExecutor().execute(given({"cmd": "true"}, tools, checkpoint=[1]))
    await ShellExecutor().execute(given({"cmd": 'echo "{" > "$KSANA_CHECKPOINT"'}, tools))
    assert tools.checkpoints == []
    assert tools.text["stderr"] == "[ksana] the checkpoint was not kept: checkpoint.json is not JSON\n"


async def test_a_store_that_is_away_costs_the_checkpoint_but_not_the_command() -> None:
    tools = Memory(StoreUnavailable("away"))
    outcome = await ShellExecutor().execute(given({"cmd": 'echo 1 > "$KSANA_CHECKPOINT"'}, tools))
    assert isinstance(outcome, Succeeded)
    assert tools.text["stderr"] == "[ksana] the checkpoint was not kept: away\n"


async def test_an_attempt_that_is_no_longer_ours_is_ended() -> None:
    tools = Memory(AttemptLost())
    outcome = await ShellExecutor(QUICK).execute(given({"cmd": 'echo 1 > "$KSANA_CHECKPOINT"; sleep 60'}, tools))
    assert outcome == Failed("no longer ours", retryable=False, evidence=outcome.evidence)


async def test_a_job_that_was_saved_under_other_rules_is_refused_when_it_runs() -> None:
    outcome = await ShellExecutor(ShellOptions(refusal="switched off")).execute(given({"cmd": "true"}))
    assert outcome == Failed("type: switched off", retryable=False)


async def test_a_working_directory_that_leads_elsewhere_is_refused_when_it_runs(tmp_path: Path) -> None:
    allowed, place = tmp_path / "allowed", tmp_path / "allowed" / "place"
    place.mkdir(parents=True)
    executor = ShellExecutor(ShellOptions(directories=(str(allowed),)))
    config = executor.check({"cmd": ["pwd"], "cwd": str(place)})
    outcome = await executor.execute(given(config))
    assert isinstance(outcome, Succeeded)
    assert outcome.output["stdout"] == f"{place}\n"
    place.rmdir()
    place.symlink_to("/etc")
    outcome = await executor.execute(given(config))
    assert isinstance(outcome, Failed)
    assert "cwd: must be in one of the directories" in outcome.error
    with pytest.raises(InvalidInput):
        executor.check(config)


async def test_limits_hold() -> None:
    limits = {"cpu": 7, "memory": 300_000_000, "file_size": 5_000, "processes": 400}
    written = await output_of(["cat", "/proc/self/limits"], ShellOptions(limits=limits))
    found = {line[:26].strip(): line[26:].split()[:2] for line in written.splitlines()}
    assert found["Max cpu time"] == ["7", "7"]
    assert found["Max address space"] == ["300000000", "300000000"]
    assert found["Max file size"] == ["5000", "5000"]
    assert found["Max processes"] == ["400", "400"]
    outcome = await ShellExecutor(ShellOptions(limits=limits)).execute(
        given({"cmd": "exec head -c 6000 /dev/zero > big"})
    )
    assert isinstance(outcome, Failed)
    assert outcome.error == "killed by signal 25 (SIGXFSZ)"


def test_it_works_the_same_on_the_event_loop_of_the_server() -> None:
    async def main() -> None:
        outcome = await ShellExecutor().execute(given({"cmd": "echo out; sleep 60 & exit 4"}))
        assert isinstance(outcome, Failed)
        assert outcome.error == "exit code 4"
        assert outcome.evidence.response_body == "out\n"

    uvloop.run(main())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_can_be_switched_to() -> None:
    options = ShellOptions(user=account_of("nobody"))
    cmd = 'id -un; echo $USER; cat "$KSANA_CHECKPOINT"; echo [1] > "$KSANA_ARTIFACT"'
    tools = Memory()
    outcome = await ShellExecutor(options).execute(given({"cmd": cmd}, tools, checkpoint=5))
    assert isinstance(outcome, Succeeded), outcome
    assert outcome.output == [1]
    assert tools.text["stdout"] == "nobody\nnobody\n5"
