"""What the console is built from: exact, whole for every platform, and from whichever registry the machine has."""

import json
import re
from pathlib import Path

WEB = Path(__file__).parents[2] / "web"
PACKAGE = json.loads((WEB / "package.json").read_text())
LOCKED = json.loads((WEB / "package-lock.json").read_text())["packages"]


def test_versions_are_exact() -> None:
    named = PACKAGE["dependencies"] | PACKAGE["devDependencies"] | PACKAGE["overrides"]
    assert [name for name, version in named.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_the_lock_names_no_registry() -> None:
    assert "omit-lockfile-registry-resolved=true" in (WEB / ".npmrc").read_text()
    assert [name for name, package in LOCKED.items() if "resolved" in package] == []


def test_the_lock_has_what_other_platforms_need() -> None:
    # Where a registry lacks one, npm leaves it out of the lock without a word, and `npm ci` refuses that lock.
    optional = {name for package in LOCKED.values() for name in package.get("optionalDependencies", {})}
    assert {name for name in optional if f"node_modules/{name}" not in LOCKED} == set()
