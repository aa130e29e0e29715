"""The data that an expression sees: only the parts it names, as plain JSON, and not more than it can be worked out with in time.

The library holds the interpreter's lock while it works, cannot be stopped, copies a value whenever a field of it is read, copies
all that was gathered so far for each item of `map` and `filter` (1,000 objects of 20 fields took 4.5 s), and ends the process on
data nested some thousand deep. So the work is estimated, from above, before it begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any

from ksana.engine.expressions_syntax import Macro, Path, Reading

MAX_DEPTH = 64
MAX_WORK = 5_000_000
"""Values read or copied; one takes about 0.1 µs."""
_ENTRY = 3
"""A field of an object counts as so many values."""
_CHARACTERS = 100
"""So many characters of a text count as one value."""
_GATHERING = frozenset({"map", "filter"})
_MISSING = object()


class ExpressionFailed(Exception):
    """An expression that could not be worked out. Its text says why, in words for whoever wrote it."""


@dataclass(slots=True)
class Size:
    """How much there is in a value."""

    cells: int = 0
    longest: int = 0
    """The length of its longest list or object."""
    largest: int = 0
    """The cells of the largest item of any list in it."""
    fields: dict[str, int] = field(default_factory=dict)
    """For each name of a field anywhere in it, the cells of the largest value of that name."""


def visible(reading: Reading, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the parts that the expression names. ExpressionFailed if one is not plain JSON, or there is too much to do."""
    sizes: dict[tuple[str, ...], Size] = {}
    seen: dict[str, Any] = {}
    # Short paths first: what a longer one names is then already there.
    for path in sorted(reading.paths, key=lambda path: len(path.keys)):
        place = (path.root, *path.keys)
        if path.root not in variables:
            raise ExpressionFailed(f"there is no variable {path.root!r}")
        if place not in sizes:
            sizes[place] = Size()
            _show(place, variables, seen, sizes[place])
    work = _Estimate(reading, sizes).work()
    if work > MAX_WORK:
        raise ExpressionFailed("too much work: the lists it goes over, or what it reads for each item, are too large")
    return seen


def _show(place: tuple[str, ...], variables: Mapping[str, Any], seen: dict[str, Any], size: Size) -> None:
    """Copies the value at the place into `seen`, or as much of the way to it as there is."""
    source: Any = variables
    target: Any = seen
    *way, last = place
    for key in way:
        below = source.get(key, _MISSING)
        if not isinstance(below, Mapping):
            _put(target, key, below, size)
            return
        source, target = below, target.setdefault(key, {})
    _put(target, last, source.get(last, _MISSING), size)


def _put(target: dict[str, Any], key: str, value: Any, size: Size) -> None:
    if value is not _MISSING:
        target[key] = plain(value, size)


