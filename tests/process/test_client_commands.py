"""The commands that ask a running Ksana do what the API does, and say it to people and to programs."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.process.conftest import PATIENCE, Ended, Serve, Serving, begin, ksana

from ksana.cli.client.calls import CALLS
from ksana.cli.client.server import VARIABLE
from ksana.cli.main import run

DAG = {"nodes": [{"id": "a", "type": "shell", "cfg": {"cmd": ["echo", "from a"]}}]}
FAILING = {"nodes": [*DAG["nodes"], {"id": "b", "type": "shell", "cfg": {"cmd": ["false"]}, "dependsOn": ["a"]}]}


@dataclass(frozen=True, slots=True)
class Client:
    """Types commands, and asks the same server without them."""

    serving: Serving
    folder: Path

    def type(self, *arguments: str) -> Ended:
        """Within this process: it takes a tenth of the time, and there are many."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = run([*arguments, "--server", self.serving.base])
        return Ended(code, out.getvalue(), err.getvalue())

    def done(self, *arguments: str) -> str:
        """What it says to people; it must succeed."""
        ended = self.type(*arguments)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out

    def told(self, *arguments: str) -> Any:
        """What it says to programs."""
        return json.loads(self.done(*arguments, "--json"))

    def begin(self, *arguments: str) -> Serving:
        typed = Serving(begin(*arguments, cwd=self.folder, env=self.env))
        typed.read()
        return typed

    def post(self, path: str, body: Any) -> Any:
        answer = httpx2.post(f"{self.serving.base}/api/v1{path}", json=body, timeout=PATIENCE)
        assert answer.is_success, answer.text
        return answer.json()

    def job(self, name: str, *command: str, **env: str) -> str:
        """The id of a new job that runs this command with these variables."""
        body = {"name": name, "type": "shell", "configJson": {"cmd": list(command), "env": env}}
        return str(self.post("/jobs", body)["jobId"])

    def workflow(self, name: str, dag: Any) -> str:
        return str(self.post("/workflows", {"name": name, "dag": dag})["workflowId"])

    @property
    def env(self) -> dict[str, str]:
        return {VARIABLE: self.serving.base}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One server for all: each test makes things of its own."""
    folder = tmp_path_factory.mktemp("client")
    serving = Serving(begin("serve", "--port", "0", cwd=folder))
    serving.read()
    yield Client(serving.wait_ready(), folder)
    serving.close()


def columns(table: str, *titles: str) -> list[list[str]]:
    """Cells of an aligned table: those under these titles."""
    head, *rows = table.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)] + [None]
    names = head.split()
    places = [(starts[names.index(title)], starts[names.index(title) + 1]) for title in titles]
    return [[row[start:end].strip() for start, end in places] for row in rows]


def test_each_request_of_the_table_is_one_of_the_api(client: Client) -> None:
    paths = client.serving.get("/openapi.json").json()["paths"]
    known = {(method.upper(), re.sub(r"{\w+}", "{}", path)) for path, by in paths.items() for method in by}
    asked = {key: (call.method, re.sub(r"{\w+}", "{}", call.path)) for key, call in CALLS.items()}
    assert {key: request for key, request in asked.items() if request not in known} == {}


def test_jobs(client: Client) -> None:
    job = client.job("greets", "echo", "hello")
    assert [job, "greets", "yes"] in columns(client.done("jobs", "list"), "JOB", "NAME", "ENABLED")
    assert client.told("jobs", "show", job)["configJson"]["cmd"] == ["echo", "hello"]
    assert re.search("^type +shell$", client.done("jobs", "show", job), re.MULTILINE)
    assert columns(client.done("jobs", "disable", job), "ENABLED") == [["no"]]
    assert job in client.done("jobs", "list", "--disabled")
    assert client.told("jobs", "enable", job)["enabled"] is True
    assert client.done("jobs", "delete", job) == "done\n"
    assert client.type("jobs", "show", job).code == 1


def test_a_run_can_be_waited_for(client: Client) -> None:
    job = client.job("says-its-input", "sh", "-c", "echo $WORD", WORD="{{ params.word }}")
    (client.folder / "given.json").write_text('{"word": "found"}')
    typed = ["jobs", "run", job, "--input", "@given.json", "--wait", "--json"]
    ended = ksana(*typed, cwd=client.folder, env=client.env)
    assert ended.code == 0, ended
    assert json.loads(ended.out)["final_status"] == "SUCCESS"
    run_id = str(json.loads(ended.out)["id"])
    assert f"run {run_id} began" in ended.err
    assert client.done("runs", "logs", run_id) == "found\n"


def test_a_run_that_was_waited_for_and_failed_is_a_failure_of_the_command(client: Client) -> None:
    ended = client.type("jobs", "run", client.job("fails", "false"), "--wait")
    assert ended.code == 1
    assert "ended FAILED" in ended.err
    assert re.search("^final_status +FAILED$", ended.out, re.MULTILINE)


def test_runs(client: Client) -> None:
    job = client.job("runs-and-fails", "false")
    run_id = client.told("jobs", "run", job)["runId"]
    client.serving.until(f"/api/v1/runs/{run_id}", lambda answer: answer.json()["final_status"])
    listed = client.done("runs", "list", "--job", job, "--status", "FAILED,TIMEOUT", "--trigger", "manual")
    assert columns(listed, "RUN", "STATUS", "OF") == [[run_id, "FAILED", "runs-and-fails"]]
    assert client.told("runs", "list", "--job", job, "--to", "2020-01-01T00:00:00Z")["items"] == []
    assert "attempts:" in client.done("runs", "show", run_id)
    assert client.told("runs", "explain", run_id)["status"] == "FAILED"
    assert client.told("runs", "retry", run_id, "--reason", "again")["retryOf"] == run_id
    assert client.told("runs", "retry", "--job", job, "--dry-run")["done"] == 0
    assert client.told("runs", "logs", run_id)["items"] == []


def test_of_many_that_are_cancelled_each_is_refused_by_itself(client: Client) -> None:
    job = client.job("waits", "sh", "-c", "exec sleep 3600")
    run_id = client.told("jobs", "run", job)["runId"]
    ended = client.type("runs", "cancel", run_id, "999999", "--reason", "enough")
    assert (ended.code, ended.err) == (1, "ksana: run not found: 999999 (RUN_NOT_FOUND)\n")
    assert re.search("^done +1$", ended.out, re.MULTILINE)
    client.serving.until(f"/api/v1/runs/{run_id}", lambda answer: answer.json()["final_status"] == "CANCELED")


def test_what_a_run_writes_can_be_followed(client: Client) -> None:
    os.mkfifo(client.folder / "go")
    job = client.job("writes", "sh", "-c", f"echo one; read word < {client.folder / 'go'}; echo $word")
    following = client.begin("runs", "logs", client.told("jobs", "run", job)["runId"], "--follow")
    assert following.said.get(timeout=PATIENCE) == "one\n"
    (client.folder / "go").write_text("two\n")
    assert list(following.told()) == ["two\n"]
    assert following.process.wait(PATIENCE) == 0
    following.close()


def test_a_job_is_what_a_file_says(client: Client) -> None:
    file = client.folder / "job.yaml"
    file.write_text("name: written\ntype: shell\nconfigJson: {cmd: [echo, 'yes']}\ntimeout: 90s\n")
    assert columns(client.done("jobs", "apply", str(file)), "NAME", "APPLIED") == [["written", "created"]]
    assert columns(client.done("jobs", "apply", str(file)), "NAME", "APPLIED") == [["written", "unchanged"]]
    job = client.told("jobs", "apply", str(file))
    assert (job["configJson"], job["timeout"]) == ({"cmd": ["echo", "yes"]}, "1m30s")
    # By its id, it can get another name; what the file does not say stays.
    file.write_text(json.dumps({"jobId": job["jobId"], "name": "renamed"}))
    assert columns(client.done("jobs", "apply", str(file)), "JOB", "APPLIED") == [[job["jobId"], "changed"]]
    assert client.told("jobs", "show", job["jobId"])["timeout"] == "1m30s"
    # What was shown can be sent back.
    file.write_text(client.done("jobs", "show", job["jobId"], "--json"))
    assert columns(client.done("jobs", "apply", str(file)), "APPLIED") == [["unchanged"]]


def applied(client: Client, job: dict[str, Any]) -> list[list[str]]:
    """When each schedule of a job's document fires, and what became of it."""
    file = client.folder / "timed.json"
    file.write_text(json.dumps(job))
    _, _, *rest = client.done("jobs", "apply", str(file)).splitlines()
    return columns("\n".join(rest), "WHEN", "APPLIED") if rest else []


