"""Workflows in the console: written in the form and as text, started, watched in their graph, put right by hand."""

import random
import re
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import AXE, PATIENCE_MILLIS, Console, Open
from tests.web.runs_world import tries

WORKFLOWS = "/api/v1/workflows"
MANY = 500


def shell(node: str, cmd: str, *after: str, **parts: Any) -> dict[str, Any]:
    return {"id": node, "type": "shell", "cfg": {"cmd": cmd}, "dependsOn": list(after), **parts}


def create(api: httpx2.Client, key: str, *nodes: dict[str, Any], **dag: Any) -> None:
    body = {"workflowId": key, "name": key, "dag": {"nodes": list(nodes), **dag}}
    api.post(WORKFLOWS, json=body).raise_for_status()


def start(api: httpx2.Client, key: str, run: str) -> None:
    api.post(f"{WORKFLOWS}/{key}:start", json={"runId": run}).raise_for_status()


def ended(api: httpx2.Client, run: str, status: str) -> None:
    for _ in tries():
        if api.get(f"/api/v1/runs/{run}").raise_for_status().json()["status"] == status:
            return
    raise AssertionError(f"run {run} is not {status}")


@pytest.fixture(scope="module")
def broken(api: httpx2.Client) -> str:
    """The run of a workflow whose second node has failed."""
    create(
        api,
        "broken",
        shell("first", "true"),
        shell("second", "echo sorry >&2; exit 1", "first"),
        shell("third", "true", "second"),
    )
    start(api, "broken", "broken-1")
    ended(api, "broken-1", "FAILED")
    return "broken-1"


def graph(page: Page) -> Locator:
    return page.get_by_role("group", name=re.compile("^Graph of"))


def in_graph(page: Page, node: str, said: str = "") -> Locator:
    """A node by its id, and what it says of itself."""
    found = graph(page).locator(f'[data-node="{node}"]')
    return found.filter(has_text=said) if said else found


def panel(page: Page, node: str) -> Locator:
    return page.get_by_role("complementary", name=f"Node {node}")


def refused(console: Console) -> None:
    """A dag that cannot be is told by the server; the browser says so in its console, too."""
    console.complaints[:] = [each for each in console.complaints if "status of 400" not in each]


