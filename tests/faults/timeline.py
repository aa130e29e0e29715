"""A picture of one run, as SVG: what was due, what ran, and what was done to the system, over time.

However many instants there are, the picture stays small: time is cut into buckets, and each bucket of a row is one mark.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from tests.faults.history import AttemptRow, Band, History, Verdict

WIDTH, LEFT, RIGHT = 1_200, 130, 20
ROW, GAP, TOP = 22, 6, 64
BUCKETS = 400
MOST_ROWS = 16
GREEN, RED, AMBER, BLUE, GREY = "#2e9e5b", "#d62828", "#e9a820", "#3a6ea5", "#888888"
FATES = {"executed": GREEN, "missed": AMBER, "LOST": RED}
FAULTS = {"kill": "#d62828", "stop": "#7b4fb5", "term": "#c77d3a", "database": "#444444", "network": "#2a8c9c"}
WORST_FIRST = ("LOST", "missed", "executed")


class _Scale:
    """From seconds to places."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.end = begin, max(end, begin + 1)
        self._width = WIDTH - LEFT - RIGHT

    def x(self, at: float) -> float:
        return LEFT + (min(max(at, self.begin), self.end) - self.begin) / (self.end - self.begin) * self._width

    def bucket(self, at: float) -> int:
        return int((self.x(at) - LEFT) / self._width * (BUCKETS - 1))

    def bucket_x(self, number: int) -> float:
        return LEFT + number / BUCKETS * self._width

    @property
    def bucket_width(self) -> float:
        return self._width / BUCKETS


def draw(title: str, history: History, verdict: Verdict) -> str:
    scale = _scale(history, verdict)
    rows = [*_target_rows(history, verdict, scale), *_run_rows(history, scale)]
    height = TOP + len(rows) * (ROW + GAP) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 18, title, size=14),
        *_legend(verdict),
        *_bands(history.bands, scale, height),
    ]
    for number, (name, marks) in enumerate(rows):
        y = TOP + number * (ROW + GAP)
        parts += [_text(LEFT - 8, y + 15, name, anchor="end"), f'<g transform="translate(0 {y})">', *marks, "</g>"]
    return "\n".join([*parts, *_axis(scale, height), "</svg>", ""])


def _scale(history: History, verdict: Verdict) -> _Scale:
    moments = [history.mono(at) for _, at, _ in verdict.targets] + [hit.began for hit in history.hits]
    moments += [band.began for band in history.bands]
    return _Scale(min(moments, default=0.0), max([*moments, *(hit.ended or 0.0 for hit in history.hits)], default=1.0))


def _target_rows(history: History, verdict: Verdict, scale: _Scale) -> Iterable[tuple[str, list[str]]]:
    """A row for each group of schedules (what their names begin with): the worst fate of each bucket, as high as it has many."""
    groups: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, at, fate in verdict.targets:
        groups[_group(name)][scale.bucket(history.mono(at))].append(fate)
    for group, buckets in sorted(groups.items())[:MOST_ROWS]:
        most = max(len(fates) for fates in buckets.values())
        marks = []
        for number, fates in sorted(buckets.items()):
            worst = next(fate for fate in WORST_FIRST if fate in fates)
            marks.append(_bar(scale, number, FATES[worst], len(fates) / most, f"{len(fates)} due, worst: {worst}"))
        yield f"due: {group}", marks


def _group(name: str) -> str:
    return name.rstrip("0123456789") or name


def _run_rows(history: History, scale: _Scale) -> Iterable[tuple[str, list[str]]]:
    """A row for each instance: how many attempts of its the target saw begin; later attempts are red."""
    places = {row.id: history.pids.get(row.pid, "?") for row in history.dump.instances}
    owners = {(str(row.execution), number): places.get(row.owner, "?") for row, number in _numbered(history)}
    rows: dict[str, dict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for hit in history.hits:
        rows[owners.get((hit.run, hit.attempt), "?")][scale.bucket(hit.began)].append(hit.attempt > 1)
    for place, buckets in sorted(rows.items())[:MOST_ROWS]:
        most = max(len(each) for each in buckets.values())
        yield (
            f"runs: {place}",
            [
                _bar(
                    scale, number, RED if any(each) else BLUE, len(each) / most, f"{len(each)} begun, {sum(each)} anew"
                )
                for number, each in sorted(buckets.items())
            ],
        )


def _numbered(history: History) -> Iterable[tuple[AttemptRow, int]]:
    """Attempts with their number in their run."""
    ordered = sorted(history.dump.attempts, key=lambda row: (row.execution, row.epoch))
    for _, rows in groupby(ordered, key=lambda row: row.execution):
        yield from ((row, number) for number, row in enumerate(rows, 1))


def _bar(scale: _Scale, bucket: int, colour: str, part: float, what: str) -> str:
    height = max(3.0, part * ROW)
    place = f'x="{scale.bucket_x(bucket):.1f}" y="{ROW - height:.1f}" width="{scale.bucket_width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{colour}"><title>{escape(what)}</title></rect>'


def _bands(bands: Sequence[Band], scale: _Scale, height: int) -> Iterable[str]:
    for band in bands:
        colour = FAULTS.get(band.kind, GREY)
        begin, end = scale.x(band.began), scale.x(band.last(scale.end))
        what = f"{band.kind} {band.victim}, {band.last(scale.end) - band.began:.1f} s"
        place = f'x="{begin:.1f}" y="{TOP - 12}" width="{max(1.5, end - begin):.1f}" height="{height - TOP - 20}"'
        yield f'<rect {place} fill="{colour}" fill-opacity="0.14"><title>{escape(what)}</title></rect>'
        yield _text(begin + 2, TOP - 14, f"{band.kind} {band.victim}", size=8, colour=colour)


def _legend(verdict: Verdict) -> Iterable[str]:
    shown = [*((f"due and {fate}", colour) for fate, colour in FATES.items()), ("begun", BLUE), ("begun anew", RED)]
    shown += list(FAULTS.items())
    for number, (name, colour) in enumerate(shown):
        x = LEFT + number * 100
        yield f'<rect x="{x}" y="26" width="10" height="10" fill="{colour}"/>' + _text(x + 14, 35, name, size=10)
    figures = ", ".join(
        f"{name} {verdict.figures.get(name, 0)}" for name in ("n", "lost", "missed", "duplicated", "stale_writes")
    )
    yield _text(WIDTH - RIGHT, 18, figures, anchor="end", colour=RED if verdict.violations else GREEN)


def _axis(scale: _Scale, height: int) -> Iterable[str]:
    step = max(1, round((scale.end - scale.begin) / 12))
    for second in range(0, int(scale.end - scale.begin) + 1, step):
        x = scale.x(scale.begin + second)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{height - 32}" y2="{height - 26}" stroke="{GREY}"/>'
        yield _text(x, height - 14, f"{second} s", anchor="middle", colour=GREY)


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start", colour: str = "#222222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
    )
