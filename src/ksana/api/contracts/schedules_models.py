"""The bodies of `/api/v1/schedules`. What a client leaves out of a PUT or PATCH stays as it is."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ksana.api.contracts.queries import StrictQuery
from ksana.api.contracts.schedules_spec import MOST_CATCHUP, Kind, Policy
from ksana.api.contracts.shapes import Strict
from ksana.api.contracts.values import empty_as_none
from ksana.domain.clock_change import ClockEffect
from ksana.domain.ids import LARGEST_INTEGER
from ksana.domain.schedule import ScheduleKind
from ksana.domain.states import ScheduleStatus
from ksana.store.requests import MAX_PAGE_SIZE, MAX_PAGED_ROWS, ScheduleFilter

MOST_SHOWN = 1_000
"""How many instants can be asked for at once."""
_DURATION = "As in `1h30m` or `500ms`."
_INSTANT = "RFC 3339, as in `2026-01-31T12:00:00Z`."
_IGNORED = "Written by Ksana; ignored here, so that a schedule that was read can be sent back."
_CAMEL = ConfigDict(alias_generator=to_camel)


def _job_id(value: object) -> object:
    """A key, or the store's integer; both as text from here on."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= LARGEST_INTEGER:
            raise PydanticCustomError("job_id", "is larger than any id")
        return str(value)
    if not isinstance(value, str):
        raise PydanticCustomError("job_id", "must be a job's id: a string, or an integer")
    return value


_Empty = BeforeValidator(empty_as_none)
JobId = Annotated[str, BeforeValidator(_job_id, json_schema_input_type=str | int)]
CatchupLimit = Annotated[int, Field(ge=0, le=MOST_CATCHUP)]
Version = Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]


class _ScheduleParts(Strict):
    """When it fires. Null is the same as leaving a part out."""

    model_config = _CAMEL

    cron: str | None = Field(default=None, description="For kind `cron`: five fields, or six with seconds first.")
    every: str | None = Field(default=None, description=f"For kind `every`, from 100ms. {_DURATION}")
    run_at: str | None = Field(default=None, description=f"For kind `once`. {_INSTANT}")
    timezone: str | None = Field(default=None, description="The IANA zone in which `cron` is read; UTC if left out.")
    start_at: str | None = Field(default=None, description=f"No instant before it; `every` counts from it. {_INSTANT}")
    end_at: str | None = Field(default=None, description=f"No instant after it. {_INSTANT}")
    jitter: str | None = Field(default=None, description=f"How much later than planned it may fire. {_DURATION}")
    misfire: Policy | None = Field(default=None, alias="misfirePolicy", description="`FIRE_NOW` if left out.")
    catchup_limit: CatchupLimit | None = Field(default=None, description="How many late ones CATCH_UP_LIMITED runs.")
    misfire_grace: str | None = Field(default=None, description=f"From when on an instant is late; 1m. {_DURATION}")


class ScheduleBody(_ScheduleParts):
    """A new schedule of a job, or of a workflow."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"jobId": "nightly", "kind": "cron", "cron": "30 2 * * MON-FRI", "timezone": "Europe/Berlin"}
        }
    )

    job_id: JobId | None = Field(default=None, description="The job's id: its string, or its integer.")
    workflow_id: str | None = Field(default=None, description="Instead of a job: the workflow's id.")
    kind: Kind
    input: dict[str, Any] | None = Field(default=None, description="Given to every run; a workflow's parameters.")
    paused: bool = False


class ScheduleChange(_ScheduleParts):
    """The parts that change. Null takes a part back to its default."""

    model_config = ConfigDict(json_schema_extra={"example": {"cron": "0 3 * * *", "version": 1}})

    kind: Kind | None = None
    version: Version | None = Field(default=None, description="Changes it only if this is still its version.")
    job_id: JobId | None = Field(default=None, description="May be sent, but not changed.")
    workflow_id: str | None = Field(default=None, description="Likewise.")
    input: dict[str, Any] | None = Field(default=None, description="Given to every run from now on.")
    id: Any = Field(default=None, description=_IGNORED)
    job_name: Any = Field(default=None, description=_IGNORED)
    workflow_name: Any = Field(default=None, description=_IGNORED)
    status: Any = Field(default=None, description=_IGNORED)
    next_planned_for: Any = Field(default=None, description=_IGNORED)
    next_fire_at: Any = Field(default=None, description=_IGNORED)
    error: Any = Field(default=None, description=_IGNORED)
    description: Any = Field(default=None, description=_IGNORED)
    cron_in_words: Any = Field(default=None, description=_IGNORED)
    created_at: Any = Field(default=None, description=_IGNORED)
    updated_at: Any = Field(default=None, description=_IGNORED)


PARTS = frozenset({"kind", *_ScheduleParts.model_fields})
"""What of a body makes up the definition."""


class SchedulesQuery(StrictQuery):
    """Which schedules a list has."""

    job_id: Annotated[str | None, Field(description="Of this job only.")] = None
    workflow_id: Annotated[str | None, Field(description="Of this workflow only.")] = None
    keyword: Annotated[str | None, _Empty, Field(description="Part of the name of its job or workflow.")] = None
    status: Annotated[ScheduleStatus | None, _Empty] = None
    kind: Annotated[Kind | None, _Empty] = None
    page: Annotated[int, Field(ge=1, le=MAX_PAGED_ROWS)] = 1
    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = 20
    include: Annotated[Literal["last"] | None, Field(description="Each with what became of its last instant.")] = None

    @property
    def filters(self) -> ScheduleFilter:
        return ScheduleFilter(self.keyword, self.status, None if self.kind is None else ScheduleKind(self.kind))


class PreviewBody(_ScheduleParts):
    """A definition that is not saved."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"kind": "cron", "cron": "0 9 * * MON-FRI", "timezone": "Asia/Shanghai"}}
    )

    kind: Kind
    count: Annotated[int, Field(ge=1, le=MOST_SHOWN)] = 10
    after: str | None = Field(default=None, description=f"Instants later than this; than now, if left out. {_INSTANT}")


