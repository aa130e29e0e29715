"""What was measured, as one table and as one JSON document."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.spread import Spread, shown
from ksana import __version__


@dataclass(frozen=True, slots=True)
class Budget:
    """What the median of a figure may be at the most, or must be at the least."""

    limit: float
    upwards: bool
    """Whether more is better."""

    def kept(self, value: float) -> bool:
        return value >= self.limit if self.upwards else value <= self.limit

    def told(self, unit: str) -> str:
        return f"{'≥' if self.upwards else '≤'} {shown(self.limit)}{' ' if unit else ''}{unit}"


def at_most(limit: float) -> Budget:
    return Budget(limit, upwards=False)


def at_least(limit: float) -> Budget:
    return Budget(limit, upwards=True)


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    figure: str
    budget: str
    kept: bool | None
    """None: there is no budget."""
    values: tuple[float, ...] = ()
    """Each measurement, in `unit`, for whoever draws or compares them."""
    unit: str = ""
    limit: float | None = None
    """The number of the budget, in `unit`."""
    part: str = ""
    """The part of the benchmark that it is of."""

    @classmethod
    def of(cls, what: str, spread: Spread, unit: str, budget: Budget | None = None) -> "Line":
        if budget is None:
            return cls(what, spread.told(unit), "", None, spread.values, unit)
        kept = budget.kept(spread.median)
        return cls(what, spread.told(unit), budget.told(unit), kept, spread.values, unit, budget.limit)


def missing(what: str, why: object) -> Line:
    """The line of something that is not on this machine."""
    return Line(what, f"not measured: {why}", "", None)


def table(lines: Sequence[Line]) -> str:
    """The lines as text, for a terminal and for a page."""
    rows = [("what", "measured", "budget", ""), *((line.what, line.figure, line.budget, _mark(line)) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    text = ["  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def write_json(path: Path, lines: Sequence[Line]) -> None:
    """Every figure with its measurements, and what they were measured on."""
    document = {
        "ksana": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "lines": [asdict(line) for line in lines],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> list[Line]:
    """The lines that `write_json` wrote."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["lines"]
    return [Line(**{**line, "values": tuple(line["values"])}) for line in found]


def _mark(line: Line) -> str:
    if line.kept is None:
        return ""
    return "kept" if line.kept else "MISSED"
