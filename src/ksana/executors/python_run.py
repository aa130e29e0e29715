"""One attempt of a function in a process of its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

from ksana.domain.errors import KsanaError
from ksana.executors.base import ExecutionContext, Tools
from ksana.executors.python_pool import Pool
from ksana.executors.python_process import Worker
from ksana.executors.shell_env import run_id
from ksana.executors.shell_output import Output
from ksana.executors.shell_process import GRACE_SECONDS


def facts(context: ExecutionContext) -> dict[str, Any]:
    """What a function is told of its attempt: the fields of `ksana.functions.Facts`."""
    place = context.place
    return {
        "run_id": run_id(context),
        "node_id": place.node_id if place else None,
        "job": context.job.key,
        "attempt": context.execution.attempt,
        "idempotency_key": context.idempotency_key,
        "scheduled_at": context.scheduled_at,
        "trace_id": context.trace_id,
        "params": context.params,
        "nodes": context.nodes,
        "item": place.item if place else None,
        "index": place.index if place else None,
        "checkpoint": context.checkpoint,
    }


class PythonRun:
    """Made, begun, waited for, closed; `close` is needed even if it never began."""

    def __init__(self, pool: Pool, tools: Tools, order: Mapping[str, Any]) -> None:
        self._pool = pool
        self._tools = tools
        self._order = order
        self.output = Output(tools.log)
        self._worker: Worker | None = None
        self._conversation: asyncio.Task[dict[str, Any]] | None = None
        self._clean = False

    async def begin(self) -> None:
        """OSError or WorkerDied if there is no process for it."""
        self._worker = await self._pool.take()
        self._conversation = asyncio.create_task(self._converse(self._worker))

    async def until_it_ends(self) -> dict[str, Any]:
        """What the function came to (`python_worker._ended`). AttemptLost; WorkerDied. Cancelled, it goes on until `stop`."""
        assert self._conversation is not None, "begin it first"  # noqa: S101
        await asyncio.wait({self._conversation})
        return self._conversation.result()

    async def stop(self) -> None:
        """Asks the function to stop, and kills what has not stopped within the grace. Harmless if it has ended."""
        worker, conversation = self._worker, self._conversation
        if worker is None or conversation is None or self._clean:
            return
        if not conversation.done():
            worker.send({"cancel": True})
            await asyncio.wait({conversation}, timeout=GRACE_SECONDS)
        self._worker = None
        await worker.end()
        await asyncio.wait({conversation}, timeout=GRACE_SECONDS)  # the process is gone: so it ends at once
        if not conversation.cancel():
            conversation.exception()  # somebody has looked at it

    async def close(self) -> None:
        """Gives the process back if it can be used again, ends it otherwise."""
        worker = self._worker
        if worker is not None and self._clean and self._pool.keep(worker):
            return
        self._clean = False
        await self.stop()

    async def _converse(self, worker: Worker) -> dict[str, Any]:
        worker.begin(self._order, self.output)
        while True:
            message = await worker.receive()
            if "ended" in message:
                if message["marked"]:
                    await worker.outputs_come()
                self._clean = message["clean"] is True
                ended: dict[str, Any] = message["ended"]
                return ended
            worker.send({"kept": await self._refusal(message["save"], message["value"])})

    async def _refusal(self, what: str, value: Any) -> str | None:
        """Saves it; or says why not."""
        try:
            if what == "checkpoint":
                await self._tools.save_checkpoint(value)
            else:
                await self._tools.save_artifact(value)
        except KsanaError as error:
            return error.message
        return None
