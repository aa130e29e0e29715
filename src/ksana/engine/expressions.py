"""Expressions of workflows (`when`, `items` …): CEL, over plain JSON.

`nodes.load.artifact.rows > 3 && has(params.tenant)`. Numbers are JSON's: a whole number is an `int`, any other a `double`; they
compare with each other, and `5 == 5.0`, but arithmetic needs both sides of one kind (`double(n) + 0.5`). `null` equals only
`null`. Not offered: regular expressions (`matches`), types, protocol buffers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from ksana.domain.errors import InvalidInput
from ksana.engine.expressions_data import ExpressionFailed, plain, visible
from ksana.engine.expressions_syntax import Reading, Unreadable, read

if TYPE_CHECKING:
    from cel import Program

_T = TypeVar("_T")

__all__ = ["Expression", "ExpressionFailed", "check_expression", "evaluate", "items", "truth"]

MAX_EXPRESSION = 2_000
MAX_NESTED_MACROS = 2
MAX_MACROS = 8
COMPILED_EXPRESSIONS = 1_024
FUNCTIONS = frozenset(
    {
        *("size", "contains", "startsWith", "endsWith", "int", "double", "string", "has", "timestamp", "duration"),
        *("getFullYear", "getMonth", "getDate", "getDayOfWeek", "getDayOfYear"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    }
)


@dataclass(frozen=True, slots=True)
class Expression:
    """One that may be saved."""

    text: str
    nodes: frozenset[str]
    """The ids of the nodes whose results it needs."""


def check_expression(text: str, *, field: str, names: frozenset[str]) -> Expression:
    """InvalidInput naming `field`, and the column where there is one, unless it is an expression over these names."""
    try:
        reading = _read(text).reading
    except Unreadable as error:
        raise InvalidInput(field, str(error)) from error
    for path in reading.paths:
        if path.root not in names:
            known = f"there are: {', '.join(sorted(names))}"
            raise InvalidInput(field, f"column {path.column}: there is no variable {path.root!r}; {known}")
        if path.root == "nodes" and not path.keys:
            raise InvalidInput(field, f"column {path.column}: name the node, as in nodes.load or nodes['load']")
    return Expression(text, frozenset(path.keys[0] for path in reading.paths if path.root == "nodes"))


def evaluate(expression_text: str, variables: Mapping[str, Any]) -> Any:
    """Its value as plain JSON. ExpressionFailed, for people to read, if it has none."""
    try:
        known = _read(expression_text)
    except Unreadable as error:
        raise ExpressionFailed(str(error)) from error
    seen = visible(known.reading, variables)
    return plain(_guarded(lambda: known.program.execute(seen)))


def truth(expression_text: str, variables: Mapping[str, Any]) -> bool:
    """ExpressionFailed unless its value is true or false."""
    value = evaluate(expression_text, variables)
    if not isinstance(value, bool):
        raise ExpressionFailed(f"must be true or false, and is {_kind(value)}")
    return value


def items(expression_text: str, variables: Mapping[str, Any], most: int) -> list[Any]:
    """ExpressionFailed unless its value is a list of at most `most`."""
    value = evaluate(expression_text, variables)
    if not isinstance(value, list):
        raise ExpressionFailed(f"must be a list, and is {_kind(value)}")
    if len(value) > most:
        raise ExpressionFailed(f"the list has {len(value)} items, and may have at most {most}")
    return value


@dataclass(frozen=True, slots=True)
class _Known:
    program: "Program"
    reading: Reading


def _read(text: Any) -> _Known:
    """Unreadable if nobody may use it, whatever the names."""
    if not isinstance(text, str) or not text.strip():
        raise Unreadable("must be an expression, as in nodes.load.artifact.rows > 0")
    if len(text) > MAX_EXPRESSION:
        raise Unreadable(f"is longer than {MAX_EXPRESSION} characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"column {error.start + 1}: half a character (a lone surrogate)") from error
    return _compiled(text)


@lru_cache(maxsize=COMPILED_EXPRESSIONS)
def _compiled(text: str) -> _Known:
    import cel  # noqa: PLC0415 - 0.2 s, which only those with workflows need to spend

    try:
        program = _guarded(lambda: cel.compile(text))
    except ExpressionFailed as error:
        raise Unreadable(str(error)) from error
    reading = read(text)
    _check_functions(reading)
    _check_macros(reading)
    # Read differently by the library and by us, nothing that we found would count.
    found = {path.root for path in reading.paths} | _used(reading, program)
    called = {name for name in program.functions() if name.isidentifier()}
    if found != set(program.variables()) or reading.functions - {"has"} != called:
        raise Unreadable("cannot be read with certainty: write it more simply")
    return _Known(program, reading)


def _used(reading: Reading, program: "Program") -> set[str]:
    """Variables of macros that their bodies mention; the others the library does not count."""
    return reading.declared & set(program.variables())


def _check_functions(reading: Reading) -> None:
    unknown = sorted(reading.functions - FUNCTIONS)
    if unknown:
        raise Unreadable(f"there is no function {unknown[0]!r}; there are: {', '.join(sorted(FUNCTIONS))}")


def _check_macros(reading: Reading) -> None:
    if any(macro.depth > MAX_NESTED_MACROS for macro in reading.macros):
        raise Unreadable(f"map, filter, all and exists may be nested {MAX_NESTED_MACROS} deep, not deeper")
    if len(reading.macros) > MAX_MACROS:
        raise Unreadable(f"may have map, filter, all and exists at most {MAX_MACROS} times")


def _guarded(work: Callable[[], _T]) -> _T:
    """What the library gives; ExpressionFailed for whatever it raises, also when its own code breaks down."""
    try:
        return work()
    except Exception as error:
        raise ExpressionFailed(_in_words(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust code raises that broke down; no Exception
            raise
        raise ExpressionFailed("cannot be worked out") from error


def _in_words(error: Exception) -> str:
    told = str(error)
    if isinstance(error, KeyError):
        return f"there is no {str(error.args[0])[:64]!r}"
    if isinstance(error, IndexError):
        return f"there is no item {told.rpartition(' ')[2]} in the list"
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    if isinstance(error, OverflowError):
        return "a number is too large"
    if isinstance(error, TypeError):
        return f"the types do not fit: {_MIXED if 'No such overload' in told else _first_sentence(told)}"
    syntax = _SYNTAX.search(told)
    if syntax is not None:
        where = f"column {syntax[2]}" if syntax[1] == "1" else f"line {syntax[1]}, column {syntax[2]}"
        return f"{where}: {_EXPECTED.sub('', syntax[3])[:200]}"
    if "Undefined variable or function" in told:
        return "the types do not fit: a function cannot take what it was given"
    return _first_sentence(told)


def _first_sentence(told: str) -> str:
    return re.split(r"\.\s|\n", told, maxsplit=1)[0][:200].rstrip(".")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return next(spoken for kinds, spoken in _KINDS if isinstance(value, kinds))


_MIXED = "int and double do not mix in arithmetic (write double(x)), and null, text and lists take no part in it"
_SYNTAX = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)")
_EXPECTED = re.compile(r" expecting \{.*")
_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "a boolean"),
    (int | float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "an object"),
)
