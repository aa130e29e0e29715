"""The Ksana that is asked, and how its answers are told."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode

from cyclopts import Parameter

from ksana.cli.client.calls import CALLS
from ksana.cli.client.showing import Column, print_record, print_table, write
from ksana.cli.ending import UNREACHABLE, Refusal, tell
from ksana.client.calling import Caller
from ksana.client.errors import UNEXPECTED_ANSWER, FacadeError, FacadeUnavailable
from ksana.domain.errors import InvalidInput

VARIABLE = "KSANA_SERVER"
DEFAULT = "http://127.0.0.1:7100"
ANSWER_SECONDS = 60.0
MOST = 500
"""Items that a page can have."""
T = TypeVar("T")
Query = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is what came, and nothing if there was nothing to say."""

    text: bytes

    @property
    def document(self) -> dict[str, Any]:
        """Refusal if it is no JSON object, as all of Ksana's are."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Refusal(f"that is not how Ksana answers: {self.text[:100]!r} ({UNEXPECTED_ANSWER})")
        return found

    def part(self, name: str, kind: type[T]) -> T:
        """A part that it must have. Refusal."""
        found = self.document.get(name)
        if not isinstance(found, kind):
            raise Refusal(f"that is not how Ksana answers: {name} is {found!r:.100} ({UNEXPECTED_ANSWER})")
        return found


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Server:
    """Which one, and how to tell what it answers. What it says no to, and that it says nothing, is a Refusal."""

    server: Annotated[str, Parameter(name="--server", env_var=VARIABLE, help="Where Ksana is.", show_default=False)] = (
        DEFAULT
    )
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Print the answer as it is.")] = False

    def ask(
        self, key: str, ids: Mapping[str, str] | None = None, query: Query | None = None, body: Any = None
    ) -> Answer:
        """Makes a call of the table; what is None in the query is not said. InvalidInput, Refusal."""
        call = CALLS[key]
        with_body = body if body is not None or call.method != "POST" else {}
        try:
            return Answer(
                self._caller(ANSWER_SECONDS).ask(call.method, path_of(key, ids or {}, query or {}), with_body)
            )
        except FacadeError as error:
            raise refusal(error) from error

    def find(self, key: str, ids: Mapping[str, str]) -> Answer | None:
        """The same; None if nothing has that id."""
        try:
            return self.ask(key, ids)
        except Refusal as refused:
            why = refused.__cause__
            if isinstance(why, FacadeError) and why.code.endswith("NOT_FOUND"):
                return None
            raise

    def stream(
        self, key: str, ids: Mapping[str, str], query: Query, accept: str, silence: float | None
    ) -> Iterator[bytes]:
        """The same, of an answer that goes on; it may break off after a `silence` in seconds."""
        try:
            yield from self._caller(ANSWER_SECONDS).stream(path_of(key, ids, query), accept, silence)
        except FacadeError as error:
            raise refusal(error) from error

    def list_items(self, key: str, columns: Sequence[Column], query: Query) -> int:
        """Tells the items of a list, and how to see more."""
        answer = self.ask(key, query=query)
        if self.as_json:
            return self.print_raw(answer)
        print_table(answer.part("items", list), columns)
        more = more_of(answer.document)
        if more:
            tell(more)
        return 0

    def every_item(self, key: str, query: Query, size: str = "size") -> Iterator[dict[str, Any]]:
        """All items of a list, page by page; `size` is what the list calls their number."""
        page, seen, total = 0, 0, 1
        while seen < total:
            page += 1
            answer = self.ask(key, query={**query, size: MOST, "page": page})
            yield from answer.part("items", list)
            seen, total = page * MOST, answer.part("total", int)

    def show_one(
        self,
        key: str,
        ids: Mapping[str, str],
        tables: Mapping[str, Sequence[Column]] | None = None,
        query: Query | None = None,
    ) -> int:
        """Tells a thing, with those of its parts that are lists as tables."""
        return self.tell_one(self.ask(key, ids, query), tables)

    def order(
        self,
        key: str,
        ids: Mapping[str, str],
        query: Query | None = None,
        body: Any = None,
        columns: Sequence[Column] | None = None,
    ) -> int:
        """Gives an order, and tells how the thing stands now: in a line, if `columns` say what of it."""
        answer = self.ask(key, ids, query, body)
        if self.as_json or columns is None or not answer.text:
            return self.tell_one(answer)
        print_table([answer.document], columns)
        return 0

    def tell_one(self, answer: Answer, tables: Mapping[str, Sequence[Column]] | None = None) -> int:
        if self.as_json:
            return self.print_raw(answer)
        if answer.text:
            print_record(answer.document, tables)
        else:
            write("done")
        return 0

    def print_raw(self, answer: Answer) -> int:
        """As it is; nothing where there is nothing."""
        if answer.text:
            write(answer.text.decode(errors="replace"))
        return 0

    def _caller(self, seconds: float) -> Caller:
        try:
            return Caller(self.server or DEFAULT, seconds)
        except ValueError as error:
            raise InvalidInput("--server", f"{error} (or {VARIABLE})") from None


LOCAL = Server()


def path_of(key: str, ids: Mapping[str, str], query: Query) -> str:
    """The path of a call, with its ids and its query. InvalidInput."""
    told = {
        name: str(value).lower() if value is True else str(value) for name, value in query.items() if value is not None
    }
    path = CALLS[key].path.format_map({name: _segment(name, value) for name, value in ids.items()})
    try:
        return f"{path}?{urlencode(told)}" if told else path
    except UnicodeEncodeError:
        raise InvalidInput(key, "a flag is not a text in UTF-8") from None


def _segment(name: str, value: str) -> str:
    if value in {"", ".", ".."} or "/" in value:  # servers take %2F for a slash, and so for another path
        raise InvalidInput(name.upper(), f"{value!r} is no id")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise InvalidInput(name.upper(), "is not a text in UTF-8") from None


def refusal(error: FacadeError) -> Refusal:
    """What to tell, and how to end: whoever could not be reached may be later."""
    told = f"{error.message} ({error.code})"
    return Refusal(told, UNREACHABLE) if isinstance(error, FacadeUnavailable) else Refusal(told)


def more_of(found: Mapping[str, Any]) -> str:
    """A line that says how to see the rest of a list; empty if this was all."""
    if isinstance(found.get("next"), str):
        return f"there are more: --cursor {found['next']}"
    page, size, total = found.get("page", 1), found.get("size") or found.get("pageSize"), found.get("total")
    if size and total and page * size < total:
        return f"{page * size} of {total}: --page {page + 1} has more"
    return ""