def plain(value: Any, size: Size | None = None, depth: int = 0) -> Any:
    """A copy as plain JSON, its cells added to `size`. ExpressionFailed if it cannot be one."""
    size = Size() if size is None else size
    if depth > MAX_DEPTH:
        raise ExpressionFailed(f"a value is nested deeper than {MAX_DEPTH} levels")
    size.cells += 1
    if size.cells > MAX_WORK:
        raise ExpressionFailed("too much work: there is too much data")
    if isinstance(value, Mapping):
        size.longest = max(size.longest, len(value))
        size.cells += (_ENTRY - 1) * len(value)
        return {_key(key): _field(key, item, size, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        size.longest = max(size.longest, len(value))
        return [_item(item, size, depth + 1) for item in value]
    return _scalar(value, size)


def _item(value: Any, size: Size, depth: int) -> Any:
    before = size.cells
    copied = plain(value, size, depth)
    size.largest = max(size.largest, size.cells - before)
    return copied


def _field(name: str, value: Any, size: Size, depth: int) -> Any:
    before = size.cells
    copied = plain(value, size, depth)
    size.fields[name] = max(size.fields.get(name, 0), size.cells - before)
    return copied


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ExpressionFailed("the keys of an object must be texts")
    return _text(key)


def _scalar(value: Any, size: Size) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ExpressionFailed("a whole number is too large: it does not fit in 64 bits")
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ExpressionFailed("a number is infinite, or not a number at all")
        return float(value)
    if isinstance(value, str):
        size.cells += len(value) // _CHARACTERS
        return _text(value)
    raise ExpressionFailed(
        f"a value is a {_SPOKEN.get(type(value).__name__, 'thing')}, which JSON does not have{_HINT}"
    )


_SPOKEN = {"datetime": "timestamp", "timedelta": "duration", "bytes": "string of bytes"}
_HINT = ": string(…) makes a text of it"


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionFailed("a text has half a character in it (a lone surrogate)") from error
    return str(text)


class _Estimate:
    """From above: how many values are read or copied."""

    def __init__(self, reading: Reading, sizes: Mapping[tuple[str, ...], Size]) -> None:
        self._reading = reading
        self._sizes = sizes
        self._cells = sum(size.cells for size in sizes.values())
        self._branches: dict[tuple[str, ...], int] = {}
        for place, size in sizes.items():
            branch = place[:2]
            self._branches[branch] = self._branches.get(branch, 0) + size.cells + _ENTRY * len(place)
        self._longest = max((size.longest for size in sizes.values()), default=0)
        self._largest = max((size.largest for size in sizes.values()), default=1)
        if any(
            macro.over is None for macro in reading.macros
        ):  # as in `[params.a].map(…)`, where all of it is one item
            self._largest = max(self._largest, self._cells)
        # An object made by one macro and read by another has fields of which the data says nothing.
        self._fields_known = len(reading.macros) == 1 or not reading.objects
        self._growth = self._grown()

    def work(self) -> int:
        outside = self._reading.outside
        once = self._cells + self._reading.tokens + self._read(outside.outer) * (1 + outside.joins)
        return once + sum(self._of(macro) for macro in self._reading.macros)

    def _of(self, macro: Macro) -> int:
        mentioned = sum(map(self._mention, macro.own))
        each = 10 + (self._read(macro.outer) + mentioned) * (1 + macro.joins)
        gathered = self._length(macro) // 2 * self._gathered(macro)
        return self._rounds(macro) * (each + gathered)

    def _gathered(self, macro: Macro) -> int:
        """How large each item is that goes into the result; all before it are copied along with it."""
        if macro.kind == "filter":
            return self._largest * self._growth
        if macro.kind != "map":
            return 0
        # What a macro within it makes goes in as well.
        within = (inner for inner in self._reading.macros if inner.within is macro)
        return self._made(macro) + sum(self._length(inner) * max(1, self._gathered(inner)) for inner in within)

    def _made(self, macro: Macro) -> int:
        entries = _ENTRY * (1 + len(macro.own) + len(macro.outer)) if self._reading.objects else 1
        return entries + sum(map(self._mention, macro.own)) + sum(map(self._named, macro.outer))

    def _mention(self, name: str | None) -> int:
        known = self._fields_known and name is not None
        found = [size.fields[name] for size in self._sizes.values() if known and name in size.fields]
        return (max(found) if found else self._largest) * self._growth + 1

    def _named(self, path: Path) -> int:
        return self._sizes[path.root, *path.keys].cells

    def _rounds(self, macro: Macro) -> int:
        if macro.within is None:
            return self._length(macro)
        all_of_them = self._rounds(macro.within) * self._length(macro)
        # Lists within the items of another: all of them together are no more than there is.
        return min(self._cells * self._growth, all_of_them) if isinstance(macro.over, str) else all_of_them

    def _length(self, macro: Macro) -> int:
        if isinstance(macro.over, Path):
            return self._sizes[macro.over.root, *macro.over.keys].longest * self._growth
        if isinstance(macro.over, str) and isinstance(macro.within, Macro) and isinstance(macro.within.over, Path):
            return self._inner(macro.within.over) * self._growth
        joined = 1 + len(self._reading.outside.outer)
        return (self._longest * joined + self._reading.tokens) * self._growth

    def _inner(self, path: Path) -> int:
        """The length of the longest list in an item of the list there: not more than the item has cells."""
        size = self._sizes[path.root, *path.keys]
        return min(size.longest, size.largest)

    def _read(self, paths: Iterable[Path]) -> int:
        """Each key on the way copies all that is below it; the variable itself is not copied."""
        return sum(1 + len(path.keys) * self._branches[path.root, *path.keys[:1]] for path in paths)

    def _grown(self) -> int:
        """How many times larger items may become: each `map` may mention its item, or something else, again and again.

        What the last one makes goes into no other macro, unless one that is no `map` comes after it. Which one is the last
        is not known, so the smallest is left out.
        """
        mentioned = {id(macro): 0 for macro in self._reading.macros if macro.kind == "map"}
        for macro in self._reading.macros:
            mentions = len(macro.own) + sum(map(self._named, macro.outer))
            around: Macro | None = macro
            while around is not None:
                if around.kind == "map":
                    mentioned[id(around)] += mentions
                around = around.within
        last = 1 if all(macro.kind == "map" or macro.within for macro in self._reading.macros) else 0
        return prod(max(1, count) for count in sorted(mentioned.values())[last:])
