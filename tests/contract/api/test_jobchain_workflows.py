"""Document 001 §5 on every store: workflows are made, changed, listed, shown, drawn, switched off and on, and deleted."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from tests.contract.api.conftest import unique
from tests.contract.api.cronjob_world import assert_error, done
from tests.contract.api.jobchain_world import (
    ITEM,
    JOB,
    JOBS,
    NO_RETRY,
    NOBODY,
    ON_STORES,
    RUNS,
    WORKFLOWS,
    Json,
    a_job,
    a_workflow,
    at_once,
    create,
    dag,
    defined,
    ended,
    fetch,
    find,
    ids,
    node_obeyed,
    of_job,
    put,
    refused_dag,
    retries,
    run_of,
    shell,
    start,
    until_node,
    wait,
)
from tests.contract.api.ksana_world import now, read

pytestmark = ON_STORES


def versions(api: httpx2.Client, workflow: str) -> list[int]:
    """The numbers of a workflow's versions, lowest first."""
    body: Any = api.get(f"{WORKFLOWS}/{workflow}/versions").json()
    items = body if isinstance(body, list) else body["items"]
    return sorted(item["version"] for item in items)


def the_example(first: str, second: str) -> Json:
    """The request of §5.1, word for word but for the jobs and the name."""
    return {
        "name": unique("demo-workflow"),
        "description": "...",
        "enabled": True,
        "dag": {
            "job": "demo",
            "nodes": [
                {
                    "id": "n1",
                    "jobId": first,
                    "dependsOn": [],
                    "retry": {"maxAttempts": 1, "backoffMillis": 0, "backoffMultiplier": 1.0},
                },
                {
                    "id": "n2",
                    "jobId": second,
                    "dependsOn": ["n1"],
                    "retry": {"maxAttempts": 3, "backoffMillis": 1000, "backoffMultiplier": 1.0},
                },
            ],
        },
    }


def test_the_documents_own_example_comes_back_as_it_was_sent(api: httpx2.Client) -> None:
    given = the_example(a_job(api)["jobId"], a_job(api)["jobId"])
    begun = now()
    answer = api.post(WORKFLOWS, json=given)
    workflow = answer.json()
    assert answer.status_code == 201, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert {name: workflow[name] for name in given} == given
    assert isinstance(workflow["workflowId"], str)
    assert workflow["version"] == 1
    assert begun <= read(workflow["createdAt"]) <= now()
    assert workflow["updatedAt"] == workflow["createdAt"]
    assert fetch(api, workflow["workflowId"]) == workflow


def test_a_workflow_that_says_little_is_enabled(api: httpx2.Client) -> None:
    workflow = create(api, {"nodes": [{"id": "only", "type": "wait"}]})
    assert workflow["enabled"] is True
    assert workflow["dag"] == {"nodes": [{"id": "only", "type": "wait"}]}


def test_everything_a_node_may_say_is_kept_as_it_was_written(api: httpx2.Client) -> None:
    nodes = [
        shell("first", "true", timeout="30s", retry={"maxAttempts": 2}),
        at_once("second", "first", triggerRule="all_done", when="params.go == true"),
        of_job("third", a_job(api)["jobId"], "second", params={"cmd": "echo 刹那"}),
    ]
    graph = dag(*nodes, failFast=True, timeout="1h")
    assert fetch(api, create(api, graph)["workflowId"])["dag"] == graph


def test_a_name_that_is_taken_is_a_conflict_and_makes_nothing(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))
    again = a_workflow(dag(at_once("b")), name=workflow["name"])
    assert_error(api.post(WORKFLOWS, json=again), 409, "WORKFLOW_NAME_CONFLICT")
    assert ids(find(api, keyword=workflow["name"])) == [workflow["workflowId"]]
    assert fetch(api, workflow["workflowId"]) == workflow


def test_of_many_with_one_name_at_once_one_is_made(api: httpx2.Client) -> None:
    name = unique("at once")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.post(WORKFLOWS, json=a_workflow(dag(at_once("a")), name=name)), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert find(api, keyword=name)["total"] == 1


def test_a_change_leaves_what_it_does_not_name_and_raises_the_version(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")), description="one")
    graph = dag(at_once("a"), at_once("b", "a"))
    changed = put(api, workflow["workflowId"], dag=graph)
    assert changed == {**workflow, "dag": graph, "version": 2, "updatedAt": changed["updatedAt"]}
    assert read(changed["updatedAt"]) > read(workflow["updatedAt"])
    assert fetch(api, workflow["workflowId"]) == changed
    other = put(api, workflow["workflowId"], description="two")
    assert (other["description"], other["dag"], other["version"]) == ("two", graph, 3)


def test_a_change_of_everything_at_once(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))
    given = {"name": unique("other"), "description": "other", "enabled": False, "dag": dag(at_once("z"))}
    changed = put(api, workflow["workflowId"], **given)
    assert {name: changed[name] for name in given} == given
    assert changed["version"] == 2


