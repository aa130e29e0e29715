"""Reading the settings file: YAML without aliases or doubled keys, flattened to paths with their lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ksana.domain.errors import InvalidSetting

MAX_BYTES = 1_000_000
MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One value of the file."""

    path: str
    value: object
    line: int


def read_entries(file: Path) -> list[Entry]:
    """Every value in the file, in order. InvalidSetting, naming file and line, if it cannot be read."""
    text = _text(file)
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            return list(_flatten(loader, root, "", str(file))) if root is not None else []
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise InvalidSetting("config", _explained(error), source=f"file {file}") from None


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidSetting("config", f"cannot be read: {error.strerror}", source=f"file {file}") from None
    if len(raw) > MAX_BYTES:
        raise InvalidSetting("config", "is larger than 1 MB", source=f"file {file}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidSetting("config", "is not UTF-8 text", source=f"file {file}") from None


class _Loader(yaml.SafeLoader):
    """Safe, and without what makes a small file expand or recurse without end."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not supported", problem_mark=mark)
        if self.depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def _flatten(loader: _Loader, node: yaml.Node, prefix: str, file: str) -> Iterator[Entry]:
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        if not prefix:
            raise InvalidSetting("config", "must hold sections with settings", source=f"file {file}, line {line}")
        yield Entry(prefix, _value(loader, node), line)
        return
    seen: set[str] = set()
    for key, value in node.value:
        name, line = str(key.value).replace("-", "_"), key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or not name or name in seen:
            problem = f"{name} stands twice in its section" if name in seen else "a name is expected"
            raise InvalidSetting("config", problem, source=f"file {file}, line {line}")
        seen.add(name)
        path = f"{prefix}.{name}" if prefix else name
        if not _empty(value):
            yield from _flatten(loader, value, path, file)


def _value(loader: _Loader, node: yaml.Node) -> object:
    try:
        return loader.construct_object(node, deep=True)
    except ValueError as error:  # 2024-13-45 looks like a date to YAML, and is none
        raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from None


def _empty(node: yaml.Node) -> bool:
    """`port:` with nothing behind it says nothing: as if the line were not there."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _explained(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return f"is not valid YAML: {place}{problem}"
