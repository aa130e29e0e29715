"""What is written without a model is what the models say, field by field and in their order."""

from datetime import UTC, datetime

from ksana.api.contracts.cronjob import answers, writing
from ksana.api.contracts.shapes import answer
from ksana.domain.execution import Attempt, Execution, Trigger
from ksana.domain.job import ConcurrencyPolicy, Contract, Job, JobSpec
from ksana.domain.states import AttemptStatus, ExecutionStatus
from ksana.engine.queries import JobView
from ksana.store.requests import ReceivedCallback

NOW = datetime(2026, 1, 31, 12, 0, 0, 4_000, tzinfo=UTC)
RUN = Execution(7, ExecutionStatus.SUCCESS, Trigger.MANUAL, NOW, NOW, job_id=1, planned_for=NOW, started_at=NOW)
SPEC = JobSpec(
    name="a",
    type="http",
    config={"url": "http://127.0.0.1/"},
    concurrency=ConcurrencyPolicy.PARALLEL,
    contract=Contract.CRONJOB,
)


def test_a_run_in_a_list() -> None:
    fields = writing.run_fields(RUN)
    assert answer(fields).body == answers.RunSummary(**fields).model_dump_json().encode()


def test_a_run_with_its_attempts_and_callbacks() -> None:
    attempt = Attempt(7, 1, 1, AttemptStatus.SUCCEEDED, "one", NOW, NOW)
    callback = ReceivedCallback(1, 7, NOW, {"a": "b"}, "{}", "RECEIVED")
    fields = writing.run_detail(RUN, [attempt], [callback], None)
    assert answer(fields).body == answers.Run(**fields).model_dump_json().encode()


def test_a_task() -> None:
    fields = writing.task(JobView(Job(1, "k", SPEC, 1, NOW, NOW), (), RUN))
    assert answer(fields).body == answers.Task(**fields).model_dump_json().encode()
