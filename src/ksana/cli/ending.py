"""How commands end: their exit codes, and the one line that says why."""

import sys

FAILED = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130


class Refusal(Exception):
    """A command cannot be done: what to tell, and the exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def tell(message: str) -> None:
    """One line on standard error, without what a terminal would obey: some of it may come from others."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in " ".join(message.split()))
    print(f"ksana: {line}", file=sys.stderr)
