"""The config of a `python` job: the name of a function, and its parameters, whose strings may be templates."""

from collections.abc import Callable, Mapping
from typing import Any

from ksana.domain.errors import InvalidInput
from ksana.executors.python_functions import Functions
from ksana.executors.shell_env import VARIABLES
from ksana.executors.templates import (
    MAX_DOCUMENT_TEMPLATES,
    DocumentTooLarge,
    check_template,
    is_template,
    map_strings,
    rendered_document,
)

_KEYS = ("function", "params")


def checked_config(config: Mapping[str, Any], functions: Functions) -> dict[str, Any]:
    """The config with its defaults, as plain JSON. InvalidInput names the part that is wrong, as in `params.day`."""
    for key in config:
        if key not in _KEYS:
            raise InvalidInput(str(key), f"not known; there are: {', '.join(_KEYS)}")
    known = functions.get(config.get("function"))
    params = config.get("params")
    if params is None:
        params = {}
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        raise InvalidInput("params", "must be an object of names and values")
    checked = {name: _Checking(f"params.{name}") for name in params}
    plain = {name: _checked(value, checked[name], f"params.{name}") for name, value in params.items()}
    unknown_yet = {name for name, checking in checked.items() if checking.templates}
    if sum(checking.templates for checking in checked.values()) > MAX_DOCUMENT_TEMPLATES:
        raise InvalidInput("params", f"have more than {MAX_DOCUMENT_TEMPLATES} templates")
    known.signature.converted(plain, unknown_yet=unknown_yet)
    return {"function": known.function.name, "params": plain}


def filled_params(params: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with their templates filled in; one that is a placeholder alone keeps its value's type. TemplateFailed."""
    return {name: rendered_document(value, variables) for name, value in params.items()}


def _checked(value: Any, change: Callable[[str], str], field: str) -> Any:
    try:
        return map_strings(value, change)
    except DocumentTooLarge as error:
        raise InvalidInput(field, str(error)) from error


class _Checking:
    """Checks strings, and counts the templates among them."""

    def __init__(self, field: str) -> None:
        self._field = field
        self.templates = 0

    def __call__(self, text: str) -> str:
        check_template(text, field=self._field, names=VARIABLES)
        self.templates += is_template(text)
        return text
