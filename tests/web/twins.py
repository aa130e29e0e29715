"""Calls as the commands that the console shows, worked out by its own code, and a shell to type them into."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers import absence
from tests.servers.base import MissingError
from tests.servers.hints import how_to_install

ROOT = Path(__file__).parents[2]
NEEDED = ROOT / "web" / "node_modules"
SECONDS = 60
LOOKS = (":preview", ":validate")
"""Ends of what is sent as a POST and changes nothing: a form asks by itself, and no button does."""
Call = dict[str, Any]


def commands_of(calls: Sequence[Call]) -> list[str | None]:
    """None where the console would show none."""
    if not NEEDED.exists():
        absence.absent("console", MissingError("The console", how_to_install("console"), str(NEEDED)))
    done = subprocess.run(
        ["sh", "scripts/web", "twins"],
        cwd=ROOT,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def pasted(command: str) -> str:
    """What it prints when it is pasted into a shell that finds `ksana`; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{command}\n{done}"
    return done.stdout


def without_command(asked: Sequence[Call]) -> list[Call]:
    """Those that change something and cannot be typed."""
    changing = [call for call in asked if not call["path"].endswith(LOOKS)]
    commands = commands_of(changing) if changing else []
    return [call for call, command in zip(changing, commands, strict=True) if command is None]
