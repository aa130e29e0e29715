"""Several measurements of one thing: the median is told, and the least and the most beside it."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        return cls(tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def over(self, other: "Spread") -> "Spread":
        """The ratio of each to the one that was measured beside it."""
        return Spread(tuple(one / two for one, two in zip(self.values, other.values, strict=True)))

    def told(self, unit: str) -> str:
        """`5,100 runs/s (4,980 to 5,300)`."""
        ends = f" ({shown(min(self.values))} to {shown(max(self.values))})" if len(self.values) > 1 else ""
        return f"{shown(self.median)}{' ' if unit else ''}{unit}{ends}"


def shown(value: float) -> str:
    """With as many digits as say something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def percentile(values: Iterable[float], part: float) -> float:
    """The value that `part` of them do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0
