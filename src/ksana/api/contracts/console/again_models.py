"""What a run of any job is asked for with, and what that answers."""

from typing import Any

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from ksana.api.contracts.console.activity_showing import ActivityStatus, RunKind
from ksana.api.contracts.jobchain.run_models import OrderBody
from ksana.api.contracts.shapes import Shown

_RAN: dict[str, Any] = {"runId": "43", "jobId": "ping", "status": "SCHEDULED"}


class RunBody(OrderBody):
    """What the run is given, and why it is asked for."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"input": {"city": "Zurich"}, "reason": "after the repair"}}
    )

    input: dict[str, Any] | None = Field(default=None, description="Left out, it is given nothing.")


class JobRan(Shown):
    """A run of a job that waits for a worker, or is under way."""

    model_config = ConfigDict(alias_generator=to_camel, json_schema_extra={"example": _RAN})

    run_id: str
    job_id: str
    status: ActivityStatus


class RunRetried(Shown):
    """What became of it: another run of the job, or the same run of the workflow that goes on."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        json_schema_extra={"example": {"runId": "43", "kind": "job", "status": "SCHEDULED", "retryOf": "42"}},
    )

    run_id: str
    kind: RunKind
    status: ActivityStatus
    retry_of: str | None = Field(default=None, description="Of a job's: the run of which this is another try.")
    reopened: int | None = Field(default=None, description="Of a workflow's: how many nodes are done again.")
