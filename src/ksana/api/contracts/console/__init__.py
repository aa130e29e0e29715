"""The console's read API, under `/api/v1`: what it asks beyond the customer's contracts. Anybody may use it.

It translates names and shapes, and holds no rules.
"""

from collections.abc import Sequence

from ksana.api.app import Contract
from ksana.api.contracts.console.activity import Activity
from ksana.api.contracts.console.again import Again
from ksana.api.contracts.console.audit import Audit
from ksana.api.contracts.console.calendar import calendar_contract
from ksana.api.contracts.console.events import events_contract
from ksana.api.contracts.console.failures import Failures
from ksana.api.contracts.console.forecast import forecast_contract
from ksana.api.contracts.console.grid import grid_contract
from ksana.api.contracts.console.one_run import OneRun
from ksana.api.contracts.console.overview import Overviews
from ksana.api.contracts.console.paths import ACTIVITY
from ksana.api.contracts.console.search import Search
from ksana.api.contracts.console.settings import ShownSettings
from ksana.api.contracts.console.standing import Standing
from ksana.api.contracts.jobchain.problems import translate
from ksana.api.errors import Translation
from ksana.api.live.hub import Hub
from ksana.api.routing import new_router
from ksana.api.services import Services

TRANSLATIONS = (Translation(ACTIVITY, translate),)
PARTS = (Activity, OneRun, Again, Overviews, Failures, Search, Audit, ShownSettings, Standing)

__all__ = ["TRANSLATIONS", "console_contract", "console_contracts"]


def console_contracts(services: Services, hub: Hub) -> Sequence[Contract]:
    """All of it; `hub` feeds the stream of events."""
    return (
        console_contract(services),
        events_contract(services, hub),
        forecast_contract(services),
        calendar_contract(services),
        grid_contract(services),
    )


def console_contract(services: Services) -> Contract:
    """Its routes over these services, and document 001's words for what goes wrong where runs are listed and ordered about."""
    router = new_router("Console")
    for part in PARTS:
        for route in part(services).routes():
            route.add_to(router)
    return Contract(router, TRANSLATIONS)
