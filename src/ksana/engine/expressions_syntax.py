"""What an expression refers to, read from its text: the CEL library compiles it, but shows no tree of it.

Only texts that the library has compiled come here, so this knows tokens and brackets, not precedence. Whoever calls it compares
the names that were found here with those that the library found: an expression that the two read differently is refused.
"""

import re
from dataclasses import dataclass, field

MACROS = frozenset({"map", "filter", "all", "exists", "exists_one", "existsOne"})
"""`x.map(i, …)` and its like. Each goes over a list, so that one inside another multiplies."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<text>(?:[rR][bB]?|[bB][rR])(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*')
        |[bB]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = frozenset({"true", "false", "null", "in"})
_OPEN, _CLOSE = "([{", ")]}"


class Unreadable(Exception):
    """The expression has something in it that is not offered. Its text says what and where, for people."""


@dataclass(frozen=True, slots=True)
class Path:
    """A variable, with as many plain keys as stand after it: `nodes.load["x"]` is `nodes`, (`load`, `x`)."""

    root: str
    keys: tuple[str, ...]
    column: int


@dataclass(slots=True)
class Macro:
    """One `x.map(i, …)`: what it goes over, and what its body mentions (not what macros within that body do)."""

    kind: str
    over: Path | str | None
    """A path; the name of an outer macro's variable; None for anything else."""
    within: "Macro | None"
    outer: list[Path] = field(default_factory=list)
    own: list[str | None] = field(default_factory=list)
    """For each mention of a macro's variable, the field that is read of it, or None for all of it."""
    joins: int = 0
    """How many `+` there are."""

    @property
    def depth(self) -> int:
        """1 unless it stands in the body of another."""
        return 1 if self.within is None else 1 + self.within.depth


@dataclass(slots=True)
class Reading:
    """What was found in one expression."""

    tokens: int = 0
    objects: bool = False
    """Whether any are made, as in `{'a': 1}`."""
    paths: list[Path] = field(default_factory=list)
    """All of them, also those in bodies of macros."""
    outside: Macro = field(default_factory=lambda: Macro("", None, None))
    """What is mentioned in no body of a macro."""
    macros: list[Macro] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    """The variables that macros bring along."""


@dataclass(slots=True)
class _Level:
    """Between two brackets."""

    macro: Macro | None = None
    variable: str | None = None
    chain: Path | str | None = None
    """What the value began with to which `.map(…)` is applied."""


def read(text: str) -> Reading:
    """Unreadable, naming the column, if there is anything in it that is not offered."""
    return _Reader(_split(text)).read()


def _split(text: str) -> list[tuple[str, str, int]]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise Unreadable(f"column {at + 1}: not part of an expression")
        if found.lastgroup != "space":
            tokens.append((found.lastgroup, found.group(), at + 1))
        at = found.end()
    return tokens


class _Reader:
    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens = tokens
        self._found = Reading(tokens=len(tokens))
        self._levels = [_Level()]

    def read(self) -> Reading:
        at = 0
        while at < len(self._tokens):
            kind, text, column = self._tokens[at]
            if kind == "name":
                at = self._name(at)
                continue
            if kind in {"text", "number"} or (text in _OPEN and not self._after_value(at)):
                self._levels[-1].chain = None
            if text in _OPEN and kind == "sign":
                self._found.objects |= text == "{"
                self._levels.append(_Level())
            elif text in _CLOSE and kind == "sign" and len(self._levels) > 1:
                self._levels.pop()
            elif text == "." and not self._after_value(at):
                raise Unreadable(f"column {column}: a name cannot begin with a dot")
            elif text == "+":
                self._here().joins += 1
            at += 1
        return self._found

    def _name(self, at: int) -> int:
        """Takes in a name, and where the next token to be looked at is."""
        _, name, column = self._tokens[at]
        called = self._sign(at + 1) == "("
        if self._sign(at - 1) == ".":
            if called and name in MACROS and self._is_name(at + 2) and self._sign(at + 3) == ",":
                return self._macro(at)
            if called:
                self._found.functions.add(name)
            return at + 1
        if name in _CONSTANTS:
            return at + 1
        self._levels[-1].chain = None
        if self._sign(at + 1) == "{":
            raise Unreadable(f"column {column}: there are no message types")
        if called:
            self._found.functions.add(name)
            return at + 1
        if any(level.variable == name for level in self._levels):
            is_field = self._sign(at + 1) == "." and self._is_name(at + 2) and self._sign(at + 3) != "("
            self._here().own.append(self._tokens[at + 2][1] if is_field else None)
            self._levels[-1].chain = name
            return at + 1
        return self._path(at)

    def _macro(self, at: int) -> int:
        level = self._levels[-1]
        variable = self._tokens[at + 2][1]
        within = self._here()
        macro = Macro(self._tokens[at][1], level.chain, None if within is self._found.outside else within)
        self._found.macros.append(macro)
        self._found.declared.add(variable)
        self._levels.append(_Level(macro, variable))
        return at + 4

    def _path(self, at: int) -> int:
        _, root, column = self._tokens[at]
        keys: list[str] = []
        at += 1
        while True:
            if self._sign(at) == "." and self._is_name(at + 1) and self._sign(at + 2) != "(":
                keys.append(self._tokens[at + 1][1])
                at += 2
            elif self._sign(at) == "[" and self._sign(at + 2) == "]" and (key := self._plain_text(at + 1)) is not None:
                keys.append(key)
                at += 3
            else:
                break
        path = Path(root, tuple(keys), column)
        self._found.paths.append(path)
        self._here().outer.append(path)
        self._levels[-1].chain = path
        return at

    def _here(self) -> Macro:
        return next((level.macro for level in reversed(self._levels) if level.macro), self._found.outside)

    def _sign(self, at: int) -> str | None:
        inside = 0 <= at < len(self._tokens)
        return self._tokens[at][1] if inside and self._tokens[at][0] == "sign" else None

    def _is_name(self, at: int) -> bool:
        return at < len(self._tokens) and self._tokens[at][0] == "name" and self._tokens[at][1] not in _CONSTANTS

    def _plain_text(self, at: int) -> str | None:
        """A key written as one string in single or double quotes, without escapes."""
        text = self._tokens[at][1] if at < len(self._tokens) and self._tokens[at][0] == "text" else ""
        plain = len(text) >= 2 and text[0] in "'\"" and text[:3] not in {"'''", '"""'} and "\\" not in text
        return text[1:-1] if plain else None

    def _after_value(self, at: int) -> bool:
        if at == 0:
            return False
        kind, text, _ = self._tokens[at - 1]
        return text in _CLOSE if kind == "sign" else text != "in"
