"""The admin listener: its own address, certificates and limits, and the rules of all listeners."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from conformance.keyed import write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause
from tls.authority import Authority

from zq.http.transport.gate import Gate
from zq.http.transport.h2.frames import PREFACE
from zq.http.transport.opening import Opening
from zq.http.transport.ports import AddressInUse
from zq.http.transport.tls import CertificateError
from zq.setting import ConfigError

ADMIN = {"no_admin": False, "admin_port": 0}

pytestmark = pytest.mark.settings(**ADMIN)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(trust_env=False) as session:
        yield session


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of loopback that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


async def status(http: aiohttp.ClientSession, url: str, **headers: str) -> int:
    async with http.get(url, headers=headers) as answer:
        return answer.status


async def test_each_listener_has_its_own_routes(site: Site, http: aiohttp.ClientSession) -> None:
    assert site.admin_url != site.url
    assert await status(http, f"{site.admin_url}/health") == 200
    assert await status(http, f"{site.admin_url}/queues") == 404
    assert await status(http, f"{site.url}/queues") == 200


async def test_errors_are_json_whatever_is_accepted(
    site: Site, http: aiohttp.ClientSession
) -> None:
    headers = {"Accept": "application/gzip"}
    async with http.get(f"{site.admin_url}/nothing", headers=headers) as answer:
        told = f"this is the admin listener, which has no such path: the API is at {site.url}"
        assert (answer.status, await answer.json()) == (404, {"error": told})


async def test_each_listener_tells_where_both_are(site: Site, http: aiohttp.ClientSession) -> None:
    found = []
    for url in (site.url, site.admin_url):
        async with http.get(f"{url}/listeners") as answer:
            found.append(await answer.json())
    primary, admin = found
    assert (primary.pop("here"), admin.pop("here")) == ("primary", "admin")
    assert primary == admin
    assert (admin["primary"], admin["admin"]) == (site.url, site.admin_url)


@pytest.mark.settings(**ADMIN, host="0.0.0.0", insecure=True)
async def test_who_reaches_a_wildcard_hears_of_it_by_the_name_that_was_used(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"http://localhost:{site.port}/listeners") as answer:
        assert (await answer.json())["primary"] == f"http://localhost:{site.port}"


@pytest.mark.settings(**ADMIN, max_connections=1)
async def test_clients_that_use_up_the_connections_leave_the_admin_listener_its_own(
    site: Site, http: aiohttp.ClientSession
) -> None:
    with socket.create_connection(("127.0.0.1", site.port)):
        async with aiohttp.ClientSession(trust_env=False) as another:
            assert await status(another, f"{site.url}/health") == 503
        assert await status(http, f"{site.admin_url}/health") == 200


SLOW = b"POST /ui/session HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
"""The head of a request whose body is awaited."""


async def few_places(
    site: Site, monkeypatch: pytest.MonkeyPatch, places: int
) -> tuple[tuple[str, int], Gate]:
    """The address and the gate of an admin listener that takes so many connections."""
    monkeypatch.setattr("zq.entrance.ADMIN_CONNECTIONS", places)
    await site.restart()
    assert site.server._admin is not None
    return ("127.0.0.1", int(site.admin_url.rpartition(":")[2])), site.server._admin.gate


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not reached():
            await pause()


async def test_a_full_admin_listener_names_its_own_limit(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, gate = await few_places(site, monkeypatch, 1)
    with socket.create_connection(address) as busy:
        busy.sendall(SLOW % site.admin_url[7:].encode() + b"Content-Length: 9\r\n\r\n")
        await until(lambda: [guest.is_idle for guest in gate._guests] == [False])
        async with http.get(f"{site.admin_url}/health") as answer:
            error = (await answer.json())["error"]
            assert (answer.status, error) == (
                503,
                "there are as many connections as the admin listener takes (1): close some",
            )


async def test_idle_connections_shut_nobody_out_of_the_admin_listener(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, gate = await few_places(site, monkeypatch, 3)
    async with contextlib.AsyncExitStack() as stack:
        silent, kept, second = (
            stack.enter_context(socket.create_connection(address)) for _ in range(3)
        )
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: %s\r\n\r\n" % site.admin_url[7:].encode())
        second.sendall(PREFACE + bytes.fromhex("000000040000000000"))  # an empty SETTINGS frame
        await until(lambda: gate.open == 3 and all(guest.is_idle for guest in gate._guests))
        await until(lambda: not any(isinstance(each, Opening) for each in list(gate._guests)[1:]))
        for closed in (silent, kept, second):
            # Each newcomer takes the place of the oldest one that asks for nothing.
            newcomer = await stack.enter_async_context(aiohttp.ClientSession(trust_env=False))
            assert await status(newcomer, f"{site.admin_url}/health") == 200
            closed.settimeout(PATIENCE_S)
            with contextlib.suppress(ConnectionResetError):
                while await asyncio.to_thread(closed.recv, 4096):
                    pass
            await until(lambda: gate.open == len(gate._guests) == 3)


async def test_a_page_of_another_site_or_name_is_kept_out(
    site: Site, http: aiohttp.ClientSession
) -> None:
    url = f"{site.admin_url}/health"
    assert await status(http, url, Host="rebound.example") == 403
    assert await status(http, url, Origin="https://evil.example") == 403
    assert await status(http, url, Origin=site.admin_url) == 200


@pytest.mark.settings()
async def test_no_admin_opens_no_second_port(site: Site) -> None:
    assert site.server.admin_url is None


async def test_a_port_that_was_chosen_and_is_taken_refuses_the_start(
    tmp_path: Path, taken_port: int, http: aiohttp.ClientSession
) -> None:
    site = Site(tmp_path / "data", ADMIN)
    with pytest.raises(AddressInUse, match="choose another --admin-port"):
        await site.start(admin_port=taken_port)
    # It has let go of everything.
    await site.start()
    await site.stop()


async def test_a_second_server_on_the_machine_does_without_the_default_port(
    tmp_path: Path,
    taken_port: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    http: aiohttp.ClientSession,
) -> None:
    monkeypatch.setattr("zq.entrance.ADMIN_PORT", taken_port)
    site = Site(tmp_path / "data", {"no_admin": False})
    with caplog.at_level(logging.WARNING):
        await site.start()
    assert site.server.admin_url is None
    assert f":{taken_port} is in use by another program" in caplog.text
    assert await status(http, f"{site.url}/health") == 200
    await site.stop()


async def test_an_address_that_others_reach_needs_keys_or_certificates(tmp_path: Path) -> None:
    open_to_all = {**ADMIN, "admin_host": "0.0.0.0"}
    with pytest.raises(ConfigError, match=r"--admin-host 0.0.0.0.*--admin-tls-client-ca"):
        await Site(tmp_path / "data", open_to_all).start()

    keys = write_keys(tmp_path / "keys")
    site = Site(tmp_path / "data", {**open_to_all, "keys": keys})
    await site.start()
    await site.stop()


async def test_tls_and_the_clients_authority_are_its_own(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    authority, strangers = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    cert, key = authority.issue("server")
    tls = {"admin_tls_cert": cert, "admin_tls_key": key, "admin_tls_client_ca": authority.file}
    site = Site(tmp_path / "data", {**ADMIN, **tls})
    await site.start()
    url = site.admin_url.replace("127.0.0.1", "localhost") + "/health"

    async def shown(certificate: tuple[Path, Path] | None) -> int:
        context = authority.client(certificate=certificate)
        async with http.get(url, ssl=context) as answer:
            return answer.status

    assert url.startswith("https://")
    assert site.url.startswith("http://")
    assert await shown(authority.issue("operator")) == 200
    for certificate in (None, strangers.issue("operator")):
        with pytest.raises(aiohttp.ClientError):
            await shown(certificate)
    await site.stop()


async def test_certificates_that_cannot_be_used_are_named_by_their_own_flags(
    tmp_path: Path,
) -> None:
    nothing = tmp_path / "nothing.pem"
    tls = {"admin_tls_cert": nothing, "admin_tls_key": nothing}
    with pytest.raises(CertificateError, match=r"--admin-tls-cert .* and --admin-tls-key"):
        await Site(tmp_path / "data", {**ADMIN, **tls}).start()
