"""Document 002's bodies (§4, §8). What a client leaves out of a PATCH stays as it is."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ksana.api.contracts.schedules_spec import MOST_CATCHUP, Kind, Policy
from ksana.api.contracts.shapes import Strict
from ksana.domain.retry import MAX_ATTEMPTS

Retries = Annotated[int, Field(ge=0, le=MAX_ATTEMPTS - 1, description="Retries after the first attempt.")]
CatchupLimit = Annotated[int, Field(ge=0, le=MOST_CATCHUP)]
TYPE = r"^[A-Za-z0-9._-]{1,64}$"
_DURATION = "A Go duration, as in `1h30m` or `500ms`."
_INSTANT = "RFC 3339, as in `2026-01-31T12:00:00Z`."
_IGNORED = "Written by Ksana; ignored here, so that a job that was read can be sent back."

EXAMPLE: dict[str, Any] = {
    "name": "notify-order",
    "enabled": True,
    "type": "http",
    "http": {
        "method": "POST",
        "url": "https://api.example.com/orders/notify",
        "headers": {"Content-Type": "application/json"},
        "body": '{"event": "order.received", "run_id": "<filled-by-service>"}',
    },
    "schedule": {"kind": "every", "every": "5m", "jitter": "5s"},
    "timeout": "10s",
    "max_retries": 3,
    "retry_backoff": "5s",
}
SHOWN = {
    "id": "0199f0c4-6a10-7c3e-9b7e-3f0d8f8e2b11",
    **EXAMPLE,
    "schedule": {"kind": "every", "every": "5m", "start_at": "", "jitter": "5s"},
    "last_run_at": "2026-01-31T12:00:00.004Z",
    "next_run_at": "2026-01-31T12:05:00Z",
    "last_status": "success",
    "last_error": "",
}


class _Bookkeeping(Strict):
    last_run_at: Any = Field(default=None, description=_IGNORED)
    next_run_at: Any = Field(default=None, description=_IGNORED)
    last_status: Any = Field(default=None, description=_IGNORED)
    last_error: Any = Field(default=None, description=_IGNORED)


class HttpBody(Strict):
    """The call that the job is."""

    method: str = Field(default="GET", examples=["POST"])
    url: str = Field(examples=["https://example.com/ping"])
    headers: dict[str, str] | None = None
    body: str | None = Field(default=None, description="A text, often JSON; a template.")


class HttpChange(Strict):
    """The parts of the call that change."""

    method: str = Field(default_factory=str)
    url: str = Field(default_factory=str)
    headers: dict[str, str] | None = None
    body: str | None = None


class _ScheduleParts(Strict):
    run_at: str | None = Field(default=None, description=f"The instant of a `once`. {_INSTANT}")
    every: str | None = Field(default=None, description=f"The interval of an `every`, from 100ms. {_DURATION}")
    cron: str | None = Field(default=None, description="Five fields, or six with seconds first.")
    timezone: str | None = Field(default=None, description="The IANA zone of a `cron`; UTC if left out.")
    start_at: str | None = Field(default=None, description=f"From where an `every` counts; its creation. {_INSTANT}")
    end_at: str | None = Field(default=None, description=f"There is no instant after it. {_INSTANT}")
    jitter: str | None = Field(default=None, description=f"How much later it may fire. {_DURATION}")
    misfire: Policy | None = Field(default=None, alias="misfire_policy", description="What becomes of late instants.")
    catchup_limit: CatchupLimit | None = Field(default=None, description="How many late ones CATCH_UP_LIMITED runs.")
    misfire_grace: str | None = Field(default=None, description=f"From when on an instant is late. {_DURATION}")


class ScheduleBody(_ScheduleParts):
    """When it runs. `""` is the same as leaving a part out."""

    kind: Kind


class ScheduleChange(_ScheduleParts):
    """With `kind`, the whole new schedule; without, the parts that change."""

    kind: Kind | None = None


class JobBody(_Bookkeeping):
    """A new job (§8, `POST /jobs`)."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    id: str = Field(default="", description="The client's own id, not only digits; left out or empty, one is made.")
    name: str
    enabled: bool = True
    type: str = Field(default="http", pattern=TYPE, description="The executor.")
    http: HttpBody | None = Field(default=None, description="Required for type `http`.")
    config: dict[str, Any] | None = Field(default=None, description="The same for jobs of other types.")
    schedule: ScheduleBody
    timeout: str | None = Field(default=None, description=f"Of one attempt. {_DURATION}")
    max_retries: Retries | None = None
    retry_backoff: str | None = Field(default=None, description=f"Wait before each retry. {_DURATION}")


class JobChange(_Bookkeeping):
    """The fields that change (§8, `PATCH /jobs/{id}`). `id` and `type` may be sent, but not changed."""

    model_config = ConfigDict(json_schema_extra={"example": {"enabled": False, "schedule": {"every": "10m"}}})

    id: str = Field(default_factory=str)
    name: str = Field(default_factory=str)
    enabled: bool = Field(default_factory=bool)
    type: str = Field(default_factory=str)
    http: HttpChange | None = None
    config: dict[str, Any] | None = None
    schedule: ScheduleChange | None = None
    timeout: str = Field(default_factory=str)
    max_retries: Retries = Field(default_factory=int)
    retry_backoff: str = Field(default_factory=str)


class JobShown(BaseModel):
    """A job (§4). What is empty is `""`."""

    model_config = ConfigDict(json_schema_extra={"example": SHOWN}, extra="allow")

    id: str
    name: str
    enabled: bool
    type: str
    http: dict[str, Any] | None = Field(description="`method`, `url`, `headers`, `body`; null for another type.")
    schedule: dict[str, Any] | None = Field(description="Null for a job of another contract that has none.")
    timeout: str
    max_retries: int
    retry_backoff: str
    last_run_at: str
    next_run_at: str
    last_status: str = Field(description="`success`, `failed`, `timeout`, `skipped`, `paused`, `missed`, or empty.")
    last_error: str


class RunShown(BaseModel):
    """The run that was asked for."""

    run_id: str = Field(description="`GET /api/v1/runs/{run_id}` tells what becomes of it.", examples=["42"])
    job_id: str
    status: str = Field(examples=["SCHEDULED"])
