"""Document 003 §9.4 and §14: health, version, and every figure that the document names."""

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.contract.api.conftest import ON_SQLITE
from tests.contract.api.cronjob_world import cancel, create, retries, trigger, triggered, until_run
from tests.contract.api.witness import Target

pytestmark = ON_SQLITE

FIGURES = {
    "cronjob_task_total": "gauge",
    "cronjob_run_total": "counter",
    "cronjob_run_duration_seconds": "histogram",
    "cronjob_run_retries_total": "counter",
    "cronjob_http_request_total": "counter",
    "cronjob_callback_pending": "gauge",
    "cronjob_scheduler_scan_latency": "histogram",
    "cronjob_misfire_total": "counter",
}
Labels = frozenset[tuple[str, str]]


def text(api: httpx2.Client) -> str:
    answer = api.get("/metrics")
    assert answer.status_code == 200
    return answer.text


def figure(api: httpx2.Client, name: str, **labels: str) -> float:
    """The value of one figure; zero if it has none yet."""
    for family in text_string_to_metric_families(text(api)):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return float(sample.value)
    return 0.0


def test_it_is_healthy_and_says_its_version(api: httpx2.Client) -> None:
    health = api.get("/api/v1/healthz")
    assert (health.status_code, health.text) == (200, "ok")
    version = api.get("/api/v1/version")
    assert (version.status_code, version.text[:1]) == (200, "v")


def test_every_figure_of_the_document_is_there(api: httpx2.Client, target: Target) -> None:
    triggered(api, target.url())
    shown = text(api).splitlines()
    assert [name for name, kind in FIGURES.items() if f"# TYPE {name} {kind}" not in shown] == []


def test_runs_are_counted_by_how_they_ended(api: httpx2.Client, target: Target) -> None:
    before = {status: figure(api, "cronjob_run_total", status=status) for status in ("SUCCESS", "FAILED")}
    triggered(api, target.url())
    triggered(api, target.url("/status/404"))
    assert {status: figure(api, "cronjob_run_total", status=status) - count for status, count in before.items()} == {
        "SUCCESS": 1,
        "FAILED": 1,
    }


def test_calls_are_counted_by_method_and_code(api: httpx2.Client, target: Target) -> None:
    before = figure(api, "cronjob_http_request_total", method="PATCH", code="418")
    triggered(api, target.url("/status/418"), http_method="PATCH")
    assert figure(api, "cronjob_http_request_total", method="PATCH", code="418") == before + 1


def test_durations_and_retries_are_told_by_task(api: httpx2.Client, target: Target) -> None:
    run = triggered(api, target.url("/flaky/1"), retry_policy=retries(1))
    task = str(run["task_id"])
    assert figure(api, "cronjob_run_retries_total", task_id=task) == 1
    assert figure(api, "cronjob_run_duration_seconds_count", task_id=task) == 1


def test_tasks_are_counted_by_status(api: httpx2.Client, target: Target) -> None:
    before = {status: figure(api, "cronjob_task_total", status=status) for status in ("ENABLED", "DISABLED")}
    task = create(api, target.url())
    assert figure(api, "cronjob_task_total", status="ENABLED") == before["ENABLED"] + 1
    api.patch(f"/api/v1/tasks/{task}/disable")
    assert figure(api, "cronjob_task_total", status="ENABLED") == before["ENABLED"]
    assert figure(api, "cronjob_task_total", status="DISABLED") == before["DISABLED"] + 1


def test_runs_that_wait_for_a_callback_are_counted(api: httpx2.Client, target: Target) -> None:
    before = figure(api, "cronjob_callback_pending")
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC"))
    until_run(api, run, "CALLBACK_PENDING")
    assert figure(api, "cronjob_callback_pending") == before + 1
    cancel(api, run)
    assert figure(api, "cronjob_callback_pending") == before
