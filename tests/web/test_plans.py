"""Plans in the console: why one stands, what its tenants do, and what people do about it."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import AXE, Open
from tests.web.test_shell import SERIOUS, WIDER

PLANS = "/api/v1/plans"
MANY = 5_000


@pytest.fixture
def works(tmp_path: Path) -> Path:
    """A file without which the stage `switch` fails."""
    return tmp_path / "works"


def shell(name: str, cmd: str) -> dict[str, Any]:
    return {"name": name, "type": "shell", "config": {"cmd": cmd}}


def saves_then_switches(works: Path) -> list[dict[str, Any]]:
    """A first stage that saves something, and a second that fails until the file is there."""
    return [shell("drain", 'echo \'{"rows": 120}\' > "$KSANA_CHECKPOINT"'), shell("switch", f"test -e {works}")]


def holds(until: Path) -> str:
    """A command that lasts until the file is there."""
    return f"while ! test -e {until}; do sleep 0.05; done"


def created(api: httpx2.Client, plan_id: str, stages: list[dict[str, Any]], tenants: list[str], **given: Any) -> None:
    sent = {
        "planId": plan_id,
        "name": f"Rollout {plan_id}",
        "stages": stages,
        "tenants": tenants,
        "autoStart": True,
        **given,
    }
    answer = api.post(PLANS, json=sent)
    assert answer.status_code == 201, answer.text


def row(page: Page, tenant: str) -> Locator:
    return page.get_by_role("table", name="Stages of every tenant").get_by_role("row").filter(has_text=tenant)


def state(page: Page) -> Locator:
    """Of the plan, beside its name."""
    return page.locator("main h1 + span")


def answer_dialog(page: Page, button: str, reason: str = "") -> None:
    dialog = page.get_by_role("dialog")
    if reason:
        dialog.get_by_role("textbox", name="Reason").fill(reason)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def test_a_plan_that_its_canary_stopped_says_why_and_goes_on_when_that_is_repaired(
    api: httpx2.Client, console: Open, works: Path
) -> None:
    waves = [{"size": 1, "gate": {"maxFailedPercent": 0}}]
    tenants = [f"canary-{number}" for number in range(4)]
    created(api, "canary", saves_then_switches(works), tenants, waves=waves, maxConcurrency=4)
    opened = console("/plans?keyword=canary")
    page = opened.page
    page.get_by_role("link", name="Rollout canary").click()
    expect(page.get_by_text("The gate of wave 1 is shut: 1 of 1 tenants failed, at most 0 % may.")).to_be_visible()
    expect(state(page)).to_have_text("Paused")

    row(page, "canary-0").click()
    panel = page.get_by_role("complementary", name="Tenant canary-0")
    expect(panel.get_by_role("link", name="Logs of switch")).to_have_attribute(
        "href", re.compile(r"/ui/runs/.+\?node=switch$")
    )
    panel.get_by_role("tab", name="Checkpoint").click()
    expect(panel.get_by_role("region", name="What stages saved")).to_contain_text('"rows": 120')
    page.reload()
    expect(panel.get_by_role("region", name="What stages saved")).to_contain_text('"rows": 120')

    page.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("GATE_NOT_MET")
    page.keyboard.press("Escape")
    assert "409" in opened.complaints.pop()

    works.touch()
    panel.get_by_role("button", name="Retry", exact=True).click()
    answer_dialog(page, "Retry", "repaired")
    expect(row(page, "canary-0")).to_contain_text("Completed")
    expect(page.get_by_text("The gate of wave 1 would open now")).to_be_visible()
    panel.get_by_role("tab", name="Who did what").click()
    expect(panel.get_by_text("repaired")).to_be_visible()
    page.get_by_role("button", name="Resume", exact=True).click()
    answer_dialog(page, "Resume")
    expect(row(page, "canary-3").get_by_role("cell").nth(2)).to_have_text("Success")
    expect(state(page)).to_have_text("Completed")
    expect(page).to_have_title("Completed · Rollout canary · Ksana")


def test_a_plan_is_paused_by_somebody_and_resumed(api: httpx2.Client, console: Open, works: Path) -> None:
    created(api, "slow", [shell("one", holds(works)), shell("two", "true")], ["slow-1", "slow-2"])
    page = console("/plans/slow").page
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text('"tasks":true')
    dialog.get_by_role("checkbox", name="Pause tenants that run, too").uncheck()
    expect(dialog).to_contain_text('"tasks":false')
    answer_dialog(page, "Pause", "lunch")
    expect(page.get_by_text("Paused by anonymous (127.0.0.1).")).to_be_visible()
    expect(page.get_by_text("Reason: lunch")).to_be_visible()
    works.touch()
    expect(row(page, "slow-1")).to_contain_text("Completed")
    expect(row(page, "slow-2")).to_contain_text("Created")
    page.get_by_role("button", name="Resume", exact=True).click()
    answer_dialog(page, "Resume", "back again")
    expect(state(page)).to_have_text("Completed")
    page.get_by_role("tab", name="Who did what").click()
    told = re.compile("Resumed.*by anonymous.*back again.*Paused.*by anonymous.*lunch", re.DOTALL)
    expect(page.get_by_role("tabpanel")).to_contain_text(told)


def test_many_tenants_are_retried_at_once_and_those_refused_are_named(
    api: httpx2.Client, console: Open, works: Path
) -> None:
    tenants = [f"bulk-{number}" for number in range(5)]
    created(api, "bulk", saves_then_switches(works), tenants, maxConcurrency=5)
    opened = console("/plans/bulk?keyword=bulk-&status=FAILED")
    page = opened.page
    expect(state(page)).to_have_text("Failed")
    expect(page.get_by_text("Every tenant has ended, 5 failed.")).to_be_visible()
    works.touch()
    for tenant in tenants[:2]:
        page.get_by_role("checkbox", name=f"Select {tenant}").check()
    assert api.post(f"/api/v1/tenants/{tenants[1]}/task:cancel").status_code == 409
    retried = api.post(f"/api/v1/tenants/{tenants[1]}/task:retry")
    assert retried.status_code == 200, retried.text
    page.get_by_role("button", name="Retry", exact=True).click()
    dialog = page.get_by_role("dialog", name="Retry 2 tenants?")
    dialog.get_by_role("button", name="Retry", exact=True).click()
    expect(dialog).to_contain_text("1 of 2 done")
    expect(dialog.get_by_role("listitem")).to_contain_text(f"{tenants[1]} TASK_STATE_CONFLICT")
    assert "409" in opened.complaints.pop()
    dialog.get_by_role("button", name="Close").last.click()

    expect(page.get_by_text("3 tenants", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Status")).to_have_value("Failed")
    page.get_by_role("button", name="Retry failed", exact=True).click()
    answer_dialog(page, "Retry failed")
    expect(page.get_by_text("3 tenants are tried again")).to_be_visible()
    expect(state(page)).to_have_text("Completed")
    page.get_by_role("button", name="Clear").click()
    expect(row(page, tenants[4])).to_contain_text("Completed")
    expect(page).to_have_url(re.compile("/ui/plans/bulk$"))


def test_thousands_of_tenants_are_found_filtered_and_kept_in_the_url(api: httpx2.Client, console: Open) -> None:
    many = [f"shop-{number:04d}" for number in range(MANY)]
    stages = [shell(name, "true") for name in ("announce", "drain", "migrate", "switch", "verify")]
    created(api, "many", stages, many, autoStart=False)
    page = console("/plans/many").page
    expect(page.get_by_text("5,000 tenants", exact=True).last).to_be_visible()
    table = page.get_by_role("table", name="Stages of every tenant")
    assert table.get_by_role("row").count() < 100
    table.locator("xpath=..").evaluate("frame => frame.scrollTo(0, frame.scrollHeight)")
    expect(row(page, "shop-4999")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("shop-27")
    expect(page.get_by_text("100 tenants", exact=True)).to_be_visible()
    row(page, "shop-2703").click()
    expect(page.get_by_role("complementary", name="Tenant shop-2703")).to_contain_text("announce")
    page.reload()
    expect(page.get_by_role("complementary", name="Tenant shop-2703")).to_contain_text("announce")
    expect(page.get_by_role("textbox", name="Tenant id")).to_have_value("shop-27")
    expect(page.get_by_text("100 tenants", exact=True)).to_be_visible()


def test_a_plan_is_written_in_the_form_and_what_is_wrong_is_said_at_its_field(
    api: httpx2.Client, console: Open
) -> None:
    opened = console("/plans/new")
    page = opened.page
    page.get_by_role("textbox", name="Name").first.fill("By hand")
    page.get_by_role("textbox", name="Id", exact=True).fill("by-hand")
    page.get_by_role("textbox", name="Tenant ids").fill("hand-1, hand-2\nhand-3")
    expect(page.get_by_text("3 tenants", exact=True)).to_be_visible()
    first = page.get_by_role("group", name="Stage 1")
    first.get_by_role("textbox", name="Name").fill("only")
    page.get_by_role("button", name="Create the plan", exact=True).click()
    expect(first.get_by_role("textbox", name="Command")).to_have_attribute("aria-invalid", "true")
    assert "400" in opened.complaints.pop()
    first.get_by_role("textbox", name="Command").fill("true")
    page.get_by_role("button", name="Add a wave").click()
    expect(page.get_by_role("region", name="What is sent")).to_contain_text('"maxFailedPercent": 0')
    page.get_by_role("button", name="Create the plan", exact=True).click()
    expect(page).to_have_url(re.compile("/ui/plans/by-hand$"))
    expect(state(page)).to_have_text("Completed")
    assert [wave["tenants"] for wave in api.get(f"{PLANS}/by-hand").json()["waves"]] == [1, 2]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is with the console's tools: make web")
def test_its_pages_fit_a_narrow_screen_and_have_no_serious_fault(
    api: httpx2.Client, console: Open, works: Path
) -> None:
    waves = [{"size": 1, "gate": {"maxFailedPercent": 0}}, {"percent": 50, "pauseAfter": True}]
    created(api, "narrow", saves_then_switches(works), [f"narrow-{number}" for number in range(4)], waves=waves)
    told: list[str] = []
    for width, scheme in ((400, "light"), (1280, "dark")):
        opened = console("/plans", width=width, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
        opened.page.evaluate(AXE.read_text())
        for path in ("/plans/narrow?tenant=narrow-0", "/plans/new", "/plans/narrow?tab=history"):
            page = opened.go(path).page
            assert page.evaluate(WIDER) == 0, path
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            told += [f"{path} {each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]
    assert told == []
