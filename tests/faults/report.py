"""What scenarios found, as a table and as a file."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = (
    ("n", "n"),
    ("lost", "lost"),
    ("missed", "missed"),
    ("duplicated", "twice"),
    ("phantoms", "phantom"),
    ("excess_attempts", "excess"),
    ("stale_writes", "stale"),
    ("overlaps", "overlap"),
    ("takeover_max", "takeover"),
    ("recovery_p50", "recov p50"),
    ("recovery_max", "max"),
    ("stuck", "stuck"),
    ("orphans", "orphans"),
)


@dataclass(frozen=True)
class Result:
    """Of one scenario on one store."""

    scenario: str
    store: str
    seconds: float
    figures: dict[str, Any] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


def table(results: Sequence[Result]) -> str:
    heads = ["scenario", "store", *(head for _, head in COLUMNS), "took", ""]
    rows = [
        [
            result.scenario,
            result.store,
            *(_shown(result.figures.get(name)) for name, _ in COLUMNS),
            f"{result.seconds:.0f} s",
            "VIOLATED" if result.violations else "kept",
        ]
        for result in results
    ]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [heads, *rows]]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _shown(figure: Any) -> str:
    if figure is None:
        return "-"
    return f"{figure:.1f}" if isinstance(figure, float) else f"{figure:,}"


def write(folder: Path, seed: int, results: Sequence[Result]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "seed": seed,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "results": [asdict(each) for each in results],
    }
    (folder / "faults.json").write_text(json.dumps(told, indent=2, default=str) + "\n")