def test_a_job_has_the_schedules_that_its_file_has(client: Client) -> None:
    job: dict[str, Any] = {"name": "timed", "type": "shell", "configJson": {"cmd": ["true"]}}
    hourly, daily = {"kind": "every", "every": "60m"}, {"kind": "cron", "cron": "0 9 * * *", "input": {"at": "nine"}}
    assert applied(client, job | {"schedules": [hourly, daily]}) == [["Every 1h", "created"], ["At 09:00", "created"]]
    same = job | {"schedules": [daily, {"kind": "every", "every": "1h"}]}
    assert applied(client, same) == [["At 09:00", "unchanged"], ["Every 1h", "unchanged"]]
    assert applied(client, job) == []
    other = job | {"schedules": [{**daily, "input": {"at": "9"}}, hourly]}
    assert applied(client, other) == [["At 09:00", "created"], ["Every 1h", "unchanged"], ["At 09:00", "deleted"]]
    file = client.folder / "timed.json"
    first, second = client.told("jobs", "apply", str(file))["schedules"]
    assert (first["input"], second["every"]) == ({"at": "9"}, "1h")
    assert applied(client, job | {"schedules": [{"id": second["id"], "every": "2h"}, {"id": first["id"]}]}) == [
        ["Every 2h", "changed"],
        ["At 09:00", "unchanged"],
    ]
    assert [how for _, how in applied(client, job | {"schedules": []})] == ["deleted", "deleted"]


