"""Document 003 §14: its ten curl commands, as they are written there, on an empty store of every back end."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import empty_database, serving, until
from tests.contract.api.witness import Target
from tests.process.conftest import Serving

SCRIPT = r"""
# 1. 创建任务
curl -X POST http://localhost:8080/api/v1/tasks -H 'Content-Type: application/json' -d '{"name":"t1","description":"d","cron_expr":"*/20 * * * * *","exec_type":"SYNC","http_method":"GET","target_url":"https://httpbin.org/get","timeout_seconds":5}'

# 2. 列表
curl http://localhost:8080/api/v1/tasks

# 3. 手动触发
curl -X POST http://localhost:8080/api/v1/tasks/1/trigger

# 4. 查看运行列表
curl http://localhost:8080/api/v1/tasks/1/runs

# 5. 查看运行详情（替换 run_id）
curl http://localhost:8080/api/v1/runs/1

# 6. 取消运行（若仍在运行）
curl -X POST http://localhost:8080/api/v1/runs/1/cancel

# 7. 禁用任务
curl -X PATCH http://localhost:8080/api/v1/tasks/1/disable

# 8. 启用任务
curl -X PATCH http://localhost:8080/api/v1/tasks/1/enable

# 9. 更新 Cron
curl -X PATCH http://localhost:8080/api/v1/tasks/1 -H 'Content-Type: application/json' -d '{"cron_expr":"*/10 * * * * *"}'

# 10. 删除任务
curl -X DELETE http://localhost:8080/api/v1/tasks/1
"""  # noqa: E501, RUF001


@pytest.fixture
def fresh(back_end: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Serving]:
    """A server on an empty store."""
    with empty_database(back_end, tmp_path, request) as url, serving(tmp_path, url, {}) as running:
        yield running


def test_the_script_of_the_document_works_as_it_is_written(fresh: Serving, target: Target) -> None:
    port = fresh.base.rpartition(":")[2]
    script = SCRIPT.replace("localhost:8080", f"localhost:{port}").replace("https://httpbin.org/get", target.url("/ok"))
    commands = [line for line in script.splitlines() if line.startswith("curl ")]
    _wait_out_the_next_firing()
    answers = [_answer(command) for command in commands[:3]]
    # A person reads before typing on; the target has answered by then.
    with httpx2.Client(base_url=fresh.base) as api:
        until(api, "/api/v1/runs/1", lambda run: run["status"] == "SUCCESS")
    answers += [_answer(command) for command in commands[3:]]
    created, tasks, triggered, runs, run, cancelled, disabled, enabled, updated, deleted = answers
    assert (created["id"], created["name"]) == (1, "t1")
    assert [(task["id"], task["name"], task["cron_expr"]) for task in tasks["items"]] == [(1, "t1", "*/20 * * * * *")]
    assert triggered["run_id"] == 1
    assert runs["items"][-1]["id"] == 1
    assert (run["id"], run["task_id"], run["status"], run["response_code"]) == (1, 1, "SUCCESS", 200)
    assert (cancelled["run_id"], cancelled["status"]) == (1, "SUCCESS")
    assert (disabled["status"], enabled["status"]) == ("DISABLED", "ENABLED")
    assert (updated["updated"], updated["cron_expr"]) == (True, "*/10 * * * * *")
    assert deleted["deleted"] is True


def _wait_out_the_next_firing() -> None:
    """The task fires every 20 s; were it to fire before it is triggered, the triggered run would not be the first."""
    to_go = 20 - time.time() % 20
    if to_go < 3:
        time.sleep(to_go)


def _answer(command: str) -> Any:
    done = subprocess.run(
        ["bash", "-c", f"{command} --silent --show-error"], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
