"""Instants as the contracts write and read them: RFC 3339, in UTC with a `Z`."""

import re
from datetime import UTC, datetime

from ksana.domain.errors import InvalidInput

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)
_HINT = "must be an RFC 3339 instant with a zone, as in 2026-01-31T12:00:00Z"


def rfc3339(instant: datetime) -> str:
    """`2026-01-31T12:00:00Z`, with microseconds only where there are some."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def rfc3339_or_none(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def parse_instant(text: str, *, field: str) -> datetime:
    """The instant that `text` says, in UTC, exact to the microsecond; InvalidInput naming `field` if it says none."""
    found = _RFC3339.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(field, _HINT)
    date, time, fraction, zone = found.groups()
    offset = "+00:00" if zone in "Zz" else zone
    try:
        return datetime.fromisoformat(f"{date}T{time}{(fraction or '')[:7]}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(field, f"there is no such instant; it {_HINT}") from None
