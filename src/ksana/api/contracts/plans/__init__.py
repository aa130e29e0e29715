"""The Plans contract: document 004, `/api/v1/plans` and what belongs to one tenant, `/api/v1/tenants`.

It translates names, shapes and error codes, and holds no rules. `…_models` is what comes in and goes out, `…_showing` how what
was found is written. A plan is read by the domain, which names what is wrong with it.
"""

from ksana.api.app import Contract
from ksana.api.contracts.jobchain import MAX_DEFINITION
from ksana.api.contracts.plans.checkpoints import Checkpoints
from ksana.api.contracts.plans.paths import PLANS, TENANTS
from ksana.api.contracts.plans.plans import Plans
from ksana.api.contracts.plans.problems import translate
from ksana.api.contracts.plans.tasks import Tasks
from ksana.api.errors import Translation
from ksana.api.routing import new_router
from ksana.api.services import Services

TRANSLATIONS = (Translation(PLANS, translate), Translation(TENANTS, translate))

__all__ = ["TRANSLATIONS", "plans_contract"]


def plans_contract(services: Services) -> Contract:
    """Its routes over these services, and its words for what goes wrong on their paths."""
    router = new_router("Plans")
    for part in (Plans(services), Tasks(services), Checkpoints(services)):
        for route in part.routes():
            route.add_to(router)
    return Contract(router, TRANSLATIONS, {PLANS: MAX_DEFINITION})
