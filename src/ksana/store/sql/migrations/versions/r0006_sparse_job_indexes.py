"""The indexes by job leave out what has no job of its own: most nodes of workflows, which were written to them for nothing.

Takes nothing away that any program asks for: those of the revisions before go on working while this one is there.
"""

from ksana.store.sql.migrations.steps import make_sparse

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    make_sparse("ix_executions_job", "executions", "job_id", "planned_for", "id", by="job_id")
    make_sparse("ix_executions_job_status", "executions", "job_id", "status", "planned_for", "id", by="job_id")
