"""Client certificates that name a key, over real TLS."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from zq.cli import main

from .keyed import secret, write_keys
from .site import Site

CLIENTS = ("only-read", "shop", "nobody")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path / "data", {"keys": write_keys(tmp_path / "keys")})
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def port(site: Site, tmp_path: Path) -> AsyncIterator[int]:
    """A TLS port of the same server that wants certificates of an authority of its own."""
    clients = [word for name in CLIENTS for word in ("--client", name)]
    made = CliRunner().invoke(main, ["tls", "init", *clients, "--out-dir", str(tmp_path)])
    assert made.exit_code == 0, made.output
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / "server-cert.pem", tmp_path / "server-key.pem")
    context.load_verify_locations(tmp_path / "ca-cert.pem")
    listener = site.server._listener
    assert listener is not None
    server = await asyncio.get_running_loop().create_server(
        listener._connection, "127.0.0.1", 0, ssl=context
    )
    yield server.sockets[0].getsockname()[1]
    server.close()


async def ask(tmp_path: Path, port: int, name: str, target: str, **headers: str) -> httpx.Response:
    """A request by the client whose certificate has this name."""
    context = ssl.create_default_context(cafile=tmp_path / "ca-cert.pem")
    context.load_cert_chain(
        tmp_path / f"client-{name}-cert.pem", tmp_path / f"client-{name}-key.pem"
    )
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        return await client.get(f"https://localhost:{port}{target}", headers=headers)


async def test_the_name_on_a_certificate_names_a_key(tmp_path: Path, port: int) -> None:
    assert (await ask(tmp_path, port, "only-read", "/queues")).status_code == 200
    assert (await ask(tmp_path, port, "only-read", "/jobs/take")).status_code == 403
    assert (await ask(tmp_path, port, "shop", "/jobs/take?queue=mail")).status_code == 403

    unknown = await ask(tmp_path, port, "nobody", "/queues")
    assert unknown.status_code == 401
    assert "nobody" in unknown.json()["error"]


async def test_a_secret_goes_before_the_certificate(tmp_path: Path, port: int) -> None:
    for name, sent, status in (
        ("nobody", secret("only-read"), 200),
        ("only-read", "wrong", 401),
        ("only-read", secret("only-take"), 403),
    ):
        reply = await ask(tmp_path, port, name, "/queues", Authorization=f"Bearer {sent}")
        assert reply.status_code == status


async def test_a_page_is_foreign_with_a_certificate_too(tmp_path: Path, port: int) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}

    reply = await ask(tmp_path, port, "only-read", "/queues", **headers)

    assert (reply.status_code, reply.headers["zq-error"]) == (403, "foreign_page")
