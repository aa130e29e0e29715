"""Where each setting comes from, and what is said about one that cannot be used."""

from datetime import timedelta
from pathlib import Path

import pytest

from ksana.domain.errors import InvalidSetting
from ksana.settings import load, settings_table
from ksana.settings.declare import sections
from ksana.settings.page import page
from ksana.settings.table import Settings

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"

# Document 003 §13, as printed there.
DOCUMENT_003 = """\
server:
  port: 8080
  graceful_timeout: 10s
mysql:
  dsn: "user:pass@tcp(127.0.0.1:3306)/cronjob?charset=utf8mb4&parseTime=True&loc=Local"
  max_open_conns: 50
  max_idle_conns: 10
  conn_max_lifetime: 300s
scheduler:
  poll_interval: 1s        # comment
  ahead_seconds: 30
  batch_limit: 200
  enable_seconds_field: true
executor:
  worker_pool_size: 16
  request_timeout: 15s
  default_retry:
    max_retries: 0
callback:
  base_url: "http://cronjob.internal/api/v1/callbacks"
  token_ttl: 3600s
metrics:
  enabled: true
logging:
  level: info
"""


@pytest.fixture
def write(tmp_path: Path) -> "Writer":
    return Writer(tmp_path / "ksana.yaml")


class Writer:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, text: str) -> Path:
        self.file.write_text(text)
        return self.file


def refusal(text: str, write: Writer) -> InvalidSetting:
    with pytest.raises(InvalidSetting) as caught:
        load(file=write(text))
    return caught.value


def test_without_any_source_the_defaults_hold() -> None:
    settings = load().settings
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 7100)
    assert settings.data_dir == Path("./data")
    assert settings.database.url == "sqlite:///data/ksana.db"
    assert settings.executor.worker_pool_size == 16
    assert settings.executor.default_retry.max_retries == 0
    assert (settings.jobs.max_retries, settings.jobs.retry_backoff) == (3, timedelta(seconds=5))
    assert settings.jobs.default_timeout == timedelta(seconds=10)
    assert settings.server.graceful_timeout == timedelta(seconds=10)


def test_the_file_of_document_003_is_understood_as_it_stands(write: Writer) -> None:
    settings = load(file=write(DOCUMENT_003)).settings
    assert settings.server.port == 8080
    assert settings.database.url == "mysql://user:pass@127.0.0.1:3306/cronjob"
    assert settings.database.max_open_conns == 50
    assert settings.scheduler.batch_limit == 200
    assert settings.callback.base_url == "http://cronjob.internal/api/v1/callbacks"


def test_the_variables_of_document_002_are_understood() -> None:
    environ = {"PORT": "7200", "DATA_DIR": "/srv/k", "WORKERS": "4", "DEFAULT_TIMEOUT": "20s", "MAX_RETRIES": "1"}
    settings = load(environ=environ | {"RETRY_BACKOFF": "500ms", "LOG_LEVEL": "WARN"}).settings
    assert settings.server.port == 7200
    assert settings.database.url == "sqlite:////srv/k/ksana.db"
    assert settings.executor.worker_pool_size == 4
    assert settings.jobs.default_timeout == timedelta(seconds=20)
    assert (settings.jobs.max_retries, settings.jobs.retry_backoff) == (1, timedelta(milliseconds=500))
    assert settings.logging.level == "warning"


@pytest.mark.parametrize(
    "text",
    [
        "executor: {persistence: {redis: {namespace: prod, ttl: {lock: 9000}}}}",
        "executor: {persistence: {namespace: prod, lock-ttl: 2h30m}}",
        "executor.persistence.redis.namespace: prod\nexecutor.persistence.ttl.lock: 9000",
    ],
)
def test_both_spellings_of_document_004_are_understood(text: str, write: Writer) -> None:
    persistence = load(file=write(text)).settings.executor.persistence
    assert persistence.namespace == "prod"
    assert persistence.ttl.lock == timedelta(hours=2, minutes=30)


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(write: Writer) -> None:
    file = write("server: {port: 1001, host: 127.0.0.3}\nlogging: {level: error}")
    environ = {"PORT": "1002", "LOG_LEVEL": "debug"}
    loaded = load(file=file, environ=environ, flags={"--port": "1003", "--host": None})
    assert loaded.settings.server.port == 1003
    assert loaded.settings.logging.level == "debug"
    assert loaded.settings.server.host == "127.0.0.3"
    assert loaded.sources["server.port"] == "flag --port"
    assert loaded.sources["logging.level"] == "environment LOG_LEVEL"
    assert loaded.sources["server.host"] == f"file {file}, line 1"
    assert loaded.sources["data_dir"] == "default"


def test_the_file_can_be_named_in_the_environment(write: Writer) -> None:
    file = write("server: {port: 1001}")
    assert load(environ={"KSANA_CONFIG": str(file)}).settings.server.port == 1001


def test_an_empty_variable_counts_as_absent() -> None:
    assert load(environ={"PORT": "", "KSANA_DATABASE_URL": " "}).settings.server.port == 7100


def test_two_variables_for_the_same_setting_must_agree() -> None:
    assert load(environ={"DATA_DIR": "/a", "KSANA_DATA": "/a"}).settings.data_dir == Path("/a")
    with pytest.raises(InvalidSetting, match="DATA_DIR and KSANA_DATA differ"):
        load(environ={"DATA_DIR": "/a", "KSANA_DATA": "/b"})


