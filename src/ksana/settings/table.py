"""Every setting, declared once: type, default, variable, flag, meaning. Loading, `config show` and the page follow.

A field's path is its place in the tree (`server.port`). Its variable is `KSANA_` and the path, beside those that it
says, and `also` lists other spellings in the file: those of the documents whose settings Ksana keeps.
"""
# ruff: noqa: RUF009 - `setting` is a field specifier, as `dataclasses.field` is: nothing mutable is shared

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import cast

from ksana.domain.job import QUEUE_PATTERN
from ksana.settings.declare import Setting, rows, setting
from ksana.settings.urls import DATABASE_URL, GO_DSN, HTTP_URL, REDIS_URL
from ksana.settings.values import (
    ACCOUNT,
    DIRECTORY,
    HOST,
    HOSTS,
    LABEL,
    NAMESPACE,
    TARGETS,
    YES_OR_NO,
    Parser,
    choice,
    duration,
    whole,
    words,
)

_SECOND = timedelta(seconds=1)


_BYTES = whole(0, 1 << 48)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The process and its HTTP interface."""

    host: str = setting(
        HOST, "127.0.0.1", "Address to listen on. Any other than loopback needs `--insecure`.", flag="--host"
    )
    port: int = setting(whole(0, 65_535), 7100, "Port to listen on; 0 takes a free one.", env=("PORT",), flag="--port")
    allowed_hosts: tuple[str, ...] = setting(
        HOSTS,
        (),
        "Names under which clients may call this server, besides `localhost` and the address it listens on.",
    )
    graceful_timeout: timedelta = setting(
        duration(high=timedelta(hours=1)),
        10 * _SECOND,
        "How long running work may take to end after a stop signal.",
    )


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """This process among others on the same database."""

    roles: tuple[str, ...] = setting(
        words("list of `api`, `scheduler` and `worker`", r"api|scheduler|worker", least=1),
        ("api", "scheduler", "worker"),
        "What this instance does: answers the API, turns planned instants into work (and may lead), does the work.",
        flag="--roles",
    )
    queues: tuple[str, ...] = setting(
        words("list of queues", QUEUE_PATTERN, least=1, most=15),
        ("default",),
        "Queues that its workers serve; a job names one with `worker_queue` to ask for a kind of worker.",
        flag="--queues",
    )
    name: str = setting(
        LABEL,
        "",
        "How the others show it.",
        flag="--name",
        default_meaning="host and process",
    )


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where everything is kept. `mysql.dsn` and its companions (document 003) are other spellings."""

    url: str = setting(
        DATABASE_URL,
        "",
        "`sqlite:///path`, `postgresql://user:password@host/name`, `mysql://user:password@host/name` or `json://path`.",
        flag="--database-url",
        also={"mysql.dsn": GO_DSN},
        secret=True,
        default_meaning="`sqlite:///` and `ksana.db` in `data_dir`",
    )
    connect_timeout: timedelta = setting(
        duration(_SECOND / 10, timedelta(hours=1)),
        10 * _SECOND,
        "How long the database may take to come up at start.",
    )
    max_open_conns: int = setting(
        whole(3, 1_000),
        10,
        "Most connections to a database server at a time: one writes, one keeps the heartbeat, one is to spare, the others"
        " read. One more hears what other instances tell (PostgreSQL).",
        also=("mysql.max_open_conns",),
    )
    max_idle_conns: int = setting(
        whole(0, 1_000), 10, "Most connections kept open while idle.", also=("mysql.max_idle_conns",)
    )
    conn_max_lifetime: timedelta = setting(
        duration(_SECOND),
        300 * _SECOND,
        "Age at which a connection is replaced.",
        also=("mysql.conn_max_lifetime",),
    )


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """When work becomes due."""

    poll_interval: timedelta = setting(
        duration(_SECOND / 100, timedelta(minutes=1)),
        _SECOND,
        "How often the store is asked for what others have added.",
    )
    ahead_seconds: timedelta = setting(
        duration(_SECOND, timedelta(hours=1)),
        30 * _SECOND,
        "How far ahead due instants are read, to fire on the instant.",
    )
    batch_limit: int = setting(whole(1, 100_000), 1_000, "Most schedules read at a time.")
    enable_seconds_field: bool = setting(
        YES_OR_NO, default=True, meaning="Accept six-field cron expressions; if false, five fields only."
    )


@dataclass(frozen=True, slots=True)
class DefaultRetrySettings:
    """What a task (document 003) that says nothing about retries gets."""

    max_retries: int = setting(whole(0, 999), 0, "Retries after the first attempt.")
    initial_delay: timedelta = setting(duration(), _SECOND, "Wait before the first retry.")
    strategy: str = setting(choice("fixed", "exponential"), "exponential", "How later waits grow: not, or doubling.")
    max_delay: timedelta = setting(duration(), 300 * _SECOND, "Longest wait between two attempts.")


