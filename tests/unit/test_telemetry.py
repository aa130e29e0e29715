"""The log: one line for each thing, with stable names, whoever writes it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from ksana.telemetry import bound, configure_logging, log


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Broken(io.StringIO):
    tried = False

    def write(self, _text: str) -> int:
        self.tried = True
        raise OSError(28, "No space left on device")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers, configuration = root.level, list(root.handlers), structlog.get_config()
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    structlog.configure(**configuration)


def test_a_line_is_json_where_no_terminal_reads_it() -> None:
    stream = Stream(terminal=False)
    configure_logging("info", stream=stream)
    with bound({"request_id": "r"}):
        log().info("it began", action="serve.started", port=7100)
    line = json.loads(stream.getvalue())
    assert list(line)[:4] == ["ts", "level", "action", "msg"]
    assert (line["level"], line["action"], line["msg"], line["port"]) == ("info", "serve.started", "it began", 7100)
    assert line["request_id"] == "r"
    assert line["ts"].endswith("Z")


def test_a_line_is_for_people_on_a_terminal() -> None:
    stream = Stream(terminal=True)
    configure_logging("info", stream=stream)
    log().warning("it is slow", action="store.slow", latency_ms=12, name="a b")
    assert "warning store.slow" in stream.getvalue()
    assert stream.getvalue().endswith("it is slow latency_ms=12 name='a b'\n")


@pytest.mark.parametrize("form", ["human", "json"])
def test_sec_s35_no_value_can_begin_a_line_or_move_the_cursor(form: str) -> None:
    stream = io.StringIO()
    configure_logging("info", form, stream)
    log().info("a\nb", action="x\r\ny", name="\x1b[31m\x9b\u2028\u202e", error=ValueError("c\nd"))
    assert stream.getvalue().count("\n") == 1
    assert not set(stream.getvalue().rstrip("\n")) & set("\n\r\x1b\x9b\u2028\u202e")


def test_a_traceback_for_people_is_indented_below_its_line() -> None:
    stream = io.StringIO()
    configure_logging("info", "human", stream)
    log().error("failed", action="x.failed", exc_info=ValueError("first\n2026-01-01 forged"))
    first, *below = stream.getvalue().splitlines()
    assert first.endswith("failed")
    assert below
    assert all(line.startswith("    ") for line in below)


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logging("warning", "json", stream)
    log().info("no", action="x")
    log().warning("yes", action="x")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_lines_of_libraries_arrive_in_the_same_form() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    logging.getLogger("uvicorn.error").warning("bad %s", "request")
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("alembic.runtime.migration").info("chatter")
    (line,) = [json.loads(text) for text in stream.getvalue().splitlines()]
    assert (line["action"], line["msg"], line["level"]) == ("library.uvicorn.error", "bad request", "warning")


def test_configuring_again_does_not_double_the_lines() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", io.StringIO())
    configure_logging("info", "json", stream)
    logging.getLogger("uvicorn.error").warning("once")
    assert stream.getvalue().count("\n") == 1


def test_a_value_that_json_cannot_hold_does_not_lose_the_line() -> None:
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    log().info("big", action="x", number=2**70, text="\udcff")
    assert json.loads(stream.getvalue())["number"] == 2**70


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    broken = Broken()
    configure_logging("info", "json", broken)
    log().info("lost", action="x")
    assert broken.tried
