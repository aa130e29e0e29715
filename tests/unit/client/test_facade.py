"""The facade: what it makes of Ksana's answers, and of what is shown in Redis while Ksana is away."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from redis import Redis
from tests.servers.machine import free_port

from ksana.client import FacadeError, FacadeUnavailable, PlanFacade, PlanStatus, Source, TaskStatus, TaskStatusInfo
from ksana.runtime.base import Checkpoint, Lifetimes, PlanProjection, TaskProjection
from ksana.runtime.redis import RedisRuntime

NOW = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
STAGES = ("stage-0", "stage-1", "stage-2")
TOLD: dict[str, Any] = {
    "taskId": "task-1",
    "tenantId": "tenant-001",
    "planId": "plan-1",
    "status": "FAILED",
    "pauseRequested": False,
    "stageNames": list(STAGES),
    "lastCompletedStageIndex": 0,
    "error": "stage-1: exit code 3",
    "hasCheckpoint": True,
    "createdAt": "2026-01-05T08:00:00Z",
    "updatedAt": "2026-01-05T08:00:01.5Z",
    "startedAt": "2026-01-05T08:00:00Z",
    "endedAt": None,
}


# Somebody who answers -------------------------------------------------------------------------------------------------


class Somebody(ThreadingHTTPServer):
    """Answers as it was told, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def will(self, status: int, body: Any) -> PlanFacade:
        self.answers.append((status, body))
        return PlanFacade(self.url, timeout=5)


class _Handler(BaseHTTPRequestHandler):
    server: Somebody

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.server.asked.append((self.command, self.path, json.loads(self.rfile.read(length) or b"null")))
        status, body = self.server.answers.pop(0)
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    server = Somebody()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def envelope(code: str, **details: Any) -> dict[str, Any]:
    return {"code": code, "message": "not now", "details": details, "request_id": "r"}


def test_a_task_is_told_with_its_progress(somebody: Somebody) -> None:
    found = somebody.will(200, TOLD).query_task_status_by_tenant("tenant-001")
    assert found is not None
    assert (found.status, found.source, found.error) == (TaskStatus.FAILED, Source.KSANA, "stage-1: exit code 3")
    assert (found.completed_stages, found.total_stages, found.progress) == (1, 3, 0.3333)
    assert (found.current_stage, found.has_checkpoint, found.ended_at) == ("stage-1", True, None)
    assert found.updated_at == NOW + timedelta(seconds=1.5)
    assert somebody.asked == [("GET", "/api/v1/tenants/tenant-001/task", None)]


@pytest.mark.parametrize(
    ("status", "last", "stage"),
    [
        ("CREATED", -1, None),
        ("RUNNING", -1, "stage-0"),
        ("PAUSED", 1, "stage-2"),
        ("COMPLETED", 2, None),
        ("RUNNING", 2, None),
    ],
)
def test_the_current_stage_is_the_one_after_the_last_completed(status: str, last: int, stage: str | None) -> None:
    found = TaskStatusInfo.of_answer({**TOLD, "status": status, "lastCompletedStageIndex": last})
    assert found.current_stage == stage


def test_an_order_is_a_post_with_its_reason(somebody: Somebody) -> None:
    somebody.will(200, TOLD).retry_task_by_tenant("tenant-001", True, reason="the disk is back")
    somebody.will(200, TOLD).retry_task_by_tenant("tenant-001", from_checkpoint=False)
    somebody.will(200, TOLD).pause_task_by_tenant("tenant-001")
    somebody.will(200, TOLD).resume_task_by_tenant("tenant-001")
    somebody.will(200, TOLD).cancel_task_by_tenant("tenant-001", reason="wrong tenant")
    path = "/api/v1/tenants/tenant-001/task"
    assert somebody.asked == [
        ("POST", f"{path}:retry", {"fromCheckpoint": True, "reason": "the disk is back"}),
        ("POST", f"{path}:retry", {"fromCheckpoint": False}),
        ("POST", f"{path}:pause", {}),
        ("POST", f"{path}:resume", {}),
        ("POST", f"{path}:cancel", {"reason": "wrong tenant"}),
    ]


def test_many_tenants_are_asked_for_a_thousand_at_a_time(somebody: Somebody) -> None:
    somebody.will(200, {"items": [TOLD], "missing": []})
    facade = somebody.will(200, {"items": [{**TOLD, "tenantId": "t-1500"}], "missing": []})
    found = facade.query_tasks_by_tenants([*(f"t-{number}" for number in range(1501)), "t-0"])
    assert set(found) == {"tenant-001", "t-1500"}
    assert [len(body["tenantIds"]) for _, _, body in somebody.asked] == [1000, 501]


