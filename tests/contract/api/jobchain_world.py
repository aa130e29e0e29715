"""The words of documents 000 and 001 for their tests: workflows, their nodes, runs, orders, and what is seen of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import BACK_ENDS, unique, until
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.ksana_world import read
from tests.contract.api.witness import Hit, Target

Json = dict[str, Any]

JOBS = "/api/v1/jobs"
WORKFLOWS = "/api/v1/workflows"
RUNS = "/api/v1/runs"
CHAINS = "/api/v1/chains"
SCHEDULES = "/api/v1/schedules"

ON_STORES = pytest.mark.parametrize("back_end", BACK_ENDS[:3], indirect=True, scope="module")
"""Every store that keeps workflows; the JSON file of document 002 does not."""

DETAIL = {"workflowId", "name", "description", "enabled", "version", "dag", "createdAt", "updatedAt"}
"""§5.1."""
ITEM = {"workflowId", "name", "enabled", "version", "updatedAt"}
"""§5.3."""
RUN = {"runId", "workflowId", "status", "dag", "nodes", "createdAt", "updatedAt"}
NODE = {"nodeId", "status", "attempt", "lastError", "artifact", "checkpoint", "startedAt", "endedAt", "job"}
"""Both §6.3."""
JOB = {"jobId", "name", "type", "enabled"}
"""§3.3."""
STATE = {"status", "attempt", "lastError", "startedAt", "endedAt"}
"""§3.5."""
RUN_STATUSES = {"PENDING", "RUNNING", "STOPPING", "STOPPED", "SUCCESS", "FAILED", "CLOSED"}
ENDED = {"STOPPED", "SUCCESS", "FAILED", "CLOSED"}
NO_RETRY = {"maxAttempts": 1, "backoffMillis": 0, "backoffMultiplier": 1.0}
NOBODY = "6f1c0b0e-0000-4000-8000-000000000000"
"""An id that nothing has."""


# Definitions


def http(node: str, url: str, *after: str, cfg: Json | None = None, **given: Any) -> Json:
    """A node that makes a request."""
    return {
        "id": node,
        "type": "http",
        "cfg": {"method": "POST", "url": url, **(cfg or {})},
        "dependsOn": list(after),
        **given,
    }


def shell(node: str, cmd: str, *after: str, env: dict[str, str] | None = None, **given: Any) -> Json:
    """A node that runs a command."""
    cfg = {"cmd": cmd} if env is None else {"cmd": cmd, "env": env}
    return {"id": node, "type": "shell", "cfg": cfg, "dependsOn": list(after), **given}


def wait(node: str, *after: str, cfg: Json | None = None, **given: Any) -> Json:
    """A node that waits: for a person, unless told otherwise."""
    return {"id": node, "type": "wait", "cfg": cfg or {}, "dependsOn": list(after), **given}


def at_once(node: str, *after: str, **given: Any) -> Json:
    """A node that succeeds without any doing."""
    return wait(node, *after, cfg={"until": "2020-01-01T00:00:00Z"}, **given)


def of_job(node: str, job: str, *after: str, **given: Any) -> Json:
    """A node that runs a job."""
    return {"id": node, "jobId": job, "dependsOn": list(after), **given}


def failing(node: str, *after: str, **given: Any) -> Json:
    """A node that fails."""
    return shell(node, "exit 3", *after, **given)


def making(node: str, artifact: str, *after: str, **given: Any) -> Json:
    """A node whose artifact is this JSON."""
    return shell(node, 'printf %s "$MADE" > "$KSANA_ARTIFACT"', *after, env={"MADE": artifact}, **given)


def dag(*nodes: Json, **given: Any) -> Json:
    return {"nodes": list(nodes), **given}


def retries(attempts: int, backoff: int = 0, multiplier: float = 1.0) -> Json:
    return {"maxAttempts": attempts, "backoffMillis": backoff, "backoffMultiplier": multiplier}


def a_workflow(graph: Json, /, **given: Any) -> Json:
    return {"name": unique("workflow"), "dag": graph, **given}


def create(api: httpx2.Client, graph: Json, /, **given: Any) -> Json:
    """A new workflow."""
    answer = api.post(WORKFLOWS, json=a_workflow(graph, **given))
    assert answer.status_code == 201, answer.text
    assert set(answer.json()) >= DETAIL
    return done(answer)


def defined(api: httpx2.Client, *nodes: Json, **given: Any) -> str:
    """The id of a new workflow of these nodes."""
    return str(create(api, dag(*nodes, **given))["workflowId"])


def fetch(api: httpx2.Client, workflow: str) -> Json:
    answer = api.get(f"{WORKFLOWS}/{workflow}")
    assert answer.status_code == 200, answer.text
    return done(answer)


def put(api: httpx2.Client, workflow: str, /, **changes: Any) -> Json:
    answer = api.put(f"{WORKFLOWS}/{workflow}", json=changes)
    assert answer.status_code == 200, answer.text
    return done(answer)


def find(api: httpx2.Client, path: str = WORKFLOWS, /, **query: Any) -> Json:
    """A page (§0.4)."""
    answer = api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) >= {"page", "size", "total", "items"}
    return done(answer)


def ids(page: Json, field: str = "workflowId") -> list[str]:
    return [item[field] for item in page["items"]]


def a_job(api: httpx2.Client, kind: str = "shell", config: Json | None = None, **given: Any) -> Json:
    """A new job (§4.1)."""
    config = {"cmd": "true"} if config is None else config
    return done(api.post(JOBS, json={"name": unique("job"), "type": kind, "configJson": config, **given}))


# Runs


def start(api: httpx2.Client, workflow: str, **body: Any) -> str:
    """The id of a new run."""
    answer = api.post(f"{WORKFLOWS}/{workflow}:start", json=body)
    assert answer.status_code in {200, 201}, f"{answer.status_code} {answer.text}"
    return str(answer.json()["runId"])


def started(api: httpx2.Client, *nodes: Json, **given: Any) -> str:
    """The id of a run of a new workflow of these nodes."""
    return start(api, defined(api, *nodes, **given))


def run_of(api: httpx2.Client, run: str) -> Json:
    answer = api.get(f"{RUNS}/{run}")
    assert answer.status_code == 200, answer.text
    return done(answer)


def until_run(api: httpx2.Client, run: str, *statuses: str, timeout: float = 20) -> Json:
    """Waits until a run has one of these statuses, and no other final one before."""
    found: Json = until(api, f"{RUNS}/{run}", lambda body: body["status"] in {*statuses, *ENDED}, timeout)
    assert found["status"] in statuses, told(found)
    return found


def ended(api: httpx2.Client, run: str, status: str = "SUCCESS", timeout: float = 20) -> Json:
    """Waits until a run ends with this status: its nodes, by their id."""
    return nodes_in(until_run(api, run, status, timeout=timeout))


def nodes_in(run: Json) -> Json:
    return {node["nodeId"]: node for node in run["nodes"]}


def nodes_of(api: httpx2.Client, run: str) -> Json:
    return nodes_in(run_of(api, run))


def node_of(api: httpx2.Client, run: str, node: str) -> Json:
    found: Json = nodes_of(api, run)[node]
    return found


def until_node(api: httpx2.Client, run: str, node: str, *statuses: str, timeout: float = 20) -> Json:
    """Waits until a node has one of these statuses."""
    found: Json = until(api, f"{RUNS}/{run}", lambda body: nodes_in(body)[node]["status"] in statuses, timeout)
    return nodes_in(found)[node]  # type: ignore[no-any-return]


def statuses(nodes: Json) -> dict[str, str]:
    return {node: found["status"] for node, found in nodes.items()}


def told(run: Json) -> str:
    """A run in one line, for a test that fails."""
    nodes = [(node["nodeId"], node["status"], node["attempt"], node["lastError"]) for node in run["nodes"]]
    return f"{run['runId']} is {run['status']}: {nodes}"


def order(api: httpx2.Client, run: str, what: str, **body: Any) -> httpx2.Response:
    """`stop`, `close`, `resume` or `retry-failed`."""
    return api.post(f"{RUNS}/{run}:{what}", json=body) if body else api.post(f"{RUNS}/{run}:{what}")


def obeyed(api: httpx2.Client, run: str, what: str, **body: Any) -> Json:
    """An order that is taken; the answer names the run."""
    answer = order(api, run, what, **body)
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    assert answer.json()["runId"] == run
    return done(answer)


def node_order(api: httpx2.Client, run: str, node: str, what: str, **body: Any) -> httpx2.Response:
    """`retry`, `complete` or `skip`."""
    path = f"{RUNS}/{run}/nodes/{node}:{what}"
    return api.post(path, json=body) if body else api.post(path)


def node_obeyed(api: httpx2.Client, run: str, node: str, what: str, **body: Any) -> Json:
    """An order that is taken; the answer names the node."""
    answer = node_order(api, run, node, what, **body)
    assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
    assert answer.json()["nodeId"] == node
    return done(answer)


def runs_of(api: httpx2.Client, workflow: str, **query: Any) -> list[Json]:
    """The runs of a workflow, as the list shows them."""
    items: list[Json] = find(api, RUNS, workflowId=workflow, **query)["items"]
    return items


def events_of(api: httpx2.Client, run: str) -> list[Json]:
    """What happened to a run, oldest first."""
    answer = api.get(f"{RUNS}/{run}/events", headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    found: list[Json] = body if isinstance(body, list) else body["items"]
    return found


def log_of(api: httpx2.Client, run: str, node: str, **query: str) -> str:
    answer = api.get(f"{RUNS}/{run}/nodes/{node}/logs", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


# What the nodes did


def paths(hits: Iterable[Hit]) -> list[str]:
    return [hit.path for hit in hits]


def held(target: Target, path: str, count: int = 1) -> Hit:
    """Waits until a request to this path is held, and returns the last of them."""

    def those(hits: Sequence[Hit]) -> list[Hit]:
        return [hit for hit in hits if hit.held and hit.path == path]

    return those(target.wait_for(lambda hits: len(those(hits)) >= count))[-1]


def seconds_between(earlier: str, later: str) -> float:
    return (read(later) - read(earlier)).total_seconds()


def instant(text: str) -> datetime:
    return read(text)


def refused_dag(answer: httpx2.Response, *words: str, code: str = "WORKFLOW_DAG_INVALID") -> str:
    """400, and each of the words is in what it says."""
    assert_error(answer, 400, code)
    for word in words:
        assert word in answer.text, answer.text
    message: str = answer.json()["message"]
    return message
