"""The console's files, from a folder as the build leaves it; Node is not needed."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from tests.unit.api.conftest import Bench

from ksana.api.console import SECURITY, wanted_encodings

PAGE = '<!doctype html><title>Ksana</title><script type="module" src="/ui/assets/index-1a2b.js"></script>'
SCRIPT = "export const ksana = 'an instant'\n" * 100
SECRET = "not the console's"
AS_BROTLI = b"stands for what brotli makes of it"
TOO_LONG = f"/ui/{'a' * 300}.js"
JAVASCRIPT = "text/javascript; charset=utf-8"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Built, beside a file that is none of the console's."""
    built = tmp_path / "console"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text(PAGE)
    (built / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (built / "assets" / "index-1a2b.js").write_text(SCRIPT)
    (built / "assets" / "index-1a2b.js.br").write_bytes(AS_BROTLI)
    (built / "assets" / "index-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (built / "assets" / "small-3c4d.css").write_text("body{}")
    (tmp_path / "secret.js").write_text(SECRET)
    return built


@pytest.fixture
async def client(bench: Bench, folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with bench.client(console_folder=folder) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/ui", "/ui/", "/ui/runs", "/ui/jobs/a%20b/edit", "/ui/runs/a.b", "/ui/nothing.js", TOO_LONG]
)
async def test_every_path_answers_the_page_whose_router_is_the_browsers(path: str, client: httpx2.AsyncClient) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.text) == (200, PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == SECURITY
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_page_is_sent_again_only_when_it_has_changed(client: httpx2.AsyncClient, folder: Path) -> None:
    tag = (await client.get("/ui")).headers["etag"]
    for known in (tag, f"W/{tag}", f'"another", {tag}', "*"):
        again = await client.get("/ui/runs", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    (folder / "index.html").write_text(PAGE + "<!-- built anew -->")
    changed = await client.get("/ui", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("*", "br"),
        ("identity", None),
        ("", None),
        ("br;q=none", None),
    ],
)
async def test_a_hashed_file_comes_in_the_best_encoding_the_client_takes(
    accepted: str, encoding: str | None, client: httpx2.AsyncClient
) -> None:
    async with client.stream("GET", "/ui/assets/index-1a2b.js", headers={"Accept-Encoding": accepted}) as answer:
        body = b"".join([part async for part in answer.aiter_raw()])
    expected = {"br": AS_BROTLI, "gzip": gzip.compress(SCRIPT.encode()), None: SCRIPT.encode()}
    assert answer.headers.get("content-encoding") == encoding
    assert len(body) == len(expected[encoding]) == int(answer.headers["content-length"])
    assert answer.headers["content-type"] == JAVASCRIPT
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept-Encoding"


async def test_a_file_that_was_not_worth_compressing_comes_as_it_is(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/ui/assets/small-3c4d.css")
    assert (answer.text, "content-encoding" in answer.headers) == ("body{}", False)


async def test_a_file_beside_the_page_comes_with_its_own_type_and_is_asked_for_each_time(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/ui/favicon.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert (answer.headers["cache-control"], "etag" in answer.headers) == ("no-cache", True)


@pytest.mark.parametrize(
    "path",
    [
        "/ui/assets/gone-5e6f.js",
        "/ui/assets/",
        "/ui/assets/index-1a2b.js.br",
        "/ui/assets/../../secret.js",
        "/ui/assets/..%2f..%2fsecret.js",
        "/ui/assets/%2e%2e/%2e%2e/secret.js",
        "/ui/assets/..%5c..%5csecret.js",
        "/ui/assets//etc/passwd",
        "/ui/assets/a%00.js",
        f"/ui/assets/{'a' * 300}.js",
    ],
)
async def test_nothing_but_a_hashed_file_is_found_among_them(path: str, client: httpx2.AsyncClient) -> None:
    # As it stands: clients resolve `..` before they send.
    answer = await client.get(httpx2.URL("http://127.0.0.1:7100").copy_with(raw_path=path.encode()))
    assert SECRET not in answer.text
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("path", ["/ui/../secret.js", "/ui/..%2fsecret.js", "/ui/%2e%2e%2fsecret.js"])
async def test_no_path_leads_out_of_the_folder(path: str, client: httpx2.AsyncClient) -> None:
    answer = await client.get(httpx2.URL("http://127.0.0.1:7100").copy_with(raw_path=path.encode()))
    assert SECRET not in answer.text


@pytest.mark.parametrize("path", ["/ui", "/ui/assets/index-1a2b.js"])
async def test_head_answers_as_get_does(path: str, client: httpx2.AsyncClient) -> None:
    asked, told = await client.head(path), await client.get(path)
    assert asked.status_code == 200
    assert dict(asked.headers) | {"x-request-id": ""} == dict(told.headers) | {"x-request-id": ""}


async def test_a_console_that_is_not_built_says_how_to(bench: Bench, tmp_path: Path) -> None:
    async with bench.client(console_folder=tmp_path / "nothing") as client:
        answer = await client.get("/ui/runs")
        assert answer.status_code == 200
        assert "make web" in answer.text
        assert "script-src" not in answer.headers["content-security-policy"]
        assert (await client.get("/ui/assets/index-1a2b.js")).status_code == 404


def test_what_is_not_said_to_be_taken_is_not_sent() -> None:
    assert wanted_encodings(None) == []
    assert wanted_encodings("BR;q=1.0 , x-gzip") == ["br"]
