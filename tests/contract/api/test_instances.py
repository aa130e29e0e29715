"""Several instances on one database: who does what, who leads, and who is shown to do so."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.contract.api.conftest import ANSWER_SECONDS, BACK_ENDS, empty_database, serving, unique, until
from tests.contract.api.cronjob_world import TASKS, a_task, assert_refused, create, trigger, until_run
from tests.contract.api.witness import Target
from tests.process.conftest import Serving, ksana

pytestmark = pytest.mark.parametrize("back_end", BACK_ENDS[1:3], indirect=True)


class Cluster:
    """Instances on one database, started one by one."""

    def __init__(self, folder: Path, url: str, ending: ExitStack) -> None:
        self.folder = folder
        self.url = url
        self._ending = ending

    def start(self, *flags: str, command: str = "serve", **settings: str) -> Serving:
        return self._ending.enter_context(serving(self.folder, self.url, settings, *flags, command=command))

    def client(self, server: Serving) -> httpx2.Client:
        return self._ending.enter_context(httpx2.Client(base_url=server.base, timeout=ANSWER_SECONDS))


@pytest.fixture
def cluster(back_end: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with ExitStack() as ending:
        url = ending.enter_context(empty_database(back_end, tmp_path, request))
        yield Cluster(tmp_path, url, ending)


def by_name(api: httpx2.Client, name: str) -> dict[str, Any]:
    (found,) = [each for each in api.get("/api/v1/instances").json()["items"] if each["name"] == name]
    return dict(found)


def test_one_asks_another_works_and_both_are_shown(cluster: Cluster, target: Target) -> None:
    api = cluster.client(cluster.start("--roles", "api,scheduler", "--name", "front"))
    job = create(api, target.url("/hold"))
    run = trigger(api, job)
    explained = api.get(f"/api/v1/runs/{run}/explain").json()
    assert (explained["code"], explained["message"]) == ("NO_WORKER", "no living instance serves the queue default")

    worker = cluster.start("--queues", "default,gpu", "--name", "back", command="worker")
    target.wait_hits(1)
    front, back = by_name(api, "front"), by_name(api, "back")
    assert (front["roles"], front["queues"], front["places"], front["leads"]) == (["api", "scheduler"], [], 0, True)
    assert (back["roles"], back["queues"], back["leads"]) == (["worker"], ["default", "gpu"], False)
    assert (back["running"], back["address"]) == (1, "")
    one = api.get(f"/api/v1/instances/{back['instanceId']}").json()
    assert one["executions"] == [run]
    assert [(each["execution"], each["run"], each["target"]["kind"]) for each in one["work"]] == [
        (run, str(run), "job")
    ]
    assert api.get("/api/v1/instances").json()["leader"]["instanceId"] == front["instanceId"]
    assert api.get("/api/v1/instances", params={"status": "DEAD"}).json()["items"] == []

    assert worker.get("/health").json() == {"status": "ok"}
    assert worker.get("/api/v1/tasks").status_code == 404
    target.release_all()
    until_run(api, run, "SUCCESS")


def test_a_job_gets_the_kind_of_worker_that_it_asks_for(cluster: Cluster, target: Target) -> None:
    api = cluster.client(cluster.start("--name", "all"))
    run = trigger(api, create(api, target.url("/ok"), worker_queue="gpu"))
    plain = trigger(api, create(api, target.url("/ok")))
    until_run(api, plain, "SUCCESS")
    explained = api.get(f"/api/v1/runs/{run}/explain").json()
    assert explained["message"] == "no living instance serves the queue gpu"

    cluster.start("--queues", "gpu", command="worker")
    until_run(api, run, "SUCCESS")


def test_a_leader_that_stops_is_followed_at_once(cluster: Cluster) -> None:
    first = cluster.start("--name", "first")
    api = cluster.client(cluster.start("--name", "second"))
    before = api.get("/api/v1/instances").json()["leader"]
    assert before["instanceId"] == by_name(api, "first")["instanceId"]
    assert first.end() == 0
    after = until(api, "/api/v1/instances", lambda found: (found["leader"] or before)["term"] > before["term"])[
        "leader"
    ]
    assert after["instanceId"] == by_name(api, "second")["instanceId"]
    assert by_name(api, "first")["status"] == "LEFT"


def test_what_is_cancelled_at_one_stops_at_the_other(cluster: Cluster, target: Target) -> None:
    api = cluster.client(cluster.start("--roles", "api,scheduler"))
    cluster.start(command="worker")
    run = trigger(api, create(api, target.url("/hold"), timeout_seconds=600))
    (hit,) = target.wait_hits(1)
    assert api.post(f"/api/v1/runs/{run}/cancel").status_code == 200
    target.wait_gone(hit)


def test_a_worker_that_nobody_can_call_back_says_so(cluster: Cluster, target: Target) -> None:
    api = cluster.client(cluster.start("--roles", "api,scheduler"))
    cluster.start(command="worker")
    run = trigger(api, create(api, target.url("/async"), exec_type="ASYNC", http_method="POST"))
    found = until_run(api, run, "FAILED")
    assert "set callback.base_url" in found["error_message"]
    assert not target.hits


def test_an_instance_that_is_not_there(cluster: Cluster) -> None:
    api = cluster.client(cluster.start())
    answer = api.get(f"/api/v1/instances/{unique('nobody')}")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_a_queue_that_no_worker_could_serve_is_refused(cluster: Cluster) -> None:
    api = cluster.client(cluster.start())
    for queue in ("", "a,b", "x" * 65, "-"):
        assert_refused(api.post(TASKS, json=a_task("http://127.0.0.1:9/", worker_queue=queue)), "worker_queue")
        job = {
            "name": unique("job"),
            "type": "http",
            "configJson": {"url": "http://127.0.0.1:9/"},
            "workerQueue": queue,
        }
        answer = api.post("/api/v1/jobs", json=job)
        assert (answer.status_code, "workerQueue" in answer.text) == (400, True)
        dag = {"nodes": [{"id": "a", "type": "http", "cfg": {"url": "http://127.0.0.1:9/"}, "workerQueue": queue}]}
        answer = api.post("/api/v1/workflows", json={"name": unique("flow"), "dag": dag})
        assert (answer.status_code, "workerQueue" in answer.text) == (400, True)


def test_workers_alone_need_a_database_that_others_share(cluster: Cluster, tmp_path: Path) -> None:
    ended = ksana("worker", "--data-dir", str(tmp_path / "own"), cwd=tmp_path)
    assert (ended.code, "instance.roles" in ended.err, "postgresql://" in ended.err) == (2, True, True)
    ended = ksana("serve", "--roles", "leader", "--database-url", cluster.url, cwd=tmp_path)
    assert (ended.code, "instance.roles" in ended.err) == (2, True)
