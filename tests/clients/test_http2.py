"""HTTP/2 by curl, nghttp, h2load, httpx and undici. `.ci/setup dev` installs missing ones."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from conformance.client import JSON, Client, new_job
from conformance.site import Site
from conformance.streams import PATIENCE_S
from tls.authority import Authority

HERE = Path(__file__).parent
JSON_BODY = ("-H", "content-type: application/json")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
async def tls_site(authority: Authority, tmp_path: Path, http2_engine: str) -> AsyncIterator[Site]:
    cert, key = authority.issue("server")
    settings = {"tls_cert": cert, "tls_key": key, "http2_engine": http2_engine}
    site = Site(tmp_path / "data", settings)
    await site.start()
    yield site
    await site.stop()


async def run(*command: str) -> str:
    """What it prints. It must end well, and within the tests' patience."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, (command, output.decode(), errors.decode())
    return output.decode()


@pytest.mark.parametrize(
    ("flag", "version"),
    # The upgrade of HTTP/1.1 is not offered: who asks for it is answered in HTTP/1.1.
    [("--http2-prior-knowledge", "2"), ("--http2", "1.1"), ("--http1.1", "1.1")],
)
async def test_curl_in_clear_text(site: Site, flag: str, version: str) -> None:
    body = json.dumps(new_job())
    told = ("-s", "-w", "\n%{http_version} %{http_code}")
    output = await run("curl", flag, *told, *JSON_BODY, "-d", body, f"{site.url}/jobs")
    document, _, outcome = output.rpartition("\n")
    assert outcome == f"{version} 201"
    assert json.loads(document)["queue"] == "default"


@pytest.mark.parametrize(("flag", "version"), [("--http2", "2"), ("--http1.1", "1.1")])
async def test_curl_in_tls(tls_site: Site, authority: Authority, flag: str, version: str) -> None:
    url = f"https://localhost:{tls_site.port}/health"
    told = ("-s", "-o", "/dev/null", "-w", "%{http_version} %{http_code}")
    output = await run("curl", flag, "--cacert", str(authority.file), *told, url)
    assert output == f"{version} 200"


async def test_curl_uploads_a_large_body(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text(json.dumps(new_job(payload="x" * 2**22)))
    told = ("-s", "-o", "/dev/null", "-w", "%{http_code}")
    target = ("--data-binary", f"@{file}", f"{site.url}/jobs")
    assert await run("curl", "--http2-prior-knowledge", *told, *JSON_BODY, *target) == "201"


@pytest.mark.settings(max_body=1000)
async def test_curl_reads_why_its_large_body_was_refused(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_bytes(b" " * 2**22)
    told = ("-s", "-w", "\n%{http_code}")
    target = ("--data-binary", f"@{file}", f"{site.url}/jobs")
    output = await run("curl", "--http2-prior-knowledge", *told, *JSON_BODY, *target)
    document, _, status = output.rpartition("\n")
    assert (status, list(json.loads(document))) == ("413", ["error"])


async def test_nghttp_multiplexes_with_priorities_and_trailers(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text(json.dumps(new_job()))
    trailer = ("--trailer", "x-sum: 1")
    body = ("-d", str(file), *JSON_BODY)
    output = await run("nghttp", "-v", "-m", "20", *body, *trailer, f"{site.url}/jobs")
    assert len(re.findall(r":status: 201", output)) == 20
    async with Client(site, JSON) as client:
        assert await client.count() == 20


async def test_h2load_is_answered_without_a_failure(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text(json.dumps(new_job()))
    load = ("-n", "2000", "-c", "1", "-m", "32", "-d", str(file), *JSON_BODY)
    output = await run("h2load", *load, f"{site.url}/jobs")
    assert "2000 succeeded, 0 failed, 0 errored" in output
    assert "status codes: 2000 2xx" in output
    async with Client(site, JSON) as client:
        assert await client.count() == 2000


async def test_httpx_multiplexes(site: Site) -> None:
    async with httpx.AsyncClient(http1=False, http2=True, trust_env=False) as http:
        posts = [http.post(f"{site.url}/jobs", json=new_job()) for _ in range(300)]
        replies = await asyncio.gather(*posts)
        assert {(reply.http_version, reply.status_code) for reply in replies} == {("HTTP/2", 201)}
        assert (await http.get(f"{site.url}/jobs/count")).json() == {"count": 300}


async def test_undici_works_a_job_over_http_2_in_tls(tls_site: Site, authority: Authority) -> None:
    url = f"https://localhost:{tls_site.port}"
    output = await run("node", str(HERE / "undici_http2.mjs"), url, str(authority.file))
    assert json.loads(output) == {
        "http2": True,
        "enqueued": 201,
        "same": True,
        "acknowledged": 204,
        "statuses": [201],
        "counted": 50,
    }
