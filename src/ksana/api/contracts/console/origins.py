"""What subjects of the journal (`job/1`, `execution/42`) are to clients: the run, and what it is of with its name."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from ksana.api.contracts.console.event_models import EventTarget
from ksana.api.contracts.shapes import Shown
from ksana.store.base import Store
from ksana.store.view_requests import Origin, TargetKind


class NamedTarget(EventTarget):
    """Likewise, with its name."""

    name: str


class OriginShown(Shown):
    """What a subject is to clients."""

    run: str | None = Field(examples=["42"], description="The id of the run, if it is one, or a node of one.")
    target: NamedTarget | None = Field(description="What that is of; null if it is neither, or was deleted since.")


async def origins_shown(store: Store, subjects: Iterable[str]) -> dict[str, dict[str, Any]]:
    """As `OriginShown`, by subject: a question for each kind, however many there are."""
    asked = sorted(set(subjects))
    found = await store.origins(asked)
    names = await _names(store, found.values())
    return {subject: _shown(found.get(subject), names) for subject in asked}


async def _names(store: Store, origins: Iterable[Origin]) -> dict[tuple[TargetKind, str], str]:
    keys: dict[TargetKind, set[str]] = defaultdict(set)
    for origin in origins:
        if origin.kind is not None and origin.key is not None:
            keys[origin.kind].add(origin.key)
    return {
        (kind, key): name for kind, wanted in keys.items() for key, name in (await store.names_of(kind, wanted)).items()
    }


def _shown(origin: Origin | None, names: dict[tuple[TargetKind, str], str]) -> dict[str, Any]:
    if origin is None or origin.kind is None or origin.key is None:
        return {"run": None if origin is None else origin.run, "target": None}
    # Where it was deleted between the two questions, its key is all that is known.
    name = names.get((origin.kind, origin.key), origin.key)
    return {"run": origin.run, "target": {"kind": origin.kind.value, "id": origin.key, "name": name}}
