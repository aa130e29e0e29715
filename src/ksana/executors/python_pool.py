"""Processes for functions that are ready: an attempt takes one, and gives it back if it can be used again."""

from ksana.executors.python_functions import PythonOptions
from ksana.executors.python_process import Worker


class Pool:
    """Starts a process when none is ready. Which attempts run at a time is for others to limit."""

    def __init__(self, options: PythonOptions) -> None:
        self._options = options
        self._ready: list[Worker] = []
        self._closed = False

    async def take(self) -> Worker:
        """A process that nobody else has. OSError or WorkerDied if none can be started."""
        while self._ready:
            worker = self._ready.pop()
            if worker.usable:
                return worker
            await worker.end()
        return await Worker.start(self._options)

    def keep(self, worker: Worker) -> bool:
        """Whether it is kept for the next attempt; if not, whoever has it must end it."""
        room = len(self._ready) < self._options.idle and worker.attempts < self._options.reuse
        if self._closed or not room or not worker.usable:
            return False
        self._ready.append(worker)
        return True

    async def close(self) -> None:
        """Ends those that are ready, and keeps none from now on."""
        self._closed = True
        while self._ready:
            await self._ready.pop().end()