def test_a_job_is_not_made_with_a_schedule_that_cannot_be(client: Client) -> None:
    file = client.folder / "untimely.json"
    schedules = [{"kind": "every", "every": "1h"}, {"kind": "cron", "cron": "never"}]
    file.write_text(
        json.dumps({"name": "untimely", "type": "shell", "configJson": {"cmd": "true"}, "schedules": schedules})
    )
    ended = client.type("jobs", "apply", str(file))
    assert ended.code == 1
    assert ended.err.startswith("ksana: schedules[1]: cron: has 1 fields")
    assert client.told("jobs", "list", "--keyword", "untimely")["items"] == []


def test_workflows(client: Client) -> None:
    file = client.folder / "flow.yaml"
    file.write_text(f"name: applied\ndescription: 2026-01-31\ndag: {json.dumps(DAG)}\n")
    assert client.told("workflows", "validate", str(file)) == {"valid": True, "nodes": 1}
    created = client.told("workflows", "apply", str(file))
    assert columns(client.done("workflows", "apply", str(file)), "VERSION", "APPLIED") == [["1", "unchanged"]]
    file.write_text(json.dumps({"name": "applied", "dag": FAILING}))
    changed = client.told("workflows", "apply", str(file))
    assert (changed["workflowId"], changed["version"]) == (created["workflowId"], 2)
    flow = changed["workflowId"]
    assert [flow, "applied"] in columns(client.done("workflows", "list", "--keyword", "appl"), "WORKFLOW", "NAME")
    assert "nodes:" in client.done("workflows", "show", flow)
    assert columns(client.done("workflows", "disable", flow), "ENABLED") == [["no"]]
    assert client.told("workflows", "enable", flow)["enabled"] is True
    assert client.done("workflows", "delete", flow) == "done\n"


