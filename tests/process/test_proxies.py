"""zq behind nginx, Caddy and HAProxy, set up as the documents say."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
from conformance.client import JSON, Client, new_job
from conformance.streams import PATIENCE_S, StreamEnded
from documents import code

from bench.ports import free_port

from .server import RemoteSite, running

TIMEOUT = "2s"
"""Of the proxies, instead of a minute, where a test waits for it."""

HEARTBEATS = ("--heartbeat-interval", "200ms")
AN_HOUR = ("--heartbeat-interval", "1h")


def nginx(directory: Path, recipe: str) -> list[str]:
    """The recipe is a file of conf.d: the rest of a configuration, with everything in one place."""
    places = "".join(
        f"{kind}_temp_path {directory / kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (directory / "zq.conf").write_text(recipe)
    config = directory / "nginx.conf"
    config.write_text(
        f"pid {directory}/nginx.pid; daemon off; error_log stderr; events {{}}"
        f"http {{ access_log off; {places} include {directory}/zq.conf; }}"
    )
    return ["nginx", "-p", str(directory), "-e", "stderr", "-c", str(config)]


def caddy(directory: Path, recipe: str) -> list[str]:
    config = directory / "Caddyfile"
    config.write_text(recipe)
    return ["caddy", "run", "--config", str(config), "--adapter", "caddyfile"]


def haproxy(directory: Path, recipe: str) -> list[str]:
    config = directory / "haproxy.cfg"
    config.write_text(recipe)
    return ["haproxy", "-db", "-f", str(config)]


@dataclass(frozen=True)
class Recipe:
    """How a proxy is started with its recipe."""

    name: str
    command: Callable[[Path, str], list[str]]

    def text(self) -> str:
        return code(self.name)


RECIPES = [Recipe("nginx", nginx), Recipe("caddy", caddy), Recipe("haproxy", haproxy)]


@pytest.fixture(params=RECIPES, ids=lambda recipe: recipe.name)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return cast("Recipe", request.param)


@contextlib.asynccontextmanager
async def behind(
    recipe: Recipe, directory: Path, *flags: str, patience: str = "60s"
) -> AsyncIterator[Client]:
    """A client whose requests go through the proxy to a server."""
    async with running(directory / "data", *flags) as server:
        port = free_port()
        text = recipe.text()
        for default, here in (("7890", str(server.port)), ("8080", str(port)), ("60s", patience)):
            assert default in text
            text = text.replace(default, here)
        async with (
            started(directory, port, recipe.command(directory, text)),
            Client(RemoteSite(port), JSON) as client,
        ):
            assert (await client.get("/version")).status == 200
            yield client


@contextlib.asynccontextmanager
async def started(directory: Path, port: int, command: list[str]) -> AsyncIterator[None]:
    """A proxy that accepts connections on a port."""
    with (directory / "proxy.log").open("wb") as log:
        proxy = await asyncio.create_subprocess_exec(
            *command, stdout=log, stderr=log, env=places(directory), start_new_session=True
        )
    try:
        await accepting(port, proxy, directory / "proxy.log")
        yield
    finally:
        # With its workers, and without waiting for the streams that it still serves.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proxy.pid, signal.SIGKILL)
        await proxy.wait()


def places(directory: Path) -> dict[str, str]:
    """An environment in which a proxy keeps what it stores in the test's directory."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": str(directory)}


async def accepting(port: int, proxy: asyncio.subprocess.Process, log: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            assert proxy.returncode is None, f"it has ended: see {log}"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.02)


async def test_each_line_of_a_stream_arrives_at_once(recipe: Recipe, tmp_path: Path) -> None:
    async with behind(recipe, tmp_path, *AN_HOUR) as client:
        stream = await client.take(prefetch=2)
        # Nothing follows a line for an hour: whatever held it back would hold it for that long.
        for _ in range(2):
            job = await client.enqueue()
            assert (await stream.job())["id"] == job["id"]
            await client.succeed(job["id"])
        assert await client.count() == 0


async def test_heartbeats_keep_a_quiet_stream_beyond_the_time_out(
    recipe: Recipe, tmp_path: Path
) -> None:
    # A server or a proxy may stand still for a second or two.
    async with behind(recipe, tmp_path, *HEARTBEATS, patience="6s") as client:
        stream = await client.take()
        for _ in range(35):
            assert await stream.frame() is None
        job = await client.enqueue()
        assert (await stream.job())["id"] == job["id"]


async def test_without_heartbeats_the_time_out_would_end_a_stream(
    recipe: Recipe, tmp_path: Path
) -> None:
    async with behind(recipe, tmp_path, *AN_HOUR, patience=TIMEOUT) as client:
        stream = await client.take()
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError, StreamEnded)):
            while True:
                await stream.frame()


async def test_a_worker_that_goes_away_behind_the_proxy_gives_its_jobs_back(
    recipe: Recipe, tmp_path: Path
) -> None:
    # A proxy may notice only when it has something to pass on.
    async with behind(recipe, tmp_path, *HEARTBEATS) as client:
        await client.enqueue()
        stream = await client.take()
        held = await stream.job()
        await stream.close()
        await client.until(held["id"], status="ready")


async def test_a_large_body_passes(recipe: Recipe, tmp_path: Path) -> None:
    async with behind(recipe, tmp_path) as client:
        payload = "x" * 2**20
        jobs = [new_job(payload=payload) for _ in range(5)]
        reply = await client.post("/jobs/bulk", {"jobs": jobs})
        assert reply.status == 201
        assert (await client.job(reply.doc["jobs"][4]["id"]))["payload"] == payload


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A directory with an authority's certificate, and `zq.pem`: a chain and its key."""
    made = tmp_path / "tls"
    command = (sys.executable, "-m", "zq.cli", "tls", "init", "--san", "127.0.0.1")
    subprocess.run([*command, "--out-dir", made], check=True, capture_output=True)
    parts = (made / name for name in ("server-cert.pem", "server-key.pem"))
    (made / "zq.pem").write_text("".join(part.read_text() for part in parts))
    return made


async def test_haproxy_does_the_work_of_tls_and_http2(tmp_path: Path, certificates: Path) -> None:
    port = free_port()
    async with running(tmp_path / "data") as server:
        text = code("haproxy with TLS and HTTP/2")
        for default, here in (
            ("bind :443", f"bind 127.0.0.1:{port}"),
            ("/etc/haproxy/zq.pem", str(certificates / "zq.pem")),
            ("7890", str(server.port)),
        ):
            assert default in text
            text = text.replace(default, here)
        trust = ssl.create_default_context(cafile=certificates / "ca-cert.pem")
        base = f"https://127.0.0.1:{port}"
        async with (
            started(tmp_path, port, haproxy(tmp_path, text)),
            httpx.AsyncClient(http2=True, verify=trust, base_url=base, trust_env=False) as client,
            client.stream("GET", "/jobs/take?prefetch=2") as stream,
        ):
            lines = (line async for line in stream.aiter_lines() if line)
            for _ in range(2):
                stored = await client.post("/jobs", json=new_job())
                assert (stored.status_code, stored.http_version) == (201, "HTTP/2")
                assert json.loads(await anext(lines))["id"] == stored.json()["id"]
