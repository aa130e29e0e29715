"""What the witness saw, read from its log."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Hit:
    """One attempt, as its target saw it. Times are `time.monotonic()` of this machine unless they say otherwise."""

    number: str
    schedule: str
    """As the address has it."""
    planned: float | None
    """As the headers have it: seconds since 1970."""
    run: str
    attempt: int
    key: str
    kind: str
    mode: str
    began: float
    began_wall: float
    ended: float | None = None
    how: str = ""
    """answered, gone (the caller went away) or reset; empty while it goes on."""
    pids: tuple[int, ...] = ()
    """Of a command: it and its child."""
    instance: str = ""
    epoch: int | None = None
    callbacks: list[int] = field(default_factory=list)
    """What each of its callbacks was answered; 0: nothing."""
    callback_url: str = ""
    """Where it is to be reported on, if it is."""

    @property
    def fire(self) -> tuple[str, float | None]:
        return self.schedule, self.planned


class HitLog:
    """Reads on where it stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._hits: dict[str, Hit] = {}

    def read(self) -> list[Hit]:
        """All hits so far, in order."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._add(json.loads(line) for line in whole.splitlines())
        return list(self._hits.values())

    def _add(self, lines: Iterable[dict[str, Any]]) -> None:
        for line in lines:
            number = str(line["n"])
            if line["phase"] == "start":
                self._hits[number] = _begun(number, line)
            elif line["phase"] == "end":
                self._hits[number].ended, self._hits[number].how = line["mono"], line["how"]
            else:
                self._hits[number].callbacks.append(line["status"])


def _begun(number: str, line: dict[str, Any]) -> Hit:
    return Hit(
        number=number,
        schedule=line["schedule"],
        planned=seconds_of(line["planned"]) if line.get("planned") else None,
        run=line.get("run", ""),
        attempt=int(line.get("attempt", 0)),
        key=line.get("key", ""),
        kind=line["kind"],
        mode=line["mode"],
        began=line["mono"],
        began_wall=line["wall"],
        pids=tuple(line.get("pids", ())),
        instance=line.get("instance", ""),
        epoch=int(line["epoch"]) if "epoch" in line else None,
        callback_url=line.get("callback", ""),
    )


def seconds_of(text: str) -> float:
    """Seconds since 1970 of an instant as the product writes it (RFC 3339)."""
    return datetime.fromisoformat(text).timestamp()
