"""What nodes and runs of jobs have written: as a text, which can be followed while it grows, or part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from ksana.api.contracts.jobchain.log_reading import BEGINNING, END, Cursor, LogReader, read_cursor, told
from ksana.api.contracts.jobchain.paths import NODE, RUNS, NodeId, RunId
from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.jobchain.run_models import LogShown
from ksana.api.contracts.keys import found_run, possible_node
from ksana.api.contracts.shapes import answer
from ksana.api.contracts.values import IntegerRunId
from ksana.api.services import Services
from ksana.api.system import is_stopping
from ksana.api.times import rfc3339
from ksana.domain.errors import InvalidInput
from ksana.domain.retry import MAX_ATTEMPTS
from ksana.store.workflow_requests import LogLine

MOST = 10_000
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {
        "model": LogShown,
        "description": "The text; its parts with `format=json`.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What of it, and how."""

    follow: Annotated[bool, Query(description="Go on until the node or run has ended.")] = False
    after: Annotated[str | None, Query(description="What follows this cursor.")] = None
    before: Annotated[
        str | None, Query(description="With `format=json`: the last of what precedes this cursor, or of all (`end`).")
    ] = None
    attempt: Annotated[int | None, Query(ge=1, le=MAX_ATTEMPTS, description="Of this attempt only.")] = None
    form: Annotated[Literal["text", "json"], Query(alias="format")] = "text"
    limit: Annotated[int, Query(ge=1, le=MOST, description="How many parts `format=json` gives.")] = 1_000

    def cursor(self) -> Cursor:
        """InvalidInput."""
        if self.follow and self.form == "json":
            raise InvalidInput("follow", "goes with text; with format=json, ask again with the cursor as after")
        if self.before:
            return self._before(self.before)
        return BEGINNING if not self.after else read_cursor(self.after)

    def _before(self, cursor: str) -> Cursor:
        if self.form != "json" or self.after:
            raise InvalidInput("before", "goes with format=json, and without after")
        return END if cursor == "end" else read_cursor(cursor, "before")


Wanted = Annotated[LogQuery, Depends()]


class Logs:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        may, fails = Permission.RUN_READ, (400, 404)
        yield Route("GET", f"{NODE}/logs", self.of_node, "What a node has written", may, None, fails, more=_ANSWERS)
        path = f"{RUNS}/{{run_id:id}}/logs"
        yield Route("GET", path, self.of_run, "What a job's run has written", may, None, fails, more=_ANSWERS)

    async def of_node(self, run_id: RunId, node_id: NodeId, wanted: Wanted, request: Request) -> Response:
        """All that its attempts wrote, oldest first; with `follow`, also what they are going to write."""
        cursor = wanted.cursor()
        run = await found_run(self._services.store, run_id)
        node = await self._services.store.node_run(run.id, possible_node(node_id))
        return await self._logs(node.execution.id, wanted, cursor, request)

    async def of_run(self, run_id: IntegerRunId, wanted: Wanted, request: Request) -> Response:
        """The same, of a run of a job."""
        cursor = wanted.cursor()
        await self._services.store.execution(run_id)
        return await self._logs(run_id, wanted, cursor, request)

    async def _logs(self, execution_id: int, wanted: LogQuery, cursor: Cursor, request: Request) -> Response:
        reader = LogReader(self._services.store, self._services.clock, execution_id, cursor, wanted.attempt)
        if wanted.before:
            found = await reader.earlier_lines(wanted.limit)
            last = told((found[-1].epoch, found[-1].seq)) if found else None
            return answer({"items": [_part(line) for line in found], "cursor": last, "before": reader.told_cursor()})
        if wanted.form == "json":
            lines = [line async for line in reader.next_lines(wanted.limit)]
            return answer({"items": [_part(line) for line in lines], "cursor": reader.told_cursor()})
        # Starlette breaks it off when the client is gone.
        texts = reader.followed(lambda: is_stopping(request)) if wanted.follow else reader.texts()
        return StreamingResponse(texts, media_type="text/plain", headers=_HEADERS)


def _part(line: LogLine) -> dict[str, object]:
    return {
        "epoch": line.epoch,
        "seq": line.seq,
        "at": rfc3339(line.at),
        "stream": line.stream,
        "text": line.text,
    }
