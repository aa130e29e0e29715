"""What goes wrong while a running Ksana is asked is one line and an exit code, never a traceback."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from tests.process.conftest import Ended, Serve, ksana

from ksana.cli.main import run


def assert_one_line(ended: Ended, code: int, *parts: str) -> None:
    assert (ended.code, ended.out) == (code, ""), ended
    assert ended.err.startswith("ksana: ")
    assert ended.err.count("\n") == 1, ended.err
    assert all(part in ended.err for part in parts), ended.err


def test_what_the_server_refuses_is_told_with_its_code(serve: Serve, tmp_path: Path) -> None:
    env = {"KSANA_SERVER": serve().base}

    def refused(*arguments: str) -> Ended:
        return ksana(*arguments, cwd=tmp_path, env=env)

    assert_one_line(ksana("jobs", "show", "none", cwd=tmp_path, env=env, fresh=True), 1, "none (JOB_NOT_FOUND)")
    assert_one_line(refused("jobs", "show", "b?c"), 1, "(JOB_NOT_FOUND)")
    assert_one_line(refused("runs", "retry", "r/nodes/n"), 2, "'r/nodes/n' is no id")
    assert_one_line(refused("runs", "list", "--status", "NOPE"), 1, "status: 'NOPE'", "(VALIDATION_ERROR)")
    assert_one_line(refused("runs", "logs", "none", "--node", "a"), 1, "(RUN_NOT_FOUND)")
    assert_one_line(refused("runs", "logs", "7", "--follow"), 1, "(NOT_FOUND)")
    assert_one_line(refused("runs", "cancel", "7"), 1, "(RUN_NOT_FOUND)")
    assert_one_line(refused("plans", "start", "none"), 1, "(PLAN_NOT_FOUND)")
    assert_one_line(refused("events", "--types", "nothing"), 1, "types: ", "(VALIDATION_ERROR)")
    assert_one_line(refused("events", "--types", "nothing", "--follow"), 1, "types: ", "(VALIDATION_ERROR)")
    assert_one_line(refused("failures", "acknowledge", "--job", "none"), 1, "job not found: none")


WRONG = [
    ("jobs apply", "name: twin", "2 jobs are called twin; say jobId, one of twin-1, twin-2"),
    ("jobs apply", "jobId: none", "none (JOB_NOT_FOUND)"),
    ("jobs apply", "name: new", "type: is required (VALIDATION_ERROR)"),
    ("jobs apply", "name: other\ntimeout: [1]", "timeout: not a duration"),
    ("jobs apply", "name: other\ncolour: red", "colour: there is no such field"),
    ("jobs apply", "name: other\nconfigJson: {url: 7}", "configJson.url: "),
    ("jobs apply", "name: other\nschedules: [{kind: every}]", "schedules[0]: every: "),
    ("jobs apply", "name: other\nschedules: [{id: none}]", "schedules[0]: schedule not found"),
    ("schedules apply", "kind: every\nevery: 1m", "jobId: is required"),
    ("schedules apply", "jobId: none\nkind: every\nevery: 1m", "job not found: none"),
    ("schedules apply", "jobId: other\nkind: weekly", "kind: "),
    ("schedules apply", "jobId: other\nkind: every\nevery: [1]", "every: "),
    ("schedules apply", "id: none\nevery: 1m", "schedule not found: none"),
    ("plans create", "name: p\ntenants: []", "stages: "),
]


def test_what_a_file_says_wrongly_is_told_by_its_name(serve: Serve, tmp_path: Path) -> None:
    base = serve().base
    call = {"type": "http", "http": {"url": "http://127.0.0.1:1"}, "schedule": {"kind": "every", "every": "1h"}}
    for key, name in (("twin-1", "twin"), ("twin-2", "twin"), ("other", "other")):
        assert httpx2.post(f"{base}/jobs", json={"id": key, "name": name, **call}).status_code == 201
    for command, says, part in WRONG:
        (tmp_path / "file.yaml").write_text(says)
        refused = ksana(*command.split(), "file.yaml", cwd=tmp_path, env={"KSANA_SERVER": base})
        assert_one_line(refused, 1, part)


def test_a_server_that_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket() as held:  # bound, so that nobody else listens there
        held.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{held.getsockname()[1]}"
        assert_one_line(ksana("jobs", "list", "--server", base, cwd=tmp_path), 3, base, "(UNREACHABLE)")
        assert_one_line(
            ksana("runs", "logs", "1", "--follow", cwd=tmp_path, env={"KSANA_SERVER": base}), 3, base, "(UNREACHABLE)"
        )


class Stranger(BaseHTTPRequestHandler):
    """Answers everything alike."""

    text = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.text)))
        self.end_headers()
        self.wfile.write(self.text)

    do_POST = do_GET  # noqa: N815 - as its parent calls it

    def log_message(self, *_: object) -> None:
        """Not on the test's standard error."""