def test_runs_of_workflows_and_their_nodes(client: Client) -> None:
    flow = client.workflow("ends-badly", FAILING)
    ended = client.type("workflows", "start", flow, "--run-id", "bad-1", "--params", "{}", "--wait")
    assert (ended.code, "ended FAILED" in ended.err) == (1, True), ended
    assert client.done("runs", "logs", "bad-1", "--node", "a") == "from a\n"
    assert client.told("runs", "retry-failed", "bad-1")["reopened"] == 1
    client.serving.until("/api/v1/runs/bad-1", lambda answer: answer.json()["status"] == "FAILED")
    assert client.told("nodes", "retry", "bad-1", "b")["nodeId"] == "b"
    client.serving.until("/api/v1/runs/bad-1", lambda answer: answer.json()["status"] == "FAILED")
    completed = client.told("nodes", "complete", "bad-1", "b", "--output", '{"by": "hand"}', "--reason", "done by hand")
    assert completed["status"] == "SUCCESS"
    nodes = client.told("runs", "show", "bad-1")["nodes"]
    assert {node["nodeId"]: node["artifact"] for node in nodes}["b"] == {"by": "hand"}
    assert client.told("runs", "close", "bad-1", "--reason", "over")["status"] == "CLOSED"


def test_runs_of_workflows_are_stopped_and_go_on(client: Client) -> None:
    flow = client.workflow("waits", {"nodes": [{"id": "w", "type": "wait", "cfg": {"for": "1h"}}]})
    run_id = client.told("workflows", "start", flow)["runId"]
    assert client.told("runs", "stop", run_id, "--force")["status"] in {"STOPPING", "STOPPED"}
    client.serving.until(f"/api/v1/runs/{run_id}", lambda answer: answer.json()["status"] == "STOPPED")
    assert client.told("runs", "resume", run_id)["reopened"] == 1
    client.serving.until(f"/api/v1/runs/{run_id}/nodes/w", lambda answer: answer.json()["reason"] == "deferred")
    assert client.told("nodes", "skip", run_id, "w")["status"] == "SKIPPED"


def test_schedules(client: Client) -> None:
    job = client.job("rarely", "true")
    body = {"jobId": job, "kind": "cron", "cron": "0 9 1 1 *", "timezone": "Europe/Zurich"}
    schedule = client.post("/schedules", body)["id"]
    assert columns(client.done("schedules", "list", "--job", job), "SCHEDULE", "STATUS") == [[schedule, "ACTIVE"]]
    assert len(client.told("schedules", "next", schedule, "--count", "2")["instants"]) == 2
    assert columns(client.done("schedules", "pause", schedule), "STATUS") == [["PAUSED"]]
    assert client.told("schedules", "resume", schedule)["status"] == "ACTIVE"
    assert client.done("schedules", "delete", schedule) == "done\n"
    told = client.done("schedules", "preview", "--cron", "0 9 * * *", "--timezone", "Asia/Tokyo", "--count", "1")
    assert "T09:00:00+09:00" in told


