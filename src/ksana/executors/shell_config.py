"""The config of a `shell` job: what may stand in it. Values reach a command through its environment only (S6)."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ksana.domain.errors import InvalidInput
from ksana.executors.base import ExecutionContext
from ksana.executors.shell_env import OURS, VARIABLES, checked_values, variables
from ksana.executors.shell_options import ShellOptions
from ksana.executors.templates import check_template, render

MAX_COMMAND = 100_000
MAX_WORDS = 1_000
MAX_ENV = 200
_KEYS = ("cmd", "env", "cwd")
_TEMPLATE = re.compile(r"\{[{%]")  # not `{#`, which a shell reads in `${#name}`
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Through these an allowed command could be made to run another. An allowlist is no cage, but it needs no open door.
_STEERING = re.compile(
    r"PATH|ENV|IFS|SHELLOPTS|HOME|(LD|DYLD|BASH|PYTHON|PERL|PERL5|RUBY|NODE|GIT|JAVA|GCONV)[_A-Z0-9]*"
)


@dataclass(frozen=True, slots=True)
class ShellTarget:
    """A checked config, as the executor reads it."""

    cmd: str | list[str]
    env: Mapping[str, str]
    """Its values are still templates."""
    cwd: str | None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "ShellTarget":
        """From a config that `checked_config` has passed."""
        return cls(config["cmd"], config["env"], config["cwd"])

    @property
    def argv(self) -> list[str]:
        return ["/bin/sh", "-c", self.cmd] if isinstance(self.cmd, str) else self.cmd

    def filled_env(self, context: ExecutionContext) -> dict[str, str]:
        """The job's own variables. TemplateFailed if one cannot be filled in."""
        values = variables(context)
        return checked_values({name: render(text, values) for name, text in self.env.items()})


def checked_config(config: Mapping[str, Any], options: ShellOptions) -> dict[str, Any]:
    """The config with its defaults, as plain JSON. InvalidInput names the key that is wrong, `type` if commands are off."""
    if options.refusal is not None:
        raise InvalidInput("type", options.refusal)
    for key in config:
        if key not in _KEYS:
            raise InvalidInput(str(key), f"not known; there are: {', '.join(_KEYS)}")
    cmd = _checked_cmd(config.get("cmd"))
    _check_allowed(cmd, options)
    return {
        "cmd": cmd,
        "env": _checked_env(config.get("env"), steering=not options.allow),
        "cwd": _checked_cwd(config.get("cwd"), options),
    }


def permitted_cwd(cwd: str, options: ShellOptions) -> str:
    """Where it really is, links followed. InvalidInput if that is not below a directory that is allowed."""
    real = os.path.realpath(cwd)
    if any(_is_below(real, os.path.realpath(directory)) for directory in options.directories):
        return real
    allowed = ", ".join(options.directories) or "none (executor.shell_directories)"
    raise InvalidInput("cwd", f"must be in one of the directories that the server allows: {allowed}")


def _checked_cmd(value: Any) -> str | list[str]:
    words = value if isinstance(value, list | tuple) else [value]
    if not words or len(words) > MAX_WORDS or not all(isinstance(word, str) for word in words):
        raise InvalidInput("cmd", "must be a command line, or a list of strings: the program and its arguments")
    if not words[0].strip():
        raise InvalidInput("cmd", "must not be blank")
    if sum(len(word) for word in words) > MAX_COMMAND:
        raise InvalidInput("cmd", f"is longer than {MAX_COMMAND} characters")
    for word in words:
        if "\0" in word or any(0xD800 <= ord(character) < 0xE000 for character in word):
            raise InvalidInput("cmd", "must not contain NUL or halves of characters")
        if _TEMPLATE.search(word):
            raise InvalidInput(
                "cmd",
                "must not have templates ({{ or {%): give the value a name in `env`, as in"
                ' {"WHO": "{{ params.who }}"}, and write "$WHO" here',
            )
    return value if isinstance(value, str) else list(words)


def _check_allowed(cmd: str | list[str], options: ShellOptions) -> None:
    if not options.allow:
        return
    listed = ", ".join(sorted(options.allow))
    if isinstance(cmd, str):
        raise InvalidInput("cmd", f"must be a list here, because only some commands are allowed: {listed}")
    if cmd[0] not in options.allow:
        raise InvalidInput("cmd", f"{cmd[0][:64]!r} is not allowed; these are: {listed}")


def _checked_env(value: Any, *, steering: bool) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_ENV:
        raise InvalidInput("env", f"must be an object of at most {MAX_ENV} names and values")
    for name, text in value.items():
        field = f"env.{str(name)[:64]}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput(field, "must be named with letters, digits and _, beginning with no digit")
        if name.startswith(OURS):
            raise InvalidInput(field, f"names that begin with {OURS} are Ksana's own")
        if not steering and _STEERING.fullmatch(name):
            raise InvalidInput(field, "cannot be set where only some commands are allowed")
        if not isinstance(text, str) or "\0" in text:
            raise InvalidInput(field, "must be a string")
        check_template(text, field=field, names=VARIABLES)
    return dict(value)


def _checked_cwd(value: Any, options: ShellOptions) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise InvalidInput("cwd", "must be the whole path of a directory")
    permitted_cwd(value, options)
    return value


def _is_below(path: str, directory: str) -> bool:
    return os.path.commonpath((path, directory)) == directory
