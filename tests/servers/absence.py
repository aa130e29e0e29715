"""What becomes of a test whose back end is not installed: skipped and told at the end, or failed."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

from tests.servers.base import MissingError
from tests.servers.hints import BACK_ENDS

VARIABLE = "KSANA_TEST_REQUIRE"
_REASON = re.compile(r"(?:Skipped: )?(?P<label>.+) is not installed: (?P<how>.+)")


def required() -> frozenset[str]:
    """The back ends that KSANA_TEST_REQUIRE lists; pytest.UsageError for a name that does not exist."""
    names = frozenset(name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip())
    unknown = names.difference(BACK_ENDS)
    if unknown:
        raise pytest.UsageError(f"{VARIABLE} lists {', '.join(sorted(unknown))}; known: {', '.join(BACK_ENDS)}")
    return names


def absent(back_end: str, missing: MissingError) -> NoReturn:
    """Ends the current test: a failure where the back end is required, else a skip."""
    if back_end in required():
        pytest.fail(f"{missing} ({VARIABLE} lists {back_end}; looked for {missing.looked_for})", pytrace=False)
    pytest.skip(str(missing))


def untested(skipped: Iterable[object]) -> list[str]:
    """One line per back end that was missing: how many tests that cost, and how to get it."""
    counts = Counter(found.groups() for found in map(_reason, skipped) if found)
    return [f"{label}: {count} skipped. To test it: {how}" for (label, how), count in sorted(counts.items())]


def _reason(report: object) -> re.Match[str] | None:
    longrepr = getattr(report, "longrepr", None)
    return _REASON.fullmatch(str(longrepr[2])) if isinstance(longrepr, tuple) else None
