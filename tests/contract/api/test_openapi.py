"""Schemathesis over the server's own description of itself: whatever is sent to what it documents, it never answers 5xx.

The command line in a process of its own, deterministic and bounded: neither its threads nor its warnings are this session's.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema_rs import Draft202012Validator

from tests.contract.api import cronjob_world, jobchain_world, ksana_world
from tests.contract.api.conftest import ON_SQLITE, unique
from tests.contract.api.cronjob_world import done, trigger, until_run
from tests.contract.api.ksana_world import a_job
from tests.contract.api.witness import Target
from tests.process.conftest import Serving, environment

pytestmark = ON_SQLITE

Json = dict[str, Any]

DOCUMENT = "/openapi.json"
SCHEDULES = "/api/v1/schedules"
PLANS = "/api/v1/plans"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
EACH = 3
"""How many of each kind there are."""
EXAMPLES = 12
"""Requests per operation."""
FUZZ_SECONDS = 400
"""After which it counts as stuck; it takes a sixth of this."""
SCHEMATHESIS = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"]


@pytest.fixture(scope="module")
def settings() -> Mapping[str, str]:
    """What the fuzz creates is run: it may call this machine only."""
    return {"KSANA_EXECUTOR_EGRESS": "allowlist", "KSANA_EXECUTOR_EGRESS_ALLOW": "127.0.0.1"}


@pytest.fixture(scope="module")
def document(api: httpx2.Client) -> Json:
    return done(api.get(DOCUMENT))


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """`GET /jobs` and what the document says of it, for every operation."""
    for path, described in document["paths"].items():
        for method, operation in described.items():
            if method in METHODS:
                yield f"{method.upper()} {path}", operation


def fuzz(server: Serving, folder: Path, *options: str, config: str = "") -> Json:
    """Runs schemathesis against the server and returns its report; fails with what it prints if any answer is a 5xx."""
    file, report = folder / "schemathesis.toml", folder / "report.json"
    file.write_text(config)
    arguments = [
        *("--config-file", str(file), "run", server.base + DOCUMENT, "--checks", "not_a_server_error"),
        *("--generation-deterministic", "--continue-on-failure", "--no-color", "--warnings", "off"),
        *("--suppress-health-check", "all", "--report-json-path", str(report), *options),
    ]
    ended = subprocess.run(
        [*SCHEMATHESIS, *arguments],
        cwd=folder,
        env=environment({"COLUMNS": "160"}),
        capture_output=True,
        text=True,
        timeout=FUZZ_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told: Json = json.loads(report.read_text())
    return told


def examples(part: Any, where: str = "#") -> Iterator[tuple[str, Json, Any]]:
    """Every example of a schema, wherever the schema is, with where that is and the schema."""
    if isinstance(part, list):
        for number, item in enumerate(part):
            yield from examples(item, f"{where}/{number}")
    if not isinstance(part, dict):
        return
    if isinstance(part.get("examples"), list):
        yield from ((where, part, example) for example in part["examples"])
    if "example" in part:
        yield where, part.get("schema", part), part["example"]
    for name, below in part.items():
        if name not in {"example", "examples", "default", "const", "enum"}:
            yield from examples(below, f"{where}/{name}")


def bodies(document: Json, operation: Json) -> Iterator[Any]:
    """The examples of an operation's body."""
    for media in operation.get("requestBody", {}).get("content", {}).values():
        named = re.findall(r"#/components/schemas/([^\"]+)", json.dumps(media))
        for schema in (document["components"]["schemas"][name] for name in named):
            yield from schema.get("examples", [])
            if "example" in schema:
                yield schema["example"]


