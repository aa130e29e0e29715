"""One table of what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    figure: str
    budget: str
    kept: bool | None
    """None: there is no budget."""


def table(lines: Sequence[Line]) -> str:
    """The lines as text, for a terminal and for a page."""
    rows = [("what", "measured", "budget", ""), *((line.what, line.figure, line.budget, _mark(line)) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    text = ["  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])


def _mark(line: Line) -> str:
    if line.kept is None:
        return ""
    return "kept" if line.kept else "MISSED"