def test_a_workflow_cannot_take_the_name_of_another(api: httpx2.Client) -> None:
    first, workflow = create(api, dag(at_once("a"))), create(api, dag(at_once("a")))
    answer = api.put(f"{WORKFLOWS}/{workflow['workflowId']}", json={"name": first["name"]})
    assert_error(answer, 409, "WORKFLOW_NAME_CONFLICT")
    assert fetch(api, workflow["workflowId"]) == workflow


def test_a_change_of_a_version_that_is_no_more_is_a_conflict_and_changes_nothing(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))["workflowId"]
    changed = put(api, workflow, description="first", version=1)
    assert changed["version"] == 2
    for stale in (1, 3):
        answer = api.put(f"{WORKFLOWS}/{workflow}", json={"description": "second", "version": stale})
        assert_error(answer, 409, "WORKFLOW_VERSION_CONFLICT")
    assert fetch(api, workflow) == changed


def test_of_many_who_change_the_same_version_one_wins_and_the_others_are_told(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))["workflowId"]

    def change(number: int) -> httpx2.Response:
        return api.put(f"{WORKFLOWS}/{workflow}", json={"dag": dag(at_once(f"n{number}")), "version": 1})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(change, range(8)))
    (won,) = [answer.json() for answer in answers if answer.status_code == 200]
    assert {answer.json()["code"] for answer in answers if answer.status_code != 200} == {"WORKFLOW_VERSION_CONFLICT"}
    assert fetch(api, workflow) == won
    assert versions(api, workflow) == [1, 2]


def test_every_version_stays_to_be_read(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("one")))["workflowId"]
    put(api, workflow, dag=dag(at_once("two")))
    put(api, workflow, dag=dag(at_once("three")))
    assert versions(api, workflow) == [1, 2, 3]
    for number, node in ((1, "one"), (2, "two"), (3, "three")):
        version = done(api.get(f"{WORKFLOWS}/{workflow}/versions/{number}"))
        assert (version["version"], version["dag"]) == (number, dag(at_once(node)))
    assert api.get(f"{WORKFLOWS}/{workflow}/versions/4").status_code == 404


