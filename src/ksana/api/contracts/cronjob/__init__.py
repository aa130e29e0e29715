"""The CronJob contract: document 003's tasks, runs and callbacks, under `/api/v1`.

It translates names, shapes and error codes, and holds no rules. `names` has the one table of names; `shapes` is what comes in,
`reading` what it means to the commands; `writing` turns what the queries found into `answers`.
"""

from ksana.api.app import Contract
from ksana.api.contracts.cronjob.all_runs import AllRuns
from ksana.api.contracts.cronjob.callbacks import Callbacks
from ksana.api.contracts.cronjob.problems import translate
from ksana.api.contracts.cronjob.runs import Runs
from ksana.api.contracts.cronjob.tasks import Tasks
from ksana.api.errors import Translation
from ksana.api.routing import new_router
from ksana.api.services import Services

PREFIXES = ("/api/v1/tasks", "/api/v1/runs", "/api/v1/callbacks")

__all__ = ["PREFIXES", "cronjob_contract"]


def cronjob_contract(services: Services) -> Contract:
    """Its routes over these services, and its words for what goes wrong on their paths."""
    router = new_router("CronJob")
    for part in (Tasks(services), Runs(services), AllRuns(services), Callbacks(services)):
        part.add_to(router)
    return Contract(router, [Translation(prefix, translate) for prefix in PREFIXES])
