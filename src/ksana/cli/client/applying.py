"""`apply`: a thing becomes what a document says, and is created if there is none. What the document leaves out stays as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ksana.cli.client.documents import text_of
from ksana.cli.client.server import Answer, Server
from ksana.cli.client.showing import Column, print_table
from ksana.cli.ending import Refusal
from ksana.domain.errors import InvalidInput
from ksana.domain.job import checked_name

CREATED, CHANGED, UNCHANGED, DELETED = "created", "changed", "unchanged", "deleted"


@dataclass(frozen=True, slots=True)
class Kind:
    """Things of a family: what paths and documents call their id, and a part of theirs that differs after every change."""

    family: str
    thing: str
    key: str
    mark: str
    columns: Sequence[Column]
    own_ids: bool = False
    """Whether the document of a new one may say its id."""


@dataclass(frozen=True, slots=True)
class Applied:
    answer: Answer
    how: str


def apply_named(server: Server, kind: Kind, wanted: dict[str, Any]) -> Applied:
    """To the thing whose id the document says; without one, to that of its name. InvalidInput, Refusal."""
    key = text_of(wanted, kind.key)
    if key is None:
        key = _named(server, kind, text_of(wanted, "name"))
    elif kind.own_ids and server.find(f"{kind.family} show", {kind.thing: key}) is None:
        key = None
    return create(server, kind, wanted) if key is None else change(server, kind, key, wanted)


def create(server: Server, kind: Kind, wanted: dict[str, Any]) -> Applied:
    """Refusal."""
    return Applied(server.ask(f"{kind.family} apply", body=wanted), CREATED)


def change(server: Server, kind: Kind, key: str, wanted: dict[str, Any]) -> Applied:
    """Refusal, also if nothing has that id."""
    ids = {kind.thing: key}
    before = server.ask(f"{kind.family} show", ids)
    after = server.ask(f"{kind.family} apply --change", ids, body=wanted)
    same = before.document.get(kind.mark) == after.document.get(kind.mark)
    return Applied(after, UNCHANGED if same else CHANGED)


def tell_applied(server: Server, kind: Kind, applied: Sequence[Applied]) -> int:
    """A line for each; the answer itself to programs, which is that of one."""
    if server.as_json:
        return server.print_raw(applied[0].answer)
    rows = [{**each.answer.document, "how": each.how} for each in applied]
    print_table(rows, [*kind.columns, ("APPLIED", "how")])
    return 0


def _named(server: Server, kind: Kind, name: str | None) -> str | None:
    if name is None:
        raise InvalidInput("name", f"is missing: a {kind.thing} has one")
    found = server.every_item(f"{kind.family} list", {"keyword": checked_name(name)})
    ids = [str(each[kind.key]) for each in found if each["name"] == name]
    if len(ids) > 1:
        raise Refusal(f"name: {len(ids)} {kind.family} are called {name}; say {kind.key}, one of {', '.join(ids)}")
    return ids[0] if ids else None
