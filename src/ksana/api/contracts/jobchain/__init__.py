"""The JobChain contract: document 001, under `/api/v1`, with document 000's `/api/v1/chains` as its alias.

It translates names, shapes and error codes, and holds no rules. For each part, `…_models` is what comes in and goes out,
`…_reading` what it means to the commands, `…_showing` how what was found is written.
"""

from ksana.api.app import Contract
from ksana.api.contracts.jobchain.chains import Chains
from ksana.api.contracts.jobchain.jobs import Jobs
from ksana.api.contracts.jobchain.logs import Logs
from ksana.api.contracts.jobchain.nodes import Nodes
from ksana.api.contracts.jobchain.paths import CHAINS, JOBS, OF_WORKFLOW_RUNS, RUNS, WORKFLOWS
from ksana.api.contracts.jobchain.problems import translate, translate_chain
from ksana.api.contracts.jobchain.runs import Runs
from ksana.api.contracts.jobchain.workflows import Workflows
from ksana.api.errors import Translation
from ksana.api.routing import new_router
from ksana.api.services import Services

MAX_DEFINITION = 16_000_000
"""Bytes of a workflow: twenty thousand nodes that say a good deal each."""
TRANSLATIONS = (
    Translation(JOBS, translate),
    Translation(WORKFLOWS, translate),
    Translation(RUNS, translate, only=OF_WORKFLOW_RUNS),
    Translation(CHAINS, translate_chain),
)

__all__ = ["TRANSLATIONS", "jobchain_contract"]


def jobchain_contract(services: Services) -> Contract:
    """Its routes over these services, and its words for what goes wrong on their paths."""
    router = new_router("JobChain")
    parts = (Jobs(services), Workflows(services), Chains(services), Runs(services), Nodes(services), Logs(services))
    for part in parts:
        for route in part.routes():
            route.add_to(router)
    return Contract(router, TRANSLATIONS, {WORKFLOWS: MAX_DEFINITION, CHAINS: MAX_DEFINITION})