def test_what_is_not_there_is_none_and_not_an_error(somebody: Somebody) -> None:
    assert somebody.will(404, envelope("TASK_NOT_FOUND")).query_task_status_by_tenant("t") is None
    assert somebody.will(404, envelope("PLAN_NOT_FOUND")).query_plan_status("p") is None
    assert somebody.will(404, envelope("CHECKPOINT_NOT_FOUND")).has_checkpoint("t") is False
    assert somebody.will(404, envelope("TASK_NOT_FOUND")).has_checkpoint("t") is False
    with pytest.raises(FacadeError) as caught:  # the address of something else
        somebody.will(404, envelope("NOT_FOUND")).query_task_status_by_tenant("t")
    assert caught.value.code == "NOT_FOUND"


def test_a_refusal_has_the_code_the_message_and_the_details(somebody: Somebody) -> None:
    facade = somebody.will(409, envelope("TENANT_BUSY", tenantId="t", planId="other", taskId="task-9"))
    with pytest.raises(FacadeError) as caught:
        facade.retry_task_by_tenant("t", from_checkpoint=True)
    assert not isinstance(caught.value, FacadeUnavailable)
    assert (caught.value.code, caught.value.message) == ("TENANT_BUSY", "not now")
    assert caught.value.details == {"tenantId": "t", "planId": "other", "taskId": "task-9"}


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", {**TOLD, "status": "LOST"}, {**TOLD, "updatedAt": "noon"}, {}])
def test_an_answer_that_is_none_of_ksanas_is_told_as_such(somebody: Somebody, body: Any) -> None:
    with pytest.raises(FacadeError) as caught:
        somebody.will(200, body).query_task_status_by_tenant("t")
    assert caught.value.code == "UNEXPECTED_ANSWER"


def test_a_redirect_is_not_followed(somebody: Somebody) -> None:
    with pytest.raises(FacadeError) as caught:
        somebody.will(302, b"").cancel_task_by_tenant("t")
    assert caught.value.code == "HTTP_302"
    assert len(somebody.asked) == 1


def test_an_id_is_one_part_of_the_path(somebody: Somebody) -> None:
    somebody.will(404, envelope("PLAN_NOT_FOUND")).query_plan_status("a/b?c#d:é")
    assert somebody.asked[0][1] == "/api/v1/plans/a%2Fb%3Fc%23d%3A%C3%A9"
    with pytest.raises(ValueError, match="empty"):
        PlanFacade(somebody.url).query_task_status_by_tenant("")


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:7100", "file:///etc/passwd", "ftp://x", "http://", "http://a?b", "http://u:p@a"]
)
def test_only_the_address_of_a_web_server_is_one(url: str) -> None:
    with pytest.raises(ValueError, match="not the address of a Ksana"):
        PlanFacade(url)


def test_who_needs_no_redis_needs_no_redis_client() -> None:
    script = "import sys; from ksana.client import PlanFacade; PlanFacade('http://a'); sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=30).returncode == 0


# Nobody who answers ---------------------------------------------------------------------------------------------------


@pytest.fixture
def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


def test_a_ksana_that_is_away_is_unavailable(nowhere: str) -> None:
    with pytest.raises(FacadeUnavailable) as caught:
        PlanFacade(nowhere).query_task_status_by_tenant("t")
    assert caught.value.code == "UNREACHABLE"
    assert nowhere in caught.value.message


def test_so_is_one_without_its_database(somebody: Somebody) -> None:
    with pytest.raises(FacadeUnavailable) as caught:
        somebody.will(503, envelope("STORE_UNAVAILABLE")).cancel_task_by_tenant("t")
    assert caught.value.code == "STORE_UNAVAILABLE"


