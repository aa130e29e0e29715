"""Routes that are told apart by how they begin, before their whole pattern is tried."""

from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope


class QuickRoute(APIRoute):
    """A request is offered to one route after the other, and there are a hundred: most can be seen not to fit at once."""

    def __init__(self, path: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(path, *args, **kwargs)
        self._beginning = path.partition("{")[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not scope["path"].startswith(self._beginning) and not scope.get("root_path"):
            return Match.NONE, {}
        return super().matches(scope)


def new_router(tag: str, prefix: str = "") -> APIRouter:
    """For the routes of one contract."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=QuickRoute)
