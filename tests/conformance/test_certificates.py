"""Client certificates that name a key, over real TLS."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from doors.queue_ti.users import auth_settings

from zq.cli.group import main

from .keyed import secret, write_keys
from .site import Site

CLIENTS = ("only-read", "shop", "nobody")
FRIEND = "https://tools.example"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A server that wants certificates of an authority of its own, and goes by `KEYS`."""
    clients = [word for name in CLIENTS for word in ("--client", name)]
    made = CliRunner().invoke(main, ["tls", "init", *clients, "--out-dir", str(tmp_path)])
    assert made.exit_code == 0, made.output
    files = {
        "tls_cert": tmp_path / "server-cert.pem",
        "tls_key": tmp_path / "server-key.pem",
        "tls_client_ca": tmp_path / "ca-cert.pem",
    }
    site = Site(tmp_path / "data", {"keys": write_keys(tmp_path / "keys"), **files})
    await site.start()
    yield site
    await site.stop()


@pytest.fixture(params=[False, True], ids=["HTTP/1.1", "HTTP/2"])
def http2(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def ask(site: Site, http2: bool, name: str, target: str, **headers: str) -> httpx.Response:
    """A request by the client whose certificate has this name."""
    tmp_path = site.root.parent
    context = ssl.create_default_context(cafile=tmp_path / "ca-cert.pem")
    context.load_cert_chain(
        tmp_path / f"client-{name}-cert.pem", tmp_path / f"client-{name}-key.pem"
    )
    async with httpx.AsyncClient(
        verify=context, trust_env=False, http1=not http2, http2=http2
    ) as client:
        reply = await client.get(f"https://localhost:{site.port}{target}", headers=headers)
    assert reply.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
    return reply


async def test_the_name_on_a_certificate_names_a_key(site: Site, http2: bool) -> None:
    assert (await ask(site, http2, "only-read", "/queues")).status_code == 200
    assert (await ask(site, http2, "only-read", "/jobs/take")).status_code == 403
    assert (await ask(site, http2, "shop", "/jobs/take?queue=mail")).status_code == 403

    unknown = await ask(site, http2, "nobody", "/queues")
    assert unknown.status_code == 401
    assert "nobody" in unknown.json()["error"]


async def test_a_secret_goes_before_the_certificate(site: Site, http2: bool) -> None:
    for name, sent, status in (
        ("nobody", secret("only-read"), 200),
        ("only-read", "wrong", 401),
        ("only-read", secret("only-take"), 403),
    ):
        reply = await ask(site, http2, name, "/queues", Authorization=f"Bearer {sent}")
        assert reply.status_code == status


async def test_a_page_is_foreign_with_a_certificate_too(site: Site, http2: bool) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}

    reply = await ask(site, http2, "only-read", "/queues", **headers)

    assert (reply.status_code, reply.headers["zq-error"]) == (403, "foreign_page")


async def test_a_certificate_is_not_that_of_a_page_that_is_named(site: Site, http2: bool) -> None:
    own = {"Authorization": f"Bearer {secret('only-read')}"}
    await site.restart(allow_origin=(FRIEND,))
    for headers, status in (({}, 401), (own, 200)):
        reply = await ask(site, http2, "only-read", "/queues", Origin=FRIEND, **headers)
        assert reply.status_code == status
    await site.restart(allow_origin=(FRIEND,), keys=None)
    assert (await ask(site, http2, "only-read", "/queues", Origin=FRIEND)).status_code == 401
    assert (await ask(site, http2, "only-read", "/queues")).status_code == 200


async def test_a_certificate_beside_a_user_is_not_that_of_a_named_page(
    site: Site, http2: bool, tmp_path: Path
) -> None:
    await site.restart(allow_origin=(FRIEND,), **auth_settings(tmp_path))
    token = {"Authorization": "Bearer x"}
    for origin, missing in (({}, "token"), ({"Origin": FRIEND}, "Zq-Key")):
        reply = await ask(site, http2, "only-read", "/api/stats", **token, **origin)
        assert reply.status_code == 401
        assert missing in reply.json()["error"]
