"""Answers as people read them: tables in a terminal, aligned text elsewhere."""

import codecs
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Column = tuple[str, str]
"""A title, and where its value stands: `target.name` is within `target`."""
NOTHING = "-"
WIDEST = 60
"""Characters of one cell; the whole of it is in `show` and in `--json`."""
NARROWEST = 20
ROOMY = 10_000
"""Characters: of a last column that is cut, and more than a table has."""
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|\+00:00)")
_OBEYED = re.compile("(?P<colour>\x1b\\[[0-9;:]{0,40}m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BEGUN = re.compile("\x1b(?:\\[[0-9;:]{0,40})?$")
"""A colour of which the end has not come yet."""
_STYLES = {
    "green": {"SUCCESS", "CALLBACK_SUCCESS", "COMPLETED", "ALIVE"},
    "red": {"FAILED", "TIMEOUT", "FAILED_TIMEOUT", "DEAD", "PARKED"},
    "cyan": {"RUNNING", "STOPPING", "CALLBACK_PENDING"},
    "yellow": {"RETRYING", "PAUSED", "STOPPED", "WAITING_FOR_LOCK"},
    "dim": {"SKIPPED", "CANCELED", "CANCELLED", "CLOSED", "LEFT", "DISABLED"},
}


def write(text: str) -> None:
    """A line on standard output, whose characters its encoding need not have."""
    write_part(text if text.endswith("\n") else f"{text}\n")


def write_stream(parts: Iterable[bytes]) -> None:
    """What goes on, as it comes, in UTF-8. What a part has only begun is written with the next."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    begun = ""
    for part in parts:
        text = begun + decoder.decode(part)
        begun = "".join(_BEGUN.findall(text)) if sys.stdout.isatty() else ""
        write_part(text.removesuffix(begun))
    write_part(begun + decoder.decode(b"", final=True))


def write_part(text: str) -> None:
    """The same as `write`, of something that goes on, at once."""
    encoding = sys.stdout.encoding or "utf-8"
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.write(shown.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def harmless(text: str) -> str:
    """Without what a terminal would obey, but for colours: what a job writes may come from anybody."""
    return _OBEYED.sub(lambda found: found["colour"] or "\N{REPLACEMENT CHARACTER}", text)


def print_table(items: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> None:
    """One line for each; only a head, if there are none."""
    rows = [[cell(_within(item, path)) for _, path in columns] for item in items]
    titles = [title for title, _ in columns]
    if sys.stdout.isatty():
        _print_rich(titles, rows)
    else:
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        for row in [titles, *rows]:
            write("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip())


def print_record(
    found: Mapping[str, Any], tables: Mapping[str, Sequence[Column]] | None = None, without: Iterable[str] = ()
) -> None:
    """One thing: each of its parts in a line, then those that are lists of things as `tables`. What is null is left out."""
    tables = tables or {}
    left_out = {*tables, *without}
    parts = {name: value for name, value in found.items() if name not in left_out and value is not None}
    width = max((len(name) for name in parts), default=0)
    for name, value in parts.items():
        lines = _spread(value)
        write(f"{name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            write(f"{'':<{width}}  {line}")
    for name, columns in tables.items():
        if found.get(name):
            write(f"\n{name}:")
            print_table(found[name], columns)


def cell(value: Any) -> str:
    """A value in one short line."""
    text = " ".join(plain(value).split())
    return (text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…") or NOTHING


def plain(value: Any) -> str:
    """A value in the words of the API, without what a terminal would obey."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return printable(", ".join(value))
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    return printable(_INSTANT.sub(r"\1Z", value) if isinstance(value, str) else str(value))


def printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _spread(value: Any) -> list[str]:
    return plain(value).splitlines() or [NOTHING]


def _within(item: Mapping[str, Any], path: str) -> Any:
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _print_rich(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Without the columns in which nothing is."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    places = range(len(titles))
    told = [place for place in places if not rows or place == 0 or any(row[place] != NOTHING for row in rows)]
    console = Console(markup=False, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in told:
        table.add_column(titles[place], no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(row[place], style=_style(row[place])) for place in told))
    # Only the last column is cut: what is still too wide runs over the edge, where ids can be read and copied.
    wide = console.measure(table, options=console.options.update(max_width=ROOMY)).maximum
    last = max(Text(row[told[-1]]).cell_len for row in [titles, *rows])
    table.columns[-1].max_width = max(console.width - (wide - last), NARROWEST)
    console.width = wide
    console.print(table)


def _style(text: str) -> str:
    return next((style for style, words in _STYLES.items() if text in words), "")
