"""What Ksana shows of tasks and plans in Redis (document 004, §6), read there while Ksana is away. Nothing is written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ksana.client.errors import UNREACHABLE, FacadeError, FacadeUnavailable
from ksana.domain.errors import UnreadableState
from ksana.runtime import documents
from ksana.runtime.base import Kind, PlanProjection, TaskProjection

_AT_ONCE = 500
_SCAN_PORTION = 1_000


class Projections:
    """ValueError if the URL is none. Everything it does may raise FacadeUnavailable; FacadeError if a value that is there
    cannot be read."""

    def __init__(self, url: str, namespace: str, timeout: float) -> None:
        # Who does not ask for it needs no Redis client.
        from redis import Redis  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        self._redis = Redis.from_url(
            url,
            protocol=2,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),  # by itself it would try for seconds
        )
        self._namespace = namespace

    def tasks(self, tenant_ids: Sequence[str]) -> Mapping[str, TaskProjection]:
        """Of each of these tenants its active task, by the index; else its newest, if any is shown."""
        with self._asked():
            found = self._by_index(tenant_ids)
            missing = frozenset(tenant_ids) - found.keys()
            return {**found, **self._newest(missing)} if missing else found

    def plan(self, plan_id: str) -> PlanProjection | None:
        with self._asked():
            key = self._key(Kind.PLAN, plan_id)
            values = self._hashes([key])[0]
            return documents.read_plan(key, values) if values else None

    def has_checkpoint(self, task_id: str) -> bool:
        with self._asked():
            return bool(self._redis.exists(self._key(Kind.CHECKPOINT, task_id)))

    # How ----------------------------------------------------------------------------------------------------------

    def _by_index(self, tenant_ids: Sequence[str]) -> dict[str, TaskProjection]:
        index = self._each("GET", [self._key(Kind.INDEX, tenant) for tenant in tenant_ids])
        named = {
            tenant: _plain(task) for tenant, task in zip(tenant_ids, index, strict=True) if isinstance(task, bytes)
        }
        tasks = self._read(list(named.values()))
        return {tenant: tasks[task] for tenant, task in named.items() if task in tasks}

    def _newest(self, tenant_ids: frozenset[str]) -> dict[str, TaskProjection]:
        """Slow: every task that is shown is looked at."""
        prefix = self._key(Kind.TASK, "")
        keys = [_plain(key) for key in self._redis.scan_iter(match=f"{_literal(prefix)}*", count=_SCAN_PORTION)]
        # No id has a colon: what has one is of a namespace that begins as this one goes on.
        names = sorted({key.removeprefix(prefix) for key in keys if ":" not in key.removeprefix(prefix)})
        owners = self._each("HGET", [prefix + name for name in names], "tenantId")
        mine = [
            name
            for name, owner in zip(names, owners, strict=True)
            if isinstance(owner, bytes) and _plain(owner) in tenant_ids
        ]
        tasks = sorted(self._read(mine).values(), key=lambda task: (task.created_at, task.task_id))
        return {task.tenant_id: task for task in tasks}

    def _read(self, task_ids: Sequence[str]) -> dict[str, TaskProjection]:
        keys = [self._key(Kind.TASK, task) for task in task_ids]
        hashes = zip(task_ids, keys, self._hashes(keys), strict=True)
        return {task: documents.read_task(key, values) for task, key, values in hashes if values}

    def _hashes(self, keys: Sequence[str]) -> list[dict[str, str]]:
        found = []
        for key, answer in zip(keys, self._each("HGETALL", keys), strict=True):
            if isinstance(answer, Exception):
                raise documents.wrong_key_type(key, _plain(self._redis.type(key)))
            pairs = answer.items() if isinstance(answer, Mapping) else zip(answer[::2], answer[1::2], strict=True)
            found.append({_plain(name): _plain(value) for name, value in pairs})
        return found

    def _each(self, command: str, keys: Sequence[str], *words: str) -> list[Any]:
        """The answer to the command for each of these keys; an error is an answer."""
        answers: list[Any] = []
        for start in range(0, len(keys), _AT_ONCE):
            pipeline = self._redis.pipeline(transaction=False)
            for key in keys[start : start + _AT_ONCE]:
                pipeline.execute_command(command, key, *words)  # type: ignore[no-untyped-call]
            answers += pipeline.execute(raise_on_error=False)
        return answers

    @contextmanager
    def _asked(self) -> Iterator[None]:
        from redis.exceptions import RedisError  # noqa: PLC0415

        try:
            yield
        except (RedisError, OSError) as error:
            raise FacadeUnavailable(UNREACHABLE, f"Redis cannot be read either: {error}") from error
        except UnreadableState as error:
            raise FacadeError(error.code, error.message, error.details) from error

    def _key(self, kind: Kind, name: str) -> str:
        return f"{self._namespace}:{kind}:{name}"


def _plain(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="replace")


def _literal(text: str) -> str:
    """A text in a pattern, standing for itself."""
    return "".join(f"\\{char}" if char in "\\*?[]^-" else char for char in text)
