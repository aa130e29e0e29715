"""The tables, once, for every database. Instants are microseconds since 1970 (UTC); JSON is kept as text, as it was given.

Indexes whose column is NULL for all that has ended are partial where the database can do it, so that neither their size
nor their cost grows with history. Hot tables (executions, attempts, occurrences, events) have no foreign keys: a parent's
row lock at every insert would make claims and fires wait for each other (see docs/design/store.md).
"""

from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.dialects.mysql import LONGTEXT

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite gives out growing row ids only to INTEGER PRIMARY KEY.
Id = BigInteger().with_variant(Integer, "sqlite")
Micros = BigInteger
Json = Text().with_variant(LONGTEXT, "mysql", "mariadb")
LongText = Text().with_variant(LONGTEXT, "mysql", "mariadb")
KEY = String(64)
MYSQL = "mysql"
"""What SQLAlchemy calls both MySQL and MariaDB."""
SQLITE = "sqlite"


def _table(name: str, *parts: "Column[Any] | Index", integer_id: bool = True) -> Table:
    return Table(
        name,
        metadata,
        *parts,
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        # Names and ids differ by case, as they do on the other databases.
        mysql_collate="utf8mb4_bin",
        # Ids are never given out twice, not even after the newest rows were purged.
        sqlite_autoincrement=integer_id,
    )


def _sparse(name: str, *columns: str, by: str) -> Index:
    """An index of the rows in which `by` is not NULL. MySQL, which has no partial indexes, keeps the others too."""
    condition = text(f"{by} IS NOT NULL")
    return Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


