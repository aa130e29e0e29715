"""How a setting is declared: a field that carries its row, in a tree of dataclasses whose shape gives the paths."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from ksana.settings.values import Parser

T = TypeVar("T")
_KEY = "setting"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `also` maps another spelling to the parser it needs."""

    path: str
    parser: Parser[Any]
    default: Any
    meaning: str
    env: tuple[str, ...]
    flag: str | None
    also: Mapping[str, Parser[Any]]
    secret: bool
    default_meaning: str


def setting(  # noqa: PLR0913 - one call is one row of the table, and a row has these columns
    parser: Parser[T],
    default: T,
    meaning: str,
    *,
    env: tuple[str, ...] = (),
    flag: str | None = None,
    also: tuple[str, ...] | Mapping[str, Parser[T]] = (),
    secret: bool = False,
    default_meaning: str = "",
) -> T:
    spellings = dict(also) if isinstance(also, Mapping) else dict.fromkeys(also, parser)
    row = Setting("", parser, default, meaning, env, flag, spellings, secret, default_meaning)
    return field(default=default, metadata={_KEY: row})


def rows(owner: type, prefix: str = "") -> Iterator[Setting]:
    """Every setting of the tree, in the order of declaration."""
    for part in dataclasses.fields(owner):
        path = prefix + part.name
        row: Setting | None = part.metadata.get(_KEY)
        if row is None:
            yield from rows(cast("type", part.type), f"{path}.")
        else:
            env = dict.fromkeys((*row.env, f"KSANA_{path.upper().replace('.', '_')}"))
            yield dataclasses.replace(row, path=path, env=tuple(env))


def sections(owner: type, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The path and the meaning of every section below the root."""
    for part in dataclasses.fields(owner):
        if _KEY not in part.metadata:
            nested = cast("type", part.type)
            yield prefix + part.name, (nested.__doc__ or "")
            yield from sections(nested, f"{prefix}{part.name}.")


def build(owner: type[T], values: Mapping[str, Any], prefix: str = "") -> T:
    """The tree that has these values, by path, and defaults elsewhere."""
    given: dict[str, Any] = {}
    for part in dataclasses.fields(owner):  # type: ignore[arg-type]  # every section is a dataclass
        path = prefix + part.name
        if _KEY not in part.metadata:
            given[part.name] = build(cast("type", part.type), values, f"{path}.")
        elif path in values:
            given[part.name] = values[path]
    return owner(**given)
