"""Bodies of `/api/v1/events`."""

from typing import Any, Literal

from pydantic import Field

from ksana.api.contracts.shapes import Shown

_AT = "2026-01-31T12:00:00Z"


class EventTarget(Shown):
    """What it is about, to be asked for by its id."""

    kind: Literal["job", "workflow", "plan"]
    id: str = Field(examples=["ping"], description="The job's key, the workflow's id, or the plan's.")


class EventShown(Shown):
    """Something that happened."""

    id: int = Field(examples=[117])
    type: str = Field(examples=["execution.ended"])
    at: str = Field(examples=[_AT])
    subject: str = Field(
        examples=["execution/42"], description="What it happened to, by the number it has in the store."
    )
    run: str | None = Field(
        examples=["42"], description="The id of the run, if it happened to one, or to a node of one."
    )
    target: EventTarget | None = Field(description="What that is of; null if it is neither, or was deleted since.")
    data: dict[str, Any] = Field(examples=[{"status": "FAILED", "attempt": 1, "job_id": 1}])


class EventsShown(Shown):
    """A part of the journal, oldest first."""

    items: list[EventShown]
    next: int = Field(examples=[117], description="Where to go on from, as `after`; the same, if there was nothing.")


class ChangesShown(Shown):
    """The `data` of each message of the stream, whose `event` is `changes`."""

    events: list[EventShown] = Field(description="At most 200, oldest first.")
    more: bool = Field(description="There was more that was left out: ask anew for whatever you show.")
