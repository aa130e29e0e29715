"""Puts the figures of benchmarks into the page about speed: `python -m bench.page bench/results.json`, or several such files.

What is between the two marks of the page is written anew, and its picture drawn of what was measured. A part of the page that
none of them measured stays as it is.
"""

import json
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from bench.plot import draw
from bench.report import Line, read_json

PAGE = Path(__file__).parents[1] / "docs" / "operate" / "speed.md"
_HEAD = ("| what | measured | budget | |", "| --- | --- | --- | --- |")
_PART = re.compile(r"^### `(\w+)`\n\n(\|.*(?:\n\|.*)*)", re.MULTILINE)
BEGIN, END = "<!-- figures: written by `python -m bench.page` -->", "<!-- end of figures -->"


def figures(lines: Sequence[Line], measured_on: str, before: str = "") -> str:
    """A table for each part, as Markdown; of the parts that only the figures `before` have, theirs."""
    parts = dict(_PART.findall(before)) | {
        part: "\n".join([*_HEAD, *map(_row, found)]) for part, found in groupby(lines, key=lambda line: line.part)
    }
    picture = "![What was measured last as a picture](speed.png)"
    return "\n\n".join([measured_on, picture, *(f"### `{part}`\n\n{table}" for part, table in parts.items())])


def _row(line: Line) -> str:
    return f"| {line.what} | {line.figure} | {line.budget} | {_mark(line)} |"


def written(page: str, between: str) -> str:
    """The page with this between its marks. ValueError if it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{between}\n\n{END}{after}"


def _mark(line: Line) -> str:
    return "" if line.kept is None else "kept" if line.kept else "**missed**"


def _measured_on(results: Path) -> str:
    told = json.loads(results.read_text())
    return (
        f"Ksana {told['ksana']}, Python {told['python']}, {told['system']}, {told['cores']} cores, {told['at'][:10]}."
    )


if __name__ == "__main__":
    results = [Path(each) for each in sys.argv[1:]]
    lines = [line for each in results for line in read_json(each)]
    draw(lines, PAGE.with_suffix(".png"))
    page = PAGE.read_text()
    PAGE.write_text(written(page, figures(lines, _measured_on(results[-1]), page)))
