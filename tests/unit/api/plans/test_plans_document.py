"""What holds for all of the contract: permissions, descriptions, the page, codes, methods."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.jobchain.workflow_bench import application
from tests.unit.api.plans.bench import PLANS, TENANTS, PlanDesk, body, told

from ksana.api.contracts.jobchain.routes import X_PERMISSION
from ksana.api.contracts.plans.plan_models import EXAMPLE
from ksana.api.contracts.plans.problems import CODES, translate
from ksana.api.errors import internal_problem, problem_of
from ksana.domain.errors import (
    BudgetSpent,
    CheckpointStale,
    GateShut,
    IdTaken,
    KsanaError,
    NotFound,
    PlanRefused,
    RunOfPlan,
    StoreUnavailable,
    TaskRefused,
    TenantBusy,
)
from ksana.domain.plan_reading import read_plan

PAGE = (Path(__file__).parents[4] / "docs/reference/http.md").read_text()
CONFLICTS = (PlanRefused, TaskRefused, GateShut, BudgetSpent, CheckpointStale, TenantBusy, RunOfPlan)


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = application().openapi()["paths"]
    every = [(method, path, operation) for path, item in paths.items() for method, operation in item.items()]
    return [each for each in every if each[2]["tags"] == ["Plans"]]


def test_every_route_says_what_one_must_be_allowed_to_do() -> None:
    assert len(operations()) == 20
    for method, path, operation in operations():
        reads = method == "get" or path.endswith(":query")
        expected = "plan:read" if reads else "plan:write" if path == PLANS else "plan:control"
        assert operation[X_PERMISSION] == expected, path


def test_every_route_is_described() -> None:
    for method, path, operation in operations():
        assert operation["summary"], path
        assert operation["description"], path
        done = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert all("content" in answer for answer in done) or method == "delete", path
        assert "400" in operation["responses"], path
        assert ("404" in operation["responses"]) == ("{" in path), path


def test_orders_take_an_optional_body() -> None:
    for method, path, operation in operations():
        if method == "post" and "}" in path:
            assert operation["requestBody"]["required"] is False, path


def test_a_plan_is_described_with_its_parts_and_an_example() -> None:
    document = application().openapi()
    schema = document["paths"][PLANS]["post"]["requestBody"]["content"]["application/json"]["schema"]
    described = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert set(described["properties"]) >= set(EXAMPLE)
    assert described["required"] == ["name", "stages", "tenants"]
    assert described["properties"]["stages"]["items"]["$ref"].endswith("/StageBody")
    read_plan(described["example"])


def test_queries_are_described() -> None:
    parameters = application().openapi()["paths"][f"{PLANS}/{{planId}}/tasks"]["get"]["parameters"]
    assert [each["name"] for each in parameters] == ["planId", "status", "wave", "keyword", "page", "size"]


def test_the_page_names_every_path_and_every_code() -> None:
    paths = [f"{method.upper()} {path}`" for method, path, _ in operations()]
    assert [path for path in paths if path not in PAGE] == []
    codes = [*CODES.values(), *(error.code for error in CONFLICTS)]
    assert [code for code in codes if f"`{code}`" not in PAGE] == []
    assert re.search(r"`plan:read`, `plan:write`.*`plan:control`", PAGE, re.DOTALL)


TOLD: list[tuple[KsanaError, int, str, dict[str, Any]]] = [
    (NotFound("plan", "p"), 404, "PLAN_NOT_FOUND", {"planId": "p"}),
    (NotFound("task", "a"), 404, "TASK_NOT_FOUND", {"tenantId": "a"}),
    (NotFound("checkpoint", "a"), 404, "CHECKPOINT_NOT_FOUND", {"tenantId": "a"}),
    (IdTaken("plan", "p"), 409, "PLAN_ID_CONFLICT", {"planId": "p", "field": "planId"}),
    (PlanRefused("p", "READY", "paused"), 409, "PLAN_STATE_CONFLICT", {"planId": "p", "status": "READY"}),
    (GateShut("p", "no"), 409, "GATE_NOT_MET", {"planId": "p"}),
    (BudgetSpent("p", "no"), 409, "FAILURE_BUDGET_EXCEEDED", {"planId": "p"}),
    (StoreUnavailable("gone"), 503, "STORE_UNAVAILABLE", {}),
]


@pytest.mark.parametrize(("error", "status", "code", "details"), TOLD, ids=[each[2] for each in TOLD])
def test_an_error_is_told_in_the_documents_words(
    error: KsanaError, status: int, code: str, details: dict[str, Any]
) -> None:
    problem = translate(problem_of(error))
    assert (problem.status, problem.code, dict(problem.details)) == (status, code, details)


def test_what_nobody_expected_is_an_internal_error() -> None:
    assert translate(internal_problem()).code == "INTERNAL_ERROR"


async def test_methods_that_a_path_does_not_take_are_refused(desk: PlanDesk) -> None:
    await desk.create("a")
    for method, path in (
        ("PUT", f"{PLANS}/p"),
        ("DELETE", f"{PLANS}/p"),
        ("GET", f"{PLANS}/p:start"),
        ("GET", f"{TENANTS}/a/task:pause"),
        ("GET", f"{TENANTS}:query"),
        ("POST", f"{TENANTS}/a/checkpoint"),
    ):
        assert told(await desk.api.request(method, path))[:2] == (405, "METHOD_NOT_ALLOWED")
    for path in (f"{PLANS}/p:frob", f"{TENANTS}/a/task:frob", f"{TENANTS}:frob", TENANTS):
        assert told(await desk.api.post(path))[:2] == (404, "NOT_FOUND")
    for path in (PLANS, f"{PLANS}/p", f"{PLANS}/p/tasks", f"{TENANTS}/a/task", f"{TENANTS}/a/task/events"):
        assert (await desk.api.head(path)).status_code == 200


async def test_the_example_of_a_plan_is_one_but_for_executors_that_are_not_here(desk: PlanDesk) -> None:
    stages = [{**each, "type": "scripted"} for each in EXAMPLE["stages"]]
    answer = await desk.api.post(PLANS, json={**EXAMPLE, "stages": stages})
    assert (answer.status_code, body(answer)["planId"]) == (201, "rollout-7")
