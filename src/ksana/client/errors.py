"""What the client raises.

FacadeError                 Ksana said no, or something that cannot be understood; `code` says what
└── FacadeUnavailable       Ksana cannot be reached, or cannot answer now: try again later
"""

from collections.abc import Mapping
from typing import Any

UNREACHABLE = "UNREACHABLE"
UNEXPECTED_ANSWER = "UNEXPECTED_ANSWER"


class FacadeError(Exception):
    """`code`, `message` and `details` are those of Ksana's error envelope."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details: Mapping[str, Any] = dict(details or {})


class FacadeUnavailable(FacadeError):
    """Nobody answered (`UNREACHABLE`), or Ksana cannot now, with its own code: `STORE_UNAVAILABLE`, `COMMIT_UNKNOWN`, …

    An order may have been taken although its answer was lost: look before you repeat it.
    """
