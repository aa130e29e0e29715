"""`GET /api/v1/settings`: what `ksana config show` prints, of the instance that answers."""

from collections.abc import Iterator
from typing import Any

from fastapi import Response
from pydantic import ConfigDict, Field

from ksana.api.contracts.jobchain.routes import Permission, Route
from ksana.api.contracts.queries import NoQuery
from ksana.api.contracts.shapes import Shown, answer
from ksana.api.services import Services

SETTINGS = "/api/v1/settings"
_ROW: dict[str, Any] = {
    "name": "server.port",
    "value": "7100",
    "source": "environment PORT",
    "description": "The port of the API.",
}


class SettingShown(Shown):
    name: str = Field(description="Its path in the settings file.")
    value: str = Field(description="Without passwords.")
    source: str = Field(description="`default`, or the flag, variable, or file and line that it came from.")
    description: str


class SettingsShown(Shown):
    model_config = ConfigDict(json_schema_extra={"example": {"items": [_ROW]}})

    items: list[SettingShown]


class ShownSettings:
    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> Iterator[Route]:
        may, told = Permission.SETTINGS_READ, "Every setting and where it came from"
        yield Route("GET", SETTINGS, self.show, told, may, SettingsShown, (400,))

    async def show(self, _: NoQuery) -> Response:
        """Of the instance that answers; others may have other ones. Passwords are masked."""
        items = [
            {"name": row.path, "value": row.value, "source": row.source, "description": row.meaning}
            for row in self._services.shown_settings
        ]
        return answer({"items": items})
