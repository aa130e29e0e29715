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
        found = json.loads(text) if text.lstrip().startswith("{") and file.endswith(".json") else _yaml(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("FILE", f"{file} is neither YAML nor JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("FILE", f"{file} must hold an object, as a workflow is one")
    try:
        json.dumps(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("FILE", f"{file} holds what JSON cannot: {error}") from None
    return found


def _yaml(text: str) -> Any:
    """ValueError. JSON is YAML, too. What looks like an instant stays text, as in JSON."""
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
