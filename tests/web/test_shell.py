"""The console in a browser: it loads from Ksana alone, speaks both languages, and fits every screen."""

import re

import httpx2
import pytest
from playwright.sync_api import expect

from tests.web.conftest import AXE, Open

PAGES = ["", "/runs", "/jobs", "/schedules", "/workflows", "/plans", "/instances", "/audit", "/settings"]
SERIOUS = {"serious", "critical"}
WIDER = "document.documentElement.scrollWidth - document.body.clientWidth"
"""Than what is beside the room that is kept for a scroll bar."""


@pytest.fixture(scope="module", autouse=True)
def _jobs(api: httpx2.Client) -> None:
    """Something to show."""
    for name in ("Archive partitions", "每日对账"):
        made = api.post("/api/v1/jobs", json={"name": name, "type": "shell", "configJson": {"cmd": "true"}})
        assert made.status_code == 201, made.text
        every = {"jobId": made.json()["jobId"], "kind": "every", "every": "1h", "timezone": "Europe/Zurich"}
        assert api.post("/api/v1/schedules", json=every).status_code == 201


def test_the_shell_loads_from_ksana_alone_and_leads_to_every_page(console: Open) -> None:
    page = console().page
    for name in ("Runs", "Jobs", "Settings"):
        page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        expect(page).to_have_title(f"{name} · Ksana")
    page.go_back()
    expect(page).to_have_url(re.compile("/ui/jobs$"))


def test_a_link_into_the_console_opens_with_its_filter_and_keeps_it_in_the_url(console: Open) -> None:
    page = console("/jobs?keyword=Archive").page
    filtered = page.get_by_role("textbox", name="Name")
    expect(filtered).to_have_value("Archive")
    expect(page.get_by_role("link", name="Archive partitions")).to_be_visible()
    expect(page.get_by_role("link", name="每日对账")).to_have_count(0)
    filtered.fill("对账")
    expect(page.get_by_role("link", name="每日对账")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/jobs\?keyword=%E5%AF%B9%E8%B4%A6$"))


def test_it_speaks_the_browsers_language_and_another_that_is_chosen_for_good(console: Open) -> None:
    opened = console("/jobs", locale="zh-CN")
    page = opened.page
    expect(page.get_by_role("heading", level=1, name="作业")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="语言").click()
    page.get_by_role("menuitem", name="English").click()
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    opened.open("/jobs")
    expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()


def test_every_time_follows_the_one_choice_of_zone(console: Open) -> None:
    page = console("/jobs").page
    page.get_by_role("button", name="Time zone").click()
    page.get_by_role("menuitem", name="UTC").click()
    page.locator("time").first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$"))


def test_keys_lead_to_help_to_the_filter_and_through_the_rows(console: Open) -> None:
    page = console("/jobs").page
    expect(page.get_by_role("link", name="Archive partitions")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/jobs/[^/]+$"))


def test_escape_leaves_a_filter_that_searches_too(console: Open) -> None:
    page = console("/runs").page
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Job or workflow")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("combobox", name="Job or workflow")).not_to_be_focused()


def test_it_says_that_ksana_does_not_answer_and_goes_on_when_it_does(console: Open) -> None:
    opened = console("/jobs")
    page = opened.page
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    page.route("**/api/v1/events*", lambda route: route.abort("connectionrefused"))
    page.reload()
    expect(page.get_by_role("status").filter(has_text="No connection")).to_be_visible()
    page.unroute("**/api/v1/events*")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    opened.complaints = [each for each in opened.complaints if "ERR_CONNECTION_REFUSED" not in each]


def test_a_narrow_screen_shows_every_page_without_scrolling_sideways(console: Open) -> None:
    opened = console("/jobs/new", width=400)
    page = opened.page
    assert {path: opened.go(path).page.evaluate(WIDER) for path in PAGES} == dict.fromkeys(PAGES, 0)
    page.get_by_role("button", name="Navigation").click()
    expect(page.get_by_role("navigation")).to_be_in_viewport()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is with the console's tools: make web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault_for_those_who_see_or_move_differently(scheme: str, console: Open) -> None:
    opened = console("/jobs/new", color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    opened.page.evaluate(AXE.read_text())
    told: list[str] = []
    for path in PAGES:
        found = opened.go(path).page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        told += [f"{path} {each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]
    assert told == []