jobs = _table(
    "jobs",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("name", String(128), nullable=False),
    # The name while it must be unique: NULL once deleted, and for contracts whose jobs may share a name.
    Column("unique_name", String(128), unique=True),
    Column("description", String(512), nullable=False),
    Column("type", KEY, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("contract", String(16), nullable=False),
    Column("worker_queue", KEY, nullable=False),
    Column("concurrency", String(16), nullable=False),
    Column("max_concurrency", Integer, nullable=False),
    Column("queue_limit", Integer, nullable=False),
    Column("recovery", String(8), nullable=False),
    Column("spec", Json, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
    Column("deleted_at", Micros),
    Index("ix_jobs_name", "name"),
)

workflows = _table(
    "workflows",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("name", String(128), nullable=False),
    Column("unique_name", String(128), unique=True),
    Column("description", String(512), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
    Column("deleted_at", Micros),
    Column("max_active_runs", Integer),
    Column("overlap", String(12), nullable=False, server_default="PARALLEL"),
    Index("ix_workflows_name", "name"),
)

workflow_versions = _table(
    "workflow_versions",
    Column("workflow_id", Id, ForeignKey("workflows.id"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("definition", Json, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("created_by", String(128), nullable=False),
    integer_id=False,
)

# What the present definition of a workflow names: a job that is used cannot be deleted.
workflow_references = _table(
    "workflow_references",
    Column("workflow_id", Id, ForeignKey("workflows.id"), primary_key=True, autoincrement=False),
    # job or workflow
    Column("kind", String(10), primary_key=True),
    Column("target_id", Id, primary_key=True, autoincrement=False),
    Index("ix_workflow_references_target", "kind", "target_id"),
    integer_id=False,
)

# The graph and the jobs that runs started with, by the digest of the document; runs that started with the same share it.
snapshots = _table(
    "snapshots",
    Column("digest", KEY, primary_key=True),
    Column("document", Json, nullable=False),
    # When a run last started with it.
    Column("used_at", Micros, nullable=False),
    Index("ix_snapshots_used_at", "used_at"),
    integer_id=False,
)

schedules = _table(
    "schedules",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("job_id", Id, ForeignKey("jobs.id")),
    Column("workflow_id", Id, ForeignKey("workflows.id")),
    Column("kind", String(8), nullable=False),
    Column("spec", Json, nullable=False),
    Column("input", Json),
    Column("status", String(12), nullable=False),
    # The cursor: the planned instant that the ledger has no row for yet.
    Column("next_planned_for", Micros),
    # When it fires: the cursor with its jitter; NULL unless ACTIVE.
    Column("next_fire_at", Micros),
    Column("error", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("updated_at", Micros, nullable=False),
    Column("deleted_at", Micros),
    _sparse("ix_schedules_next_fire_at", "next_fire_at", by="next_fire_at"),
    Index("ix_schedules_job_id", "job_id"),
    Index("ix_schedules_workflow_id", "workflow_id"),
)

occurrences = _table(
    "occurrences",
    Column("schedule_id", Id, primary_key=True, autoincrement=False),
    Column("planned_for", Micros, primary_key=True, autoincrement=False),
    Column("outcome", String(10), nullable=False),
    Column("reason", KEY),
    # A range of instants with one fate is one row: the first, the last and how many.
    Column("last_planned_for", Micros),
    Column("instants", BigInteger, nullable=False),
    Column("execution_id", Id),
    Column("workflow_run_id", Id),
    Column("recorded_at", Micros, nullable=False),
    integer_id=False,
)

executions = _table(
    "executions",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("job_id", Id),
    Column("schedule_id", Id),
    # Its schedule's instant, or when it was asked for.
    Column("planned_for", Micros),
    Column("workflow_run_id", Id),
    Column("node_id", String(128)),
    Column("tenant_id", String(128)),
    Column("triggered_by", String(12), nullable=False),
    Column("worker_queue", KEY, nullable=False),
    Column("status", String(20), nullable=False),
    # From when a worker may take it; NULL unless SCHEDULED or RETRYING.
    Column("ready_at", Micros),
    # Until when the callback must have come; NULL unless CALLBACK_PENDING.
    Column("deadline_at", Micros),
    # The instance that runs it; NULL unless RUNNING.
    Column("owner", KEY),
    Column("epoch", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    # Of the nodes before it, how many have not ended, how many failed and how many were skipped; of one that is DELEGATED,
    # how many of its items have not ended, failed and were stopped.
    Column("open_dependencies", Integer, nullable=False),
    Column("input", Json),
    Column("output", Json),
    Column("error", Text),
    Column("reason", String(255)),
    Column("trace_id", KEY),
    Column("created_at", Micros, nullable=False),
    # When the first attempt began, and when the present one did.
    Column("started_at", Micros),
    Column("attempt_started_at", Micros),
    Column("ended_at", Micros),
    Column("updated_at", Micros, nullable=False),
    Column("failed_dependencies", Integer, nullable=False, server_default="0"),
    Column("skipped_dependencies", Integer, nullable=False, server_default="0"),
    # The execution that this one is an item of.
    Column("parent_id", Id),
    Column("checkpoint", Json),
    # Whose share of the workers it takes: its job's, its workflow's or its tenant's.
    Column("share", String(80), nullable=False, server_default="-"),
    # How many of its attempts ended with the instance that made them.
    Column("losses", Integer, nullable=False, server_default="0"),
    _sparse("ix_executions_share", "worker_queue", "share", "ready_at", "id", by="ready_at").ddl_if(
        callable_=lambda *_, dialect, **__: dialect.name != MYSQL
    ),
    _sparse("ix_executions_ready", "worker_queue", "ready_at", "id", by="ready_at"),
    _sparse("ix_executions_deadline", "deadline_at", "id", by="deadline_at"),
    _sparse("ix_executions_owner", "owner", by="owner"),
    _sparse("ix_executions_parent", "parent_id", "status", "id", by="parent_id"),
    # Also how runs of jobs are told from nodes: of those, both are NULL.
    Index("ix_executions_node", "workflow_run_id", "node_id", "id"),
    # Without nodes that carry their job themselves. The state first: what has not ended lies together, on few pages, and a run is
    # written to its job's own place once, when it ends.
    _sparse("ix_executions_job_status", "status", "job_id", "planned_for", "id", by="job_id"),
    # Not on SQLite, where lists of a job follow the one above state by state: see `Dialect.has_runs_by_job`.
    _sparse("ix_executions_job", "job_id", "planned_for", "id", by="job_id").ddl_if(
        callable_=lambda *_, dialect, **__: dialect.name != SQLITE
    ),
    Index("ix_executions_status", "status", "workflow_run_id", "id"),
)

# MySQL has no partial indexes: there, a column that is NULL for all that cannot be claimed keeps history out of the way.
READY_SHARE = (
    "ALTER TABLE executions ADD COLUMN ready_share VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    " GENERATED ALWAYS AS (CASE WHEN ready_at IS NULL THEN NULL ELSE share END) VIRTUAL,"
    " ADD INDEX ix_executions_share (worker_queue, ready_share, ready_at, id)"
)
event.listen(executions, "after_create", DDL(READY_SHARE).execute_if(dialect=MYSQL))  # type: ignore[no-untyped-call]

attempts = _table(
    "attempts",
    Column("execution_id", Id, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("owner", KEY, nullable=False),
    Column("started_at", Micros, nullable=False),
    Column("ended_at", Micros, nullable=False),
    Column("error", Text),
    Column("request", Json),
    Column("request_body", LongText),
    Column("response_code", Integer),
    Column("response_headers", Json),
    Column("response_body", LongText),
    integer_id=False,
)

# What executions write while they run, in chunks.
execution_logs = _table(
    "execution_logs",
    Column("execution_id", Id, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Micros, nullable=False),
    Column("stream", String(8), nullable=False),
    Column("text", LongText, nullable=False),
    integer_id=False,
)

callback_tokens = _table(
    "callback_tokens",
    Column("token_hash", KEY, primary_key=True),
    Column("execution_id", Id, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("expires_at", Micros, nullable=False),
    Index("ix_callback_tokens_execution", "execution_id", "epoch"),
    integer_id=False,
)

callbacks = _table(
    "callbacks",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("execution_id", Id, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("received_at", Micros, nullable=False),
    Column("headers", Json, nullable=False),
    Column("body", LongText, nullable=False),
    Column("status", String(10), nullable=False),
    Index("ix_callbacks_execution_id", "execution_id", "id"),
)

workflow_runs = _table(
    "workflow_runs",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("workflow_id", Id, nullable=False),
    Column("workflow_key", KEY, nullable=False),
    Column("workflow_version", Integer, nullable=False),
    Column("snapshot", KEY, nullable=False),
    Column("schedule_id", Id),
    Column("planned_for", Micros),
    # The node of another run that this one works for, and how deep that makes it.
    Column("parent_execution_id", Id),
    Column("depth", Integer, nullable=False),
    Column("plan_id", Id),
    Column("tenant_id", String(128)),
    Column("triggered_by", String(12), nullable=False),
    Column("status", String(12), nullable=False),
    Column("params", Json),
    # How many of its nodes are so; -1 in place of the first if they are to be counted (see `runs.UNTOLD`).
    Column("open_nodes", Integer, nullable=False),
    Column("failed_nodes", Integer, nullable=False),
    Column("stopped_nodes", Integer, nullable=False),
    Column("error", Text),
    Column("reason", String(255)),
    # Until when it must have ended; NULL once it has, and if it may take any time.
    Column("deadline_at", Micros),
    Column("created_at", Micros, nullable=False),
    Column("started_at", Micros),
    Column("ended_at", Micros),
    Column("updated_at", Micros, nullable=False),
    # Of a run that is a tenant's task: that, and the fencing token of the tenant's lock that it runs under.
    Column("task_id", Id),
    Column("fence", BigInteger),
    _sparse("ix_workflow_runs_deadline", "deadline_at", "id", by="deadline_at"),
    _sparse("ix_workflow_runs_plan", "plan_id", by="plan_id"),
    _sparse("ix_workflow_runs_parent", "parent_execution_id", "id", by="parent_execution_id"),
    Index("ix_workflow_runs_workflow", "workflow_id", "status", "id"),
    Index("ix_workflow_runs_of", "workflow_key", "id"),
    Index("ix_workflow_runs_of_status", "workflow_key", "status", "id"),
    Index("ix_workflow_runs_status", "status", "id"),
    Index("ix_workflow_runs_snapshot", "snapshot"),
)

plans = _table(
    "plans",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("name", String(128), nullable=False),
    Column("status", String(12), nullable=False),
    Column("spec", Json, nullable=False),
    # What the runs of its tasks start with.
    Column("snapshot", KEY, nullable=False),
    Column("tenants", Integer, nullable=False),
    Column("wave", Integer, nullable=False),
    # The last wave whose gate has been passed; failures that a person accepted.
    Column("cleared", Integer, nullable=False),
    Column("forgiven", Integer, nullable=False),
    Column("reason", String(255)),
    Column("message", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("started_at", Micros),
    Column("ended_at", Micros),
    Column("updated_at", Micros, nullable=False),
    Index("ix_plans_status", "status", "id"),
)

# A tenant's pass through the stages of a plan; its run is what is worked on.
tenant_tasks = _table(
    "tenant_tasks",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("public_id", KEY, nullable=False, unique=True),
    Column("plan_id", Id, nullable=False),
    Column("tenant_id", KEY, nullable=False),
    Column("position", Integer, nullable=False),
    Column("wave", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    # What it was asked for while it runs.
    Column("wish", String(16)),
    # Whether a person asked for it by name: then it may run while its plan is paused.
    Column("asked_for", Integer, nullable=False),
    # Not before then: somebody outside has the tenant's lock.
    Column("ready_at", Micros),
    Column("params", Json),
    Column("run_id", Id),
    Column("generation", Integer, nullable=False),
    Column("last_completed", Integer, nullable=False),
    # What was added to its checkpoint from outside; when that was saved (NULL: there is none), and how often it was.
    Column("context", Json),
    Column("checkpoint_at", Micros),
    Column("checkpoint_version", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("error", Text),
    Column("reason", String(255)),
    Column("version", Integer, nullable=False),
    Column("created_at", Micros, nullable=False),
    Column("started_at", Micros),
    Column("ended_at", Micros),
    Column("updated_at", Micros, nullable=False),
    # When it last told how far it is; NULL unless RUNNING.
    Column("told_at", Micros),
    Index("uq_tenant_tasks_tenant", "plan_id", "tenant_id", unique=True),
    Index("ix_tenant_tasks_tenant", "tenant_id", "id"),
    Index("ix_tenant_tasks_plan", "plan_id", "status", "wave", "position"),
    Index("ix_tenant_tasks_position", "plan_id", "position"),
    Index("ix_tenant_tasks_status", "status", "id"),
    _sparse("ix_tenant_tasks_ended_at", "ended_at", "id", by="ended_at"),
    _sparse("ix_tenant_tasks_told_at", "told_at", "id", by="told_at"),
)

# Whose turn a tenant is. Never removed, so that its fencing token never begins again.
tenants = _table(
    "tenants",
    Column("tenant_id", KEY, primary_key=True),
    # Its task, from when it was made until it has ended; NULL: it has none.
    Column("task_id", Id),
    # Grows with every task that takes the lock.
    Column("fence", BigInteger, nullable=False),
    integer_id=False,
)

# What of plans and tasks has changed, and is not shown outside yet. Written with the change, removed when it is shown.
outbox = _table(
    "outbox",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("at", Micros, nullable=False),
    Column("type", String(40), nullable=False),
    Column("plan_id", Id, nullable=False),
    Column("task_id", Id),
)

# What is shown outside, where the database is what shows it (ksana.runtime.sql).
runtime_state = _table(
    "runtime_state",
    Column("kind", String(16), primary_key=True),
    Column("state_key", KEY, primary_key=True),
    Column("value", LongText, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("expires_at", Micros, nullable=False),
    Index("ix_runtime_state_expires", "expires_at"),
    integer_id=False,
)

idempotency_keys = _table(
    "idempotency_keys",
    Column("scope", KEY, primary_key=True),
    Column("idempotency_key", String(128), primary_key=True),
    Column("resource_id", Id, nullable=False),
    Column("created_at", Micros, nullable=False),
    Index("ix_idempotency_keys_resource_id", "resource_id"),
    integer_id=False,
)

locks = _table(
    "locks",
    Column("name", String(128), primary_key=True),
    Column("owner", String(128), nullable=False),
    # Grows with every new holder; the row is never removed, so that it never begins again.
    Column("token", BigInteger, nullable=False),
    Column("expires_at", Micros, nullable=False),
    integer_id=False,
)

instances = _table(
    "instances",
    Column("id", KEY, primary_key=True),
    Column("name", String(255), nullable=False),
    Column("version", String(32), nullable=False),
    Column("roles", String(128), nullable=False),
    Column("status", String(8), nullable=False),
    Column("started_at", Micros, nullable=False),
    Column("heartbeat_at", Micros, nullable=False),
    Column("expires_at", Micros, nullable=False),
    # The queues that its workers serve, how many executions they take at once, and where its API is.
    Column("queues", String(1024), nullable=False, server_default=""),
    Column("places", Integer, nullable=False, server_default="0"),
    Column("address", String(255), nullable=False, server_default=""),
    Index("ix_instances_status", "status", "expires_at"),
    integer_id=False,
)

events = _table(
    "events",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("type", String(40), nullable=False),
    Column("at", Micros, nullable=False),
    Column("subject", String(160), nullable=False),
    Column("data", Json),
    Index("ix_events_subject", "subject", "id"),
)

audit_entries = _table(
    "audit_entries",
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("at", Micros, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("address", KEY, nullable=False),
    Column("request_id", String(128), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", String(160), nullable=False),
    Column("reason", Text),
    Column("data", Json),
    Index("ix_audit_entries_subject", "subject", "id"),
    Index("ix_audit_entries_actor", "actor", "id"),
)

# Until when somebody has seen what failed. Without a row: nobody has.
acknowledgements = _table(
    "acknowledgements",
    # job, workflow, plan, or all: then the id is 0
    Column("kind", String(10), primary_key=True),
    Column("target_id", Id, primary_key=True, autoincrement=False),
    Column("seen_until", Micros, nullable=False),
    integer_id=False,
)

# Moments that the store must remember, by name. `ledger_since`: rows of the ledger before it may have been removed.
marks = _table(
    "marks",
    Column("name", KEY, primary_key=True),
    Column("at", Micros, nullable=False),
    integer_id=False,
)

# The number of each writer's last committed batch: how a writer whose connection broke at COMMIT finds out what happened.
writers = _table(
    "writers",
    Column("id", KEY, primary_key=True),
    Column("batch", BigInteger, nullable=False),
    Column("marked_at", Micros, nullable=False),
    integer_id=False,
)
