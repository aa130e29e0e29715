"""Plans, the tasks of their tenants, and what is shown of them outside.

`plans` is made anew: the first schema had it, but no version of Ksana wrote to it.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from ksana.store.sql.migrations.steps import add_column, column_names, create_index, create_table, drop_table

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
LONG = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")


def upgrade() -> None:
    add_column("workflow_runs", sa.Column("task_id", ID))
    add_column("workflow_runs", sa.Column("fence", sa.BigInteger()))
    _plans()
    _tenant_tasks()
    _shown_outside()


def _plans() -> None:
    if "snapshot" not in column_names("plans"):
        drop_table("plans")
    create_table(
        "plans",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("spec", LONG, nullable=False),
        sa.Column("snapshot", sa.String(64), nullable=False),
        sa.Column("tenants", sa.Integer(), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("cleared", sa.Integer(), nullable=False),
        sa.Column("forgiven", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(255)),
        sa.Column("message", sa.Text()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
        sa.UniqueConstraint("public_id", name="uq_plans_public_id"),
    )
    create_index("ix_plans_status", "plans", "status", "id")


def _tenant_tasks() -> None:
    create_table(
        "tenant_tasks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("plan_id", ID, nullable=False),
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("wish", sa.String(16)),
        sa.Column("asked_for", sa.Integer(), nullable=False),
        sa.Column("ready_at", sa.BigInteger()),
        sa.Column("params", LONG),
        sa.Column("run_id", ID),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("last_completed", sa.Integer(), nullable=False),
        sa.Column("context", LONG),
        sa.Column("checkpoint_at", sa.BigInteger()),
        sa.Column("checkpoint_version", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("reason", sa.String(255)),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("told_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_tenant_tasks"),
        sa.UniqueConstraint("public_id", name="uq_tenant_tasks_public_id"),
        sa.Index("uq_tenant_tasks_tenant", "plan_id", "tenant_id", unique=True),
    )
    create_index("ix_tenant_tasks_tenant", "tenant_tasks", "tenant_id", "id")
    create_index("ix_tenant_tasks_plan", "tenant_tasks", "plan_id", "status", "wave", "position")
    create_index("ix_tenant_tasks_position", "tenant_tasks", "plan_id", "position")
    create_index("ix_tenant_tasks_status", "tenant_tasks", "status", "id")
    create_index("ix_tenant_tasks_ended_at", "tenant_tasks", "ended_at", "id", sparse_by="ended_at")
    create_index("ix_tenant_tasks_told_at", "tenant_tasks", "told_at", "id", sparse_by="told_at")
    create_table(
        "tenants",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("task_id", ID),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenants"),
        integer_id=False,
    )


def _shown_outside() -> None:
    create_table(
        "outbox",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(40), nullable=False),
        sa.Column("plan_id", ID, nullable=False),
        sa.Column("task_id", ID),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    create_table(
        "runtime_state",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state_key", sa.String(64), nullable=False),
        sa.Column("value", LONG, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "state_key", name="pk_runtime_state"),
        integer_id=False,
    )
    create_index("ix_runtime_state_expires", "runtime_state", "expires_at")