def test_a_schedule_is_what_a_file_says(client: Client) -> None:
    job, file = client.job("has-times", "true"), client.folder / "schedule.yaml"
    file.write_text(f"jobId: {job}\nkind: once\nrunAt: 2040-01-31T12:00:00+01:00\njitter: 1s\n")
    assert columns(client.done("schedules", "apply", str(file)), "JOB", "APPLIED") == [["has-times", "created"]]
    # It is known by what it says, however that is written.
    file.write_text(f"jobId: {job}\nkind: once\nrunAt: 2040-01-31T11:00:00Z\njitter: 1000ms\ninput: {{}}\n")
    assert columns(client.done("schedules", "apply", str(file)), "APPLIED") == [["unchanged"]]
    schedule = client.told("schedules", "apply", str(file))["id"]
    file.write_text(json.dumps({"id": schedule, "timezone": "Asia/Tokyo", "version": 1}))
    assert columns(client.done("schedules", "apply", str(file)), "SCHEDULE", "APPLIED") == [[schedule, "changed"]]
    assert "(VERSION_CONFLICT)" in client.type("schedules", "apply", str(file)).err
    assert client.told("schedules", "show", schedule)["timezone"] == "Asia/Tokyo"
    file.write_text(client.done("schedules", "show", schedule, "--json"))
    assert columns(client.done("schedules", "apply", str(file)), "APPLIED") == [["unchanged"]]
    assert client.told("schedules", "list", "--job", job)["total"] == 1


def test_a_schedule_of_a_workflow_is_known_with_the_defaults_of_its_params(client: Client) -> None:
    schema = {"type": "object", "properties": {"day": {"default": "today"}, "of": {}}}
    flow, file = client.workflow("with-params", {**DAG, "paramsSchema": schema}), client.folder / "flow-times.json"
    body = {"workflowId": flow, "kind": "every", "every": "1h", "input": {"of": "orders"}}
    for given, how in ((body, "created"), (body, "unchanged"), ({**body, "input": {}}, "created")):
        file.write_text(json.dumps(given))
        assert columns(client.done("schedules", "apply", str(file)), "APPLIED") == [[how]]


def test_a_plan_is_made_once(client: Client) -> None:
    file = client.folder / "plan.yaml"
    stages = [{"name": "copy", "type": "shell", "config": {"cmd": ["true"]}}]
    file.write_text(f"planId: written\nname: written\ntenants: [south]\nstages: {json.dumps(stages)}\n")
    assert columns(client.done("plans", "create", str(file)), "PLAN", "STATUS") == [["written", "READY"]]
    assert client.type("plans", "create", str(file)).code == 1
    assert client.told("plans", "list", "--keyword", "written")["total"] == 1


def test_a_document_on_standard_input(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"name": "piped", "type": "shell", "configJson": {"cmd": "echo it's \u2028"}}
    monkeypatch.setattr(sys, "stdin", StringIO(json.dumps(wanted, ensure_ascii=False)))
    assert client.told("jobs", "apply", "-")["configJson"] == wanted["configJson"]


def test_plans_and_tenants(client: Client) -> None:
    stages = [{"name": "copy", "type": "shell", "config": {"cmd": ["false"]}}]
    plan = client.post("/plans", {"name": "move", "stages": stages, "tenants": ["north"], "maxConcurrency": 1})[
        "planId"
    ]
    assert [plan, "move"] in columns(client.done("plans", "list", "--keyword", "mov"), "PLAN", "NAME")
    assert client.told("plans", "start", plan)["planId"] == plan
    path = f"/api/v1/tenants/north/task?planId={plan}"
    client.serving.until(path, lambda answer: answer.json()["status"] == "FAILED")
    assert "stages:" in client.done("tenants", "show", "north", "--plan", plan)
    assert client.told("tenants", "retry", "north", "--from-start", "--reason", "again")["planId"] == plan
    client.serving.until(path, lambda answer: answer.json()["status"] == "FAILED")
    assert client.told("plans", "retry-failed", plan)["retried"] == 1
    client.serving.until(path, lambda answer: answer.json()["status"] == "FAILED")
    assert "waves:" in client.done("plans", "show", plan)
    for refused in (["plans", "pause", plan], ["tenants", "pause", "north"], ["tenants", "resume", "north"]):
        assert "_CONFLICT)" in client.type(*refused).err


