"""How all commands are run, whatever a job says: from the server's settings, never from the API."""

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from ksana.domain.errors import InvalidSetting
from ksana.executors.shell_process import Account
from ksana.settings.table import ExecutorSettings, Settings
from ksana.settings.values import is_loopback

OFF_BEYOND_LOOPBACK = (
    "shell jobs are switched off here, because this server can be reached from other machines:"
    " `executor.shell: on` in its settings file (KSANA_EXECUTOR_SHELL=on) turns them on"
)
OFF = "shell jobs are switched off here: `executor.shell: on` in the server's settings file turns them on"


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """What holds for every command."""

    refusal: str | None = None
    """Why no command is run at all; None if they are."""
    allow: frozenset[str] = frozenset()
    """The only commands that may be run, as a job names them; if there are none, all may."""
    directories: tuple[str, ...] = ()
    """Where, or below which, a job's `cwd` may be."""
    env: tuple[str, ...] = ()
    """Variables of the server that commands get, besides the usual."""
    limits: Mapping[str, int] = field(default_factory=dict)
    user: Account | None = None
    poll: timedelta = timedelta(seconds=1)
    """How often the checkpoint is looked at while the command runs."""


def shell_options(settings: Settings) -> ShellOptions:
    """The options that these settings say. InvalidSetting if the user is none, or cannot be switched to."""
    executor = settings.executor
    return ShellOptions(
        refusal=_refusal(executor.shell, settings.server.host),
        allow=frozenset(executor.shell_allow),
        directories=executor.shell_directories,
        env=executor.child_env,
        limits=_limits(executor),
        user=account_of(executor.shell_user) if executor.shell_user else None,
    )


def _refusal(mode: str, host: str) -> str | None:
    if mode == "on" or (mode == "auto" and is_loopback(host)):
        return None
    return OFF if mode == "off" else OFF_BEYOND_LOOPBACK


def _limits(executor: ExecutorSettings) -> dict[str, int]:
    """Those that are set; 0 is none."""
    limits = {
        "cpu": -int(-executor.shell_cpu.total_seconds() // 1),
        "memory": executor.shell_memory,
        "file_size": executor.shell_file_size,
        "processes": executor.shell_processes,
    }
    return {name: value for name, value in limits.items() if value}


def account_of(name: str) -> Account:
    """The user of that name. InvalidSetting if there is none, or this process may not switch to it."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise InvalidSetting(
            "executor.shell_user", f"there is no user {name} on this machine", source="settings"
        ) from None
    if os.geteuid() not in (0, found.pw_uid):
        told = "Ksana must run as root to switch to another user; leave it out, or start Ksana as that user"
        raise InvalidSetting("executor.shell_user", told, source="settings")
    groups = tuple(group.gr_gid for group in grp.getgrall() if name in group.gr_mem)
    return Account(found.pw_uid, found.pw_gid, (found.pw_gid, *groups), name, found.pw_dir)
