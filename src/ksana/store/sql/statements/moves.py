"""Where executions go."""

from typing import Any

from sqlalchemy import Row

from ksana.domain.states import ExecutionStatus
from ksana.domain.values import immutable


@immutable
class Moved:
    """An execution that the transaction has locked, and where it goes."""

    row: Row[Any]
    target: ExecutionStatus
    at: int
    ready_at: int | None = None
    deadline_at: int | None = None
    attempt: int | None = None
    """Its number of attempts from now on, if not the one it has."""
    error: str | None = None
    output: Any = None
    reason: str | None = None
