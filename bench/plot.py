"""The figures as one picture: `python -m bench.plot RESULTS.json PICTURE.png` draws what a benchmark wrote.

Needs matplotlib, which `make bench` installs and nothing else does.
"""

import statistics
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.report import Line, read_json

WIDTH, ROW, HEAD = 10.0, 0.28, 1.1
"""Inches."""
KSANA, LIMIT, PEER, MISSED = "#2f6fde", "#9aa0a6", "#e2a03f", "#c8323c"


def draw(lines: Sequence[Line], path: Path) -> None:
    """Rates as bars from the least to the most, and how much of each budget is used. ImportError without matplotlib."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    panels = [panel for panel in _panels(lines) if panel[1]]
    heights = [HEAD + ROW * len(found) for _, found in panels]
    pyplot = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(
        len(panels) or 1, 1, figsize=(WIDTH, sum(heights) or HEAD), height_ratios=heights or None, squeeze=False
    )
    for (title, found), axis in zip(panels, axes[:, 0], strict=False):
        (_budgets if title == BUDGETS else _rates)(axis, found)
        axis.set_title(title, loc="left", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)


BUDGETS = "How much of each budget is used (1 is all of it; the line is from the least to the most)"


def _panels(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    return [
        ("Durable HTTP runs per second", [line for line in lines if line.unit == "runs/s" and line.part != "soak"]),
        ("Nodes of workflows per second", [line for line in lines if line.unit == "nodes/s"]),
        (BUDGETS, [line for line in lines if line.limit and line.values]),
    ]


def _rates(axis: Any, lines: Sequence[Line]) -> None:
    places = range(len(lines))
    medians = [statistics.median(line.values) for line in lines]
    below = [median - min(line.values) for median, line in zip(medians, lines, strict=True)]
    above = [max(line.values) - median for median, line in zip(medians, lines, strict=True)]
    axis.barh(places, medians, xerr=[below, above], color=[_colour(line) for line in lines], height=0.7, capsize=2)
    for place, median in zip(places, medians, strict=True):
        axis.text(median, place, f"  {median:,.0f}", va="bottom", fontsize=7)
    _names(axis, [line.what for line in lines])


def _budgets(axis: Any, lines: Sequence[Line]) -> None:
    for place, line in enumerate(lines):
        used = [_used(line, value) for value in line.values]
        colour = KSANA if line.kept else MISSED
        axis.plot([min(used), max(used)], [place, place], color=colour, linewidth=1)
        axis.plot([_used(line, statistics.median(line.values))], [place], "o", color=colour, markersize=4)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    _names(axis, [f"{line.what}  ({line.budget})" for line in lines])


def _names(axis: Any, names: Sequence[str]) -> None:
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.tick_params(axis="x", labelsize=7)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _used(line: Line, value: float) -> float:
    """The part of the budget; more than 1 is too much, whichever way it goes."""
    assert line.limit
    used = line.limit / value if line.budget.startswith("≥") else value / line.limit
    return max(used, 1e-3)


def _colour(line: Line) -> str:
    of = line.what.rpartition(": ")[2]
    if of.startswith("limit"):
        return LIMIT
    ours = line.part != "peers" or of.startswith("Ksana")
    return KSANA if ours else PEER


if __name__ == "__main__":
    draw(read_json(Path(sys.argv[1])), Path(sys.argv[2]))
