"""Jobs and attempts with the parts that a test does not care about filled in."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ksana.domain.execution import Execution, Trigger
from ksana.domain.job import Contract, ExecutionMode, Job, JobSpec
from ksana.domain.retry import RetryPolicy
from ksana.domain.states import ExecutionStatus
from ksana.executors.base import CallbackGrant, ExecutionContext

PLANNED = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
TRIGGERED = PLANNED + timedelta(milliseconds=250)
TOKEN = "cafe0123456789abcdef0123456789ab"
GRANT = CallbackGrant(url=f"http://ksana.example/api/v1/callbacks/{TOKEN}", token=TOKEN)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def attempt(
    config: Mapping[str, Any],
    *,
    mode: ExecutionMode = ExecutionMode.SYNC,
    contract: Contract = Contract.KSANA,
    timeout: float = 10.0,
    input: Mapping[str, Any] | None = None,  # noqa: A002 - the name it has in the domain
) -> ExecutionContext:
    """The second of three attempts of run 42, of the job 7 whose key is `nightly`."""
    spec = JobSpec(
        name="nightly report",
        type="http",
        config=config,
        mode=mode,
        contract=contract,
        callback_timeout=timedelta(seconds=77),
        retry=RetryPolicy(max_attempts=3),
    )
    execution = Execution(
        id=42,
        status=ExecutionStatus.RUNNING,
        trigger=Trigger.SCHEDULE,
        created_at=PLANNED,
        updated_at=PLANNED,
        job_id=7,
        planned_for=PLANNED,
        attempt=2,
        input=input or {},
        trace_id=TRACE,
    )
    return ExecutionContext(
        execution=execution,
        job=Job(id=7, key="nightly", spec=spec, version=1, created_at=PLANNED, updated_at=PLANNED),
        triggered_at=TRIGGERED,
        timeout=timedelta(seconds=timeout),
        mode=mode,
        callback=GRANT if mode is ExecutionMode.ASYNC else None,
        _key="ksana-1-42",
    )
