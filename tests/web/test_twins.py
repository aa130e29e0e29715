"""What the console shows as a command does what its button does, whatever a form has in it."""

import json
import shlex
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from ksana.cli.app import app
from ksana.cli.client.calls import CALLS
from ksana.cli.client.server import Server
from tests.web.twins import Call, commands_of, pasted

JOBS, SCHEDULES, WORKFLOWS, PLANS = "/api/v1/jobs", "/api/v1/schedules", "/api/v1/workflows", "/api/v1/plans"
AWKWARD = 'it\'s "$HOME" `id` $(id) \\ ! \x7f \u2028 ü 🚀 #\nJSON\n\ttwo'
"""What a shell, a here-document or YAML may take for something else."""
CHANGES = [key for key, call in CALLS.items() if call.method != "GET"]


def shell(said: str) -> dict[str, Any]:
    return {"cmd": ["printf", "%s", said], "env": {"SAID": said}}


def paste(api: httpx2.Client, method: str, path: str, body: Any) -> Any:
    """The answer that the call's command prints."""
    (command,) = commands_of([{"method": method, "path": path, "body": body, "server": str(api.base_url)}])
    assert command is not None
    first, rest = command.split("\n", 1)
    return json.loads(pasted(f"{first.replace(' <<', ' --json <<')}\n{rest}"))


def test_a_job_from_a_form_is_made_once_and_changed(api: httpx2.Client) -> None:
    body = {"name": "awkward", "type": "shell", "configJson": shell(AWKWARD), "labels": {AWKWARD: AWKWARD}}
    job = paste(api, "POST", JOBS, body)
    shown = api.get(f"{JOBS}/{job['jobId']}").json()
    assert {name: shown[name] for name in body} == body
    assert paste(api, "POST", JOBS, body) == shown
    changed = paste(api, "PUT", f"{JOBS}/{job['jobId']}", {"description": "it's new"})
    assert changed == {**shown, "description": "it's new", "updatedAt": changed["updatedAt"]}


def test_a_schedule_from_a_form_is_made_once_and_changed(api: httpx2.Client) -> None:
    job = paste(api, "POST", JOBS, {"name": "timed", "type": "shell", "configJson": shell("on time")})
    body = {"jobId": job["jobId"], "kind": "every", "every": "90m", "input": {"said": AWKWARD, "large": 1e21}}
    schedule = paste(api, "POST", SCHEDULES, body)
    shown = api.get(f"{SCHEDULES}/{schedule['id']}").json()
    assert (shown["every"], shown["input"]) == ("1h30m", body["input"])
    assert paste(api, "POST", SCHEDULES, body)["id"] == schedule["id"]
    change = {"kind": "cron", "cron": "0 9 * * *", "version": 1}
    assert paste(api, "PATCH", f"{SCHEDULES}/{schedule['id']}", change)["version"] == 2
    assert api.get(SCHEDULES, params={"jobId": job["jobId"]}).json()["total"] == 1


def test_a_workflow_and_a_plan_from_forms_are_made(api: httpx2.Client) -> None:
    dag = {"nodes": [{"id": "a", "type": "shell", "cfg": shell(AWKWARD)}]}
    flow = paste(api, "POST", WORKFLOWS, {"name": "drawn", "description": "it's", "dag": dag})
    assert flow["dag"] == dag
    change = {"name": "drawn", "description": "", "dag": {**dag, "failFast": True}, "version": 1}
    assert paste(api, "PUT", f"{WORKFLOWS}/{flow['workflowId']}", change)["version"] == 2
    stages = [{"name": "say", "type": "shell", "config": shell(AWKWARD)}]
    plan = {"name": "it's", "stages": stages, "tenants": ["north"], "params": {"said": AWKWARD}, "autoStart": False}
    assert paste(api, "POST", PLANS, plan)["params"] == {"said": AWKWARD}


def test_each_request_of_the_table_that_changes_something_is_its_command() -> None:
    ids = dict.fromkeys(("job", "run", "node", "schedule", "workflow", "plan", "tenant"), "x.1")
    calls = [{"method": CALLS[key].method, "path": CALLS[key].path.format(**ids)} for key in CHANGES]
    shown = dict(zip(CHANGES, commands_of(calls), strict=True))
    for key, command in shown.items():
        assert command is not None, key
        assert command.split()[: 1 + len(CALLS[key].words)] == ["ksana", *CALLS[key].words]


ORDERS: list[tuple[Call, list[str], dict[str, Any]]] = [
    (
        {
            "path": f"/api/v1/runs/r/nodes/{quote('-each[3]')}:complete",
            "body": {"artifact": None, "reason": "-it's $x"},
        },
        ["r", "-each[3]"],
        {"output": "null", "reason": "-it's $x"},
    ),
    (
        {"path": "/api/v1/runs/r/nodes/n:complete", "body": {"artifact": "a 'text'\n"}},
        ["r", "n"],
        {"output": "\"a 'text'\\n\""},
    ),
    ({"path": "/api/v1/runs/r/nodes/n:complete", "body": {"reason": None}}, ["r", "n"], {}),
    (
        {"path": "/api/v1/jobs/j:run", "body": {"input": {"said": AWKWARD}}},
        ["j"],
        {"given": json.dumps({"said": AWKWARD}, ensure_ascii=False, separators=(",", ":"))},
    ),
    ({"path": "/api/v1/plans/p:pause", "body": {"tasks": False}}, ["p"], {}),
    ({"path": "/api/v1/plans/p:pause", "body": {"tasks": True}}, ["p"], {"tasks": True}),
    ({"path": "/api/v1/plans/p:retry-failed", "body": {"fromCheckpoint": False}}, ["p"], {"from_start": True}),
    (
        {"method": "DELETE", "path": "/api/v1/tenants/t/checkpoint", "query": {"planId": "p", "version": 3}},
        ["t"],
        {"plan": "p", "version": 3},
    ),
    (
        {"path": "/api/v1/failures:acknowledge", "body": {"target": {"kind": "job", "id": "j"}, "until": "2026-01-31"}},
        [],
        {"job": "j", "until": "2026-01-31"},
    ),
    ({"path": "/api/v1/activity:cancel", "body": {"ids": ["1", "first"], "dryRun": False}}, ["1", "first"], {}),
]


@pytest.fixture(scope="module")
def orders() -> list[str | None]:
    return commands_of([{"method": "POST", "server": "http://h:1", **call} for call, _, _ in ORDERS])


@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_an_order_is_typed_with_all_that_it_says(number: int, orders: list[str | None]) -> None:
    _, things, flags = ORDERS[number]
    shown = orders[number]
    assert shown is not None
    _, bound, *_ = app.parse_args(shlex.split(shown)[1:], exit_on_error=False, print_error=False)
    assert list(bound.args) == things
    assert bound.kwargs == {**flags, "server": Server("http://h:1")}


def test_a_call_that_says_more_than_its_command_can_has_none() -> None:
    assert commands_of([{"method": "POST", "path": "/api/v1/jobs/j:run", "body": {"more": 1}}]) == [None]
