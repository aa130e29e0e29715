"""Schedules in the console: written with what they will do in view, paused, looked up in their ledger."""

import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Open
from tests.web.runs_world import tries

JOB = "Rotate certificates"
BUSY = "Count stock"
ACROSS_THE_CHANGE = re.compile("The time that (is left out fires once, right after|comes twice fires once, the first)")


@pytest.fixture(scope="module", autouse=True)
def _certificates(api: httpx2.Client) -> None:
    _job(api, JOB, "true")


@pytest.fixture(scope="module")
def busy(api: httpx2.Client) -> str:
    """The schedule of a job that is still at it when its next instant comes: the id, once the ledger has both."""
    job = _job(api, BUSY, "sleep 30", concurrencyPolicy="SKIP", maxConcurrency=1)
    body = {"jobId": job, "kind": "every", "every": "1s"}
    schedule = str(api.post("/api/v1/schedules", json=body).raise_for_status().json()["id"])
    for _ in tries():
        if {"FIRED", "SKIPPED"} <= {each["outcome"] for each in _ledger(api, schedule)}:
            return schedule
    raise AssertionError("nothing was skipped")


def _job(api: httpx2.Client, name: str, command: str, **parts: Any) -> str:
    body = {"name": name, "type": "shell", "configJson": {"cmd": command}, **parts}
    return str(api.post("/api/v1/jobs", json=body).raise_for_status().json()["jobId"])


def _ledger(api: httpx2.Client, schedule: str) -> list[dict[str, Any]]:
    return list(api.get(f"/api/v1/schedules/{schedule}/occurrences").raise_for_status().json()["items"])


def _choose(page: Page, field: str, typed: str, option: str) -> None:
    page.get_by_role("combobox", name=field).fill(typed)
    page.get_by_role("option", name=option, exact=True).click()


def test_a_schedule_is_written_with_its_instants_across_the_change_of_the_clocks_in_view(console: Open) -> None:
    page = console("/schedules/new", timezone_id="UTC").page
    _choose(page, "Runs", "certif", JOB)
    page.get_by_role("textbox", name="Cron expression").fill("30 2 * * *")
    _choose(page, "Time zone", "zuri", "Europe/Zurich")
    preview = page.get_by_role("region", name="What it would do")
    expect(preview).to_contain_text("At 02:30, every day")
    expect(preview.get_by_role("list", name="Next instants").get_by_role("listitem")).to_have_count(10)
    expect(preview.get_by_role("region", name="When the clocks change")).to_contain_text(ACROSS_THE_CHANGE)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1, name=JOB)).to_be_visible()
    expect(page.get_by_text("0 30 2 * * *")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox", name="Cron expression").fill("15 4 * * MON")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("At 04:15, only on Monday")).to_be_visible()


def test_what_a_schedule_would_do_is_always_still_to_come(console: Open) -> None:
    page = console("/schedules/new").page
    page.get_by_role("textbox", name="Cron expression").fill("* * * * * *")
    first = page.get_by_role("list", name="Next instants").locator("time").first
    shown = first.get_attribute("datetime") or ""
    assert shown
    expect(first).not_to_have_attribute("datetime", shown)


def test_an_interval_counts_from_saving_and_goes_on_from_there(api: httpx2.Client, console: Open) -> None:
    page = console("/schedules/new").page
    _choose(page, "Runs", "certif", JOB)
    page.get_by_text("At an interval").click()
    page.get_by_role("textbox", name="Interval").fill("2h")
    preview = page.get_by_role("region", name="What it would do")
    expect(preview).to_contain_text("Every 2 hoursCounted from the moment you save: it runs first 2 hours after that.")
    expect(preview.get_by_role("listitem")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1, name=JOB)).to_be_visible()
    schedule = page.url.rsplit("/", 1)[-1]
    planned = api.get(f"/api/v1/schedules/{schedule}/next").json()["instants"][0]["planned"]
    page.get_by_role("link", name="Edit").click()
    instants = preview.get_by_role("list", name="Next instants")
    expect(instants.get_by_role("listitem")).to_have_count(10)
    expect(instants.locator("time").first).to_have_attribute("datetime", planned)
    page.get_by_role("textbox", name="Interval").fill("3h")
    expect(preview).to_contain_text("it runs first 3 hours after that")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("5", "Every 5 seconds: a number alone means seconds"),
        ("90m", "Every 1 hour 30 minutes"),
        ("1.5s", "Every 1.5 seconds"),
        ("500ms", "Every 500 milliseconds"),
        ("P1DT2H", "Every 1 day 2 hours"),
        ("5 minutes", None),
        ("PT", None),
        ("m5", None),
    ],
)
def test_an_interval_is_said_in_words_at_its_field(
    typed: str, told: str | None, api: httpx2.Client, console: Open
) -> None:
    opened = console("/schedules/new")
    opened.page.get_by_text("At an interval").click()
    field = opened.page.get_by_role("textbox", name="Interval")
    field.fill(typed)
    expect(field).to_have_accessible_description(
        told or "Not a length of time: write it as 30s, 5m or 1h30m As in 30s, 15m, 1h30m"
    )
    # Ksana understands what the console does, and nothing else.
    answer = api.post("/api/v1/schedules:preview", json={"kind": "every", "every": typed})
    assert answer.status_code == (400 if told is None else 200)
    opened.complaints[:] = [each for each in opened.complaints if "status of 400" not in each]


def test_what_is_wrong_with_a_cron_is_told_at_its_field(console: Open) -> None:
    opened = console("/schedules/new")
    field = opened.page.get_by_role("textbox", name="Cron expression")
    field.fill("61 * * * *")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(opened.page.get_by_text("minute: 61 is not between 0 and 59")).to_be_visible()
    field.fill("59 * * * *")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    opened.complaints[:] = [each for each in opened.complaints if "status of 400" not in each]


def test_the_ledger_says_what_ran_what_did_not_and_why(busy: str, console: Open) -> None:
    page = console(f"/schedules/{busy}").page
    ledger = page.get_by_role("table", name="Ledger")
    expect(ledger.get_by_role("row").filter(has_text="Skipped").first).to_contain_text("Runs as often as it may")
    ledger.get_by_role("row").filter(has_text="Fired").last.get_by_role("link").click()
    expect(page).to_have_url(re.compile("/ui/runs/[0-9]+"))


def test_the_next_day_is_shown_by_hour_and_no_instant_is_missing(busy: str, console: Open) -> None:
    page = console(f"/schedules?keyword={BUSY[:5]}&status=ACTIVE").page
    expect(page.get_by_role("table").get_by_role("link")).to_have_text([BUSY])
    page.get_by_role("region", name="The next 24 hours").get_by_role("button").nth(5).click()
    expect(page).to_have_url(re.compile("hour=20"))
    expect(page.get_by_role("region", name="The hour from")).to_contain_text(f"{BUSY}3,600")
    page.get_by_role("button", name="Is any instant missing?").click()
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("None is missing")
