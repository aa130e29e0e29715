"""The filters and tests of templates. Each takes and gives plain data, and pays for what it makes from the render's budget."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote

from jinja2 import Undefined

WORK = 10_000_000
"""Characters that the filters of one render may make: ten times what it may give."""

_left: ContextVar[list[int] | None] = ContextVar("ksana_template_budget", default=None)


class TemplateFailed(Exception):
    """A template that cannot be used or filled in. Its text says why, in words for whoever wrote it."""


@contextmanager
def budget() -> Iterator[None]:
    """Within it, filters may make WORK characters in all; the next one raises TemplateFailed."""
    token = _left.set([WORK])
    try:
        yield
    finally:
        _left.reset(token)


def as_text(value: Any) -> Any:
    """A value as it stands in the text: strings as they are, everything else as JSON (`true`, `null`, `{"a": 1}`)."""
    if isinstance(value, str | Undefined):
        return value  # a missing one says so when Jinja2 prints it
    return _paid(_json(value))


def _paid(text: str) -> str:
    left = _left.get()
    if left is not None:
        left[0] -= len(text)
        if left[0] < 0:
            raise TemplateFailed("the template failed: it makes too much text")
    return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Undefined):
        str(value)  # raises, naming what is missing
    raise TypeError(type(value).__name__)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else str(as_text(value))


def _default(value: Any, default_value: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002 - Jinja2's own signature
    return default_value if isinstance(value, Undefined) or (boolean and not value) else value


def _int(value: Any, default: Any = 0) -> Any:
    try:
        return int(value)
    except (ValueError, TypeError, OverflowError):
        return default


def _length(value: Any) -> int:
    return len(value)


def _replace(value: Any, old: Any, new: Any, count: Any = -1) -> str:
    text, before, after = _string(value), _string(old), _string(new)
    # Counted first: an empty `old` matches between all characters, and each match may bring in a long `new`.
    growth = text.count(before) * max(0, len(after) - len(before))
    if len(text) + growth > WORK:
        raise TemplateFailed("the template failed: it makes too much text")
    return _paid(text.replace(before, after, int(count)))


def _end(value: Any, position: int) -> Any:
    items = list(value)
    if not items:
        raise TemplateFailed("the template failed: an empty list has neither a first nor a last")
    return items[position]


FILTERS: dict[str, Callable[..., Any]] = {
    "d": _default,
    "default": _default,
    "first": lambda value: _end(value, 0),
    "int": _int,
    "last": lambda value: _end(value, -1),
    "length": _length,
    "lower": lambda value: _paid(_string(value).lower()),
    "replace": _replace,
    "string": lambda value: _paid(_string(value)),
    "tojson": lambda value: _paid(_json(value)),
    "trim": lambda value: _paid(_string(value).strip()),
    "upper": lambda value: _paid(_string(value).upper()),
    "urlencode": lambda value: _paid(quote(_string(value), safe="")),
}

TESTS: dict[str, Callable[..., bool]] = {
    "defined": lambda value: not isinstance(value, Undefined),
    "undefined": lambda value: isinstance(value, Undefined),
    "none": lambda value: value is None,
}
