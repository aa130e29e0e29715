"""Document 003 §9.3 and §14 under other settings: no callbacks by ids, few tasks told apart in the figures, and the log."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.api.conftest import ON_SQLITE
from tests.contract.api.cronjob_world import (
    CALLBACKS,
    closed,
    create,
    report,
    run_of,
    trigger,
    triggered,
    until_run,
)
from tests.contract.api.witness import Target
from tests.process.conftest import PATIENCE, Serving

pytestmark = ON_SQLITE

LOG_FIELDS = {
    "ts",
    "level",
    "trace_id",
    "task_id",
    "run_id",
    "attempt",
    "status",
    "msg",
    "err",
    "latency_ms",
    "target_url",
}


@pytest.fixture(scope="module")
def settings() -> Mapping[str, str]:
    return {"KSANA_CALLBACK_ALLOW_IDS": "false", "KSANA_METRICS_MAX_TASKS": "2", "LOG_LEVEL": "info"}


def test_callbacks_by_ids_can_be_switched_off(api: httpx2.Client, target: Target) -> None:
    task = create(api, target.url("/async"), exec_type="ASYNC")
    run = trigger(api, task)
    until_run(api, run, "CALLBACK_PENDING")
    answer = api.post(CALLBACKS, json={"task_id": task, "run_id": run, "status": "SUCCESS"})
    assert answer.status_code in {403, 404, 405}
    assert run_of(api, run)["status"] == "CALLBACK_PENDING"
    assert closed(report(api, target.hits[0].callback.token)) == (run, "SUCCESS")


def test_the_figures_tell_only_so_many_tasks_apart(api: httpx2.Client, target: Target) -> None:
    for _ in range(4):
        triggered(api, target.url())
    families = text_string_to_metric_families(api.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    tasks = {sample.labels["task_id"] for sample in samples if sample.name == "cronjob_run_duration_seconds_count"}
    assert "other" in tasks
    assert len(tasks) <= 3


def test_the_log_tells_each_attempt_in_the_words_of_the_document(
    api: httpx2.Client, server: Serving, target: Target
) -> None:
    run = triggered(api, target.url("/status/404"))

    def lines() -> list[dict[str, Any]]:
        return [line for line in server.log() if line.get("run_id") == run["id"] and set(line) >= LOG_FIELDS]

    with server.written:
        assert server.written.wait_for(lines, PATIENCE), [line for line in server.log() if "run_id" in line]
    assert {line["task_id"] for line in lines()} == {run["task_id"]}
