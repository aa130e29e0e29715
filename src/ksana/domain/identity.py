"""Names of a run that hold over all its attempts, and are its alone among all runs of every Ksana."""

from hashlib import blake2b

from ksana.domain.clock import to_micros
from ksana.domain.execution import Execution


def idempotency_key(execution: Execution) -> str:
    """By which a target can tell that it has seen this run before. 32 hexadecimal digits."""
    planned = "" if execution.planned_for is None else to_micros(execution.planned_for)
    name = f"{execution.id}:{execution.job_id}:{execution.schedule_id}:{planned}:{to_micros(execution.created_at)}"
    return blake2b(name.encode(), digest_size=16).hexdigest()


def trace_id(execution: Execution) -> str:
    """The trace it belongs to: that of whoever asked for it, else one of its own. 32 hexadecimal digits."""
    return execution.trace_id or idempotency_key(execution)
