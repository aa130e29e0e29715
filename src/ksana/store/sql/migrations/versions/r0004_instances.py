"""Several instances: shares of the workers, lost attempts, and what an instance tells of itself.

Only adds: programs of the revision before go on working while this one is there.
"""

import sqlalchemy as sa
from alembic import op

from ksana.store.sql.migrations.steps import add_column, column_names, create_index

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# MySQL has no partial indexes: a column that is NULL for all that cannot be claimed does instead.
READY_SHARE = (
    "ALTER TABLE executions ADD COLUMN ready_share VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    " GENERATED ALWAYS AS (CASE WHEN ready_at IS NULL THEN NULL ELSE share END) VIRTUAL,"
    " ADD INDEX ix_executions_share (worker_queue, ready_share, ready_at, id)"
)


def upgrade() -> None:
    add_column("executions", sa.Column("share", sa.String(80), nullable=False, server_default="-"))
    add_column("executions", sa.Column("losses", sa.Integer(), nullable=False, server_default="0"))
    if op.get_bind().dialect.name in {"mysql", "mariadb"}:
        if "ready_share" not in column_names("executions"):
            op.execute(READY_SHARE)
    else:
        create_index(
            "ix_executions_share", "executions", "worker_queue", "share", "ready_at", "id", sparse_by="ready_at"
        )
    add_column("instances", sa.Column("queues", sa.String(1024), nullable=False, server_default=""))
    add_column("instances", sa.Column("places", sa.Integer(), nullable=False, server_default="0"))
    add_column("instances", sa.Column("address", sa.String(255), nullable=False, server_default=""))
