"""What every request passes: its id, the names it may call, the size it may have, and the line it leaves."""

import io
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
import structlog
from tests.unit.api.conftest import Bench

from ksana.api.middleware import host_name
from ksana.telemetry import configure_logging


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    level, handlers, configuration = root.level, list(root.handlers), structlog.get_config()
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    yield stream
    root.setLevel(level)
    root.handlers[:] = handlers
    structlog.configure(**configuration)


def read(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_request_id_is_taken_over_if_harmless_and_made_otherwise(client: httpx2.AsyncClient) -> None:
    taken = await client.get("/health", headers={"x-request-id": "trace-1.a"})
    assert taken.headers["x-request-id"] == "trace-1.a"
    for offered in (b"a b", b"x" * 65, b"\xe9", b"a/b", b"", b"a\x0ab"):
        made = await client.get("/health", headers=[(b"x-request-id", offered)])
        assert re.fullmatch("[0-9a-f]{32}", made.headers["x-request-id"])


async def test_whoever_holds_up_the_event_loop_is_told_of_requests_but_not_of_probers(
    client: httpx2.AsyncClient, bench: Bench
) -> None:
    await client.get("/health")
    await client.get("/metrics")
    assert bench.attended == 0
    await client.get("/openapi.json")
    await client.get("/nowhere")
    assert bench.attended == 2


async def test_every_answer_has_the_security_headers(client: httpx2.AsyncClient) -> None:
    for path in ("/health", "/nowhere", "/sample/things/raise"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:7100", "[::1]:80", "ksana.example:443", "[::1]"]
)
async def test_known_names_are_answered(host: str, bench: Bench) -> None:
    async with bench.client(allowed_hosts=["Ksana.example"]) as client:
        assert (await client.get("/health", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "localhost/x", "", "a:b:c"]
)
async def test_sec_s20_other_names_are_misdirected(host: str, client: httpx2.AsyncClient) -> None:
    answer = await client.get("/health", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "MISDIRECTED_REQUEST")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(("host", "code"), [("192.0.2.7:7100", 200), ("[2001:db8::1]", 200), ("evil.example", 421)])
async def test_a_server_on_all_addresses_answers_to_any_of_them_but_to_no_name(
    host: str, code: int, bench: Bench
) -> None:
    async with bench.client(any_address=True) as client:
        assert (await client.get("/health", headers={"host": host})).status_code == code


def test_a_host_is_read_without_its_port() -> None:
    assert host_name("localhost.:80") == "localhost"
    assert host_name("[::1]:80") == "::1"
    assert host_name("[::1") is None
    assert host_name("h:99999") is None


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
async def test_sec_s18_a_page_of_another_site_changes_nothing(
    headers: dict[str, str], client: httpx2.AsyncClient
) -> None:
    answer = await client.post("/sample/things", json={"name": "a"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "CROSS_ORIGIN")
    assert (await client.get("/health", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {"origin": "http://127.0.0.1:7100"}]
)
async def test_programs_and_our_own_pages_may_change_things(
    headers: dict[str, str], client: httpx2.AsyncClient
) -> None:
    assert (await client.post("/sample/things", json={"name": "a"}, headers=headers)).status_code == 200


async def test_sec_s19_no_cross_origin_access_is_granted(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/health", headers={"origin": "http://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/sample/things", "/sample/things/stream", "/nowhere"])
async def test_sec_s17_a_body_over_the_limit_is_refused_by_its_length(path: str, client: httpx2.AsyncClient) -> None:
    answer = await client.post(path, content=b"x" * 1001)
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("path", ["/sample/things", "/sample/things/anything", "/sample/things/stream"])
async def test_sec_s17_a_body_that_does_not_tell_its_length_is_counted(path: str, client: httpx2.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    answer = await client.post(path, content=pieces(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


async def test_a_body_of_exactly_the_limit_passes(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/sample/things/stream", content=b"x" * 1000)).json() == 1000


async def test_a_request_leaves_one_line_with_its_id_and_template(
    lines: io.StringIO, client: httpx2.AsyncClient
) -> None:
    await client.get("/sample/things/7?secret=1", headers={"x-request-id": "r-1"})
    (line,) = read(lines)
    assert line["action"] == "http.request"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/sample/things/7", 200)
    assert (line["route"], line["request_id"], line["level"]) == ("/sample/things/{thing_id}", "r-1", "info")


async def test_sec_s22_a_token_in_the_path_is_not_logged(lines: io.StringIO, client: httpx2.AsyncClient) -> None:
    await client.post("/sample/things/callbacks/s3cret")
    assert read(lines)[0]["path"] == "/sample/things/callbacks/{token}"
    assert "s3cret" not in lines.getvalue()


async def test_probes_that_succeed_are_not_logged(lines: io.StringIO, client: httpx2.AsyncClient) -> None:
    await client.get("/health")
    await client.get("/metrics")
    assert lines.getvalue() == ""


async def test_sec_s35_a_path_cannot_write_a_line_of_its_own(lines: io.StringIO, client: httpx2.AsyncClient) -> None:
    await client.get("/a%0d%0alevel=error%1b[2J")
    (line,) = read(lines)
    assert line["path"] == "/a\r\nlevel=error\x1b[2J"
    assert lines.getvalue().count("\n") == 1


async def test_an_unexpected_error_is_logged_with_its_traceback(
    lines: io.StringIO, bench: Bench, client: httpx2.AsyncClient
) -> None:
    bench.error = RuntimeError("broken inside")
    answer = await client.get("/sample/things/raise")
    crash, request = read(lines)
    assert (crash["action"], crash["level"]) == ("http.crashed", "error")
    assert "RuntimeError: broken inside" in str(crash["exception"])
    assert crash["request_id"] == request["request_id"] == answer.headers["x-request-id"]
    assert request["status"] == 500