def test_a_misspelt_variable_is_noted_but_not_refused() -> None:
    loaded = load(environ={"KSANA_DATABSE_URL": "x", "KSANA_SERVICE_HOST": "10.0.0.1", "KSANA_PORT": "tcp://10.0.0.1"})
    assert loaded.notes == (
        "the variable KSANA_DATABSE_URL is not a setting and was ignored: did you mean KSANA_DATABASE_URL?",
    )


def test_an_unknown_name_is_refused_with_the_nearest_one_and_its_line(write: Writer) -> None:
    error = refusal("logging:\n  level: info\nserver:\n  prot: 1\n", write)
    assert error.field == "server.prot"
    assert str(error) == (
        f"setting server.prot (from file {write.file}, line 4): there is no such setting; did you mean server.port?"
    )


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("server: {port: abc}", "server.port", "must be a whole number from 0 to 65535, not 'abc'"),
        ("server: {port: true}", "server.port", "must be a whole number"),
        ("server: {port: 70000}", "server.port", "from 0 to 65535, not 70000"),
        ("server: {graceful_timeout: soon}", "server.graceful_timeout", "not a duration: 'soon'"),
        ("server: {graceful_timeout: 2h}", "server.graceful_timeout", "must be from 0s to 1h"),
        ("server: 7100", "server", "is a section"),
        ("server: {allowed_hosts: [http://x/]}", "server.allowed_hosts", "without scheme or path"),
        ("server: {allowed_hosts: {a: b}}", "server.allowed_hosts.a", "there is no such setting"),
        ("logging: {level: loud}", "logging.level", "must be one of debug, info, warning, error"),
        ("metrics: {enabled: perhaps}", "metrics.enabled", "must be true or false"),
        ("callback: {base_url: ftp://x}", "callback.base_url", "must be an http:// or https:// address"),
        ("database: {url: 'sqlite:///a.db'}\nmysql: {dsn: 'a@tcp(h)/b'}", "mysql.dsn", "is said twice"),
        ("executor: {persistence: {store-type: redis}}", "executor.persistence.store_type", "redis needs redis.url"),
        ("executor: {default_retry: {initial_delay: 1h}}", "executor.default_retry.max_delay", "cannot be shorter"),
        ("server: {port: 1}\nserver: {port: 2}", "config", "server stands twice"),
        ("- a\n- b", "config", "must hold sections"),
        ("server: [unclosed", "config", "is not valid YAML: line 1, column"),
        ("a: &x 1\nb: *x", "config", "line 2, column 4: aliases are not supported"),
        ("x: !!python/object/apply:os.system [ls]", "config", "is not valid YAML"),
        (f"x: {'[' * 40}{']' * 40}", "config", "nested too deeply"),
        ("data_dir: 2024-13-45", "config", "is not valid YAML: line 1"),
        (f"x: {'a' * 1_000_001}", "config", "is larger than 1 MB"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_naming_the_place(
    text: str, field: str, message: str, write: Writer
) -> None:
    error = refusal(text, write)
    assert error.field == field
    assert message in str(error)
    assert str(write.file) in error.source
    assert "\n" not in str(error)


def test_a_line_without_a_value_is_as_if_it_were_not_there(write: Writer) -> None:
    assert load(file=write("server:\n  port:\nmysql:\n")).settings.server.port == 7100


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read: No such file"):
        load(file=tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"x: \xff")
    with pytest.raises(InvalidSetting, match="is not UTF-8 text"):
        load(file=tmp_path / "latin.yaml")


def test_what_is_shown_has_every_setting_and_no_password() -> None:
    environ = {"KSANA_DATABASE_URL": "postgresql://k:s3cret@db/k", "KSANA_REDIS_URL": "redis://:s3cret@r:6379/0"}
    lines = load(environ=environ).shown()
    assert [line.path for line in lines] == list(settings_table())
    assert "s3cret" not in repr(lines)
    assert next(line.value for line in lines if line.path == "database.url") == "postgresql://k:***@db/k"


def test_every_setting_has_one_place_a_meaning_and_variables_of_its_own() -> None:
    table = settings_table()
    variables = [name for row in table.values() for name in row.env]
    assert len(variables) == len(set(variables))
    assert all(row.meaning and len(row.env) <= 3 for row in table.values())
    assert all(meaning for _, meaning in sections(Settings))


def test_the_reference_page_is_what_the_table_says() -> None:
    assert REFERENCE.read_text() == page(), "run: python -m ksana.settings.page > docs/reference/settings.md"


def test_every_setting_has_the_variable_that_its_path_suggests() -> None:
    for row in settings_table().values():
        assert f"KSANA_{row.path.upper().replace('.', '_')}" in row.env
    assert load(environ={"KSANA_SERVER_PORT": "7200"}).settings.server.port == 7200
    assert load(environ={"KSANA_DATA_DIR": "/x"}).settings.data_dir == Path("/x")


def test_a_cluster_may_name_its_own_variables_after_us() -> None:
    loaded = load(
        environ={"KSANA_SERVER_PORT": "tcp://10.0.0.1:80", "KSANA_SERVICE_HOST": "10.0.0.1", "KSANA_PORT_80_TCP": "x"}
    )
    assert loaded.settings.server.port == 7100
    assert loaded.notes == ()


def test_a_variable_that_is_no_setting_is_noted() -> None:
    assert "KSANA_FOO" in " ".join(load(environ={"KSANA_FOO": "1"}).notes)