class _Shown(BaseModel):
    model_config = _CAMEL


class OccurrenceShown(_Shown):
    """A planned instant, or a range of `count` of them with one fate."""

    planned_for: str
    last_planned_for: str | None
    count: int
    outcome: str = Field(description="`FIRED`, `SKIPPED` or `MISSED`.")
    reason: str | None
    run_id: str | None = Field(description="Of the run that it made, as `/api/v1/runs` has it.")
    recorded_at: str


class CronInWords(_Shown):
    """A cron for people, in the languages of the console."""

    en: str = Field(examples=["At 02:30, Monday through Friday"])
    zh: str = Field(examples=["每周一至周五 02:30"])


class ScheduleShown(_Shown):
    """A schedule, and where it stands."""

    id: str
    job_id: str | None
    job_name: str | None
    workflow_id: str | None
    workflow_name: str | None
    kind: Kind
    cron: str | None
    every: str | None
    run_at: str | None
    timezone: str
    start_at: str | None
    end_at: str | None
    jitter: str
    misfire: Policy = Field(alias="misfirePolicy")
    catchup_limit: int
    misfire_grace: str
    status: str = Field(description="`ACTIVE`, `PAUSED`, `PARKED` (see `error`) or `FINISHED` (no further instant).")
    next_planned_for: str | None
    next_fire_at: str | None
    error: str | None
    input: dict[str, Any]
    version: int
    description: str = Field(examples=["At 02:30, Monday through Friday"])
    cron_in_words: CronInWords | None
    created_at: str
    updated_at: str


class ScheduleListed(ScheduleShown):
    """With `include=last` also what became of its last instant, null before the first."""

    last: OccurrenceShown | None = None


class SchedulesShown(_Shown):
    """A page of them."""

    page: int
    page_size: int
    total: int
    items: list[ScheduleListed]


class InstantShown(_Shown):
    """A planned instant."""

    planned: str = Field(description="In UTC.", examples=["2026-01-31T01:00:00Z"])
    local: str = Field(description="In the schedule's zone, with its offset.", examples=["2026-01-31T09:00:00+08:00"])
    fires_at: str | None = Field(
        description="With jitter; null in a preview with jitter, which each schedule has its own of."
    )


class ClockChangeShown(_Shown):
    """The next change of the zone's clock, and what this schedule does then."""

    at: str = Field(description="In UTC.", examples=["2027-03-28T01:00:00Z"])
    before: str = Field(description="What the clock would show.", examples=["2027-03-28T02:00:00+01:00"])
    after: str = Field(description="What it shows.", examples=["2027-03-28T03:00:00+02:00"])
    effect: ClockEffect = Field(
        description="Of instants that the clock leaves out: `ONCE_AFTER`, `LEFT_OUT`; that it shows twice: `ONCE_FIRST`, "
        "`TWICE`; `NONE` where there are none."
    )
    instants: list[InstantShown] = Field(description="The last two before it, and the first three since.")


class InstantsShown(_Shown):
    """The next instants."""

    timezone: str
    description: str
    cron_in_words: CronInWords | None
    instants: list[InstantShown]
    clock_change: ClockChangeShown | None = Field(description="Within 400 days, if there is one.")


class OccurrencesShown(_Shown):
    """The ledger."""

    items: list[OccurrenceShown]
    next: str | None = Field(
        description="The rest begins here: ask again with this as `from`, or as `to` with `order=newest`. Null if there is none."
    )
