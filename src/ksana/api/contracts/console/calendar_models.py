"""Bodies of `/api/v1/jobs/{jobId}/calendar`."""

from pydantic import Field

from ksana.api.contracts.shapes import Shown


class DayShown(Shown):
    """What became of the instants that were planned for one day."""

    date: str = Field(examples=["2026-10-01"])
    planned: int = Field(examples=[24], description="The sum of `ran`, `skipped` and `missed`.")
    ran: int = Field(examples=[22])
    skipped: int = Field(examples=[1])
    missed: int = Field(examples=[1])
    failed: int = Field(examples=[2], description="How many of those that ran ended badly.")


class CalendarShown(Shown):
    """A job's ledger by day."""

    timezone: str = Field(examples=["Europe/Zurich"])
    days: list[DayShown] = Field(description="Every day that was asked for, oldest first.")
    since: str | None = Field(
        examples=["2026-10-01T00:00:00Z"],
        description="From when on it is whole, if that is later than its beginning: earlier rows were removed, or too many.",
    )
    partial: bool = Field(
        description="There were more than 200,000 rows: days before `since` are not, or not all, counted."
    )