@pytest.mark.parametrize("text", [b"{}", b"[]", b"<html>"])
def test_a_server_that_is_no_ksana(text: bytes, tmp_path: Path) -> None:
    kind = type("Stranger", (Stranger,), {"text": text})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        env = {"KSANA_SERVER": f"http://127.0.0.1:{server.server_port}"}
        for arguments in (["jobs", "list"], ["jobs", "run", "j", "--wait"], ["runs", "cancel", "1"]):
            assert_one_line(ksana(*arguments, cwd=tmp_path, env=env), 1, "not how Ksana answers", "(UNEXPECTED_ANSWER)")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["jobs", "list", "--server", "nonsense"], "--server: 'nonsense' is not the address"),
        (["jobs", "list", "--server", "http://127.0.0.1:99999"], "is not the address"),
        (["jobs", "list", "--limit", "0"], "--limit"),
        (["jobs", "show"], "JOB requires an argument"),
        (["jobs", "show", ""], "JOB: '' is no id"),
        (["jobs", "sohw"], 'Unknown command "sohw"'),
        (["jobs", "run", "j", "--input", "{a"], "--input: is not JSON"),
        (["jobs", "run", "j", "--input", "[" * 100_000], "--input: is not JSON"),
        (["jobs", "run", "j", "--input", "@none.json"], "--input: 'none.json' cannot be read: No such file"),
        (["nodes", "complete", "r", "n", "--output", "-"], "--output: is not JSON"),
        (["runs", "logs", "order-1"], "--node: say which node"),
        (["runs", "logs", "1", "--follow", "--json"], "--follow: goes with text"),
        (["runs", "retry"], "RUN: name runs, or say which"),
        (["runs", "cancel", "1", "--job", "j"], "not both"),
        (["schedules", "preview", "--cron", "* * * * *", "--every", "1m"], "say one of --cron, --every and --at"),
        (["failures", "acknowledge", "--all", "--job", "j"], "say one of --job"),
        (["workflows", "apply", "none.yaml"], "FILE: 'none.yaml' cannot be read"),
        (["workflows", "apply", "broken.yaml"], "FILE: broken.yaml is neither YAML nor JSON"),
        (["workflows", "validate", "list.json"], "FILE: list.json must hold an object"),
        (["workflows", "apply", "binary.yaml"], "holds what JSON cannot"),
        (["workflows", "apply", "nameless.json"], "name: is missing"),
        (["jobs", "apply"], "FILE requires an argument"),
        (["jobs", "apply", "none.yaml"], "FILE: 'none.yaml' cannot be read"),
        (["jobs", "apply", "latin.yaml"], "FILE: 'latin.yaml' cannot be read"),
        (["jobs", "apply", "."], "FILE: '.' cannot be read: Is a directory"),
        (["jobs", "apply", "nan.json"], "holds what JSON cannot"),
        (["jobs", "apply", "broken.json"], "FILE: broken.json is neither YAML nor JSON: Expecting"),
        (["jobs", "apply", "nameless.json"], "name: is missing: a job has one"),
        (["jobs", "apply", "wrong.yaml"], "jobId: must be a text"),
        (["jobs", "apply", "blank.yaml"], "name: must not be blank"),
        (["jobs", "apply", "no-list.yaml"], "schedules: must be a list"),
        (["jobs", "apply", "of-others.yaml"], "schedules[1]: names its job or workflow"),
        (["schedules", "apply", "broken.yaml"], "FILE: broken.yaml is neither YAML nor JSON"),
        (["schedules", "apply", "wrong.yaml"], "id: must be a text"),
        (["plans", "create", "list.json"], "FILE: list.json must hold an object"),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str],
    part: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KSANA_SERVER", "http://127.0.0.1:1")
    (tmp_path / "broken.yaml").write_text("a: [1\nb: }")
    (tmp_path / "binary.yaml").write_text("a: !!binary aGVsbG8=")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "nameless.json").write_text('{"dag": {"nodes": []}}')
    (tmp_path / "latin.yaml").write_bytes("name: für".encode("latin-1"))
    (tmp_path / "nan.json").write_text('{"name": "x", "timeout": NaN}')
    (tmp_path / "broken.json").write_text('{"name": "x",')
    (tmp_path / "wrong.yaml").write_text("jobId: 7\nid: 7")
    (tmp_path / "blank.yaml").write_text("name: ''")
    (tmp_path / "no-list.yaml").write_text("name: x\nschedules: {kind: every}")
    (tmp_path / "of-others.yaml").write_text("name: x\nschedules: [{kind: every}, {jobId: y, kind: every}]")
    code = run(arguments)
    assert_one_line(Ended(code, *capsys.readouterr()), 2, part)
