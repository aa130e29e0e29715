"""The index by job and state has the state first, so that what has not ended lies together, however many jobs there are; and on
SQLite, lists of a job follow it for each state, and the one without states goes.

With the job first, each step of a run was written to its job's own page: three for each run, and one more in the other index.
On a file each page is a write of its own. Servers keep the other index: there it costs little, and programs of the revisions
before name it.
"""

from alembic import op

from ksana.store.sql.migrations.steps import drop_index, reorder

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    reorder("ix_executions_job_status", "executions", "status", "job_id", "planned_for", "id", sparse_by="job_id")
    if op.get_bind().dialect.name == "sqlite":
        drop_index("ix_executions_job", "executions")