def test_if_redis_is_away_too_both_are_named(nowhere: str) -> None:
    facade = PlanFacade(nowhere, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(FacadeUnavailable, match=r"cannot be reached.*Redis cannot be read either"):
        facade.query_plan_status("p")


def shown(task: str, tenant: str, status: str = "RUNNING", *, age: int = 0, last: int = 0) -> TaskProjection:
    at = NOW - timedelta(seconds=age)
    return TaskProjection(task, tenant, "plan-1", status, False, STAGES, last, at, at)


@asynccontextmanager
async def writing(url: str, namespace: str = "executor") -> Any:
    runtime = RedisRuntime.connect(url, namespace, Lifetimes())
    yield runtime
    await runtime.close()


async def test_redis_answers_by_the_index_while_ksana_is_away(nowhere: str, redis_url: str) -> None:
    async with writing(redis_url) as runtime:
        await runtime.tasks.save([shown("old", "t-1", "FAILED", age=-9), shown("now", "t-1"), shown("x", "t-2")])
        await runtime.index.put({"t-1": "now"})
    found = PlanFacade(nowhere, redis_url=redis_url).query_task_status_by_tenant("t-1")
    assert found is not None
    assert (found.task_id, found.status, found.source) == ("now", TaskStatus.RUNNING, Source.REDIS)
    assert (found.stage_names, found.progress, found.current_stage) == (STAGES, 0.3333, "stage-1")
    assert (found.error, found.has_checkpoint, found.updated_at) == (None, None, NOW)


async def test_a_tenant_without_an_active_task_has_its_newest(nowhere: str, redis_url: str) -> None:
    tasks = [shown("a", "t-1", "FAILED", age=9), shown("b", "t-1", "CANCELLED"), shown("c", "t-2", "COMPLETED", last=2)]
    async with writing(redis_url) as runtime:
        await runtime.tasks.save([*tasks, shown("d", "t-3")])
        await runtime.index.put({"t-3": "d", "t-2": "expired"})
    facade = PlanFacade(nowhere, redis_url=redis_url)
    found = facade.query_tasks_by_tenants(["t-1", "t-2", "t-3", "never"])
    assert {tenant: task.task_id for tenant, task in found.items()} == {"t-1": "b", "t-2": "c", "t-3": "d"}
    assert facade.query_task_status_by_tenant("never") is None


async def test_another_namespace_is_another_environment(nowhere: str, redis_url: str) -> None:
    async with writing(redis_url, "prod[1]") as runtime:
        await runtime.tasks.save([shown("a", "t-1")])
    async with writing(redis_url, "prod[1]:task") as runtime:  # which goes on as the other's keys do
        await runtime.tasks.save([shown("b", "t-1", age=-9)])
    found = PlanFacade(nowhere, redis_url=redis_url, namespace="prod[1]").query_task_status_by_tenant("t-1")
    assert found is not None
    assert found.task_id == "a"
    assert PlanFacade(nowhere, redis_url=redis_url).query_task_status_by_tenant("t-1") is None


async def test_redis_knows_plans_and_checkpoints(nowhere: str, redis_url: str) -> None:
    async with writing(redis_url) as runtime:
        await runtime.plans.save([PlanProjection("plan-1", "PAUSED", ("task-1", "task-2"), 0.5, 5, NOW, NOW)])
        await runtime.tasks.save([shown("task-1", "t-1", "FAILED"), shown("task-2", "t-2", "FAILED")])
        await runtime.checkpoints.put("task-1", Checkpoint(0, ("stage-0",), NOW))
    facade = PlanFacade(nowhere, redis_url=redis_url)
    plan = facade.query_plan_status("plan-1")
    assert plan is not None
    assert (plan.status, plan.progress, plan.tenants, plan.source) == (PlanStatus.PAUSED, 0.5, 2, Source.REDIS)
    assert facade.query_plan_status("plan-2") is None
    assert [facade.has_checkpoint(tenant) for tenant in ("t-1", "t-2", "t-3")] == [True, False, False]
    with pytest.raises(FacadeUnavailable):
        facade.retry_task_by_tenant("t-1", from_checkpoint=True)


async def test_what_somebody_else_wrote_there_is_told_and_not_believed(nowhere: str, redis_url: str) -> None:
    with Redis.from_url(redis_url) as raw:
        raw.set("executor:plan:plan-1", "a text")
        raw.hset("executor:task:task-1", mapping={"tenantId": "t-1"})
        raw.hset("executor:index:tenant:t-2", mapping={"a": "hash"})
    facade = PlanFacade(nowhere, redis_url=redis_url)
    for ask in (lambda: facade.query_plan_status("plan-1"), lambda: facade.query_task_status_by_tenant("t-1")):
        with pytest.raises(FacadeError) as caught:
            ask()
        assert caught.value.code == "RUNTIME_STATE_UNREADABLE"
        assert str(caught.value.details["key"]).startswith("executor:")
    assert facade.query_task_status_by_tenant("t-2") is None
