"""One attempt of a command: its private directory, its processes, its output and its checkpoint."""

import asyncio

from ksana.domain.errors import KsanaError
from ksana.executors.base import AttemptLost, ExecutionContext
from ksana.executors.shell_config import ShellTarget, permitted_cwd
from ksana.executors.shell_env import as_json, inherited, of_attempt
from ksana.executors.shell_files import ARTIFACT, CHECKPOINT, PrivateDirectory, Unusable, parsed
from ksana.executors.shell_options import ShellOptions
from ksana.executors.shell_output import Output
from ksana.executors.shell_process import Command, ProcessTree
from ksana.telemetry import log

SAVING_SECONDS = 1.0
"""How long the last checkpoint may take to be kept: an attempt that was cancelled waits no longer for the store."""


class ShellRun:
    """Made, started, waited for, closed; `close` is needed even if it never started."""

    def __init__(self, context: ExecutionContext, target: ShellTarget, options: ShellOptions) -> None:
        """TemplateFailed or InvalidInput if a value cannot be used; OSError if there is no room for its directory."""
        self._context = context
        self._options = options
        self.target = target
        self.output = Output(context.tools.log)
        self._tree: ProcessTree | None = None
        self._saved: bytes | None = None
        own = {**inherited(options.env), **self._identity(), **target.filled_env(context), **of_attempt(context)}
        cwd = None if target.cwd is None else permitted_cwd(target.cwd, options)
        self.files = PrivateDirectory.make(options.user)
        own |= {"KSANA_ARTIFACT": self.files.file(ARTIFACT), "KSANA_CHECKPOINT": self.files.file(CHECKPOINT)}
        self._command = Command(
            argv=target.argv,
            env=own,
            cwd=cwd or self.files.path,
            private=self.files.path,
            limits=options.limits,
            user=options.user,
        )

    async def start(self) -> None:
        """OSError if there is no process to be had."""
        if self._context.checkpoint is not None:
            self._saved = as_json(self._context.checkpoint).encode()
            self.files.write(CHECKPOINT, self._saved, self._options.user)
        self._tree = await ProcessTree.start(self._command, self.output.received)

    async def until_it_ends(self) -> None:
        """Waits for the command, and keeps its checkpoint as that changes. AttemptLost if the attempt is no longer ours."""
        tree = self._started()
        while not await tree.ended(self._options.poll.total_seconds()):
            await self._keep_checkpoint()
        self.output.finish()

    async def stop(self) -> None:
        """Ends it before its time."""
        if self._tree is not None:
            await self._tree.end()

    async def close(self) -> None:
        """Ends what still runs, keeps its last checkpoint, and takes its directory away. Raises nothing."""
        try:
            if self._tree is not None:
                await self._tree.end()
                async with asyncio.timeout(SAVING_SECONDS):
                    await self._keep_checkpoint(final=True)
        except (AttemptLost, TimeoutError):
            pass  # nobody wants it any more, or nobody takes it
        except Exception as error:  # noqa: BLE001 - the outcome is known by now, and must not be lost over this
            run_id = self._context.execution.id
            log().error("a checkpoint was not kept", action="shell.checkpoint_failed", run_id=run_id, exc_info=error)
        finally:
            await asyncio.to_thread(self.files.remove)

    def exit_code(self) -> int | None:
        """None unless it has ended; -9 if signal 9 ended it."""
        return None if self._tree is None or self._tree.running else self._tree.exit_code()

    def _started(self) -> ProcessTree:
        assert self._tree is not None, "start it first"  # noqa: S101
        return self._tree

    def _identity(self) -> dict[str, str]:
        user = self._options.user
        return {} if user is None else {"HOME": user.home, "USER": user.name, "LOGNAME": user.name}

    async def _keep_checkpoint(self, *, final: bool = False) -> None:
        """Saves it if it has changed. While the command runs, one that is half written is left for the next time."""
        try:
            found = await asyncio.to_thread(self.files.read, CHECKPOINT)
            if found is None or found == self._saved:
                return
            await self._context.tools.save_checkpoint(parsed(CHECKPOINT, found))
            self._saved = found
        except (Unusable, KsanaError) as error:
            if final:
                self._context.tools.log(f"[ksana] the checkpoint was not kept: {error}\n", "stderr")
