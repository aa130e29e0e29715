"""Whether a run that is asked for becomes one: a job's limit, its queue's depth and its policy decide."""

from dataclasses import dataclass

from ksana.domain.job import ConcurrencyPolicy


@dataclass(frozen=True, slots=True)
class Limits:
    policy: ConcurrencyPolicy
    max_concurrency: int
    queue_limit: int


@dataclass(frozen=True, slots=True)
class Skip:
    """It does not run; `reason` is what the ledger says."""

    reason: str


def admit(limits: Limits, active: int) -> Skip | None:
    """None: it may go into the queue. `active` is how many of the job's executions have not ended."""
    match limits.policy:
        case ConcurrencyPolicy.PARALLEL:
            return None
        case ConcurrencyPolicy.SKIP:
            return Skip("concurrency_limit") if active >= limits.max_concurrency else None
        case ConcurrencyPolicy.QUEUE:
            return Skip("queue_full") if active >= limits.max_concurrency + limits.queue_limit else None
