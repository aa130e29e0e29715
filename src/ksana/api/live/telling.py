"""An event as clients see it: with the run and the target that its subject, which has internal ids, stands for."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ksana.api.times import rfc3339
from ksana.domain.events import Event, EventType
from ksana.store.base import Store
from ksana.store.view_requests import Origin, TargetKind

MOST_KNOWN = 4_096
NOBODYS = Origin(None, None, None)
_DELETED: Mapping[str, TargetKind] = {
    EventType.JOB_DELETED: TargetKind.JOB,
    EventType.WORKFLOW_DELETED: TargetKind.WORKFLOW,
}
_CHANGING = "task/"
"""A tenant's task gets a new run when it is tried again; of all others, what is known stays true."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event, written once for all who hear it."""

    id: int
    text: bytes


class Teller:
    """Asks whose events are, for all of a batch at once, and remembers it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Origin] = OrderedDict()

    async def told(self, events: Sequence[Event]) -> list[Told]:
        return [
            Told(event.id, orjson.dumps(shown)) for event, shown in zip(events, await self.shown(events), strict=True)
        ]

    async def shown(self, events: Sequence[Event]) -> list[dict[str, Any]]:
        """As `EventShown`."""
        origins = await self._origins({event.subject for event in events})
        return [event_shown(event, origins.get(event.subject, NOBODYS)) for event in events]

    async def _origins(self, subjects: set[str]) -> dict[str, Origin]:
        known = {subject: self._known[subject] for subject in subjects if subject in self._known}
        for subject in known:
            self._known.move_to_end(subject)
        missing = sorted(subjects - known.keys())
        found = await self._store.origins(missing) if missing else {}
        self._known.update((subject, origin) for subject, origin in found.items() if not subject.startswith(_CHANGING))
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return {**known, **found}


def event_shown(event: Event, origin: Origin) -> dict[str, Any]:
    """As `EventShown`."""
    kind, key = origin.kind, origin.key
    if event.type in _DELETED:  # its key is free again, and in the event only
        kind, key = _DELETED[event.type], event.data.get("key")
    return {
        "id": event.id,
        "type": str(event.type),
        "at": rfc3339(event.at),
        "subject": event.subject,
        "run": origin.run,
        "target": None if kind is None or key is None else {"kind": kind.value, "id": key},
        "data": dict(event.data),
    }
