"""The list of runs: filters in the URL, orders to many after a count, and a hundred thousand rows of which few are drawn."""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Open, prepared_database
from tests.web.runs_world import ended, shell_job, started, tries

MANY = 100_000
ARCHIVE = "Archive partitions"
BEFORE = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :many)
    INSERT INTO executions (job_id, planned_for, triggered_by, worker_queue, status, epoch, attempt, open_dependencies,
        created_at, started_at, attempt_started_at, ended_at, updated_at)
    SELECT 1, :since + n * 1000000, 'schedule', 'default', 'SUCCESS', 1, 1, 0,
        :since + n * 1000000, :since + n * 1000000, :since + n * 1000000, :since + n * 1000000 + n, :since + n * 1000000
    FROM numbers
"""
"""Runs of the first job, one each second until now; each took a microsecond longer than the one before it."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = prepared_database(tmp_path_factory)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(BEFORE, {"many": MANY, "since": int((time.time() - MANY) * 1_000_000)})
    return file


@pytest.fixture(scope="module", autouse=True)
def jobs(api: httpx2.Client) -> dict[str, str]:
    """Their ids; the first is the one that has run so often."""
    return {name: shell_job(api, name, cmd) for name, cmd in ((ARCHIVE, "true"), ("Charge cards", "exit 3"))}


@pytest.fixture(scope="module", autouse=True)
def failed(api: httpx2.Client, jobs: dict[str, str]) -> list[str]:
    """Three runs that have failed."""
    return [ended(api, started(api, jobs["Charge cards"])) for _ in range(3)]


def rows(page: Page) -> Any:
    return page.get_by_role("row")


def scroll_to(page: Page, depth: int) -> None:
    """As far down as this row."""
    row = page.locator(f'[aria-rowindex="{depth + 1}"]')
    for _ in tries():
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
        if row.count():
            return
    raise AssertionError(f"row {depth} is not reached")


def test_filters_survive_a_reload_and_the_way_back(console: Open, jobs: dict[str, str]) -> None:
    page = console("/runs").page
    page.get_by_role("combobox", name="Job or workflow").fill("Charge")
    page.get_by_role("option", name="Charge cards").click()
    page.get_by_role("combobox", name="Status").click()
    page.get_by_role("option", name="Failed", exact=True).click()
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Time", exact=True).click()
    page.get_by_role("option", name="Last hour").click()
    expect(page).to_have_url(re.compile(f"jobId={jobs['Charge cards']}&status=FAILED&last=1h$"))
    expect(page.get_by_role("link", name="Charge cards")).to_have_count(3)
    page.reload()
    expect(page.get_by_role("link", name="Charge cards")).to_have_count(3)
    expect(page.get_by_role("combobox", name="Job or workflow")).to_have_value("Charge cards")
    page.get_by_role("link", name="Charge cards").first.click()
    expect(page).to_have_title(re.compile("^✗ Failed · Charge cards · Run"))
    page.go_back()
    expect(page).to_have_url(re.compile("status=FAILED&last=1h$"))
    expect(page.get_by_role("link", name="Charge cards")).to_have_count(3)


def test_all_that_a_filter_finds_are_run_again_after_a_count(
    console: Open, api: httpx2.Client, jobs: dict[str, str], failed: list[str]
) -> None:
    page = console(f"/runs?jobId={jobs['Charge cards']}").page
    page.get_by_role("button", name="Run all again", exact=True).click()
    asked = page.get_by_role("dialog")
    expect(asked.get_by_text("3 runs would be started again.")).to_be_visible()
    asked.get_by_label("Reason").fill("the till is back")
    asked.get_by_role("button", name="Run all again").click()
    expect(page.get_by_text("3 runs were ordered")).to_be_visible()
    expect(page.get_by_role("link", name="Charge cards")).to_have_count(6)
    reasons = [each["reason"] for each in api.get("/api/v1/audit", params={"size": 3}).json()["items"]]
    assert all("the till is back" in reason for reason in reasons)


def test_what_cannot_be_ordered_is_told_before(console: Open, failed: list[str], jobs: dict[str, str]) -> None:
    page = console(f"/runs?jobId={jobs['Charge cards']}").page
    page.get_by_role("checkbox", name=f"Select {failed[0]}").check()
    page.get_by_role("button", name="Cancel", exact=True).click()
    asked = page.get_by_role("dialog")
    expect(asked.get_by_text("0 runs would be canceled.")).to_be_visible()
    expect(asked.get_by_role("listitem")).to_contain_text(failed[0])
    expect(asked.get_by_role("button", name="Cancel").last).to_be_disabled()


def test_a_hundred_thousand_runs_are_scrolled_through_with_few_rows_drawn(console: Open) -> None:
    opened = console("/runs?kind=job")
    page, asked = opened.page, list[str]()
    page.on("request", lambda request: asked.append(request.url) if "/activity?" in request.url else None)
    expect(page.get_by_text(ARCHIVE).first).to_be_visible()
    for depth in (100, 300, 500):
        scroll_to(page, depth)
        assert rows(page).count() < 80
    assert sum("cursor=" in url for url in asked) >= 3
    assert not any("page=" in url for url in asked)


def test_a_click_on_the_duration_brings_the_longest_then_the_shortest_first(
    console: Open, jobs: dict[str, str]
) -> None:
    page = console(f"/runs?jobId={jobs[ARCHIVE]}").page
    duration = page.get_by_role("columnheader", name="Duration")
    duration.get_by_role("button").click()
    expect(duration).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_text("Ordered within the newest 10,000")).to_be_visible()
    expect(page).to_have_url(re.compile("sort=longest$"))
    expect(rows(page).nth(1)).to_contain_text("100 ms")
    duration.get_by_role("button").click()
    expect(duration).to_have_attribute("aria-sort", "ascending")
    expect(rows(page).nth(1)).to_contain_text("90 ms")
