"""Documents that people write: YAML or JSON."""

import json
from typing import Any

from ksana.cli.client.flags import read_text
from ksana.domain.errors import InvalidInput

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def read_document(file: str) -> dict[str, Any]:
    """What a file says, `-` is standard input. InvalidInput, with the line where it cannot be read."""
    text = read_text(file, "FILE")
    try:
        found = _read(text, only_json=file.endswith(".json"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput("FILE", f"{file} is neither YAML nor JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("FILE", f"{file} must hold an object, with a name and a value for each of its parts")
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("FILE", f"{file} holds what JSON cannot: {error}") from None
    return found


def text_of(document: dict[str, Any], name: str) -> str | None:
    """A part that is a text, if it is there. InvalidInput."""
    found = document.get(name)
    if found is not None and not isinstance(found, str):
        raise InvalidInput(name, "must be a text")
    return found


def _read(text: str, *, only_json: bool) -> Any:
    """ValueError. JSON is nearly YAML: there, `1e5` is a text, some characters break lines and others cannot be."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            if only_json:
                raise
    return _yaml(text)


def _yaml(text: str) -> Any:
    """ValueError. What looks like an instant stays text, as in JSON."""
    import yaml  # noqa: PLC0415 - only those with a file need it

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012 - as its parent has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return yaml.load(text, Loader)  # noqa: S506 - it is a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
