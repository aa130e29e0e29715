"""Jobs in a browser: made in a form and seen firing, run with another body, paused and resumed, changed without losing anything."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.web.conftest import AXE, Console, Open
from tests.web.test_shell import SERIOUS, WIDER
from tests.web.twins import pasted

NO_LENGTH = "Not a length of time: write it as 30s, 5m or 1h30m"
EXAMPLE = "field => getComputedStyle(field, '::placeholder').color"
JOBS, SCHEDULES, ACTIVITY = "/api/v1/jobs", "/api/v1/schedules", "/api/v1/activity"


def made(api: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def own(api: httpx2.Client, path: str) -> str:
    """A URL of the server's own."""
    return f"{str(api.base_url).rstrip('/')}{path}"


def row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def box(of: Locator) -> FloatRect:
    """Where it is, and how large."""
    found = of.bounding_box()
    assert found is not None
    return found


def filled(console: Open, name: str) -> Console:
    """The form of a job that could be made as it stands."""
    opened = console("/jobs/new")
    opened.page.get_by_role("textbox", name="Name").fill(name)
    opened.page.get_by_role("button", name="Call /health of this Ksana").click()
    return opened


def copied_command(page: Page, label: str) -> str:
    """What the arrow beside a button copies as a command, the first where there are several."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=f"More for {label}").click()
    page.get_by_role("menuitem", name="Copy as command").first.click()
    expect(page.get_by_text("Copied").first).to_be_visible()
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_what_a_form_would_do_can_be_pasted_into_a_shell_instead(api: httpx2.Client, console: Open) -> None:
    page = console("/jobs/new").page
    page.get_by_role("textbox", name="Name").fill("It's pasted")
    page.get_by_role("button", name="Call /health of this Ksana").click()
    page.get_by_role("textbox", name="Interval").fill("90m")
    page.get_by_role("textbox", name="Description").fill('one\n$two `three` "four"')
    pasted(copied_command(page, "Create job"))
    (job,) = api.get(JOBS, params={"keyword": "It's pasted"}).json()["items"]
    assert job["description"] == 'one\n$two `three` "four"'
    (schedule,) = api.get(SCHEDULES, params={"jobId": job["jobId"]}).json()["items"]
    assert schedule["every"] == "1h30m"
    page = console(f"/jobs/{job['jobId']}/edit").page
    page.get_by_role("textbox", name="Description").fill("it's another")
    pasted(copied_command(page, "Save"))
    assert api.get(f"{JOBS}/{job['jobId']}").json()["description"] == "it's another"
    page = console(f"/schedules/{schedule['id']}/edit").page
    page.get_by_role("textbox", name="Interval").fill("2h")
    pasted(copied_command(page, "Save"))
    assert api.get(f"{SCHEDULES}/{schedule['id']}").json()["every"] == "2h"


def test_a_job_is_made_with_its_schedule_and_seen_firing(api: httpx2.Client, console: Open) -> None:
    opened = console("/jobs")
    page = opened.page
    page.get_by_role("link", name="New job").first.click()
    expect(page.get_by_role("heading", level=1, name="New job")).to_be_visible()  # the list has a field for names, too
    page.get_by_role("textbox", name="Name").fill("Look at health")
    page.get_by_role("button", name="Call /health of this Ksana").click()
    page.get_by_role("textbox", name="Interval").fill("1s")
    page.get_by_role("button", name="More for Create job").click()
    expect(page.get_by_role("menuitem", name="Copy as curl").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create job", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Look at health")).to_be_visible()
    expect(page.get_by_text("Your job is ready")).to_be_visible()
    bars = page.get_by_role("list", name=re.compile("^Last ")).get_by_role("link", name=re.compile("^Success, "))
    expect(bars.first).to_be_visible()
    # What ran is in the calendar, whose day shows its runs.
    today = page.get_by_role("button", name=re.compile(r"^[\d-]{10}: \d+ planned, [1-9]\d* ran, 0 of them failed"))
    expect(today).to_be_visible()
    today.click()
    expect(page).to_have_url(re.compile(r"day=\d{4}-\d\d-\d\d"))
    expect(page.get_by_role("heading", name=re.compile("^Runs of "))).to_be_visible()
    expect(page.get_by_role("table", name="Latest runs").get_by_text("Success").first).to_be_visible()
    # The arrow keys go along the bars, Enter opens one.
    expect(bars.nth(1)).to_be_visible()
    bars.last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ui/runs/\d+"))
    page.go_back()
    expect(page.get_by_role("heading", name=re.compile("^Runs of "))).to_be_visible()
    opened.go("/jobs")
    job = api.get(JOBS, params={"keyword": "Look at health"}).json()["items"][0]
    assert api.delete(f"{JOBS}/{job['jobId']}").status_code == 204


def test_what_is_wrong_is_shown_at_its_field_and_nothing_is_made_of_it(api: httpx2.Client, console: Open) -> None:
    opened = console("/jobs/new")
    page, create = opened.page, opened.page.get_by_role("button", name="Create job", exact=True)
    name, url = page.get_by_role("textbox", name="Name"), page.get_by_role("textbox", name="URL")
    create.click()
    expect(name).to_have_accessible_description("Needed")
    expect(name).to_be_focused()
    name.fill("Wrong")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    expect(url).to_have_accessible_description("Needed")
    url.fill("nonsense")
    expect(page.get_by_text("Needed")).to_have_count(0)
    create.click()
    expect(url).to_have_attribute("aria-invalid", "true")
    expect(url).to_be_focused()
    url.fill(own(api, "/health"))
    page.get_by_text("By the calendar (cron)").click()
    page.get_by_role("textbox", name="Cron expression").fill("every day")
    create.click()
    expect(page.get_by_role("textbox", name="Cron expression")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("textbox", name="Cron expression").fill("0 9 * * *")
    page.get_by_role("button", name=re.compile("^Timeout, retries")).click()
    page.get_by_role("textbox", name="Timeout", exact=True).fill("soon")
    page.get_by_role("button", name=re.compile("^Timeout, retries")).click()
    create.click()
    expect(page.get_by_role("textbox", name="Timeout", exact=True)).to_be_focused()
    expect(page.get_by_text(NO_LENGTH)).to_be_in_viewport()
    assert api.get(JOBS, params={"keyword": "Wrong"}).json()["items"] == []
    # Leaving asks first.
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Stay").click()
    expect(name).to_have_value("Wrong")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Leave").click()
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    opened.complaints = [each for each in opened.complaints if "status of 400" not in each]


def test_a_refused_save_leads_to_what_is_wrong_and_says_it_once(api: httpx2.Client, console: Open) -> None:
    opened = filled(console, "Refused")
    page, create = opened.page, opened.page.get_by_role("button", name="Create job", exact=True)
    interval = page.get_by_role("textbox", name="Interval")
    interval.fill("10ms")
    page.get_by_role("textbox", name="Name").focus()
    create.click()
    expect(interval).to_be_focused()
    expect(interval).to_be_in_viewport()
    expect(page.get_by_text("Not saved")).to_be_in_viewport()
    expect(page.get_by_text("VALIDATION_ERROR")).to_have_count(0)
    interval.fill("5m")
    expect(interval).not_to_have_attribute("aria-invalid", "true")
    expect(page.get_by_text("Not saved")).to_have_count(0)
    # What is of no field is told in a box.
    page.route("**/api/v1/jobs", lambda route: route.fulfill(status=409, json={"code": "NOT_NOW", "message": "later"}))
    create.click()
    expect(page.get_by_role("alert").filter(has_text="NOT_NOW")).to_be_focused()
    expect(page.get_by_role("alert").filter(has_text="NOT_NOW")).to_be_in_viewport()
    assert api.get(JOBS, params={"keyword": "Refused"}).json()["items"] == []
    opened.complaints[:] = [each for each in opened.complaints if "status of 4" not in each]


def test_what_was_wrong_is_not_said_of_what_is_written_since(console: Open) -> None:
    opened = filled(console, "Put right")
    page = opened.page
    interval = page.get_by_role("textbox", name="Interval")
    interval.fill("10ms")
    expect(interval).to_have_attribute("aria-invalid", "true")
    page.clock.install()
    page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=1))  # what is written now is not asked about yet
    interval.fill("5m")
    expect(interval).not_to_have_attribute("aria-invalid", "true")
    page.clock.resume()
    opened.complaints[:] = [each for each in opened.complaints if "status of 400" not in each]


def test_when_it_runs_is_seen_before_it_is_made(console: Open) -> None:
    page = console("/jobs/new").page
    create = box(page.get_by_role("button", name="Create job", exact=True))
    interval = box(page.get_by_role("textbox", name="Interval"))
    assert interval["y"] + interval["height"] < create["y"]
    expect(page.get_by_text("Runs: Every 5 minutes")).to_be_in_viewport()
    page.get_by_text("10s", exact=True).click()
    expect(page.get_by_text("Runs: Every 10 seconds")).to_be_visible()
    page.get_by_text("By the calendar (cron)").click()
    page.get_by_role("textbox", name="Cron expression").fill("30 2 * * MON-FRI")
    expect(page.get_by_text("Runs: At 02:30, Monday through Friday")).to_be_visible()
    page.get_by_role("button", name="Remove this schedule").click()
    expect(page.get_by_text("No schedule", exact=True)).to_be_visible()


def test_nothing_moves_in_a_form_that_is_filled_or_has_an_example_that_looks_like_a_value(console: Open) -> None:
    page = console("/jobs/new").page
    cancel, headers = page.get_by_role("link", name="Cancel"), page.get_by_role("group", name="Headers")
    before = box(cancel), box(headers)
    more = page.get_by_role("button", name="More for Create job")
    expect(more).to_be_disabled()
    url = page.get_by_role("textbox", name="URL")
    example = url.evaluate(EXAMPLE)
    page.get_by_role("textbox", name="Name").fill("Still")
    page.get_by_role("button", name="Call /health of this Ksana").click()
    expect(more).to_be_enabled()
    assert (box(cancel), box(headers)) == before
    url.fill("")
    page.get_by_role("button", name="Create job", exact=True).click()
    expect(url).to_have_attribute("aria-invalid", "true")
    assert url.evaluate(EXAMPLE) == example


def test_a_new_job_says_that_it_has_run_and_nothing_moves(api: httpx2.Client, console: Open) -> None:
    config = {"method": "GET", "url": own(api, "/health")}
    job = made(api, JOBS, {"name": "Just made", "type": "http", "configJson": config})["jobId"]
    page = console(f"/jobs/{job}?made=true").page
    expect(page.get_by_text("Your job is ready")).to_be_visible()
    expect(page.get_by_text("No run has ended yet")).to_have_count(2)
    calendar = page.get_by_role("heading", name="Calendar")
    before = box(calendar)
    page.get_by_role("button", name="Try it now", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Try it now").click()
    expect(page.get_by_text("Your job has run")).to_be_visible()
    expect(page.get_by_text("Your job is ready")).to_have_count(0)
    expect(page.get_by_role("list", name="Last run").get_by_role("link")).to_have_count(1)
    assert box(calendar) == before
    page.get_by_role("link", name="See what happened").click()
    expect(page).to_have_url(re.compile(r"/ui/runs/\d+"))


def test_it_runs_now_with_another_body_and_is_paused_and_resumed(api: httpx2.Client, console: Open) -> None:
    config = {"method": "POST", "url": own(api, "/api/v1/schedules:preview"), "body": {"kind": "every"}}
    job = made(api, JOBS, {"name": "Ask for instants", "type": "http", "configJson": config})
    made(
        api, SCHEDULES, {"jobId": job["jobId"], "kind": "cron", "cron": "30 2 * * MON-FRI", "timezone": "Europe/Zurich"}
    )
    opened = console("/jobs?keyword=Ask")
    page = opened.page
    row(page, "Ask for instants").get_by_role("button", name="More for Ask for instants").click()
    page.get_by_role("menuitem", name="Run now").click()
    expect(row(page, "Ask for instants").get_by_text("Failed")).to_be_visible()
    page.get_by_role("link", name="Ask for instants", exact=True).click()
    expect(page.get_by_text("At 02:30, Monday through Friday")).to_be_visible()
    expect(page.get_by_role("list", name="Next instants").get_by_role("listitem")).to_have_count(10)
    # A command says where Ksana is, as it is not where commands look by themselves.
    assert copied_command(page, "Run now") == f"ksana jobs run {job['jobId']} --server {own(api, '')}"
    page.get_by_role("button", name="Run now", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Body of this run").fill('{"kind": "every"')
    expect(dialog.get_by_role("button", name="Run now")).to_be_disabled()
    dialog.get_by_role("textbox", name="Body of this run").fill('{"kind": "every", "every": "1h"}')
    dialog.get_by_role("textbox", name="Reason").fill("with an interval")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Latest runs").get_by_text("Success")).to_be_visible()
    run = api.get(ACTIVITY, params={"jobId": job["jobId"]}).json()["items"][0]
    assert (run["status"], run["trigger"]) == ("SUCCESS", "manual")
    # Its schedule alone is paused, then the whole job.
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("Its schedules are paused")).to_be_visible()
    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("button", name="Disable", exact=True).click()
    expect(page.get_by_text("The job is disabled")).to_be_visible()
    opened.go("/jobs?enabled=false")
    row(page, "Ask for instants").get_by_role("button", name="More for Ask for instants").click()
    page.get_by_role("menuitem", name="Enable").click()
    expect(row(page, "Ask for instants")).to_have_count(0)
    assert api.get(f"{JOBS}/{job['jobId']}").json()["enabled"]


def test_a_change_keeps_what_the_form_does_not_show_and_is_in_the_history(api: httpx2.Client, console: Open) -> None:
    task = {"name": "A task", "cron_expr": "0 3 * * *", "target_url": own(api, "/health")}
    number = made(api, "/api/v1/tasks", task)["id"]
    job = api.put(
        f"{JOBS}/{number}",
        json={
            "configJson": {"url": own(api, "/health"), "callback_method": "PUT", "connect_timeout": "2s"},
            "labels": {"team": "a"},
        },
    ).json()
    schedule = api.get(SCHEDULES, params={"jobId": job["jobId"]}).json()["items"][0]
    opened = console(f"/jobs/{number}")
    page = opened.page
    expect(page.get_by_text(f"made as task {number}")).to_be_visible()
    page.get_by_role("link", name="Edit").first.click()
    page.get_by_role("textbox", name="Description").fill("Looks at health")
    page.get_by_role("textbox", name="Cron expression").fill("0 4 * * *")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("button", name="Run now", exact=True)).to_be_visible()
    expect(page.get_by_text("Looks at health")).to_be_visible()
    expect(page.get_by_text("At 04:00")).to_be_visible()
    now = api.get(f"{JOBS}/{job['jobId']}").json()
    assert now | {"updatedAt": ""} == job | {"description": "Looks at health", "updatedAt": ""}
    changed = api.get(f"{SCHEDULES}/{schedule['id']}").json()
    same = ("jitter", "misfirePolicy", "catchupLimit", "misfireGrace", "input", "timezone", "startAt", "endAt")
    assert {name: changed[name] for name in same} == {name: schedule[name] for name in same}
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_role("table", name="History").get_by_text("description", exact=True)).to_be_visible()
    # Another one like it.
    page.get_by_role("link", name="Duplicate").click()
    page.get_by_role("textbox", name="Name").fill("Another task")
    page.get_by_role("button", name="Create job", exact=True).click()
    expect(page.get_by_text("Your job is ready")).to_be_visible()
    copy = api.get(f"{JOBS}/{page.url.split('/')[-1].split('?')[0]}").json()
    differing = {"jobId", "name", "createdAt", "updatedAt"}
    assert {name: copy[name] for name in copy.keys() - differing} == {
        name: now[name] for name in now.keys() - differing
    }
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    assert api.get(f"{JOBS}/{copy['jobId']}").status_code == 404
    # That it is gone may be heard of, and looked after, just before its page is left.
    opened.complaints[:] = [each for each in opened.complaints if "404" not in each]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is with the console's tools: make web")
def test_a_job_and_its_form_are_for_everybody_and_fit_a_narrow_screen(api: httpx2.Client, console: Open) -> None:
    config = {"method": "POST", "url": own(api, "/health"), "headers": {"X-From": "ksana"}, "body": {"a": 1}}
    job = made(api, JOBS, {"name": "For everybody", "type": "http", "configJson": config})["jobId"]
    made(api, SCHEDULES, {"jobId": job, "kind": "every", "every": "1s"})
    told: list[str] = []
    for scheme, width in (("light", 1280), ("dark", 400)):
        opened = console("/jobs", color_scheme=scheme, bypass_csp=True, reduced_motion="reduce", width=width)
        page = opened.page
        page.evaluate(AXE.read_text())
        opened.go(f"/jobs/{job}")
        expect(page.get_by_role("list", name=re.compile("^Last ")).get_by_role("link").first).to_be_visible()
        told += faults(page)
        for tab in ("Configuration", "History"):
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tabpanel", name=tab).locator("pre, [role=table]").first).to_be_visible()
            told += faults(page)
        opened.go(f"/jobs/{job}/edit")
        told += faults(page)
        opened.go("/jobs")
    assert told == []
    assert api.delete(f"{JOBS}/{job}").status_code == 204


def faults(page: Page) -> list[str]:
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    told = [f"{page.url} {each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]
    return [*told, *[f"{page.url} is too wide"] * (page.evaluate(WIDER) > 0)]
