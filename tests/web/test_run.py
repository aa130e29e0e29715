"""One run: its attempts, why it waits, what it has written, and what can be done about it."""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import AXE, Open, prepared_database
from tests.web.runs_world import ended, shell_job, started
from tests.web.test_shell import SERIOUS, WIDER

LINES = 200_000
PART_LINES = 2_000
LONG = 1
"""The run that has written so much."""
TABS = ("Timeline", "Attempts", "Logs", "Input and output", "Events")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file, now = prepared_database(tmp_path_factory), int(time.time() * 1_000_000)
    run = (LONG, "manual", "default", "SUCCESS", 1, 1, 0, now, now, now, now, now, now)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "INSERT INTO executions (job_id, triggered_by, worker_queue, status, epoch, attempt, open_dependencies, created_at,"
            " planned_for, started_at, attempt_started_at, ended_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
            run,
        )
        connection.executemany(
            "INSERT INTO execution_logs (execution_id, epoch, seq, at, stream, text) VALUES (?,?,?,?,?,?)",
            ((LONG, 1, seq, now, "stdout", text) for seq, text in enumerate(written(), 1)),
        )
    return file


def written() -> Iterator[str]:
    """Parts that end within a line, as those of commands do."""
    text = "".join(f"line {number:06}\n" if number != 777 else "a needle\n" for number in range(1, LINES + 1))
    size = PART_LINES * len("line 000000\n") + 5
    return (text[begin : begin + size] for begin in range(0, len(text), size))


@pytest.fixture(scope="module", autouse=True)
def reindex(api: httpx2.Client) -> str:
    """The first job."""
    return shell_job(api, "Reindex", "true")


def base(api: httpx2.Client) -> str:
    return str(api.base_url).rstrip("/")


def test_a_failed_run_shows_what_was_sent_and_got_and_is_run_again(console: Open, api: httpx2.Client) -> None:
    called = {"url": f"{base(api)}/api/v1/nowhere", "method": "POST", "body": {"amount": 12}}
    job = api.post("/api/v1/jobs", json={"name": "Charge cards", "type": "http", "configJson": called}).json()["jobId"]
    run = ended(api, started(api, job, input={"order": 4711}))
    page = console(f"/runs/{run}").page
    expect(page).to_have_title(f"✗ Failed · Charge cards · Run {run} · Ksana")
    page.get_by_role("tab", name="Attempts").click()
    expect(page.get_by_role("region", name="Request")).to_contain_text(f"POST {called['url']}")
    expect(page.get_by_role("region", name="Response")).to_contain_text("404")
    expect(page.get_by_role("region", name="Body").first).to_contain_text('"amount": 12')
    page.get_by_role("tab", name="Input and output").click()
    expect(page.get_by_role("region", name="Input").first).to_contain_text("4711")
    page.get_by_role("button", name="Run again", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the till is back")
    page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", level=1)).not_to_contain_text(f"Run {run}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Charge cards · Run")
    page.go_back()
    expect(page.get_by_role("tab", name="Input and output")).to_have_attribute("aria-selected", "true")


def test_a_run_that_waits_says_why_and_goes_on_before_ones_eyes(console: Open, api: httpx2.Client) -> None:
    job = shell_job(api, "Nightly", "sleep 120", maxConcurrency=1, concurrencyPolicy="QUEUE")
    first, second = started(api, job), started(api, job)
    page = console(f"/runs/{second}").page
    reason = page.get_by_role("alert").filter(has_text="Its job runs as often as it may")
    expect(reason).to_contain_text("its limit is 1")
    assert api.post(f"/api/v1/runs/{first}/cancel").status_code == 200
    expect(page).to_have_title(re.compile("^▶ Running"))
    expect(reason).to_have_count(0)
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").last.click()
    expect(page).to_have_title(re.compile("Canceled"))


def test_a_run_that_waits_for_its_callback_shows_its_deadline(console: Open, api: httpx2.Client) -> None:
    task = {
        "name": "Export",
        "cron_expr": "0 0 0 1 1 *",
        "exec_type": "ASYNC",
        "http_method": "GET",
        "target_url": f"{base(api)}/health",
        "callback_timeout_sec": 600,
    }
    made = api.post("/api/v1/tasks", json=task)
    assert made.status_code in (200, 201), made.text
    run = api.post(f"/api/v1/tasks/{made.json()['id']}/trigger").json()["run_id"]
    page = console(f"/runs/{run}").page
    waits = page.get_by_role("alert").filter(has_text="It waits for its callback")
    expect(waits.get_by_role("timer")).to_contain_text(re.compile(r"in (10 min 00|9 min \d\d) s"))
    expect(page.get_by_role("list", name="Timeline")).to_contain_text("Callback")


def test_a_log_of_200000_lines_opens_at_its_end_and_finds_what_is_far_up(console: Open) -> None:
    page = console(f"/runs/{LONG}?tab=logs").page
    expect(page.get_by_text(f"line {LINES}", exact=True)).to_be_in_viewport()
    assert drawn(page) < 200
    page.get_by_role("textbox", name="Find in the log").fill("NEEDLE")
    expect(page.get_by_text("a needle")).to_be_in_viewport()
    expect(page.get_by_text("1 of 1", exact=False)).to_be_visible()
    expect(page.get_by_text("line 000778", exact=True)).to_be_in_viewport()
    assert drawn(page) < 200
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text(f"line {LINES}", exact=True)).to_be_in_viewport()


def drawn(page: Page) -> int:
    return page.get_by_role("log").locator("[data-index]").count()


def test_what_a_run_writes_is_followed_while_it_goes_on(console: Open, api: httpx2.Client) -> None:
    job = shell_job(api, "Talks", "for i in 1 2 3 4 5 6; do echo step $i; echo odd $i >&2; sleep 0.5; done")
    page = console(f"/runs/{started(api, job)}?tab=logs").page
    expect(page.get_by_text("step 1", exact=True)).to_be_visible()
    expect(page.get_by_text("step 6", exact=True)).to_be_visible()
    expect(page.locator("[data-stream=stderr]").last).to_contain_text("odd 6")
    expect(page).to_have_title(re.compile("^✓ Success"))
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_text("execution.ended")).to_be_visible()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is with the console's tools: make web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_has_a_serious_fault_and_none_scrolls_sideways(scheme: str, console: Open, api: httpx2.Client) -> None:
    run = ended(api, started(api, shell_job(api, f"Fails {scheme}", "echo words; exit 3")))
    opened = console(f"/runs/{run}", color_scheme=scheme, bypass_csp=True, reduced_motion="reduce", width=400)
    page, told = opened.page, list[str]()
    page.evaluate(AXE.read_text())
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector("[data-loading]", state="detached")
        assert page.evaluate(WIDER) == 0
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        told += [f"{tab} {each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]
    assert told == []
