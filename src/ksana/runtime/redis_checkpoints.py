"""Checkpoints in Redis: compare-and-set by version, one stage at a time where that is all that is new, and a cache."""

import hashlib
from collections import OrderedDict
from datetime import timedelta

from ksana.domain.errors import UnreadableState
from ksana.runtime import documents
from ksana.runtime import redis_scripts as scripts
from ksana.runtime.base import Checkpoint, Kind
from ksana.runtime.redis_wire import Wire, lifetime, plain

CACHED = 1_000


class RedisCheckpoints:
    """Remembers the last CACHED that were read, so that a long one is sent and parsed once.

    The server is asked at every read whether what is remembered is what it has: never older than what anybody wrote. What
    `get` answers is what is remembered, and not to be changed.
    """

    def __init__(self, wire: Wire, ttl: timedelta) -> None:
        self._wire = wire
        self._ttl = ttl
        self._cache: OrderedDict[str, tuple[str, Checkpoint]] = OrderedDict()

    async def put(self, task_id: str, checkpoint: Checkpoint) -> bool:
        words = (documents.checkpoint_text(checkpoint), checkpoint.version, *lifetime(self._ttl))
        key = self._key(task_id)
        written, repaired, *refused_for = await self._wire.run(scripts.PUT_CHECKPOINT, key, (*words, ""))
        if not written and _unreadable(key, refused_for[0]):
            # Lua reads more than we do. What we cannot read has no version: it is replaced, if it is still the same.
            sha = hashlib.sha1(refused_for[0], usedforsecurity=False).hexdigest()
            written, repaired, *_ = await self._wire.run(scripts.PUT_CHECKPOINT, key, (*words, sha))
        self._wire.repaired += repaired
        return bool(written)

    async def append(self, task_id: str, stage: str, checkpoint: Checkpoint) -> bool:
        words = (
            stage.encode("utf-8", "replace"),
            checkpoint.last_completed_stage_index,
            documents.to_text(checkpoint.context_data),
            documents.instant_text(checkpoint.saved_at),
            checkpoint.version,
            *lifetime(self._ttl),
        )
        return bool(await self._wire.run(scripts.APPEND_STAGE, self._key(task_id), words))

    async def get(self, task_id: str) -> Checkpoint | None:
        key = self._key(task_id)
        sha, remembered = self._cache.get(task_id, ("", None))
        answer = await self._wire.run(scripts.READ_CHECKPOINT, key, (sha,))
        if len(answer) == 1:
            self._remember(task_id, sha, remembered)
            return remembered
        self._cache.pop(task_id, None)
        if not answer:
            return None
        if not answer[0]:
            raise documents.wrong_key_type(key, plain(answer[1]))
        found = documents.read_checkpoint(key, answer[1])
        self._remember(task_id, plain(answer[0]), found)
        return found

    async def remove(self, task_id: str) -> bool:
        self._cache.pop(task_id, None)
        return bool(await self._wire.command("DEL", self._key(task_id)))

    def _key(self, task_id: str) -> str:
        return self._wire.key(Kind.CHECKPOINT, task_id)

    def _remember(self, task_id: str, sha: str, checkpoint: Checkpoint | None) -> None:
        if checkpoint is None:
            return
        self._cache[task_id] = (sha, checkpoint)
        self._cache.move_to_end(task_id)
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)


def _unreadable(key: str, value: bytes) -> bool:
    try:
        documents.read_checkpoint(key, value)
    except UnreadableState:
        return True
    return False
