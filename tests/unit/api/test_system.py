"""Health, version, figures, and the pages for people."""

import re

import httpx2
import pytest
from tests.unit.api.conftest import Bench

from ksana import __version__
from ksana.api.system import Health


async def test_a_healthy_instance_says_ok(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert answer.headers["cache-control"] == "no-store"
    text = await client.get("/api/v1/healthz")
    assert (text.status_code, text.text) == (200, "ok")
    assert text.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("health", [Health.DEGRADED, Health.STOPPING])
async def test_one_that_cannot_work_says_so_with_503(health: Health, bench: Bench, client: httpx2.AsyncClient) -> None:
    bench.health = health
    answer = await client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": health.value})
    assert (await client.get("/api/v1/healthz")).status_code == 503


async def test_the_version_is_plain_text(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/v1/version")).text == f"v{__version__}"


async def test_requests_are_counted_by_template_and_class(client: httpx2.AsyncClient) -> None:
    for path in ("/sample/things/1", "/sample/things/2", "/nowhere/a", "/nowhere/b"):
        await client.get(path)
    await client.request("BREW", "/sample/things/1")
    figures = (await client.get("/metrics")).text
    template = "/sample/things/{thing_id}"
    assert f'ksana_http_requests_total{{method="GET",route="{template}",status="2xx"}} 2.0' in figures
    assert 'ksana_http_requests_total{method="GET",route="unmatched",status="4xx"} 2.0' in figures
    assert f'ksana_http_requests_total{{method="OTHER",route="{template}",status="4xx"}} 1.0' in figures
    assert f'ksana_build_info{{version="{__version__}"}} 1.0' in figures


async def test_metrics_can_be_switched_off(bench: Bench) -> None:
    async with bench.client(metrics=False) as client:
        assert (await client.get("/metrics")).status_code == 404


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/ui"])
async def test_pages_have_no_inline_script_and_load_nothing_from_elsewhere(
    path: str, client: httpx2.AsyncClient
) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert not re.search(r"script-src[^;]*unsafe", policy)
    assert not re.search(r"<script(?![^>]*\bsrc=)", answer.text)
    assert "//" not in answer.text.replace("<!doctype", "")
    for source in re.findall(r'(?:src|href)="(/[^"]+)"', answer.text):
        assert (await client.get(source)).status_code == 200


async def test_the_root_leads_to_the_console(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui")


async def test_the_description_lists_the_system_routes(client: httpx2.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert {"/health", "/api/v1/healthz", "/api/v1/version", "/metrics"} <= set(paths)
    assert "/ui" not in paths
