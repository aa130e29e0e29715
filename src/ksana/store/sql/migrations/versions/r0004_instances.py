"""Several instances: shares of the workers, lost attempts, and what an instance tells of itself.

Only adds: programs of the revision before go on working while this one is there.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import VARCHAR

from ksana.store.sql.migrations.steps import add_column, create_index

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_column(
        "executions",
        sa.Column("share", sa.String(80), nullable=False, server_default="-"),
        sa.Column("losses", sa.Integer(), nullable=False, server_default="0"),
    )
    if op.get_bind().dialect.name in {"mysql", "mariadb"}:
        # No partial indexes there: a column that is NULL for all that cannot be claimed does instead. Apart from its index:
        # both in one statement would keep writers waiting until the index is made.
        ready_share = sa.Computed("CASE WHEN ready_at IS NULL THEN NULL ELSE share END", persisted=False)
        kind = VARCHAR(80, charset="utf8mb4", collation="utf8mb4_bin")
        add_column("executions", sa.Column("ready_share", kind, ready_share))
        create_index("ix_executions_share", "executions", "worker_queue", "ready_share", "ready_at", "id")
    else:
        create_index(
            "ix_executions_share", "executions", "worker_queue", "share", "ready_at", "id", sparse_by="ready_at"
        )
    add_column(
        "instances",
        sa.Column("queues", sa.String(1024), nullable=False, server_default=""),
        sa.Column("places", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("address", sa.String(255), nullable=False, server_default=""),
    )
