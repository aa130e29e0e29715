"""Templates in a job's URL, headers and body: Jinja2, cut down to what fills in a request.

They are rendered on the event loop, so whatever could keep it busy is refused when the job is saved (`templates_syntax`), and
what remains works within a budget (`templates_filters`). Values are plain data: no attribute of a Python object is ever reached.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ksana.domain.errors import InvalidInput
from ksana.executors.templates_filters import FILTERS, TESTS, TemplateFailed, as_text, budget
from ksana.executors.templates_syntax import check_size, check_tree, named_nodes, plain_path

MAX_OUTPUT = 1_000_000
COMPILED_TEMPLATES = 4_096
COMPILED_CHARACTERS = 16_000_000
MAX_DOCUMENT_DEPTH = 64
MAX_DOCUMENT_TEMPLATES = 200
"""In a JSON document, where each string is a template of its own. Compiled ones are kept, but not without end."""
PLACEHOLDER = "<filled-by-service>"

_MARKS = re.compile(r"\{[{%#]")
_PLACEHOLDER_VALUE = re.compile(rf'("(job_id|run_id|scheduled_at|triggered_at)"\s*:\s*)"{PLACEHOLDER}"')
PLACEHOLDER_KEYS = frozenset({"job_id", "run_id", "scheduled_at", "triggered_at"})


class DocumentTooLarge(TemplateFailed):
    """A JSON document that is too deep, or has too many templates or characters in its strings."""


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


@dataclass(frozen=True, slots=True)
class _Known:
    """A template that has been compiled, and what its syntax tree told."""

    template: Template
    path: tuple[str | int, ...] | None
    """If it is one plain place and nothing else."""
    nodes: frozenset[str]
    unnamed: int | None
    """The line where `nodes` is used without the name of one."""


class _Compiled:
    """Templates that have been compiled, the least recently used forgotten first. Safe for threads."""

    def __init__(self) -> None:
        self._templates: OrderedDict[str, _Known] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def get(self, text: str) -> _Known:
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
        with _in_words():
            template = _COMPILED.get(text).template
            check_tree(template.environment.parse(_source(text)), names)
    except TemplateFailed as error:
        raise InvalidInput(field, str(error)) from error


def referenced_nodes(text: str) -> frozenset[str]:
    """The ids of the nodes whose results the template needs.

    TemplateFailed if that cannot be known, as in `{{ nodes[params.x] }}`, or if it is no template.
    """
    if not is_template(text):
        return frozenset()
    with _in_words():
        known = _COMPILED.get(text)
    if known.unnamed is not None:
        raise TemplateFailed(f"line {known.unnamed}: name the node, as in nodes.load or nodes['load']")
    return known.nodes


def referenced_nodes_in(document: Any) -> frozenset[str]:
    """The same of all strings in a JSON document."""
    found: set[str] = set()

    def looked_at(text: str) -> str:
        found.update(referenced_nodes(text))
        return text

    map_strings(document, looked_at)
    return frozenset(found)


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
            for part in _COMPILED.get(text).template.generate(variables):
                size += len(part)
                if size > MAX_OUTPUT:
                    raise TemplateFailed(f"the template gives more than {MAX_OUTPUT} characters")
                parts.append(part)
    except TemplateError as error:
        raise TemplateFailed(f"the template failed: {error.message or 'it is not one'}") from error
    except (RecursionError, MemoryError, ValueError, TypeError, ArithmeticError, LookupError, SyntaxError) as error:
        raise TemplateFailed("the template failed: a value does not fit what is done with it") from error
    return "".join(parts)


def render_value(text: str, variables: Mapping[str, Any]) -> Any:
    """As `render`; but a text that is one plain place, as `{{ params.ids[0] }}`, gives the value there, whatever its type.

    The value is not a copy: it is not to be changed.
    """
    path = _path(text.strip())
    if path is None:
        return render(text, variables)
    root, *keys = path
    value = variables.get(str(root), _LF.undefined(name=str(root)))
    for key in keys:
        if isinstance(value, Undefined):
            break
        value = _LF.getitem(value, key)
    return render(text, variables) if isinstance(value, Undefined) else value  # which fails, and says what is missing


def rendered_document(value: Any, variables: Mapping[str, Any]) -> Any:
    """A JSON document with every string in it as `render_value` gives it; names of fields stay as they are.

    TemplateFailed as `render`; DocumentTooLarge, which is one, if there is too much in it or in what is filled in.
    """
    return map_strings(value, lambda text: render_value(text, variables))


def map_strings(document: Any, change: Callable[[str], Any]) -> Any:
    """A copy of a JSON document with each string in it changed. DocumentTooLarge if it is too deep or becomes too large."""
    return _mapped(document, _Bounded(change), None, 0)


class _Bounded:
    """Changes the strings of one document, until there are too many templates or characters."""

    def __init__(self, change: Callable[[str], Any]) -> None:
        self._change = change
        self._templates = 0
        self._characters = 0

    def __call__(self, text: str) -> Any:
        self._templates += is_template(text)
        if self._templates > MAX_DOCUMENT_TEMPLATES:
            told = f"has more than {MAX_DOCUMENT_TEMPLATES} strings with templates: write it as one text"
            raise DocumentTooLarge(told)
        changed = self._change(text)
        self._characters += len(changed) if isinstance(changed, str) else _length(changed)
        if self._characters > MAX_OUTPUT:
            raise DocumentTooLarge(f"is longer than {MAX_OUTPUT} characters")
        return changed


def _length(value: Any) -> int:
    """Of the value as JSON."""
    try:
        return len(as_text(value))
    except (RecursionError, TypeError, ValueError) as error:
        raise TemplateFailed("the template failed: a value is not plain JSON, or nested too deep") from error


def _mapped(value: Any, change: _Bounded, key: str | None, depth: int) -> Any:
    if depth > MAX_DOCUMENT_DEPTH:
        raise DocumentTooLarge(f"is nested deeper than {MAX_DOCUMENT_DEPTH} levels")
    if isinstance(value, str):
        filled_by_us = value == PLACEHOLDER and key in PLACEHOLDER_KEYS
        return change(f"{{{{ {key} | string }}}}" if filled_by_us else value)
    if isinstance(value, Mapping):
        return {str(name): _mapped(item, change, name, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change, None, depth + 1) for item in value]
    return value


def _path(text: str) -> tuple[str | int, ...] | None:
    if not (text.startswith("{{") and text.endswith("}}")):
        return None
    with _in_words():
        return _COMPILED.get(text).path


@contextmanager
def _in_words() -> Iterator[None]:
    """Whatever a text that is no template raises becomes TemplateFailed with the line."""
    try:
        yield
    except TemplateError as error:
        line = getattr(error, "lineno", None) or 1
        hint = "; text that is to stay as it is goes between {% raw %} and {% endraw %}"
        raise TemplateFailed(f"line {line}: {error.message or 'not a template'}{hint}") from error
    except (RecursionError, MemoryError, ValueError, SyntaxError, OverflowError) as error:
        raise TemplateFailed("line 1: too deep or too large a template") from error


def _compile(text: str) -> _Known:
    source = _source(text)
    environment = _CRLF if "\r\n" in source and source.count("\n") == source.count("\r\n") else _LF
    check_size(environment, source)
    tree = environment.parse(source)
    check_tree(tree, None)
    with budget():  # Jinja2 works out what is constant right here
        return _Known(environment.from_string(source), plain_path(tree), *named_nodes(tree))


def _source(text: str) -> str:
    """The text with document 002's placeholders as variables; they stand in quotes, and so do their values."""
    if PLACEHOLDER not in text:
        return text
    return _PLACEHOLDER_VALUE.sub(r'\1"{{ \2 }}"', text)
