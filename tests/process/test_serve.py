"""Ksana as a process: it starts, answers, stops, and can be started again."""

import signal
import stat
from pathlib import Path

import httpx2
import pytest
from tests.conftest import StartPrivate
from tests.process.conftest import PATIENCE, Serve, ksana
from tests.servers.base import Server
from tests.servers.postgresql import PostgresServer

from ksana import __version__


def test_it_answers_once_it_says_that_it_is_ready(serve: Serve) -> None:
    running = serve(fresh=True)
    assert running.get("/health").json() == {"status": "ok"}
    assert running.get("/api/v1/healthz").text == "ok"
    assert running.get("/api/v1/version").text == f"v{__version__}"
    assert "ksana_build_info" in running.get("/metrics").text
    assert running.get("/docs").status_code == 200
    assert running.get("/ui").status_code == 200
    assert running.get("/openapi.json").json()["info"]["title"] == "Ksana"
    assert "server" not in running.get("/health").headers
    probe = httpx2.head(f"{running.base}/health", timeout=PATIENCE)
    assert (probe.status_code, probe.text) == (200, "")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_with_success(how: signal.Signals, serve: Serve) -> None:
    running = serve(fresh=True)
    assert running.end(how) == 0
    actions = [line["action"] for line in running.log()]
    assert actions[-2:] == ["serve.stopping", "serve.stopped"]
    assert "serve.ready" in actions


def test_every_line_of_its_log_is_json_with_the_stable_members(serve: Serve) -> None:
    running = serve()
    running.get("/nowhere")
    running.end()
    assert all({"ts", "level", "action", "msg"} <= set(line) for line in running.log())
    assert "http.request" in [line["action"] for line in running.log()]


def test_sec_s20_it_does_not_answer_to_other_names(serve: Serve) -> None:
    assert serve().get("/health", Host="evil.example").status_code == 421


def test_sec_s35_what_it_writes_is_for_its_user_only(serve: Serve, tmp_path: Path) -> None:
    serve().get("/health")
    data = tmp_path / "data"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    files = [file for file in data.iterdir() if file.is_file()]
    assert "ksana.db" in {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_can_be_started_again_on_the_same_data(how: signal.Signals, serve: Serve) -> None:
    serve().end(how)
    assert serve().get("/health").status_code == 200


def test_two_cannot_share_a_data_directory(serve: Serve, tmp_path: Path) -> None:
    first = serve()
    second = ksana("serve", "--port", "0", cwd=tmp_path, fresh=True)
    assert second.code == 1
    assert "ksana: the data directory" in second.err
    assert f"process {first.process.pid}" in second.err
    assert "Traceback" not in second.err
    assert first.get("/health").status_code == 200


def test_two_cannot_share_a_port(serve: Serve, tmp_path: Path) -> None:
    port = serve().base.rpartition(":")[2]
    second = ksana("serve", "--port", port, "--data-dir", "other", cwd=tmp_path)
    assert second.code == 2
    assert second.err.startswith(
        f"ksana: setting server.port (from flag --port): 127.0.0.1:{port} cannot be listened on"
    )
    assert not (tmp_path / "other").exists()


def test_it_serves_on_postgresql_without_a_data_directory(serve: Serve, postgres_url: str, tmp_path: Path) -> None:
    running = serve("--database-url", postgres_url, fresh=True)
    assert running.get("/health").status_code == 200
    assert running.end() == 0
    assert not (tmp_path / "data").exists()


def test_it_serves_on_mysql(serve: Serve, mysql_url: str) -> None:
    running = serve(env={"KSANA_DATABASE_URL": mysql_url}, fresh=True)
    assert running.get("/health").status_code == 200
    assert running.end() == 0


def test_two_on_the_same_server_start_at_once(serve: Serve, postgres_url: str) -> None:
    for running in (serve("--database-url", postgres_url), serve("--database-url", postgres_url)):
        assert running.get("/health").status_code == 200


def test_it_waits_for_a_database_that_is_not_up_yet(
    serve: Serve, private_postgres: StartPrivate[PostgresServer]
) -> None:
    server = private_postgres()
    url = server.create_database()
    server.stop()
    running = serve("--database-url", url, env={"KSANA_DATABASE_CONNECT_TIMEOUT": "30s"}, ready=False)
    running.wait_logged("store.waiting")
    server.start()
    assert running.wait_ready().get("/health").status_code == 200


def test_it_can_be_stopped_while_it_waits(serve: Serve) -> None:
    env = {"KSANA_DATABASE_URL": "postgresql://u@127.0.0.1:1/k", "KSANA_DATABASE_CONNECT_TIMEOUT": "1h"}
    running = serve(env=env, ready=False)
    running.wait_logged("store.waiting")
    assert running.end() == 0


def test_its_health_says_that_the_database_has_gone_and_come_back(
    serve: Serve, private_postgres: StartPrivate[PostgresServer]
) -> None:
    server = private_postgres()
    running = serve("--database-url", server.create_database(), env={"KSANA_DATABASE_CONNECT_TIMEOUT": "1s"})
    server.stop()
    gone = running.get("/health")
    assert (gone.status_code, gone.json()) == (503, {"status": "degraded"})
    server.start()
    running.until("/health", lambda answer: answer.status_code == 200)


def test_an_open_address_can_be_asked_for(serve: Serve) -> None:
    running = serve("--host", "0.0.0.0", "--insecure")
    assert running.base.startswith("http://127.0.0.1:")
    assert running.get("/health").status_code == 200


@pytest.mark.parametrize("name", ["postgresql", "mysql"])
def test_it_stops_though_the_database_answers_nothing(name: str, serve: Serve, request: pytest.FixtureRequest) -> None:
    start: StartPrivate[Server] = request.getfixturevalue({"postgresql": "private_postgres"}.get(name, "private_mysql"))
    server = start()
    running = serve("--database-url", server.create_database(), env={"KSANA_SERVER_GRACEFUL_TIMEOUT": "1s"})
    server.pause()
    try:
        running.until("/health", lambda answer: answer.status_code == 503)
        assert running.end(signal.SIGTERM) == 1
        assert running.log()[-1]["action"] == "serve.abandoned"
    finally:
        server.resume()
