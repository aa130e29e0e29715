"""The schedules that a job's document has with it: they become its own, as its other parts do."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ksana.cli.client.applying import DELETED, Applied, Kind, change, tell_applied
from ksana.cli.client.applying_schedules import SCHEDULE, Document, create_unless_same, schedules_of
from ksana.cli.client.documents import text_of
from ksana.cli.client.server import Answer, Server
from ksana.cli.client.showing import write
from ksana.cli.ending import Refusal
from ksana.domain.errors import InvalidInput

PART = "schedules"
_NOT_WHEN = ("input", "paused")
"""What a schedule says beyond when it fires."""


def taken_schedules(job: Document) -> list[Document] | None:
    """Takes them out of a job's document; None if it does not speak of any. InvalidInput."""
    found: Any = job.pop(PART, None)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InvalidInput(PART, "must be a list of schedules, each with its kind")
    for place, each in enumerate(found):
        if any(owner in each for owner in ("jobId", "workflowId")):
            raise InvalidInput(f"{PART}[{place}]", "names its job or workflow: it is this job's")
        text_of(each, SCHEDULE.key)
    return found


def try_schedules(server: Server, wanted: Sequence[Document]) -> None:
    """Asks when each would fire, so that no job is made with one that cannot be. Refusal."""
    for place, each in enumerate(wanted):
        if SCHEDULE.key not in each:  # else it may say only what is to change
            when = {name: value for name, value in each.items() if name not in _NOT_WHEN}
            with _told_where(place):
                server.ask("schedules preview", body={**when, "count": 1})


def set_schedules(server: Server, job: str, wanted: Sequence[Document]) -> list[Applied]:
    """Those that the job has stay, others are made, and last those are deleted that are not wanted. Refusal; what was done by
    then stays done."""
    named = {each.get(SCHEDULE.key) for each in wanted}
    rest = [each for each in schedules_of(server, {"jobId": job}) if each["id"] not in named]
    applied = []
    for place, each in enumerate(wanted):
        with _told_where(place):
            one = _set_one(server, {**each, "jobId": job}, rest)
        rest = [other for other in rest if other["id"] != one.answer.document["id"]]
        applied.append(one)
    for each in rest:
        server.ask("schedules delete", {"schedule": str(each["id"])})
        applied.append(Applied(Answer(json.dumps(each).encode()), DELETED))
    return applied


def tell_with_schedules(server: Server, kind: Kind, job: Applied, schedules: Sequence[Applied]) -> int:
    """Two tables; to programs the job's answer with those of its schedules."""
    if server.as_json:
        kept = [each.answer.document for each in schedules if each.how != DELETED]
        write(json.dumps({**job.answer.document, PART: kept}, ensure_ascii=False))
        return 0
    tell_applied(server, kind, [job])
    return tell_applied(server, SCHEDULE, schedules) if schedules else 0


def _set_one(server: Server, wanted: Document, rest: Sequence[Document]) -> Applied:
    key = text_of(wanted, SCHEDULE.key)
    return create_unless_same(server, wanted, rest) if key is None else change(server, SCHEDULE, key, wanted)


@contextmanager
def _told_where(place: int) -> Iterator[None]:
    try:
        yield
    except Refusal as refused:
        raise Refusal(f"{PART}[{place}]: {refused.message}", refused.code) from refused
