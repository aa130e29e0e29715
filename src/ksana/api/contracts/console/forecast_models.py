"""Bodies of `/api/v1/forecast`."""

from pydantic import Field

from ksana.api.contracts.console.activity_showing import Target
from ksana.api.contracts.shapes import Shown

_AT = "2026-01-31T12:00:00Z"


class PlannedShown(Shown):
    """What is planned of one target."""

    target: Target
    schedule_ids: list[str]
    count: int = Field(examples=[12])
    count_is_exact: bool = Field(description="False if it may have schedules beyond those that were looked at.")
    instants: list[str] = Field(examples=[[_AT]], description="The first ten, as planned: without jitter.")


class PlannedCount(Shown):
    target: Target
    count: int = Field(examples=[12])


class PlannedHour(Shown):
    at: str = Field(examples=[_AT], description="When the hour begins.")
    count: int = Field(examples=[60])
    targets: list[PlannedCount] = Field(description="The five largest.")


class ForecastShown(Shown):
    """What is planned between two instants."""

    from_: str = Field(alias="from", examples=[_AT])
    until: str = Field(examples=["2026-01-31T13:00:00Z"])
    items: list[PlannedShown] | None = Field(None, description="With `by=target`; soonest first.")
    total: int | None = Field(None, description="With `by=target`: how many targets there are.")
    hours: list[PlannedHour] | None = Field(None, description="With `by=hour`: those in which anything is planned.")
    limited: bool = Field(
        description="There are more than 10,000 schedules; only those that fire first were looked at."
    )
