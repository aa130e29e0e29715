"""Home, instances, audit, settings and the palette: what failed, what runs and who did what, from an empty server on."""

import re
from typing import Any

import httpx2
from playwright.sync_api import Page, expect

from tests.contract.api.conftest import until
from tests.web.conftest import Open

JOBS, ACTIVITY, FAILURES = "/api/v1/jobs", "/api/v1/activity", "/api/v1/failures"
BROKEN = "Sync customers"


def a_job(api: httpx2.Client, name: str, cmd: str) -> str:
    made = api.post(JOBS, json={"name": name, "type": "shell", "configJson": {"cmd": cmd}})
    assert made.status_code == 201, made.text
    return str(made.json()["jobId"])


def ran(api: httpx2.Client, job: str, times: int = 1) -> None:
    for _ in range(times):
        assert api.post(f"{JOBS}/{job}:run", json={}).status_code == 202
    until(api, ACTIVITY, lambda page: ended(page) == len(page["items"]), jobId=job)


def ended(page: dict[str, Any]) -> int:
    return sum(1 for run in page["items"] if run["endedAt"] is not None)


def section(page: Page, title: str) -> Any:
    return page.locator("section").filter(has=page.get_by_role("heading", name=title, exact=True))


def test_an_empty_server_says_what_to_do_first_and_shows_what_is_made_as_it_happens(
    api: httpx2.Client, console: Open
) -> None:
    page = console().page
    expect(page.get_by_role("heading", name="Nothing is scheduled yet")).to_be_visible()
    expect(page.get_by_text("/api/v1/tasks")).to_be_visible()
    expect(page.get_by_role("link", name="New job")).to_have_attribute("href", "/ui/jobs/new")
    expect(page.get_by_role("link", name="New workflow")).to_have_attribute("href", "/ui/workflows/new")
    job = a_job(api, "Ping", "true")
    every = {"jobId": job, "kind": "every", "every": "10m", "timezone": "Europe/Zurich"}
    assert api.post("/api/v1/schedules", json=every).status_code == 201
    expect(section(page, "Next 60 minutes").get_by_role("link", name="Ping")).to_be_visible()
    expect(section(page, "Running now")).to_contain_text("Nothing runs at the moment.")
    expect(section(page, "Queues and instances")).to_contain_text("0 of 16 places")


def test_failures_are_told_by_job_run_again_and_acknowledged_with_a_reason(api: httpx2.Client, console: Open) -> None:
    ran(api, a_job(api, BROKEN, "echo connection refused >&2; exit 3"), times=2)
    ran(api, a_job(api, "每日对账", "exit 1"))
    page = console().page
    expect(page).to_have_title("(2) Home · Ksana")
    inbox = section(page, "Failures")
    broken = inbox.get_by_role("article").filter(has_text=BROKEN)
    expect(broken).to_contain_text("exit code 3: connection refused")
    expect(broken.get_by_role("link", name="failed 2 times")).to_have_attribute(
        "href", re.compile("status=FAILED,TIMEOUT.*jobId=.*from=")
    )
    broken.get_by_role("button", name="Run again", exact=True).click()
    expect(page.get_by_text(re.compile(f"{BROKEN} runs again: run \\d+"))).to_be_visible()
    expect(broken).to_contain_text("failed 3 times")
    broken.get_by_role("button", name="Run all again", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Run all again", exact=True).click()
    expect(broken).to_contain_text("failed 6 times")
    broken.get_by_role("button", name="Acknowledge", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Acknowledge the failures of {BROKEN}?")
    dialog.get_by_role("textbox", name="Reason").fill("the vendor knows")
    expect(dialog).to_contain_text("failures:acknowledge")
    dialog.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(broken).to_have_count(0)
    expect(page).to_have_title("(1) Home · Ksana")
    assert [each["target"]["name"] for each in api.get(FAILURES).json()["items"]] == ["每日对账"]

    page.get_by_role("navigation").get_by_role("link", name="Audit").click()
    page.get_by_role("row").filter(has_text="the vendor knows").get_by_role(
        "link", name="Acknowledged failures"
    ).click()
    entry = page.get_by_role("dialog", name="Acknowledged failures")
    expect(entry).to_contain_text("failures.acknowledged")
    expect(entry.get_by_role("link", name=BROKEN)).to_be_visible()
    page.reload()
    expect(entry).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_what_runs_is_seen_on_home_and_with_its_instance_and_every_tile_leads_to_its_list(
    api: httpx2.Client, console: Open
) -> None:
    ran(api, a_job(api, "Vacuum", "true"))  # what has ended is drawn, too
    slow = a_job(api, "Rebuild the index", "sleep 60")
    run = api.post(f"{JOBS}/{slow}:run", json={}).json()["runId"]
    page = console().page
    expect(section(page, "Running now").get_by_role("link", name="Rebuild the index")).to_be_visible()
    expect(page.get_by_role("figure", name="Runs that ended").locator("canvas")).to_be_visible()
    expect(page.get_by_role("figure", name="Runs that ended")).to_contain_text(re.compile(r"Failed: latest [\d,]+"))
    page.get_by_text("24 h", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?hours=24$"))
    page.get_by_role("link", name=re.compile("^Running")).click()
    expect(page).to_have_url(re.compile(r"/ui/runs\?status=RUNNING$"))
    page.go_back()
    page.get_by_role("link", name=re.compile("^Instances")).last.click()
    page.get_by_role("row").filter(has_text="Leader").get_by_role("link").click()
    instance = page.get_by_role("dialog")
    expect(instance.get_by_role("link", name="Rebuild the index")).to_have_attribute("href", f"/ui/runs/{run}")
    page.keyboard.press("Escape")
    expect(instance).to_have_count(0)
    expect(page).to_have_url(re.compile("/ui/instances$"))
    assert api.post(f"{ACTIVITY}:cancel", json={"ids": [str(run)]}).status_code == 200


def test_settings_are_found_by_what_they_mean_and_preferences_hold_everywhere(console: Open) -> None:
    page = console("/settings?q=port").page
    expect(page.get_by_text("server.port")).to_be_visible()
    expect(page.get_by_text("retention.max_age")).to_have_count(0)
    page.get_by_role("checkbox", name="Only what was set").check()
    expect(page).to_have_url(re.compile(r"\?q=port&changed=true$"))
    expect(page.get_by_text("flag --port")).to_be_visible()
    page.get_by_text("UTC", exact=True).click()
    expect(page.get_by_text(re.compile(r"Now it is .* UTC$"))).to_be_visible()
    expect(page.get_by_role("button", name="Time zone: UTC")).to_be_visible()


def test_the_palette_finds_a_run_by_its_id_opens_forms_and_switches_the_theme(
    api: httpx2.Client, console: Open
) -> None:
    ran(api, a_job(api, "Found by its number", "true"))
    run = api.get(ACTIVITY, params={"size": 1}).json()["items"][0]["id"]
    page = console("/audit").page
    for typed, chosen in (
        (run, f"Found by its number · {run}"),
        ("theme dark", "Theme: Dark"),
        ("new work", "New workflow"),
    ):
        page.keyboard.press("Control+k")
        page.get_by_role("textbox", name="Search").fill(typed)
        expect(page.get_by_role("button", name=chosen)).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        if typed == run:
            expect(page).to_have_url(re.compile(f"/ui/runs/{run}$"))
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    expect(page).to_have_url(re.compile("/ui/workflows/new$"))
