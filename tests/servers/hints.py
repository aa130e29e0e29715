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

#: What KSANA_TEST_REQUIRE may list.
BACK_ENDS = tuple(_APT)


def how_to_install(back_end: str) -> str:
    """The command that installs it."""
    if sys.platform == "darwin":
        return f"brew install {_BREW[back_end]}"
    return f"apt-get install {_APT[back_end]}"
