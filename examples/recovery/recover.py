"""After a restart: how does a tenant's task stand, and does it go on? Document 004's recovery flow (§7.3).

python examples/recovery/recover.py http://127.0.0.1:7100 tenant-001
python examples/recovery/recover.py http://127.0.0.1:7100 tenant-001 --redis redis://127.0.0.1:6379/0

A task that failed and has a checkpoint is tried again from there: the stages that it has completed are not done again. Of any
other the script only says how it stands. With `--redis` it also says so while Ksana is away; to retry, Ksana must be back.

Exit codes: 0 tried again, or there is nothing to do; 1 somebody has to decide; 2 it cannot be told.
"""
# ruff: noqa: INP001, T201 - a script, and it talks to people

import argparse
import sys

from ksana.client import FacadeError, PlanFacade, Source, TaskStatus, TaskStatusInfo


def main() -> int:
    given = _arguments()
    try:
        return recover(PlanFacade(given.url, redis_url=given.redis, namespace=given.namespace), given.tenant)
    except FacadeError as error:
        print(f"{given.tenant}: {error.message} ({error.code})", file=sys.stderr)
    except ValueError as error:  # an address that is none
        print(error, file=sys.stderr)
    return 2


def recover(facade: PlanFacade, tenant_id: str) -> int:
    status = facade.query_task_status_by_tenant(tenant_id)
    if status is None:
        print(f"{tenant_id}: no task is known")
        return 0
    print(_told(status))
    if status.status is not TaskStatus.FAILED:
        return 0
    if not facade.has_checkpoint(tenant_id):
        print("  it has no checkpoint: a retry would begin with its first stage, which is for you to decide")
        return 1
    if status.source is Source.REDIS:
        print("  it has a checkpoint: run this again when Ksana is back")
        return 1
    again = facade.retry_task_by_tenant(tenant_id, from_checkpoint=True)
    print(f"  tried again from its checkpoint: {again.status}, goes on with {_next(status)}")
    return 0


def _next(failed: TaskStatusInfo) -> str:
    """What was next when it failed: by now it may have done that and more."""
    return failed.stage_names[failed.completed_stages]


def _told(status: TaskStatusInfo) -> str:
    stages = f"{status.completed_stages} of {status.total_stages} stages done"
    where = f", in {status.current_stage}" if status.current_stage else ""
    why = f": {status.error}" if status.error else ""
    source = f" (as shown in Redis at {status.updated_at:%Y-%m-%d %H:%M:%S} UTC; Ksana is away)"
    told = (
        f"{status.tenant_id}: task {status.task_id} of plan {status.plan_id} is {status.status}, {stages}{where}{why}"
    )
    return told + (source if status.source is Source.REDIS else "")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Says how a tenant's task stands, and tries a failed one again.")
    parser.add_argument("url", help="of Ksana, as http://127.0.0.1:7100")
    parser.add_argument("tenant", help="its id, as tenant-001")
    parser.add_argument("--redis", metavar="URL", help="where the state is shown, for when Ksana is away")
    parser.add_argument("--namespace", default="executor", help="first part of every key there (executor)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
