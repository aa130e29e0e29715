"""A route of this contract: what it shows, how it fails, and what one must be allowed to do to ask for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from ksana.api.contracts.bodies import body_of
from ksana.api.contracts.shapes import problems

X_PERMISSION = "x-permission"
"""Where the OpenAPI document says it: the hook for authentication, of which there is none yet."""


class Permission(StrEnum):
    """Document 000's points (§B, §I), and the like for jobs and plans."""

    JOB_READ = "job:read"
    JOB_WRITE = "job:write"
    CHAIN_READ = "chain:read"
    CHAIN_WRITE = "chain:write"
    RUN_READ = "run:read"
    RUN_WRITE = "run:write"
    RUN_CONTROL = "run:control"
    PLAN_READ = "plan:read"
    PLAN_WRITE = "plan:write"
    PLAN_CONTROL = "plan:control"
    AUDIT_READ = "audit:read"
    SETTINGS_READ = "settings:read"


def needing(permission: Permission) -> dict[str, Any]:
    """`openapi_extra` that says so."""
    return {X_PERMISSION: permission.value}


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Callable[..., Any]
    summary: str
    may: Permission
    shows: Any = None
    fails: Sequence[int] = ()
    status: int = 200
    body: type[BaseModel] | None = None
    """One that may be missing, and that the handler reads itself."""
    told: Callable[..., dict[int | str, dict[str, Any]]] = problems
    """How its errors are described."""
    more: dict[int | str, dict[str, Any]] | None = None
    """Further answers."""

    def add_to(self, router: APIRouter) -> None:
        body = {} if self.body is None else body_of(self.body, required=False)
        router.add_api_route(
            self.path,
            self.handler,
            methods=[self.method],
            status_code=self.status,
            response_model=self.shows,
            responses={**(self.more or {}), **self.told(*self.fails)},
            summary=self.summary,
            openapi_extra={**needing(self.may), **body},
        )
