"""The other commands: what they print and how they end."""

import json
from pathlib import Path

import pytest
from tests.process.conftest import Serve, ksana

from ksana import __version__
from ksana.cli.main import run
from ksana.settings import settings_table


def test_the_version_is_told_without_importing_anything_else(tmp_path: Path) -> None:
    assert ksana("--version", cwd=tmp_path, fresh=True).out == f"ksana {__version__}\n"


def test_config_show_prints_each_value_and_its_source(tmp_path: Path) -> None:
    env = {"PORT": "7200", "KSANA_DATABASE_URL": "postgresql://u:s3cret@h/k"}
    ended = ksana("config", "show", "--log-level", "debug", cwd=tmp_path, env=env, fresh=True)
    assert ended.code == 0
    told = {line.split()[0]: line for line in ended.out.splitlines()}
    assert list(told) == list(settings_table())
    assert told["server.port"].endswith("7200  (environment PORT)")
    assert told["logging.level"].endswith("debug  (flag --log-level)")
    assert "s3cret" not in ended.out
    assert list(tmp_path.iterdir()) == []


def test_config_show_speaks_json_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSANA_DATABSE_URL", "x")
    assert run(["config", "show", "--json", "--port", "1"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["server.port"] == {"value": "1", "source": "flag --port"}
    assert "did you mean KSANA_DATABASE_URL?" in printed.err


def test_every_flag_of_the_table_is_a_flag_of_config_show(capsys: pytest.CaptureFixture[str]) -> None:
    run(["config", "show", "--help"])
    told = capsys.readouterr().out
    flags = [row.flag for row in settings_table().values() if row.flag]
    assert flags
    assert all(flag in told for flag in flags)
    assert "--config" in told


def test_migrate_makes_the_schema_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    before = ksana("migrate", "--check", cwd=tmp_path)
    assert before.code == 1
    assert list(tmp_path.iterdir()) == []
    done = ksana("migrate", cwd=tmp_path, fresh=True)
    assert (done.code, done.out.startswith("schema of data/ksana.db: nothing → ")) == (0, True)
    assert ksana("migrate", "--check", cwd=tmp_path).code == 0
    assert "already at" in ksana("migrate", cwd=tmp_path).out


def test_doctor_says_ok_where_all_is_well(tmp_path: Path) -> None:
    ksana("migrate", cwd=tmp_path)
    ended = ksana("doctor", cwd=tmp_path, fresh=True)
    assert ended.code == 0, ended
    told = {line.split()[1]: line.split()[0] for line in ended.out.splitlines()}
    assert told.items() >= {"store": "ok", "schema": "ok", "durability": "ok", "clock": "ok"}.items()


def test_doctor_makes_no_database(tmp_path: Path) -> None:
    ended = ksana("doctor", cwd=tmp_path)
    assert (ended.code, ended.out.split()[:2]) == (0, ["warn", "store"])
    assert list(tmp_path.iterdir()) == []


def test_doctor_fails_where_the_database_is_down(tmp_path: Path) -> None:
    env = {"KSANA_DATABASE_URL": "postgresql://u:s3cret@127.0.0.1:1/k", "KSANA_DATABASE_CONNECT_TIMEOUT": "1s"}
    ended = ksana("doctor", cwd=tmp_path, env=env)
    assert ended.code == 1
    assert ended.out.startswith("fail  store")
    assert "127.0.0.1:1" in ended.out
    assert "s3cret" not in ended.out + ended.err


def test_doctor_can_be_asked_while_ksana_runs(serve: Serve, tmp_path: Path) -> None:
    serve()
    ended = ksana("doctor", cwd=tmp_path)
    assert ended.code == 0
    assert "a running Ksana holds the database" in ended.out


@pytest.mark.parametrize("back_end", ["postgres_url", "mysql_url"])
def test_doctor_examines_database_servers(back_end: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url: str = request.getfixturevalue(back_end)
    assert "no tables yet" in ksana("doctor", "--database-url", url, cwd=tmp_path).out
    assert ksana("migrate", "--database-url", url, cwd=tmp_path).code == 0
    told = ksana("doctor", "--database-url", url, cwd=tmp_path).out
    assert "ok    schema" in told
    assert "clock" in told
