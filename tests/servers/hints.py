"""How to get a back end on this kind of machine."""

import sys

_APT = {
    "postgresql": "postgresql",
    "mysql": "mariadb-server",
    "redis": "redis-server",
    "chromium": "chromium",
    "compiler": "gcc libc6-dev",
}
_BREW = {
    "postgresql": "postgresql",
    "mysql": "mariadb",
    "redis": "redis",
    "chromium": "--cask chromium",
    "compiler": "gcc",
}

_MADE = {"console": "make web"}
"""What is not installed but made."""

#: What KSANA_TEST_REQUIRE may list.
BACK_ENDS = (*_APT, *_MADE)


def how_to_install(back_end: str) -> str:
    """The command that installs or makes it."""
    if back_end in _MADE:
        return _MADE[back_end]
    if sys.platform == "darwin":
        return f"brew install {_BREW[back_end]}"
    return f"apt-get install {_APT[back_end]}"
