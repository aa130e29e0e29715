"""The log and the metrics. One way out for both: every line passes `_write`, every figure is in one registry.

A line has `ts`, `level`, `action` (stable: what programs look for), `msg` (for people) and fields. Ours are written as
`log().info("what happened", action="area.happened", …)`; those of uvicorn and Alembic arrive here too, with `action` made of
their logger's name. Values are escaped, so that nothing a caller sends can begin a line of its own.
"""

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, TextIO, cast

import orjson
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ksana import __version__
from ksana.absent import absent

with absent("rich"):  # for colours in tracebacks, which we write ourselves: it takes five times as long as structlog
    import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
METRICS_TYPE = CONTENT_TYPE_LATEST
_LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# C0, DEL, C1, the Unicode line separators, and the marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FIRST = ("ts", "level", "action", "msg")

Line = MutableMapping[str, Any]


def log() -> structlog.typing.FilteringBoundLogger:
    """The log. Bind what holds for a while with `structlog.contextvars`."""
    configured = structlog.get_config()
    processors, wrapper, factory = configured["processors"], configured["wrapper_class"], configured["logger_factory"]
    made = _made[0]
    if made.processors is not processors or made.wrapper is not wrapper or made.factory is not factory:
        made = _made[0] = _Made(processors, wrapper, factory, structlog.get_logger().bind())
    return made.logger


class _Made(NamedTuple):
    """The logger, made once for each way in which the log is configured: to make it takes half as long as to write a line."""

    processors: object
    wrapper: object
    factory: object
    logger: structlog.typing.FilteringBoundLogger


_made = [_Made(None, None, None, cast("structlog.typing.FilteringBoundLogger", None))]
"""The last one. Any thread may come here: it is put in its place whole."""


def configure_logging(level: str, form: str = "auto", stream: TextIO | None = None) -> None:
    """From now on every line goes to `stream` (standard error), human on a terminal and JSON otherwise."""
    out = stream if stream is not None else sys.stderr
    human = form == "human" or (form == "auto" and out.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
            structlog.processors.EventRenamer("msg"),
            structlog.processors.format_exc_info,
            _named,
            _human if human else _json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=lambda *_: _Writer(out),
        cache_logger_on_first_use=False,
    )
    _adopt_foreign(LEVELS[level])


def escaped(text: str) -> str:
    """The text on one line: control characters as `\\x0a`, so that it can neither break a line nor move a cursor."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class _Writer:
    """Writes lines. A log that cannot be written (full disk, closed pipe) must not stop the work it speaks of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = warn = error = critical = exception = fatal = log = msg


class _Forward(logging.Handler):
    """Lines of libraries that use the standard logging, into ours."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"action": f"library.{record.name}"}
        if record.exc_info:
            fields["exc_info"] = record.exc_info
        try:
            log().log(min(record.levelno, logging.ERROR), record.getMessage(), **fields)
        except Exception:  # noqa: BLE001 - as logging itself: a line that cannot be made must not stop the work
            self.handleError(record)


def _adopt_foreign(level: int) -> None:
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Forward)]:
        root.removeHandler(handler)
    root.addHandler(_Forward())
    # Libraries chatter at INFO, and some write whole addresses there, with what secrets these hold.
    root.setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))


def _named(_logger: object, _method: str, line: Line) -> Line:
    line.setdefault("action", "unnamed")
    return line


def _json(_logger: object, _method: str, line: Line) -> str:
    ordered = {name: line[name] for name in _FIRST if name in line} | dict(line)
    try:
        text = orjson.dumps(ordered, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a number over 64 bits, or text that is not Unicode: rare, and no reason to lose the line
        text = json.dumps(ordered, default=str)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _human(_logger: object, _method: str, line: Line) -> str:
    trace = line.pop("exception", None)
    ts, level, action, text = (str(line.pop(name, "")) for name in _FIRST)
    fields = "".join(f" {escaped(str(name))}={_field(value)}" for name, value in line.items())
    # A traceback keeps its lines, indented: a line of its own would begin with a time.
    below = "".join(f"\n    {escaped(part)}" for part in str(trace).splitlines()) if trace else ""
    return f"{ts[:23]} {level:<7} {escaped(action):<22} {escaped(text)}{fields}{below}"


def _field(value: object) -> str:
    text = escaped(str(value))
    return repr(text) if " " in text or not text else text


class Metrics:
    """The figures that `/metrics` shows. Labels come from closed sets, so that no caller can make series without end."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        build = Gauge("ksana_build_info", "The version that runs.", ["version"], registry=self.registry)
        build.labels(__version__).set(1)
        self._requests = Counter(
            "ksana_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "ksana_http_request_seconds",
            "Time to answer a request.",
            ["method", "route"],
            registry=self.registry,
            buckets=_LATENCIES,
        )
        self._of_requests: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is the template of its path, not the path."""
        number, took = self._of_request(method if method in METHODS else "OTHER", route, status // 100)
        number.inc()
        took.observe(seconds)

    def _of_request(self, method: str, route: str, hundreds: int) -> tuple[Counter, Histogram]:
        """Looked up once: that takes longer than to count."""
        found = self._of_requests.get((method, route, hundreds))
        if found is None:
            found = self._requests.labels(method, route, f"{hundreds}xx"), self._seconds.labels(method, route)
            self._of_requests[method, route, hundreds] = found
        return found

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


def bound(fields: Mapping[str, str]) -> AbstractContextManager[None]:
    """A context in which every line carries these fields."""
    return structlog.contextvars.bound_contextvars(**fields)