def test_an_unchanged_definition_makes_no_new_version(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")), description="same")
    for given in ({"dag": workflow["dag"]}, {"description": "same", "name": workflow["name"], "dag": workflow["dag"]}):
        assert put(api, workflow["workflowId"], **given)["version"] == 1
    assert versions(api, workflow["workflowId"]) == [1]


def test_workflows_are_listed_by_pages(api: httpx2.Client) -> None:
    word = unique("paged")
    made = [create(api, dag(at_once("a")), name=f"{word}.{number}") for number in range(5)]
    pages = [find(api, keyword=word, page=page, size=2) for page in (1, 2, 3, 4)]
    assert [(page["page"], page["size"], page["total"]) for page in pages] == [(n, 2, 5) for n in (1, 2, 3, 4)]
    assert [len(page["items"]) for page in pages] == [2, 2, 1, 0]
    listed = [item for page in pages for item in page["items"]]
    assert {item["workflowId"] for item in listed} == {workflow["workflowId"] for workflow in made}
    by_id = {workflow["workflowId"]: workflow for workflow in made}
    for item in listed:
        assert {name: item[name] for name in ITEM} == {name: by_id[item["workflowId"]][name] for name in ITEM}


def test_a_page_has_twenty_unless_told(api: httpx2.Client) -> None:
    page = find(api)
    assert (page["page"], page["size"]) == (1, 20)


def test_workflows_are_found_by_keyword_and_state(api: httpx2.Client) -> None:
    word = unique("found")
    on = create(api, dag(at_once("a")), name=f"a {word} 刹那")["workflowId"]
    off = create(api, dag(at_once("a")), name=f"b {word}", enabled=False)["workflowId"]
    assert set(ids(find(api, keyword=word))) == {on, off}
    assert ids(find(api, keyword=word, enabled="true")) == [on]
    assert ids(find(api, keyword=word, enabled="false", page=1, size=20)) == [off]
    assert ids(find(api, keyword=f"{word} 刹那")) == [on]
    assert find(api, keyword="%")["total"] == 0


def test_a_disabled_workflow_does_not_start_until_it_is_enabled(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))
    path = f"{WORKFLOWS}/{workflow['workflowId']}"
    for what, enabled in (("disable", False), ("disable", False), ("enable", True), ("enable", True)):
        answer = api.post(f"{path}:{what}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["enabled"] is enabled
        assert fetch(api, workflow["workflowId"])["enabled"] is enabled
        if not enabled:
            assert_error(api.post(f"{path}:start", json={}), 400, "WORKFLOW_DISABLED")
    assert find(api, RUNS, workflowId=workflow["workflowId"])["total"] == 0
    ended(api, start(api, workflow["workflowId"]))


def test_the_graph_of_a_workflow_has_its_nodes_with_their_jobs_and_its_edges(api: httpx2.Client) -> None:
    job = a_job(api, description="...")
    given = retries(3, 1000)
    nodes = [of_job("n1", job["jobId"]), of_job("n2", job["jobId"], "n1", retry=given), at_once("n3", "n1", "n2")]
    workflow = create(api, dag(*nodes))
    graph = done(api.get(f"{WORKFLOWS}/{workflow['workflowId']}/graph"))
    assert (graph["workflowId"], graph["version"]) == (workflow["workflowId"], 1)
    first, second, third = graph["nodes"]
    assert [node["nodeId"] for node in graph["nodes"]] == ["n1", "n2", "n3"]
    assert {name: first["job"][name] for name in JOB} == {name: job[name] for name in JOB}
    assert first["job"]["description"] == "..."
    assert (first["dependsOn"], second["dependsOn"], third["dependsOn"]) == ([], ["n1"], ["n1", "n2"])
    assert (first["retry"], second["retry"]) == (NO_RETRY, given)
    edges = [(edge["from"], edge["to"], edge["type"]) for edge in graph["edges"]]
    depends = [("n1", "n2"), ("n1", "n3"), ("n2", "n3")]
    assert sorted(edges) == [(source, to, "DEPENDS_ON") for source, to in depends]
    assert all(isinstance(edge.get("index", 0), int) for edge in graph["edges"])


def test_a_deleted_workflow_is_gone_and_its_runs_stay(api: httpx2.Client) -> None:
    workflow = create(api, dag(at_once("a")))
    run = start(api, workflow["workflowId"])
    ended(api, run)
    path = f"{WORKFLOWS}/{workflow['workflowId']}"
    answer = api.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    for request in (api.get(path), api.delete(path), api.get(f"{path}/graph"), api.post(f"{path}:start", json={})):
        assert_error(request, 404, "WORKFLOW_NOT_FOUND")
    assert find(api, keyword=workflow["name"])["total"] == 0
    assert run_of(api, run)["status"] == "SUCCESS"
    create(api, dag(at_once("a")), name=workflow["name"])


def test_the_runs_of_a_deleted_workflow_go_on_and_are_still_listed_under_it(api: httpx2.Client) -> None:
    workflow = defined(api, wait("a"), at_once("b", "a"))
    run = start(api, workflow)
    until_node(api, run, "a", "RUNNING")
    assert api.delete(f"{WORKFLOWS}/{workflow}").status_code == 204
    node_obeyed(api, run, "a", "complete")
    ended(api, run)
    assert run_of(api, run)["workflowId"] == workflow
    assert ids(find(api, RUNS, workflowId=workflow), "runId") == [run]


def test_a_workflow_that_is_not_there_is_not_found(api: httpx2.Client) -> None:
    requests = [
        ("GET", ""),
        ("PUT", ""),
        ("DELETE", ""),
        ("GET", "/graph"),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("POST", ":enable"),
        ("POST", ":disable"),
        ("POST", ":start"),
    ]
    for method, suffix in requests:
        body: Json | None = {} if method == "PUT" or suffix == ":start" else None
        answer = api.request(method, f"{WORKFLOWS}/{NOBODY}{suffix}", json=body)
        assert assert_error(answer, 404, "WORKFLOW_NOT_FOUND")["workflowId"] == NOBODY


def test_a_job_that_workflows_use_is_not_deleted_and_they_are_named(api: httpx2.Client) -> None:
    job = a_job(api)["jobId"]
    users = [create(api, dag(of_job("a", job))) for _ in range(2)]
    assert_error(api.delete(f"{JOBS}/{job}"), 409, "JOB_IN_USE")
    refusal = api.delete(f"{JOBS}/{job}").text
    for user in users:
        assert user["name"] in refusal
        assert api.get(f"{JOBS}/{job}").status_code == 200
    assert api.delete(f"{WORKFLOWS}/{users[0]['workflowId']}").status_code == 204
    refusal = api.delete(f"{JOBS}/{job}").text
    assert users[0]["name"] not in refusal
    assert users[1]["name"] in refusal
    put(api, users[1]["workflowId"], dag=dag(at_once("a")))
    assert api.delete(f"{JOBS}/{job}").status_code == 204


def test_a_dry_run_tells_what_is_wrong_and_stores_nothing(api: httpx2.Client) -> None:
    before = find(api)["total"]
    answer = api.post(f"{WORKFLOWS}:validate", json=a_workflow(dag(at_once("a"))))
    assert answer.status_code == 200, answer.text
    refused_dag(api.post(f"{WORKFLOWS}:validate", json=a_workflow(dag(at_once("a", "b")))), "a", "b")
    assert find(api)["total"] == before


def test_ten_thousand_nodes_in_a_row_are_a_workflow(api: httpx2.Client) -> None:
    nodes: list[Json] = [{"id": "n0", "type": "wait"}]
    nodes += [{"id": f"n{number}", "type": "wait", "dependsOn": [f"n{number - 1}"]} for number in range(1, 10_000)]
    workflow = defined(api, *nodes)
    assert len(fetch(api, workflow)["dag"]["nodes"]) == 10_000
    nodes[0] = {"id": "n0", "type": "wait", "dependsOn": ["n9999"]}
    refused_dag(api.put(f"{WORKFLOWS}/{workflow}", json={"dag": dag(*nodes)}), "cycle")
    assert fetch(api, workflow)["version"] == 1
