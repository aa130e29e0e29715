"""Any job run now, and any run once more."""

from tests.unit.api.console.test_console_activity import JOBS, job, ran
from tests.unit.api.jobchain.workflow_bench import RUNS, Desk, node, told, waiting
from tests.unit.api.ksana_bench import body

from ksana.store.requests import PageRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_a_job_is_run_now_with_what_it_is_given(desk: Desk) -> None:
    key = await job(desk, "mine", enabled=False)
    answer = await desk.api.post(
        f"{JOBS}/{key}:run",
        json={"input": {"city": "Zurich"}, "reason": "asked"},
        headers={"Idempotency-Key": "k1", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
    )
    run = body(answer)
    assert (answer.status_code, run["jobId"], run["status"]) == (202, key, "SCHEDULED")
    assert answer.headers["Location"] == f"{RUNS}/{run['runId']}"
    stored = await desk.store.execution(int(run["runId"]))
    assert (stored.input, stored.trace_id) == ({"city": "Zurich"}, TRACE)
    again = await desk.api.post(f"{JOBS}/{key}:run", headers={"Idempotency-Key": "k1"})
    assert body(again)["runId"] == run["runId"]


async def test_what_cannot_be_run_is_refused(desk: Desk) -> None:
    key = await job(desk, "one", concurrencyPolicy="SKIP")
    assert told(await desk.api.post(f"{JOBS}/nobody:run"))[:2] == (404, "JOB_NOT_FOUND")
    assert told(await desk.api.post(f"{JOBS}/{key}:run", json={"input": 5}))[2]["field"] == "input"
    assert told(await desk.api.post(f"{JOBS}/{key}:run", json={"inputs": {}}))[2]["field"] == "inputs"
    assert (await desk.api.post(f"{JOBS}/{key}:run")).status_code == 202
    assert told(await desk.api.post(f"{JOBS}/{key}:run"))[:2] == (409, "CONCURRENCY_LIMIT")
    long = {"Idempotency-Key": "k" * 500}
    assert told(await desk.api.post(f"{JOBS}/{key}:run", headers=long))[2]["field"] == "Idempotency-Key"


async def test_a_jobs_run_is_retried_with_the_same_input(desk: Desk) -> None:
    run = await ran(desk, await job(desk, "mine"), input={"n": 1})
    answer = body(await desk.api.post(f"{RUNS}/{run}:retry"))
    assert (answer["kind"], answer["status"], answer["retryOf"], answer["reopened"]) == ("job", "SCHEDULED", run, None)
    stored = await desk.store.execution(int(answer["runId"]))
    assert (stored.id != int(run), stored.input, stored.trigger) == (True, {"n": 1}, "manual")
    subject = f"execution/{stored.id}"
    [entry] = [each for each in (await desk.store.audit_entries(PageRequest())).items if each.subject == subject]
    assert entry.actor.reason == f"retry of run {run}"
    [event] = [each for each in await desk.store.events(0, 100) if each.subject == subject]
    assert event.data["retry_of"] == int(run)


async def test_a_run_that_goes_on_is_not_retried(desk: Desk) -> None:
    run = body(await desk.api.post(f"{JOBS}/{await job(desk, 'mine')}:run"))["runId"]
    assert told(await desk.api.post(f"{RUNS}/{run}:retry"))[:2] == (409, "RUN_NOT_STOPPED")
    assert told(await desk.api.post(f"{RUNS}/99:retry"))[:2] == (404, "RUN_NOT_FOUND")
    assert told(await desk.api.post(f"{RUNS}/{'9' * 40}:retry"))[:2] == (404, "RUN_NOT_FOUND")
    await desk.start(waiting("w"), run="waits")
    assert told(await desk.api.post(f"{RUNS}/waits:retry"))[:2] == (409, "RUN_NOT_STOPPED")
    assert told(await desk.api.post(f"{RUNS}/nobody:retry"))[:2] == (404, "RUN_NOT_FOUND")


async def test_of_a_workflows_run_the_nodes_that_failed_are_done_again(desk: Desk) -> None:
    desk.failing = {"n"}
    run = await desk.start(node("n"))
    desk.failing.clear()
    answer = await desk.order(f"{RUNS}/{run}:retry", reason="repaired")
    assert answer == {"runId": run, "kind": "workflow", "status": "RUNNING", "retryOf": None, "reopened": 1}
    assert (await desk.run())["status"] == "SUCCESS"
