"""Puts the figures of a benchmark into the page about speed: `python -m bench.page bench/results.json`.

What is between the two marks of the page is written anew, and its picture drawn anew.
"""

import json
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from bench.plot import draw
from bench.report import Line, read_json

PAGE = Path(__file__).parents[1] / "docs" / "operate" / "speed.md"
BEGIN, END = "<!-- figures: written by `python -m bench.page` -->", "<!-- end of figures -->"


def figures(lines: Sequence[Line], measured_on: str) -> str:
    """A table for each part, as Markdown."""
    text = [measured_on, "", "![The figures below as a picture](speed.png)"]
    for part, found in groupby(lines, key=lambda line: line.part):
        text += ["", f"### `{part}`", "", "| what | measured | budget | |", "| --- | --- | --- | --- |"]
        text += [f"| {line.what} | {line.figure} | {line.budget} | {_mark(line)} |" for line in found]
    return "\n".join(text)


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
    results = Path(sys.argv[1])
    lines = read_json(results)
    draw(lines, PAGE.with_suffix(".png"))
    PAGE.write_text(written(PAGE.read_text(), figures(lines, _measured_on(results))))