def names_nothing_in_its_way(operation: Json) -> bool:
    """Whether a request of it needs only an id to be accepted: no body, no query."""
    parameters = operation.get("parameters", [])
    return "requestBody" not in operation and {parameter["in"] for parameter in parameters} == {"path"}


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of what there is, each kind for itself."""

    tasks: list[int]
    jobs: list[str]
    schedules: list[str]
    runs: list[int]
    tokens: list[str]
    workflows: list[str]
    workflow_runs: list[str]
    nodes: list[str]
    plans: list[str]
    tenants: list[str]


def existing(api: httpx2.Client, target: Target) -> Ids:
    """Tasks, jobs, their schedules, runs of which each waits for a callback, and plans of which each tenant does."""
    tasks = [cronjob_world.create(api, target.url("/async"), exec_type="ASYNC") for _ in range(EACH)]
    jobs = [ksana_world.create(api, a_job(unique("job"), target.url("/ok")))["id"] for _ in range(2 * EACH)]
    # Of jobs that nothing else is asked of: with one that is deleted, its schedules go.
    jobs, owners = jobs[:EACH], jobs[EACH:]
    schedules = [done(api.post(SCHEDULES, json={"jobId": job, "kind": "every", "every": "1h"}))["id"] for job in owners]
    runs = [trigger(api, task) for task in tasks]
    for run in runs:
        until_run(api, run, "CALLBACK_PENDING")
    tokens = [hit.callback.token for hit in target.hits]
    workflows = [jobchain_world.defined(api, jobchain_world.wait("n1")) for _ in range(EACH)]
    started = [jobchain_world.start(api, workflow) for workflow in workflows]
    tenants = [unique("tenant") for _ in range(EACH)]
    plans = [done(api.post(PLANS, json=a_plan(tenant)))["planId"] for tenant in tenants]
    return Ids(tasks, jobs, schedules, runs, tokens, workflows, started, ["n1"], plans, tenants)


def a_plan(tenant: str) -> Json:
    return {"name": "plan", "stages": [{"name": "n1", "type": "wait"}], "tenants": [tenant], "autoStart": True}


def naming(ids: Ids, spare: Ids) -> str:
    """The configuration with which valid requests name these; those that delete name the spare ones."""
    kinds = {"tasks": "/api/v1/tasks/", "jobs": "/jobs/", "schedules": "/api/v1/schedules/"}
    lines = [
        *(f"[dictionaries.{kind}]\nvalues = {json.dumps(values)}" for kind, values in asdict(ids).items()),
        *(f"[dictionaries.spare_{kind}]\nvalues = {json.dumps(asdict(spare)[kind])}" for kind in (*kinds, "workflows")),
        "[parameters]",
        *(
            f'"{where}" = {{ dictionary = "{kind}", probability = 0.8 }}'
            for where, kind in {
                "path.run_id": "runs",
                "path.callback_token": "tokens",
                "path.workflowId": "workflows",
                "path.chainId": "workflows",
                "path.runId": "workflow_runs",
                "path.nodeId": "nodes",
                "path.planId": "plans",
                "path.tenantId": "tenants",
                "query.planId": "plans",
                "query.workflowId": "workflows",
                "query.task_id": "tasks",
                "query.jobId": "jobs",
                "body.jobId": "jobs",
                "body.task_id": "tasks",
                "body.run_id": "runs",
            }.items()
        ),
    ]
    for kind, path in kinds.items():
        lines += [
            f'[[operations]]\ninclude-path-regex = "^{path}"\nexclude-method = "DELETE"',
            f'parameters = {{ "path.id" = {{ dictionary = "{kind}", probability = 0.8 }} }}',
            f'[[operations]]\ninclude-path-regex = "^{path}"\ninclude-method = "DELETE"',
            f'parameters = {{ "path.id" = {{ dictionary = "spare_{kind}" }} }}',
        ]
    lines += [
        '[[operations]]\ninclude-path-regex = "^/api/v1/workflows/"\ninclude-method = "DELETE"',
        'parameters = { "path.workflowId" = { dictionary = "spare_workflows" } }',
    ]
    return "\n".join(lines)


def test_whatever_is_sent_about_what_is_not_there_is_no_server_error(
    server: Serving, document: Json, tmp_path: Path
) -> None:
    # What the examples start may still go on, and who follows its log hears nothing until it writes or ends.
    unfollowed = '[[operations]]\ninclude-path-regex = "/logs$"\nparameters = { "query.follow" = false }'
    told = fuzz(server, tmp_path, "--phases", "examples,coverage", config=unfollowed)
    assert told["operations"]["tested"] == len(list(operations(document)))


def test_whatever_is_sent_about_what_is_there_is_no_server_error(
    server: Serving, api: httpx2.Client, target: Target, document: Json, tmp_path: Path
) -> None:
    config = naming(existing(api, target), existing(api, target))
    told = fuzz(server, tmp_path, "--phases", "fuzzing", "--max-examples", str(EXAMPLES), config=config)
    assert told["operations"]["tested"] == len(list(operations(document)))
    reached = {name for name, rates in told["valid_rates"].items() if rates["fuzzing"]["accepted"]}
    assert reached >= {name for name, operation in operations(document) if names_nothing_in_its_way(operation)}


def test_no_route_documents_422(document: Json) -> None:
    """Wrong input is 400, in one shape."""
    assert [name for name, operation in operations(document) if "422" in operation["responses"]] == []


def test_every_example_is_valid(document: Json) -> None:
    """Of every schema and of every part of one."""
    found = list(examples(document))
    assert found
    wrong = []
    for where, schema, example in found:
        resolving = {**schema, "components": document["components"]}
        wrong += [f"{where}: {error.message}" for error in Draft202012Validator(resolving).iter_errors(example)]
    assert wrong == []


def test_every_body_that_is_an_example_is_accepted(api: httpx2.Client, target: Target, document: Json) -> None:
    """What a reader of /docs sends as it stands; at most, the job that it names is not there, or its name is taken."""
    job = ksana_world.create(api, a_job(unique("job"), target.url("/ok")))["id"]
    schedule = {"jobId": job, "kind": "cron", "cron": cronjob_world.NEW_YEAR}
    changed = {
        "/api/v1/tasks/{id}": f"/api/v1/tasks/{cronjob_world.create(api, target.url('/ok'))}",
        "/jobs/{id}": f"/jobs/{job}",
        "/api/v1/schedules/{id}": f"{SCHEDULES}/{done(api.post(SCHEDULES, json=schedule))['id']}",
    }
    sent = set()
    for name, operation in operations(document):
        method, path = name.split()
        for example in bodies(document, operation):
            answer = api.request(method, changed.get(path, path), json=example)
            # Document 000 has 400 for what is 404 and 409 elsewhere.
            of_chains = not answer.is_success and answer.json()["code"] in {"CHAIN_NOT_FOUND", "CHAIN_NAME_CONFLICT"}
            accepted = answer.is_success or answer.status_code in {404, 409} or of_chains
            assert accepted, f"{name} {example}: {answer.text}"
            sent.add(name)
    assert sent >= {
        "POST /api/v1/tasks",
        "PUT /api/v1/tasks/{id}",
        "POST /jobs",
        "PATCH /jobs/{id}",
        "POST /api/v1/schedules",
        "POST /api/v1/plans",
        "POST /api/v1/tenants:query",
    }
