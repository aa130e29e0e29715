"""The JobChain contract: document 001, under `/api/v1`.

It translates names, shapes and error codes, and holds no rules. For each part, `…_models` is what comes in and goes out,
`…_reading` what it means to the commands, `…_showing` how what was found is written.
"""

from fastapi import APIRouter

from ksana.api.app import Contract
from ksana.api.contracts.jobchain.jobs import Jobs
from ksana.api.contracts.jobchain.paths import JOBS
from ksana.api.contracts.jobchain.problems import translate
from ksana.api.errors import Translation
from ksana.api.services import Services

PREFIXES = (JOBS,)

__all__ = ["PREFIXES", "jobchain_contract"]


def jobchain_contract(services: Services) -> Contract:
    """Its routes over these services, and its words for what goes wrong on their paths."""
    router = APIRouter(tags=["JobChain"])
    for part in (Jobs(services),):
        part.add_to(router)
    return Contract(router, [Translation(prefix, translate) for prefix in PREFIXES])
