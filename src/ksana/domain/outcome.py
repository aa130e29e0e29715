"""What an executor returns: a closed set. Nothing else ends an attempt."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from ksana.domain.values import immutable


@immutable
class Evidence:
    """What was sent and what came back, kept with the attempt. Empty for executors that send nothing."""

    request: Mapping[str, Any] = field(default_factory=dict)
    request_body: str | None = None
    response_code: int | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response_body: str | None = None


NO_EVIDENCE = Evidence()


@immutable
class Succeeded:
    output: Any = None
    evidence: Evidence = NO_EVIDENCE


@immutable
class Failed:
    error: str
    retryable: bool = True
    retry_after: timedelta | None = None
    evidence: Evidence = NO_EVIDENCE


@immutable
class TimedOut:
    error: str
    evidence: Evidence = NO_EVIDENCE


@immutable
class AwaitingCallback:
    """The target has accepted the work and will report to the callback before `within` has passed; None: at any time."""

    within: timedelta | None
    evidence: Evidence = NO_EVIDENCE


@immutable
class Cancelled:
    reason: str = "cancelled"
    evidence: Evidence = NO_EVIDENCE


@immutable
class Deferred:
    """There is nothing to do before that time; it is asked again then."""

    until: datetime
    evidence: Evidence = NO_EVIDENCE


Outcome = Succeeded | Failed | TimedOut | AwaitingCallback | Deferred | Cancelled
