"""A job: what to do, how long it may take, how often it is tried, and how many may run at once."""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from ksana.domain.errors import InvalidInput
from ksana.domain.retry import NO_RETRY, RetryPolicy
from ksana.domain.values import immutable

NAME_LENGTH = 128
DESCRIPTION_LENGTH = 512
DEFAULT_QUEUE_LIMIT = 1_000
MAX_CONCURRENCY = 1_000_000
DEFAULT_QUEUE = "default"
QUEUE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_QUEUE = re.compile(QUEUE_PATTERN)


class ConcurrencyPolicy(StrEnum):
    """What happens to a run that is due while its job already runs `max_concurrency` times."""

    QUEUE = "QUEUE"  # it waits its turn, in order, at most `queue_limit` deep
    SKIP = "SKIP"  # it is recorded as SKIPPED
    PARALLEL = "PARALLEL"  # the limit is ignored


class RecoveryRule(StrEnum):
    """What happens to an execution whose instance died: at least once, or at most once."""

    RETRY = "retry"
    FAIL = "fail"


class ExecutionMode(StrEnum):
    SYNC = "SYNC"  # the answer is the result
    ASYNC = "ASYNC"  # the answer accepts the work; a callback brings the result


class Contract(StrEnum):
    """Through which contract a job was created; every contract shows it, this one fixes its defaults."""

    KSANA = "ksana"  # document 002
    CRONJOB = "cronjob"  # document 003
    JOBCHAIN = "jobchain"  # documents 000 and 001


@immutable
class JobSpec:
    """A job as its author defines it."""

    name: str
    type: str
    config: Mapping[str, Any]
    description: str = ""
    enabled: bool = True
    mode: ExecutionMode = ExecutionMode.SYNC
    timeout: timedelta = timedelta(seconds=10)
    callback_timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = NO_RETRY
    max_concurrency: int = 1
    concurrency: ConcurrencyPolicy = ConcurrencyPolicy.QUEUE
    queue_limit: int = DEFAULT_QUEUE_LIMIT
    recovery: RecoveryRule = RecoveryRule.RETRY
    worker_queue: str = DEFAULT_QUEUE
    """Which workers may do it: those that serve this queue."""
    contract: Contract = Contract.JOBCHAIN
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_name(self.name)
        if len(self.description) > DESCRIPTION_LENGTH:
            raise InvalidInput("description", f"is longer than {DESCRIPTION_LENGTH} characters")
        if not self.type or len(self.type) > 64:
            raise InvalidInput("type", "must name an executor, in at most 64 characters")
        if self.timeout <= timedelta(0):
            raise InvalidInput("timeout", "must be longer than nothing")
        if self.callback_timeout <= timedelta(0):
            raise InvalidInput("callback_timeout", "must be longer than nothing")
        if not 1 <= self.max_concurrency <= MAX_CONCURRENCY:
            raise InvalidInput("max_concurrency", f"must be between 1 and {MAX_CONCURRENCY}")
        if not 0 <= self.queue_limit <= MAX_CONCURRENCY:
            raise InvalidInput("queue_limit", f"must be between 0 and {MAX_CONCURRENCY}")
        checked_queue(self.worker_queue)

    @property
    def limited(self) -> bool:
        """Whether its concurrency limit is to be kept."""
        return self.concurrency is not ConcurrencyPolicy.PARALLEL


@immutable
class Job:
    """A stored job. `id` is document 003's integer, `key` the string that documents 000, 001 and 002 use."""

    id: int
    key: str
    spec: JobSpec
    version: int
    created_at: datetime
    updated_at: datetime
    deleted: bool = False


def checked_queue(name: str, *, field: str = "worker_queue") -> str:
    """The name itself; InvalidInput if no worker could be told to serve it."""
    if not _QUEUE.fullmatch(name):
        raise InvalidInput(field, "must be 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or a digit")
    return name


def checked_name(name: str, *, field: str = "name") -> str:
    """The name itself; InvalidInput if it is blank, too long, or has control characters."""
    if not name.strip():
        raise InvalidInput(field, "must not be blank")
    # MySQL would take "x" and "x " for the same.
    if name != name.strip():
        raise InvalidInput(field, "must not begin or end with a blank")
    if len(name) > NAME_LENGTH:
        raise InvalidInput(field, f"is longer than {NAME_LENGTH} characters")
    if any(ord(character) < 32 or ord(character) == 127 or 0xD800 <= ord(character) < 0xE000 for character in name):
        raise InvalidInput(field, "must not contain control characters or halves of characters")
    return name