_PERSISTENCE = "executor.persistence"


@dataclass(frozen=True, slots=True)
class TtlSettings:
    """How long runtime state outlives its last change. A number is seconds."""

    checkpoint: timedelta = setting(
        duration(_SECOND),
        timedelta(days=7),
        "Checkpoints.",
        also=(f"{_PERSISTENCE}.checkpoint_ttl", f"{_PERSISTENCE}.redis.ttl.checkpoint"),
    )
    projection: timedelta = setting(
        duration(_SECOND),
        timedelta(days=30),
        "Projections of plans and tasks, and the tenant index.",
        also=(f"{_PERSISTENCE}.projection_ttl", f"{_PERSISTENCE}.redis.ttl.projection"),
    )
    lock: timedelta = setting(
        duration(_SECOND),
        timedelta(hours=2, minutes=30),
        "A tenant's lock whose holder is gone.",
        also=(f"{_PERSISTENCE}.lock_ttl", f"{_PERSISTENCE}.redis.ttl.lock"),
    )


@dataclass(frozen=True, slots=True)
class PersistenceSettings:
    """Runtime state of rollouts (document 004): checkpoints, projections, tenant locks."""

    store_type: str = setting(
        choice("sql", "redis", "memory", synonyms={"inmemory": "memory", "database": "sql"}),
        "sql",
        "Where it is kept: the database, Redis (`redis.url`), or this process, which forgets it at its end.",
    )
    namespace: str = setting(
        NAMESPACE, "executor", "First part of every key in Redis.", also=(f"{_PERSISTENCE}.redis.namespace",)
    )
    ttl: TtlSettings = field(default_factory=TtlSettings)


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Running the work."""

    worker_pool_size: int = setting(
        whole(1, 10_000), 16, "Most executions that this instance runs at a time.", env=("WORKERS",)
    )
    per_host: int = setting(
        whole(0, 10_000),
        0,
        "Most executions of this instance that call one host at a time, so that a slow one leaves room for others.",
        default_meaning="three quarters of `executor.worker_pool_size`",
    )
    request_timeout: timedelta = setting(
        duration(_SECOND / 10), 15 * _SECOND, "Time-out of a task (document 003) that names none."
    )
    node_timeout: timedelta = setting(
        duration(_SECOND / 10),
        timedelta(hours=1),
        "Time-out of a workflow's node that carries its job itself, is not HTTP and names none.",
    )
    connect_timeout: timedelta = setting(
        duration(_SECOND / 100, timedelta(hours=1)), 10 * _SECOND, "How long a target may take to accept a connection."
    )
    response_kept: int = setting(
        whole(0, 100_000_000),
        1_000_000,
        "Bytes of a target's answer that are kept; what is longer is cut, and the attempt says so.",
    )
    egress: str = setting(
        choice("internal", "public", "allowlist"),
        "internal",
        "Which targets may be called: `internal` also loopback and private networks, `public` only the internet,"
        " `allowlist` only `executor.egress_allow`. Cloud metadata, link-local and multicast addresses never are.",
    )
    egress_allow: tuple[str, ...] = setting(
        TARGETS, (), "Host names, addresses and networks that may be called where `executor.egress` is `allowlist`."
    )
    shell: str = setting(
        choice("auto", "on", "off"),
        "auto",
        "Whether `shell` jobs run: `auto` while `server.host` is loopback, which nobody else can reach.",
    )
    shell_allow: tuple[str, ...] = setting(
        words("list of commands", r"[^\0]{1,1000}"),
        (),
        "The only commands that `shell` jobs may run; then `cmd` must be a list, whose first item is one of them. None: all.",
    )
    shell_directories: tuple[str, ...] = setting(
        words("list of directories, each its whole path", r"/[^\0]{0,1000}"),
        (),
        "Where, or below which, the `cwd` of a `shell` job may be. Without one, each attempt has a new directory of its own.",
    )
    shell_user: str = setting(ACCOUNT, "", "User that commands run as; Ksana must then be root.")
    shell_cpu: timedelta = setting(duration(), timedelta(0), "Most processor time of a command; 0 is no limit.")
    shell_memory: int = setting(_BYTES, 0, "Most bytes of address space of each process of a command; 0 is no limit.")
    shell_file_size: int = setting(_BYTES, 0, "Most bytes of a file that a command writes; 0 is no limit.")
    shell_processes: int = setting(
        whole(0, 1_000_000), 0, "Most processes that the user of commands may have in all; 0 is no limit."
    )
    child_env: tuple[str, ...] = setting(
        words("list of variables, none of `KSANA_…`", r"(?!KSANA_)[A-Za-z_][A-Za-z0-9_]*"),
        (),
        "Variables of this server that commands and Python functions get, besides `PATH`, `HOME`, `LANG`, `LC_…` and `TZ`.",
    )
    python_modules: tuple[str, ...] = setting(
        words("list of modules", r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"),
        (),
        "Modules with the functions that `python` jobs may name.",
    )
    python_path: tuple[str, ...] = setting(
        words("list of directories, each its whole path", r"/[^\0]{0,1000}"),
        (),
        "Where these modules are looked for, after what is installed.",
    )
    python_idle: int = setting(
        whole(0, 1_000), 4, "Processes for Python functions that are kept ready; a new one takes a moment to start."
    )
    default_retry: DefaultRetrySettings = field(default_factory=DefaultRetrySettings)
    persistence: PersistenceSettings = field(default_factory=PersistenceSettings)


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """What a job created at `/jobs` (document 002) gets where it says nothing."""

    default_timeout: timedelta = setting(
        duration(_SECOND / 10), 10 * _SECOND, "Time-out of one attempt.", env=("DEFAULT_TIMEOUT",)
    )
    max_retries: int = setting(whole(0, 999), 3, "Retries after the first attempt.", env=("MAX_RETRIES",))
    retry_backoff: timedelta = setting(duration(), 5 * _SECOND, "Wait before each retry.", env=("RETRY_BACKOFF",))


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """How targets report the end of asynchronous work."""

    base_url: str | None = setting(
        cast("Parser[str | None]", HTTP_URL),
        None,
        "Address that targets call, as they see it; the token is appended.",
        default_meaning="`/api/v1/callbacks` at the address this server listens on",
    )
    token_ttl: timedelta = setting(
        duration(_SECOND),
        3600 * _SECOND,
        "How long a callback token can be used, at the least; as long as its run waits.",
    )
    allow_ids: bool = setting(
        YES_OR_NO, default=True, meaning="Accept callbacks that name `task_id` and `run_id` instead of a token."
    )


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long what has ended is kept. What has not ended always is."""

    max_age: timedelta = setting(
        duration(timedelta(minutes=1)), timedelta(days=30), "Age from which ended runs, ledger rows and events go."
    )
    max_runs: int = setting(
        whole(1, 1_000_000_000), 100_000, "Most ended runs that are kept of one job; the ledger keeps its rows."
    )
    interval: timedelta = setting(
        duration(_SECOND, timedelta(days=1)), timedelta(hours=1), "How often to look for what may go."
    )


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Redis, for those who choose it for runtime state."""

    url: str | None = setting(
        cast("Parser[str | None]", REDIS_URL),
        None,
        "`redis://:password@host:6379/0`, or `rediss://` for TLS.",
        also=(f"{_PERSISTENCE}.redis.url",),
        secret=True,
        default_meaning="none",
    )


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Prometheus."""

    enabled: bool = setting(YES_OR_NO, default=True, meaning="Answer `/metrics`.")
    max_tasks: int = setting(
        whole(0, 100_000), 1_000, "How many tasks have series of their own; the others share `task_id=other`."
    )


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    """The log, on standard error."""

    level: str = setting(
        choice("debug", "info", "warning", "error", synonyms={"warn": "warning"}),
        "info",
        "Least important lines to write.",
        env=("LOG_LEVEL",),
        flag="--log-level",
    )
    format: str = setting(
        choice("auto", "human", "json"),
        "auto",
        "`auto` is human on a terminal, JSON otherwise.",
        env=("KSANA_LOG_FORMAT",),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All of them. Build one with `ksana.settings.load`: it fills in what follows from others."""

    data_dir: Path = setting(
        DIRECTORY,
        Path("./data"),
        "Directory of everything Ksana writes; made for its user only.",
        env=("DATA_DIR", "KSANA_DATA"),
        flag="--data-dir",
    )
    server: ServerSettings = field(default_factory=ServerSettings)
    instance: InstanceSettings = field(default_factory=InstanceSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    executor: ExecutorSettings = field(default_factory=ExecutorSettings)
    jobs: JobDefaults = field(default_factory=JobDefaults)
    callback: CallbackSettings = field(default_factory=CallbackSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    redis: RedisSettings = field(default_factory=RedisSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    logging: LoggingSettings = field(default_factory=LoggingSettings)


@cache
def settings_table() -> Mapping[str, Setting]:
    """Every setting by its path, in the order of declaration."""
    return {row.path: row for row in rows(Settings)}
