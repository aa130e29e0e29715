"""What may stand in the config of a shell job, and which settings decide over it."""

import os
import re
from typing import Any

import pytest

from ksana.domain.errors import InvalidInput, InvalidSetting
from ksana.executors.shell import ShellExecutor
from ksana.executors.shell_options import ShellOptions, account_of, shell_options
from ksana.settings import load


def checked(config: dict[str, Any], **options: Any) -> Any:
    return ShellExecutor(ShellOptions(**options)).check(config)


def options_of(**variables: str) -> ShellOptions:
    return shell_options(load(environ={f"KSANA_{name}": value for name, value in variables.items()}).settings)


def test_the_defaults_are_filled_in() -> None:
    assert checked({"cmd": "ls | wc -l"}) == {"cmd": "ls | wc -l", "env": {}, "cwd": None}
    assert checked({"cmd": ("ls", "-l"), "env": {"A": "{{ params.a }}"}})["cmd"] == ["ls", "-l"]


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        ({}, "cmd", "must be a command line, or a list"),
        ({"cmd": []}, "cmd", "must be a command line, or a list"),
        ({"cmd": ["ls", 1]}, "cmd", "must be a command line, or a list"),
        ({"cmd": " "}, "cmd", "must not be blank"),
        ({"cmd": ["", "x"]}, "cmd", "must not be blank"),
        ({"cmd": "x\0"}, "cmd", "must not contain NUL"),
        ({"cmd": "x" * 100_001}, "cmd", "is longer than"),
        ({"cmd": "echo {{ params.who }}"}, "cmd", 'must not have templates .* write "\\$WHO" here'),
        ({"cmd": "echo {% if 1 %}"}, "cmd", "must not have templates"),
        ({"cmd": ["echo", "{{params.who}}"]}, "cmd", "must not have templates"),
        ({"cmd": "ls", "env": []}, "env", "must be an object"),
        ({"cmd": "ls", "env": {"A B": "1"}}, "env.A B", "must be named with letters"),
        ({"cmd": "ls", "env": {"KSANA_RUN_ID": "1"}}, "env.KSANA_RUN_ID", "are Ksana's own"),
        ({"cmd": "ls", "env": {"A": 1}}, "env.A", "must be a string"),
        (
            {"cmd": "ls", "env": {"A": "{{ database }}"}},
            "env.A",
            "there is no variable 'database'; there are: attempt, ",
        ),
        ({"cmd": "ls", "cwd": "relative"}, "cwd", "must be the whole path"),
        ({"cmd": "ls", "cwd": "/tmp"}, "cwd", "allows: none \\(executor.shell_directories\\)"),
        ({"cmd": "ls", "shell": "bash"}, "shell", "not known; there are: cmd, env, cwd"),
    ],
)
def test_what_cannot_be_run_is_refused_naming_the_part(config: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as refused:
        checked(config)
    assert refused.value.field == field


def test_a_shells_own_braces_are_no_template() -> None:
    assert checked({"cmd": "echo ${#HOME} ${HOME%%x} {a,b}"})["cmd"] == "echo ${#HOME} ${HOME%%x} {a,b}"


def test_a_working_directory_must_be_below_an_allowed_one() -> None:
    assert checked({"cmd": "ls", "cwd": "/usr/bin"}, directories=("/usr",))["cwd"] == "/usr/bin"
    for cwd in ("/usrx", "/usr/../etc", "/"):
        with pytest.raises(InvalidInput, match="allows: /usr"):
            checked({"cmd": "ls", "cwd": cwd}, directories=("/usr",))


def test_with_an_allowlist_only_its_commands_are_run_and_no_shell() -> None:
    allow = frozenset({"/usr/bin/rsync", "backup"})
    assert checked({"cmd": ["backup", "now"]}, allow=allow)["cmd"] == ["backup", "now"]
    with pytest.raises(InvalidInput, match=r"cmd: must be a list here, because .*: /usr/bin/rsync, backup"):
        checked({"cmd": "backup now"}, allow=allow)
    with pytest.raises(InvalidInput, match="cmd: 'rsync' is not allowed; these are: /usr/bin/rsync, backup"):
        checked({"cmd": ["rsync"]}, allow=allow)
    for name in ("LD_PRELOAD", "PATH", "BASH_ENV", "PYTHONPATH"):
        with pytest.raises(InvalidInput, match=f"env.{name}: cannot be set where only some commands are allowed"):
            checked({"cmd": ["backup"], "env": {name: "x"}}, allow=allow)


@pytest.mark.parametrize(
    ("mode", "host", "on"),
    [
        ("auto", "127.0.0.1", True),
        ("auto", "::1", True),
        ("auto", "localhost", True),
        ("auto", "0.0.0.0", False),
        ("auto", "ksana.internal", False),
        ("on", "0.0.0.0", True),
        ("off", "127.0.0.1", False),
    ],
)
def test_commands_are_off_beyond_loopback_until_the_settings_turn_them_on(mode: str, host: str, on: bool) -> None:
    executor = ShellExecutor(options_of(EXECUTOR_SHELL=mode, SERVER_HOST=host))
    if on:
        executor.check({"cmd": "ls"})
        return
    with pytest.raises(InvalidInput, match=r"shell jobs are switched off here.*`executor.shell: on`") as refused:
        executor.check({"cmd": "ls"})
    assert refused.value.field == "type"


def test_the_settings_become_options() -> None:
    options = options_of(
        EXECUTOR_SHELL_ALLOW="backup, /usr/bin/rsync",
        EXECUTOR_SHELL_DIRECTORIES="/srv,/data",
        EXECUTOR_SHELL_CPU="1500ms",
        EXECUTOR_SHELL_MEMORY="1000000",
        EXECUTOR_CHILD_ENV="AWS_REGION",
    )
    assert options.allow == {"backup", "/usr/bin/rsync"}
    assert options.directories == ("/srv", "/data")
    assert options.limits == {"cpu": 2, "memory": 1_000_000}
    assert options.env == ("AWS_REGION",)
    assert options_of() == ShellOptions()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EXECUTOR_CHILD_ENV", "KSANA_DATABASE_URL"),
        ("EXECUTOR_SHELL_DIRECTORIES", "relative"),
        ("EXECUTOR_SHELL_USER", "no/name"),
        ("EXECUTOR_PYTHON_MODULES", "os;sys"),
        ("EXECUTOR_SHELL", "maybe"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(variable: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(value)):
        options_of(**{variable: value})


def test_a_user_must_be_there_and_within_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSetting, match="there is no user no-such-user on this machine"):
        options_of(EXECUTOR_SHELL_USER="no-such-user")
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(InvalidSetting, match="Ksana must run as root"):
        account_of("root")