def test_a_checkpoint_is_shown_and_removed(client: Client) -> None:
    commands = {"copy": "true", "switch": "false"}
    stages = [{"name": name, "type": "shell", "config": {"cmd": [cmd]}} for name, cmd in commands.items()]
    plan = client.post("/plans", {"name": "halfway", "stages": stages, "tenants": ["half"], "autoStart": True})[
        "planId"
    ]
    path = f"/api/v1/tenants/half/task?planId={plan}"
    client.serving.until(path, lambda answer: answer.json()["status"] == "FAILED")
    checkpoint = client.told("tenants", "checkpoint", "half", "--plan", plan)
    assert checkpoint["completedStages"] == ["copy"]
    remove = ["tenants", "remove-checkpoint", "half", "--plan", plan, "--version"]
    assert "(CHECKPOINT_CONFLICT)" in client.type(*remove, str(checkpoint["version"] + 1)).err
    assert client.done(*remove, str(checkpoint["version"])) == "done\n"
    assert "(CHECKPOINT_NOT_FOUND)" in client.type("tenants", "checkpoint", "half", "--plan", plan).err


def test_plans_are_held_and_cancelled(client: Client) -> None:
    stages = [{"name": "wait", "type": "shell", "config": {"cmd": ["sleep", "3600"]}}]
    body = {"name": "hold", "stages": stages, "tenants": ["east", "west"], "maxConcurrency": 1, "autoStart": True}
    plan = client.post("/plans", body)["planId"]
    assert columns(client.done("plans", "pause", plan), "STATUS") == [["PAUSED"]]
    assert columns(client.done("plans", "resume", plan), "STATUS") == [["RUNNING"]]
    client.serving.until("/api/v1/tenants/east/task", lambda answer: answer.json()["status"] == "RUNNING")
    assert client.told("tenants", "pause", "east")["pauseRequested"] is True
    assert client.told("tenants", "resume", "east")["pauseRequested"] is False
    assert columns(client.done("tenants", "cancel", "east"), "TENANT") == [["east"]]
    assert client.told("plans", "cancel", plan)["planId"] == plan


def test_events_and_instances(client: Client) -> None:
    job = client.job("is-told", "true")
    made = client.told("events", "--types", "job.created", "--limit", "1000")["items"]
    assert job in {event["data"]["key"] for event in made}
    assert columns(client.done("events", "--limit", "1"), "TYPE") == [["instance.joined"]]
    assert columns(client.done("instances", "--status", "ALIVE"), "STATUS", "LEADS") == [["ALIVE", "yes"]]


def test_events_can_be_followed_until_the_server_ends(serve: Serve, tmp_path: Path) -> None:
    client = Client(serve(), tmp_path)
    following = client.begin("events", "--follow", "--after", "0", "--json")
    first = json.loads(following.said.get(timeout=PATIENCE) or "")
    assert first["type"] == "instance.joined"
    client.serving.end()
    assert following.process.wait(PATIENCE) == 3
    following.close()
    assert re.fullmatch(r"ksana: the server has ended the stream; go on with --after \d+\n", "".join(following.lines))


def test_to_follow_ends_where_somebody_interrupts_it(client: Client) -> None:
    following = client.begin("events", "--follow", "--after", "0")
    assert "instance.joined" in (following.said.get(timeout=PATIENCE) or "")
    assert following.end(signal.SIGINT) == 130
    assert following.lines == []


def test_in_a_terminal_a_list_is_a_table_in_colour(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(["instances", "--server", client.serving.base]) == 0
    assert "\x1b[32mALIVE" in capsys.readouterr().out


def test_failures_are_acknowledged(client: Client) -> None:
    job = client.job("fails-and-is-seen", "false")
    client.type("jobs", "run", job, "--wait")
    assert [job, "1"] in columns(client.done("failures", "list"), "ID", "COUNT")
    assert client.told("failures", "acknowledge", "--job", job, "--reason", "seen")["target"]["id"] == job
    assert job not in client.done("failures", "list")
