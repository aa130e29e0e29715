"""The first schema."""

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from ksana.store.sql.migrations.steps import create_index, create_table

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
LONG = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")


def upgrade() -> None:
    _attempts()
    _audit_entries()
    _callback_tokens()
    _callbacks()
    _events()
    _executions()
    _idempotency_keys()
    _instances()
    _jobs()
    _locks()
    _occurrences()
    _plans()
    _workflow_runs()
    _workflows()
    _marks()
    _writers()
    _schedules()
    _workflow_versions()


def _attempts() -> None:
    create_table(
        "attempts",
        sa.Column("execution_id", ID, autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("request", LONG, nullable=True),
        sa.Column("request_body", LONG, nullable=True),
        sa.Column("response_code", sa.Integer(), nullable=True),
        sa.Column("response_headers", LONG, nullable=True),
        sa.Column("response_body", LONG, nullable=True),
        sa.PrimaryKeyConstraint("execution_id", "epoch", name="pk_attempts"),
        integer_id=False,
    )


def _audit_entries() -> None:
    create_table(
        "audit_entries",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(160), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("data", LONG, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entries"),
    )
    create_index("ix_audit_entries_subject", "audit_entries", "subject", "id")


def _callback_tokens() -> None:
    create_table(
        "callback_tokens",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("execution_id", ID, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name="pk_callback_tokens"),
        integer_id=False,
    )
    create_index("ix_callback_tokens_execution", "callback_tokens", "execution_id", "epoch")


def _callbacks() -> None:
    create_table(
        "callbacks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("execution_id", ID, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("headers", LONG, nullable=False),
        sa.Column("body", LONG, nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_callbacks"),
    )
    create_index("ix_callbacks_execution_id", "callbacks", "execution_id", "id")


def _events() -> None:
    create_table(
        "events",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("type", sa.String(40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.String(160), nullable=False),
        sa.Column("data", LONG, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    create_index("ix_events_subject", "events", "subject", "id")


def _executions() -> None:
    create_table(
        "executions",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("schedule_id", ID, nullable=True),
        sa.Column("planned_for", sa.BigInteger(), nullable=True),
        sa.Column("workflow_run_id", ID, nullable=True),
        sa.Column("node_id", sa.String(128), nullable=True),
        sa.Column("tenant_id", sa.String(128), nullable=True),
        sa.Column("triggered_by", sa.String(12), nullable=False),
        sa.Column("worker_queue", sa.String(64), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("ready_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("owner", sa.String(64), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("open_dependencies", sa.Integer(), nullable=False),
        sa.Column("input", LONG, nullable=True),
        sa.Column("output", LONG, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("reason", sa.String(255), nullable=True),
        sa.Column("trace_id", sa.String(64), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("attempt_started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_executions"),
    )
    create_index("ix_executions_deadline", "executions", "deadline_at", "id", sparse_by="deadline_at")
    create_index("ix_executions_job", "executions", "job_id", "planned_for", "id")
    create_index("ix_executions_job_status", "executions", "job_id", "status", "planned_for", "id")
    create_index("ix_executions_node", "executions", "workflow_run_id", "node_id", sparse_by="node_id")
    create_index("ix_executions_owner", "executions", "owner", sparse_by="owner")
    create_index("ix_executions_ready", "executions", "worker_queue", "ready_at", "id", sparse_by="ready_at")
    create_index("ix_executions_status", "executions", "status", "id")


def _idempotency_keys() -> None:
    create_table(
        "idempotency_keys",
        sa.Column("scope", sa.String(64), nullable=False),
        sa.Column("idempotency_key", sa.String(128), nullable=False),
        sa.Column("resource_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "idempotency_key", name="pk_idempotency_keys"),
        integer_id=False,
    )
    create_index("ix_idempotency_keys_resource_id", "idempotency_keys", "resource_id")


def _instances() -> None:
    create_table(
        "instances",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("roles", sa.String(128), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
        integer_id=False,
    )
    create_index("ix_instances_status", "instances", "status", "expires_at")


def _jobs() -> None:
    create_table(
        "jobs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("unique_name", sa.String(128), nullable=True),
        sa.Column("description", sa.String(512), nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("contract", sa.String(16), nullable=False),
        sa.Column("worker_queue", sa.String(64), nullable=False),
        sa.Column("concurrency", sa.String(16), nullable=False),
        sa.Column("max_concurrency", sa.Integer(), nullable=False),
        sa.Column("queue_limit", sa.Integer(), nullable=False),
        sa.Column("recovery", sa.String(8), nullable=False),
        sa.Column("spec", LONG, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("public_id", name="uq_jobs_public_id"),
        sa.UniqueConstraint("unique_name", name="uq_jobs_unique_name"),
    )
    create_index("ix_jobs_name", "jobs", "name")


def _locks() -> None:
    create_table(
        "locks",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_locks"),
        integer_id=False,
    )


def _occurrences() -> None:
    create_table(
        "occurrences",
        sa.Column("schedule_id", ID, autoincrement=False, nullable=False),
        sa.Column("planned_for", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("outcome", sa.String(10), nullable=False),
        sa.Column("reason", sa.String(64), nullable=True),
        sa.Column("last_planned_for", sa.BigInteger(), nullable=True),
        sa.Column("instants", sa.BigInteger(), nullable=False),
        sa.Column("execution_id", ID, nullable=True),
        sa.Column("workflow_run_id", ID, nullable=True),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", "planned_for", name="pk_occurrences"),
        integer_id=False,
    )


def _plans() -> None:
    create_table(
        "plans",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("spec", LONG, nullable=False),
        sa.Column("max_concurrency", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(255), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
        sa.UniqueConstraint("public_id", name="uq_plans_public_id"),
    )
    create_index("ix_plans_status", "plans", "status", "id")


def _workflow_runs() -> None:
    create_table(
        "workflow_runs",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("workflow_id", ID, nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("schedule_id", ID, nullable=True),
        sa.Column("planned_for", sa.BigInteger(), nullable=True),
        sa.Column("plan_id", ID, nullable=True),
        sa.Column("tenant_id", sa.String(128), nullable=True),
        sa.Column("triggered_by", sa.String(12), nullable=False),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("snapshot", LONG, nullable=False),
        sa.Column("params", LONG, nullable=True),
        sa.Column("open_nodes", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("reason", sa.String(255), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_runs"),
        sa.UniqueConstraint("public_id", name="uq_workflow_runs_public_id"),
    )
    create_index("ix_workflow_runs_deadline", "workflow_runs", "deadline_at", "id", sparse_by="deadline_at")
    create_index("ix_workflow_runs_plan", "workflow_runs", "plan_id", sparse_by="plan_id")
    create_index("ix_workflow_runs_status", "workflow_runs", "status", "id")
    create_index("ix_workflow_runs_workflow", "workflow_runs", "workflow_id", "status", "id")


def _workflows() -> None:
    create_table(
        "workflows",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("unique_name", sa.String(128), nullable=True),
        sa.Column("description", sa.String(512), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_workflows"),
        sa.UniqueConstraint("public_id", name="uq_workflows_public_id"),
        sa.UniqueConstraint("unique_name", name="uq_workflows_unique_name"),
    )
    create_index("ix_workflows_name", "workflows", "name")


def _marks() -> None:
    create_table(
        "marks",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_marks"),
        integer_id=False,
    )


def _writers() -> None:
    create_table(
        "writers",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("marked_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_writers"),
        integer_id=False,
    )


def _schedules() -> None:
    create_table(
        "schedules",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("public_id", sa.String(64), nullable=False),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("workflow_id", ID, nullable=True),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("spec", LONG, nullable=False),
        sa.Column("input", LONG, nullable=True),
        sa.Column("status", sa.String(12), nullable=False),
        sa.Column("next_planned_for", sa.BigInteger(), nullable=True),
        sa.Column("next_fire_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_schedules_job_id"),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_schedules_workflow_id"),
        sa.PrimaryKeyConstraint("id", name="pk_schedules"),
        sa.UniqueConstraint("public_id", name="uq_schedules_public_id"),
    )
    create_index("ix_schedules_job_id", "schedules", "job_id")
    create_index("ix_schedules_next_fire_at", "schedules", "next_fire_at", sparse_by="next_fire_at")
    create_index("ix_schedules_workflow_id", "schedules", "workflow_id")


def _workflow_versions() -> None:
    create_table(
        "workflow_versions",
        sa.Column("workflow_id", ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("definition", LONG, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name="fk_workflow_versions_workflow_id"),
        sa.PrimaryKeyConstraint("workflow_id", "version", name="pk_workflow_versions"),
        integer_id=False,
    )
