"""Which headers hold secrets: those that are shown to nobody and not taken along to another origin."""

import re
from functools import lru_cache

_SENSITIVE = frozenset({"cookie", "set-cookie"})
_SENSITIVE_PARTS = ("authorization", "token", "secret", "password")
# Of the many keys those that open something; an Idempotency-Key does not.
_KEYS = re.compile(r"(?:api|access|account|auth|functions|private|subscription)[-_]?key")


@lru_cache(maxsize=4096)
def is_sensitive(header: str) -> bool:
    """Whether the value of this header is a secret."""
    lowered = header.lower()
    known = lowered in _SENSITIVE or any(part in lowered for part in _SENSITIVE_PARTS)
    return known or _KEYS.search(lowered) is not None
