"""Ids: integers from the store for what document 003 counts; strings for the rest."""

import re
import secrets
from datetime import datetime

from ksana.domain.errors import InvalidInput

KEY_LENGTH = 64
LARGEST_INTEGER = 2**53 - 1
"""The largest id a JavaScript client can read."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,63}")


def new_key(now: datetime, entropy: bytes | None = None) -> str:
    """A UUIDv7: sorts by time, so that indexes grow at one end. `entropy` is ten bytes."""
    random = int.from_bytes(entropy or secrets.token_bytes(10))
    millis = int(now.timestamp() * 1000) & (2**48 - 1)
    value = millis << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & (2**62 - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def checked_key(value: str, *, field: str = "id") -> str:
    """A client's own id. It must fit a URL, and must not look like one of the store's integers."""
    if not _KEY.fullmatch(value):
        raise InvalidInput(field, "must be 1 to 64 of A-Z a-z 0-9 . _ ~ - and begin with a letter or digit")
    if value.isdigit():
        raise InvalidInput(field, "must not be a number: numbers are given by Ksana")
    return value
