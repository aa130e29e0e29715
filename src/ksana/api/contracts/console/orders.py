"""Orders to runs of either kind, made of those to each."""

from ksana.api.services import Services
from ksana.engine.commands import ActivityCommands


def orders_of(services: Services) -> ActivityCommands:
    return ActivityCommands(services.store, services.jobs, services.runs, services.workflow_runs)
