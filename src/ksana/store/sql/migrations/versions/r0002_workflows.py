"""Workflows: references, snapshots, runs, items, checkpoints, logs.

`workflow_runs` is made anew: the first schema had it, but no version of Ksana wrote to it.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from ksana.store.sql.migrations.steps import (
    add_column,
    column_names,
    create_index,
    create_table,
    drop_index,
    drop_table,
)

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
LONG = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")


def upgrade() -> None:
    _workflows()
    _snapshots()
    _executions()
    _execution_logs()
    _workflow_runs()


def _workflows() -> None:
    add_column("workflows", sa.Column("max_active_runs", sa.Integer()))
    add_column("workflows", sa.Column("overlap", sa.String(12), nullable=False, server_default="PARALLEL"))
    create_table(
        "workflow_references",
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_workflow_references_workflow_id"),
        sa.PrimaryKeyConstraint("workflow_id", "kind", "target_id", name="pk_workflow_references"),
        integer_id=False,
    )
    create_index("ix_workflow_references_target", "workflow_references", "kind", "target_id")


def _snapshots() -> None:
    create_table(
        "snapshots",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("document", LONG, nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_snapshots"),
        integer_id=False,
    )
    create_index("ix_snapshots_used_at", "snapshots", "used_at")


def _executions() -> None:
    add_column("executions", sa.Column("failed_dependencies", sa.Integer(), nullable=False, server_default="0"))
    add_column("executions", sa.Column("skipped_dependencies", sa.Integer(), nullable=False, server_default="0"))
    add_column("executions", sa.Column("parent_id", ID))
    add_column("executions", sa.Column("checkpoint", LONG))
    create_index("ix_executions_parent", "executions", "parent_id", "status", "id", sparse_by="parent_id")
    drop_index("ix_executions_node", "executions")
    create_index("ix_executions_node", "executions", "workflow_run_id", "node_id", "id")
    drop_index("ix_executions_status", "executions")
    create_index("ix_executions_status", "executions", "status", "workflow_run_id", "id")


def _execution_logs() -> None:
    create_table(
        "execution_logs",
        sa.Column("execution_id", ID, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("stream", sa.String(8), nullable=False),
        sa.Column("text", LONG, nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "epoch", "seq", name="pk_execution_logs"),
        integer_id=False,
    )


def _workflow_runs() -> None:
    if "depth" not in column_names("workflow_runs"):
        drop_table("workflow_runs")
    create_table(
        "workflow_runs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("workflow_key", sa.String(64), nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("snapshot", sa.String(64), nullable=False),
        sa.Column("schedule_id", ID),
        sa.Column("planned_for", sa.BigInteger()),
        sa.Column("parent_execution_id", ID),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("plan_id", ID),
        sa.Column("tenant_id", sa.String(128)),
        sa.Column("triggered_by", sa.String(12), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("params", LONG),
        sa.Column("open_nodes", sa.Integer(), nullable=False),
        sa.Column("failed_nodes", sa.Integer(), nullable=False),
        sa.Column("stopped_nodes", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("reason", sa.String(255)),
        sa.Column("deadline_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_runs"),
        sa.UniqueConstraint("public_id", name="uq_workflow_runs_public_id"),
    )
    create_index("ix_workflow_runs_deadline", "workflow_runs", "deadline_at", "id", sparse_by="deadline_at")
    create_index("ix_workflow_runs_plan", "workflow_runs", "plan_id", sparse_by="plan_id")
    create_index(
        "ix_workflow_runs_parent", "workflow_runs", "parent_execution_id", "id", sparse_by="parent_execution_id"
    )
    create_index("ix_workflow_runs_workflow", "workflow_runs", "workflow_id", "status", "id")
    create_index("ix_workflow_runs_of", "workflow_runs", "workflow_key", "id")
    create_index("ix_workflow_runs_of_status", "workflow_runs", "workflow_key", "status", "id")
    create_index("ix_workflow_runs_status", "workflow_runs", "status", "id")
    create_index("ix_workflow_runs_snapshot", "workflow_runs", "snapshot")
