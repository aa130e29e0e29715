"""What holds for all of the contract: permissions, descriptions, the page, codes, the size of bodies."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.api.jobchain.workflow_bench import CHAINS, WORKFLOWS, Desk, application, dag, node, told

from ksana.api.contracts.jobchain import MAX_DEFINITION
from ksana.api.contracts.jobchain.paths import OF_WORKFLOW_RUNS
from ksana.api.contracts.jobchain.problems import CHAIN_RULES
from ksana.api.contracts.jobchain.routes import X_PERMISSION, Permission
from ksana.api.middleware import MAX_BODY

PAGE = (Path(__file__).parents[4] / "docs/reference/http.md").read_text()
DOCUMENT_001 = (
    *("VALIDATION_ERROR", "JSON_PARSE_ERROR", "INTERNAL_ERROR", "JOB_NOT_FOUND", "JOB_NAME_CONFLICT", "JOB_DISABLED"),
    *("WORKFLOW_NOT_FOUND", "WORKFLOW_NAME_CONFLICT", "WORKFLOW_DISABLED", "WORKFLOW_DAG_INVALID"),
    *("WORKFLOW_VERSION_CONFLICT", "RUN_NOT_FOUND", "RUN_NOT_RUNNING", "RUN_TERMINAL"),
    *("NODE_NOT_FOUND", "NODE_NOT_RETRYABLE", "NODE_NOT_COMPLETABLE"),
)
"""§1: every code that it has."""


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    paths = application().openapi()["paths"]
    every = [(method, path, operation) for path, item in paths.items() for method, operation in item.items()]
    shared = [each for each in every if each[1] in {"/api/v1/runs", "/api/v1/runs/{run_id}"}]
    ours = [each for each in every if each[2]["tags"] == ["JobChain"]]
    assert len(shared) == 2
    return ours + shared


def test_every_route_says_what_one_must_be_allowed_to_do() -> None:
    assert len(operations()) == 42
    for method, path, operation in operations():
        permission = operation[X_PERMISSION]
        assert permission in set(Permission)
        reads = permission.endswith(":read")
        assert reads == (method == "get" or path.endswith(":validate")), path


def test_every_route_is_described() -> None:
    for _, path, operation in operations():
        assert operation["summary"], path
        assert operation["description"], path
        done = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert all("content" in answer for answer in done) or "204" in operation["responses"], path
        assert any(status in operation["responses"] for status in ("400", "404")), path
        for status, answer in operation["responses"].items():
            if status.startswith("4"):
                assert answer["content"]["application/json"]["schema"]["$ref"].endswith(("Body", "Answer"))


def test_orders_take_no_body_or_an_optional_one() -> None:
    for method, path, operation in operations():
        if method == "post" and ":" in path and path != f"{WORKFLOWS}:validate":
            assert not operation.get("requestBody", {}).get("required"), path


def test_the_page_names_every_path() -> None:
    missing = [
        f"{method.upper()} {path}" for method, path, _ in operations() if f"{method.upper()} {path}`" not in PAGE
    ]
    assert missing == []


def test_the_page_names_every_code() -> None:
    codes = [*DOCUMENT_001, *(rule.code for rule in CHAIN_RULES.values()), "RUN_NOT_STOPPED", "NODE_NOT_SKIPPABLE"]
    assert [code for code in codes if f"`{code}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("rest", "ours"),
    [
        ("", False),
        ("?page=0", False),
        ("?page=1&size=2", True),
        ("?workflowId=w", True),
        ("?page_size=2", False),
        ("/7", False),
        ("/7?x=1", False),
        ("/7/cancel", False),
        ("/7/logs?follow=true", False),
        ("/7:stop", True),
        ("/7/nodes", True),
        ("/7x", True),
        ("/r", True),
        ("/r:stop", True),
        ("/r/nodes/a:retry", True),
    ],
)
def test_which_words_are_spoken_follows_from_what_is_asked(rest: str, ours: bool) -> None:
    assert (re.match(OF_WORKFLOW_RUNS, rest) is not None) is ours


async def test_definitions_may_be_larger_than_other_bodies(desk: Desk) -> None:
    padded = dag(node("a"), description="x" * (MAX_BODY + 1))
    assert (await desk.api.post(WORKFLOWS, json={"name": "n", "dag": padded})).status_code == 201
    for path in (WORKFLOWS, CHAINS):
        answer = await desk.api.post(path, content=b" " * (MAX_DEFINITION + 1))
        assert told(answer)[:2] == (413, "BODY_TOO_LARGE")
    answer = await desk.api.post("/api/v1/jobs", content=b" " * (MAX_BODY + 1))
    assert told(answer)[:2] == (413, "BODY_TOO_LARGE")


async def test_a_path_below_a_contract_that_is_not_there_is_not_found(desk: Desk) -> None:
    for path in (f"{WORKFLOWS}/w:frob", "/api/v1/runs/r:frob", "/api/v1/runs/r/nodes/a:frob"):
        assert told(await desk.api.post(path))[:2] == (404, "NOT_FOUND")
    for path in (f"{WORKFLOWS}/w:start", "/api/v1/runs/r:close", "/api/v1/runs/r/nodes/a:retry"):
        assert told(await desk.api.get(path))[:2] == (405, "METHOD_NOT_ALLOWED")
