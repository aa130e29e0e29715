"""What a setting's value may be: each parser makes a value of what somebody wrote, or says what is wrong with it."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Generic, TypeVar

from ksana.domain.durations import format_duration, parse_duration
from ksana.domain.errors import InvalidInput

T = TypeVar("T")

_HOST = re.compile(r"[A-Za-z0-9_.:%\-]{1,255}")
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,63}")
_YES = frozenset({"true", "yes", "on", "1"})
_NO = frozenset({"false", "no", "off", "0"})
SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Parser(Generic[T]):
    """`kind` is what the reference page says; `parse(value, field)` raises InvalidInput naming `field`."""

    kind: str
    parse: Callable[[object, str], T]


def shown(value: object) -> str:
    """A value as a person would write it in the settings file."""
    if value is None:
        return ""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


def quoted(value: object) -> str:
    """A wrong value inside a message: short, and without control characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}…"


def whole(low: int, high: int) -> Parser[int]:
    """A whole number within bounds, also as text."""

    def parse(value: object, field: str) -> int:
        text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
        number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,15}", text) else None
        if number is None or not low <= number <= high:
            raise InvalidInput(field, f"must be a whole number from {low} to {high}, not {quoted(value)}")
        return number

    return Parser(f"whole number, {low} to {high}", parse)


def duration(low: timedelta = timedelta(0), high: timedelta = timedelta(days=36_500)) -> Parser[timedelta]:
    """`10s`, `2h30m`, `500ms`, or a number of seconds."""

    def parse(value: object, field: str) -> timedelta:
        length = parse_duration(value, field=field)
        if not low <= length <= high:
            limits = f"from {format_duration(low)} to {format_duration(high)}"
            raise InvalidInput(field, f"must be {limits}, not {quoted(value)}")
        return length

    return Parser("duration", parse)


def choice(*options: str, synonyms: Mapping[str, str] | None = None) -> Parser[str]:
    """One of a few words, in any case."""

    def parse(value: object, field: str) -> str:
        word = str(value).strip().lower()
        word = (synonyms or {}).get(word, word)
        if word not in options:
            raise InvalidInput(field, f"must be one of {', '.join(options)}, not {quoted(value)}")
        return word

    return Parser(" or ".join(f"`{option}`" for option in options), parse)


def _yes_or_no(value: object, field: str) -> bool:
    word = str(value).strip().lower()
    if word not in _YES | _NO:
        raise InvalidInput(field, f"must be true or false, not {quoted(value)}")
    return word in _YES


def _path(value: object, field: str) -> Path:
    if not isinstance(value, str | Path) or not str(value).strip() or "\0" in str(value):
        raise InvalidInput(field, f"must be the path of a directory, not {quoted(value)}")
    return Path(value).expanduser()


def _host(value: object, field: str) -> str:
    text = str(value).strip().removeprefix("[").removesuffix("]")
    if not _HOST.fullmatch(text):
        raise InvalidInput(field, f"must be an address or a host name, without scheme or path, not {quoted(value)}")
    return text.lower()


def _hosts(value: object, field: str) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise InvalidInput(field, f"must be a list of host names, not {quoted(value)}")
    return tuple(_host(item, field) for item in items if str(item).strip())


def _targets(value: object, field: str) -> tuple[str, ...]:
    """As hosts, and networks such as 10.0.0.0/8 too."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InvalidInput(field, "must be a list of host names, addresses or networks")
    named = tuple(part.strip() for part in parts if part.strip())
    for part in named:
        if not _HOST.fullmatch(part.partition("/")[0].strip("[]")):
            raise InvalidInput(field, f"{quoted(part)} is no host name, address or network")
    return named


def _namespace(value: object, field: str) -> str:
    text = str(value).strip()
    if not _NAMESPACE.fullmatch(text):
        raise InvalidInput(field, f"must be 1 to 64 of A-Z a-z 0-9 . _ : -, not {quoted(value)}")
    return text


def _label(value: object, field: str) -> str:
    text = str(value).strip()
    if len(text) > 255 or not text.isprintable():
        raise InvalidInput(field, f"must be at most 255 printable characters, not {quoted(value)}")
    return text


YES_OR_NO = Parser("true or false", _yes_or_no)
DIRECTORY = Parser("directory", _path)
HOST = Parser("address or host name", _host)
HOSTS = Parser("list of host names", _hosts)
TARGETS = Parser("list of host names, addresses and networks", _targets)
NAMESPACE = Parser("name", _namespace)
LABEL = Parser("name", _label)


def words(kind: str, pattern: str, *, least: int = 0, most: int = 10_000) -> Parser[tuple[str, ...]]:
    """A list, also as one text with commas, each item of which matches the pattern."""

    def parse(value: object, field: str) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise InvalidInput(field, f"must be a {kind}, not {quoted(value)}")
        words = tuple(part.strip() for part in parts if part.strip())
        for word in words:
            if not re.fullmatch(pattern, word):
                raise InvalidInput(field, f"{quoted(word)} cannot be in a {kind}")
        if len(words) < least:
            raise InvalidInput(field, f"must be a {kind}, with at least {least}")
        if len(words) > most:
            raise InvalidInput(field, f"must be a {kind}, with at most {most}")
        return tuple(dict.fromkeys(words))

    return Parser(kind, parse)


def _account(value: object, field: str) -> str:
    if not re.fullmatch(r"([a-z_][a-z0-9_.-]{0,31})?", str(value).strip()):
        raise InvalidInput(field, f"must be the name of a user, not {quoted(value)}")
    return str(value).strip()


ACCOUNT = Parser("user name", _account)


def is_loopback(host: str) -> bool:
    """Only what is certain: another name may resolve to anything, at any time."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
