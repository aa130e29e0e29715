"""What is kept in the database for `ksana.runtime.sql`: values by kind and key, each with a version and an end."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Rule(StrEnum):
    """When a value is written. One that has expired counts as not there."""

    NEWER = "newer"  # there is none, or it has a smaller version
    NOT_OLDER = "not_older"  # there is none, or it has no greater version
    NEXT = "next"  # there is one, and its version is just before this one's
    FREE = "free"  # there is none, or it is the same value
    HELD = "held"  # there is one, and it is the same value
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RuntimeWrite:
    kind: str
    key: str
    value: str
    ttl: timedelta
    rule: Rule
    version: int = 0

    def allowed(self, there: "tuple[str, int] | None") -> bool:
        """By its rule, if this value and version are there."""
        value, version = there or ("", 0)
        match self.rule:
            case Rule.NEWER:
                return there is None or version < self.version
            case Rule.NOT_OLDER:
                return there is None or version <= self.version
            case Rule.NEXT:
                return there is not None and version == self.version - 1
            case Rule.FREE:
                return there is None or value == self.value
            case Rule.HELD:
                return there is not None and value == self.value
            case Rule.ALWAYS:
                return True


@dataclass(frozen=True, slots=True)
class RuntimeRemoval:
    kind: str
    key: str
    value: str | None = None
    """Only if it has this value."""