def serious(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_a_workflow_of_three_nodes_is_built_in_the_form_and_seen_to_succeed(console: Open) -> None:
    page = console("/workflows/new").page
    page.get_by_role("textbox", name="Name").fill("three steps")
    for name in ("fetch", "count", "tell"):
        page.get_by_role("button", name="Add node").click()
        page.get_by_role("textbox", name="Id").last.fill(name)
        page.get_by_role("textbox", name="Command").fill(f"echo {name} was here")
    expect(in_graph(page, "tell", "shell")).to_be_visible()
    expect(page.get_by_text("It can be saved, and run.")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="three steps")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/ui/runs/*")
    for name in ("fetch", "count", "tell"):
        expect(in_graph(page, name, "Success")).to_be_visible(timeout=PATIENCE_MILLIS)
    expect(page.get_by_text("Ended")).to_be_visible()
    in_graph(page, "count").click()
    expect(panel(page, "count").get_by_text("count was here")).to_be_visible()
    assert serious(page) == []


def test_the_graph_of_a_run_stays_where_it_is_while_the_run_waits_begins_and_ends(
    console: Open, api: httpx2.Client
) -> None:
    create(
        api,
        "one-by-one",
        {"id": "hold", "type": "wait"},
        shell("work", "true", "hold"),
        maxActiveRuns=1,
        overlap="QUEUE",
    )
    start(api, "one-by-one", "one-1")
    start(api, "one-by-one", "one-2")
    page = console("/runs/one-2").page
    expect(page.get_by_text("Runs as often as it may")).to_be_visible()
    expect(in_graph(page, "work")).to_be_visible()
    before = in_graph(page, "work").bounding_box()
    for run in ("one-1", "one-2"):
        api.post(f"/api/v1/runs/{run}/nodes/hold:complete", json={}).raise_for_status()
        ended(api, run, "SUCCESS")
        expect(page.get_by_text("Has not begun")).to_have_count(0)
    expect(in_graph(page, "work", "Success")).to_be_visible(timeout=PATIENCE_MILLIS)
    expect(page.get_by_text("Ended")).to_be_visible()
    assert in_graph(page, "work").bounding_box() == before


def test_a_run_that_is_being_stopped_does_not_say_that_it_has_not_begun(console: Open, api: httpx2.Client) -> None:
    create(api, "long", shell("sleeps", "sleep 600"))
    start(api, "long", "long-1")
    ended(api, "long-1", "RUNNING")
    api.post("/api/v1/runs/long-1:stop", json={"reason": "enough"}).raise_for_status()
    page = console("/runs/long-1").page
    expect(page.get_by_text("Stopping", exact=True).first).to_be_visible()
    expect(page.get_by_text("Has not begun")).to_have_count(0)
    api.post("/api/v1/runs/long-1:stop", json={"force": True}).raise_for_status()


def test_a_node_that_failed_is_completed_by_hand_and_the_run_goes_on(
    console: Open, api: httpx2.Client, broken: str
) -> None:
    page = console(f"/runs/{broken}").page
    expect(in_graph(page, "third", "Skipped")).to_be_visible()
    in_graph(page, "second", "Failed").click()
    side = panel(page, "second")
    expect(side.get_by_text("sorry").first).to_be_visible()
    side.get_by_role("button", name="Complete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Output").fill('{"rows": 3')
    expect(dialog.get_by_role("button", name="Complete", exact=True)).to_be_disabled()
    dialog.get_by_role("textbox", name="Output").fill('{"rows": 3}')
    dialog.get_by_role("textbox", name="Reason").fill("done at the desk")
    dialog.get_by_role("button", name="Complete", exact=True).click()
    expect(in_graph(page, "third", "Success")).to_be_visible(timeout=PATIENCE_MILLIS)
    expect(side.get_by_text("Completed by hand")).to_be_visible()
    side.get_by_role("tab", name="Output").click()
    expect(side.get_by_role("region", name="Output")).to_contain_text('"rows": 3')
    ended(api, broken, "SUCCESS")
    told = api.get("/api/v1/audit", params={"size": 5}).json()["items"]
    assert "done at the desk" in {each["reason"] for each in told}


def test_what_is_chosen_is_one_for_graph_timeline_and_list_and_survives_a_reload(console: Open, broken: str) -> None:
    page = console("/workflows/broken").page
    page.get_by_role("grid").get_by_role("link", name=re.compile(f"^second · {broken}")).click()
    page.wait_for_url(f"**/ui/runs/{broken}?node=second")
    expect(in_graph(page, "second")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(in_graph(page, "second")).to_have_attribute("aria-pressed", "true")
    expect(panel(page, "second")).to_be_visible()
    page.get_by_text("Timeline", exact=True).click()
    timeline = page.get_by_role("group", name="Timeline of")
    expect(timeline.get_by_role("button", name="second")).to_have_attribute("aria-pressed", "true")
    timeline.get_by_role("button", name="first").click()
    expect(panel(page, "first")).to_be_visible()
    page.get_by_text("List", exact=True).click()
    page.get_by_role("table").get_by_role("link", name="third").click()
    expect(panel(page, "third")).to_be_visible()
    assert serious(page) == []
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.get_by_role("dialog", name="Node third")).to_be_visible()
    assert serious(page) == []


def test_what_is_wrong_with_a_text_is_marked_at_its_line_and_form_and_text_are_the_same(console: Open) -> None:
    opened = console("/workflows/new")
    page = opened.page
    page.get_by_text("YAML / JSON").click()
    text = page.get_by_role("textbox", name="Definition")
    lines = [
        "nodes:",
        "  - id: a",
        "    type: shell",
        "    cfg: {cmd: echo}",
        "    dependsOn: [b]",
        "  - id: b",
        "    type: shell",
        "    cfg: {cmd: echo}",
        "    dependsOn: [nowhere]",
    ]
    text.fill("\n".join(lines))
    expect(page.get_by_role("alert")).to_contain_text("Line 9: node 'b' depends on 'nowhere', which is not there")
    text.fill("\n".join([*lines[:-1], "    dependsOn: [a]"]))
    expect(page.get_by_role("alert")).to_contain_text("Line 2: the graph has a cycle: a → b → a")
    expect(in_graph(page, "b").get_by_role("img", name="something is wrong with it")).to_be_visible()
    text.fill("\n".join([*lines[:-1], "    dependsOn: [a"]))
    expect(page.get_by_role("alert")).to_contain_text("Line 9")
    expect(page.get_by_text("The form comes back when the text can be read.")).to_be_visible()
    text.fill("\n".join(lines[:-1]))
    expect(page.get_by_text("It can be saved, and run.")).to_be_visible()
    page.get_by_text("Form", exact=True).click()
    page.get_by_role("button", name="a shell ← b").click()
    page.get_by_role("textbox", name="Command").fill("echo changed")
    page.get_by_text("YAML / JSON").click()
    expect(text).to_have_value(re.compile("cmd: echo changed"))
    page.get_by_role("link", name="Workflows").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Leave without saving?")
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_role("heading", name="Workflows")).to_be_visible()
    refused(opened)


def test_a_graph_of_five_hundred_nodes_is_gone_through_and_a_larger_one_asks_first(
    console: Open, api: httpx2.Client
) -> None:
    chance = random.Random(7)
    nodes = [
        shell(f"n{i}", "true", *(f"n{chance.randrange(max(0, i - 40), i)}" for _ in range(min(i, 2))))
        for i in range(MANY + 1)
    ]
    create(api, "large", *[{**node, "dependsOn": sorted(set(node["dependsOn"]))} for node in nodes[:MANY]])
    create(api, "larger", *[{**node, "dependsOn": sorted(set(node["dependsOn"]))} for node in nodes])
    opened = console("/workflows/large?node=n250")
    page = opened.page
    expect(in_graph(page, "n250")).to_have_attribute("aria-pressed", "true")
    in_graph(page, "n250").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(graph(page).locator("[data-node]:focus")).not_to_have_attribute("data-node", "n250")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary")).to_be_visible()
    expect(page.get_by_role("complementary")).not_to_have_attribute("aria-label", "Node n250")
    opened.open("/workflows/larger")
    page.get_by_role("button", name="Draw it").click()
    expect(graph(page).locator("[data-node]").first).to_be_visible()


def test_workflows_are_listed_with_their_runs_and_found_by_a_filter_in_the_url(console: Open, broken: str) -> None:
    page = console("/workflows").page
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="broken", exact=True))
    expect(row.get_by_role("link", name=re.compile("Success|Failed"))).to_have_count(1)
    page.get_by_role("textbox", name="Name").fill("brok")
    page.wait_for_url("**keyword=brok")
    page.reload()
    expect(page.get_by_role("row")).to_have_count(2)
    row.get_by_role("link", name="broken", exact=True).click()
    expect(page.get_by_role("heading", name="broken", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("row")).to_have_count(2)
    assert serious(page) == []
