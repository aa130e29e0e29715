"""Flag, else environment, else file, else default: which value each setting has, and where it came from."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ksana.domain.errors import InvalidInput, InvalidSetting
from ksana.settings.declare import Setting, build
from ksana.settings.table import Settings, settings_table
from ksana.settings.urls import DATABASE_URL, masked
from ksana.settings.values import Parser, shown

CONFIG_VARIABLE = "KSANA_CONFIG"
OTHER_VARIABLES = (CONFIG_VARIABLE, "KSANA_SERVER")
"""Known, but no settings: the file, and the server that the client's commands ask."""
DEFAULT = "default"
DATABASE_FILE = "ksana.db"


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody wrote, the parser its spelling needs, and the place it was written at."""

    path: str
    value: object
    parser: Parser[Any]
    source: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A line of `config show`: never with a password."""

    path: str
    value: str
    source: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, where each came from, and what looks like a mistake without being one for certain."""

    settings: Settings
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    notes: tuple[str, ...]

    def shown(self) -> list[Shown]:
        return [
            Shown(row.path, _shown(row, self.values[row.path]), self.sources[row.path], row.meaning)
            for row in _table().values()
        ]


def load(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Loaded:
    """The settings that hold. InvalidSetting names the first value that cannot be used and where it stands.

    `flags` maps a flag (`--port`) to its value, None where it was not given. A value that a stronger source
    overrides is not looked at; a name in the file that no setting has is refused all the same.
    """
    environ = environ or {}
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    weakest_first = [*from_file(file), *from_environment(environ), *from_flags(flags or {})]
    winners = {given.path: given for given in weakest_first}
    values = {row.path: row.default for row in _table().values()}
    values |= {path: _parsed(given) for path, given in winners.items()}
    sources = dict.fromkeys(values, DEFAULT) | {path: given.source for path, given in winners.items()}
    if not values["database.url"]:
        inside = f"sqlite:///{values['data_dir'] / DATABASE_FILE}"
        values["database.url"] = _parsed(Given("data_dir", inside, DATABASE_URL, sources["data_dir"]))
    _check_together(values, sources)
    return Loaded(build(Settings, values), values, sources, tuple(doubtful_variables(environ)))


def from_file(file: Path | None) -> list[Given]:
    """The values of the settings file; unknown names and two spellings of the same setting are refused."""
    if file is None:
        return []
    from ksana.settings.yamlfile import read_entries  # noqa: PLC0415 - only those with a file need to read YAML

    spellings = _spellings()
    found: dict[str, Given] = {}
    for entry in read_entries(file):
        source = f"file {file}, line {entry.line}"
        if entry.path not in spellings:
            raise InvalidSetting(entry.path, _unknown(entry.path, spellings), source=source)
        path, parser = spellings[entry.path]
        if path in found:
            raise InvalidSetting(entry.path, f"is said twice: also in {found[path].source}; keep one", source=source)
        found[path] = Given(path, entry.value, parser, source)
    return list(found.values())


def from_environment(environ: Mapping[str, str]) -> list[Given]:
    """The values of the environment. An empty variable counts as absent: container files often leave them so."""
    found = []
    for row in _table().values():
        names = [name for name in row.env if environ.get(name, "").strip() and not _injected(name, environ[name])]
        named = {name: environ[name] for name in names}
        if len(set(named.values())) > 1:
            raise InvalidSetting(row.path, f"{' and '.join(named)} differ; set one of them", source="environment")
        for name, value in list(named.items())[:1]:
            found.append(Given(row.path, value, row.parser, f"environment {name}"))
    return found


def from_flags(flags: Mapping[str, object]) -> list[Given]:
    """The values of the command line."""
    by_flag = {row.flag: row for row in _table().values() if row.flag}
    given = {flag: value for flag, value in flags.items() if value is not None}
    return [Given(by_flag[flag].path, value, by_flag[flag].parser, f"flag {flag}") for flag, value in given.items()]


def doubtful_variables(environ: Mapping[str, str]) -> Iterable[str]:
    """Variables that look like a misspelt setting. Only a note: clusters add `KSANA_…` variables of their own."""
    known = [name for row in _table().values() for name in row.env] + [*OTHER_VARIABLES]
    for name in sorted(environ):
        if name.startswith("KSANA_") and name not in known and not _injected(name, environ[name]):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
            hint = f": did you mean {near[0]}?" if near else ""
            yield f"the variable {name} is not a setting and was ignored{hint}"


def _injected(name: str, value: str) -> bool:
    """Whether a cluster made it up for a service that is called ksana, or it is for the tests."""
    return any(part in name for part in ("_SERVICE_", "_PORT_", "_TEST_")) or ("_PORT" in name and "://" in value)


def _table() -> Mapping[str, Setting]:
    return settings_table()


def _spellings() -> dict[str, tuple[str, Parser[Any]]]:
    """Every name a setting may have in the file, with its path and the parser that name needs."""
    names = {row.path: (row.path, row.parser) for row in _table().values()}
    for row in _table().values():
        names |= {other: (row.path, parser) for other, parser in row.also.items()}
    return names


def _unknown(path: str, spellings: Iterable[str]) -> str:
    if any(known.startswith(f"{path}.") for known in spellings):
        return "is a section: its settings go below it, indented"
    near = difflib.get_close_matches(path, list(spellings), n=1, cutoff=0.6)
    return f"there is no such setting; did you mean {near[0]}?" if near else "there is no such setting"


def _parsed(given: Given) -> object:
    try:
        return given.parser.parse(given.value, given.path)
    except InvalidInput as error:
        raise InvalidSetting(given.path, error.reason, source=given.source) from None


def _check_together(values: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    """What no single value can tell."""
    if values["executor.persistence.store_type"] == "redis" and not values["redis.url"]:
        source = sources["executor.persistence.store_type"]
        raise InvalidSetting(
            "executor.persistence.store_type", "redis needs redis.url (KSANA_REDIS_URL)", source=source
        )
    first, longest = "executor.default_retry.initial_delay", "executor.default_retry.max_delay"
    if values[longest] < values[first]:
        source = sources[longest] if sources[longest] != DEFAULT else sources[first]
        raise InvalidSetting(longest, f"cannot be shorter than {first}", source=source)


def _shown(row: Setting, value: object) -> str:
    return masked(value) if row.secret and isinstance(value, str) else shown(value)
