"""Templates in a job's URL, headers and body: Jinja2, cut down to what fills in a request.

They are rendered on the event loop, so whatever could keep it busy is refused when the job is saved (`templates_syntax`), and
what remains works within a budget (`templates_filters`). Values are plain data: no attribute of a Python object is ever reached.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ksana.domain.errors import InvalidInput
from ksana.executors.templates_filters import FILTERS, TESTS, TemplateFailed, as_text, budget
from ksana.executors.templates_syntax import check_size, check_tree

MAX_OUTPUT = 1_000_000
COMPILED_TEMPLATES = 4_096
COMPILED_CHARACTERS = 16_000_000
PLACEHOLDER = "<filled-by-service>"

_MARKS = re.compile(r"\{[{%#]")
_PLACEHOLDER_VALUE = re.compile(rf'("(job_id|run_id|scheduled_at|triggered_at)"\s*:\s*)"{PLACEHOLDER}"')
PLACEHOLDER_KEYS = frozenset({"job_id", "run_id", "scheduled_at", "triggered_at"})


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja2 over plain data: `a.b` and `a["b"]` are items of mappings and lists, never attributes."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj[argument]  # which says that `obj` is missing
        if isinstance(obj, Mapping) and isinstance(argument, str) and argument in obj:
            return obj[argument]
        if isinstance(obj, list | tuple | str) and isinstance(argument, int) and -len(obj) <= argument < len(obj):
            return obj[argument]
        return self.undefined(f"there is no {str(argument)[:64]!r}")


def _environment(newline: Any) -> _Environment:
    made = _Environment(
        autoescape=False,
        undefined=StrictUndefined,
        finalize=as_text,
        keep_trailing_newline=True,
        newline_sequence=newline,
        cache_size=0,
    )
    made.filters = dict(FILTERS)
    made.tests = dict(TESTS)
    made.globals = {}
    return made


class _Compiled:
    """Templates that have been compiled, the least recently used forgotten first. Safe for threads."""

    def __init__(self) -> None:
        self._templates: OrderedDict[str, Template] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def get(self, text: str) -> Template:
        """The template; TemplateError if it is none."""
        with self._lock:
            found = self._templates.get(text)
            if found is not None:
                self._templates.move_to_end(text)
                return found
        made = _compile(text)
        with self._lock:
            if text not in self._templates:
                self._characters += len(text)
            self._templates[text] = made
            while len(self._templates) > COMPILED_TEMPLATES or self._characters > COMPILED_CHARACTERS:
                self._characters -= len(self._templates.popitem(last=False)[0])
        return made


# Jinja2 writes every line break as one and the same; a body sent with CRLF must keep them.
_LF, _CRLF = _environment("\n"), _environment("\r\n")
_COMPILED = _Compiled()


def is_template(text: str) -> bool:
    """Whether anything in the text would be filled in."""
    return _MARKS.search(text) is not None or PLACEHOLDER in text


def check_template(text: str, *, field: str, names: frozenset[str]) -> None:
    """InvalidInput naming `field` and the line if the text cannot be a template over these names."""
    if not is_template(text):
        return
    try:
        template = _COMPILED.get(text)
        check_tree(template.environment.parse(_source(text)), names)
    except TemplateFailed as error:
        raise InvalidInput(field, str(error)) from error
    except TemplateError as error:
        line = getattr(error, "lineno", None) or 1
        hint = "; text that is to stay as it is goes between {% raw %} and {% endraw %}"
        raise InvalidInput(field, f"line {line}: {error.message or 'not a template'}{hint}") from error
    except (RecursionError, MemoryError, ValueError, SyntaxError, OverflowError) as error:
        raise InvalidInput(field, "line 1: too deep or too large a template") from error


def render(text: str, variables: Mapping[str, Any]) -> str:
    """The text with its values filled in; TemplateFailed, for people to read, if one is missing or it grows too large.

    A template that was never checked, such as the body of a single run, meets the same rules.
    """
    if not is_template(text):
        if len(text) > MAX_OUTPUT:
            raise TemplateFailed(f"longer than {MAX_OUTPUT} characters")
        return text
    parts: list[str] = []
    size = 0
    try:
        with budget():
            for part in _COMPILED.get(text).generate(variables):
                size += len(part)
                if size > MAX_OUTPUT:
                    raise TemplateFailed(f"the template gives more than {MAX_OUTPUT} characters")
                parts.append(part)
    except TemplateError as error:
        raise TemplateFailed(f"the template failed: {error.message or 'it is not one'}") from error
    except (RecursionError, MemoryError, ValueError, TypeError, ArithmeticError, LookupError, SyntaxError) as error:
        raise TemplateFailed("the template failed: a value does not fit what is done with it") from error
    return "".join(parts)


def _compile(text: str) -> Template:
    source = _source(text)
    environment = _CRLF if "\r\n" in source and source.count("\n") == source.count("\r\n") else _LF
    check_size(environment, source)
    check_tree(environment.parse(source), None)
    with budget():  # Jinja2 works out what is constant right here
        return environment.from_string(source)


def _source(text: str) -> str:
    """The text with document 002's placeholders as variables; they stand in quotes, and so do their values."""
    if PLACEHOLDER not in text:
        return text
    return _PLACEHOLDER_VALUE.sub(r'\1"{{ \2 }}"', text)
