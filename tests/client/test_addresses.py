"""Addresses: invalid ones, one from a variable, and servers of another kind than theirs says."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from conformance.site import Site
from tls.authority import Authority

import zq
from zq.client.app import App
from zq.client.backend import run
from zq.client.connect import connect
from zq.client.http.address import Address, Tls
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Request, Transport, Unreachable
from zq.features.history.client import HistoryReader


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:7890", "begin it with http://, https:// or sqlite://"),
        ("/var/lib/zq", "begin it with http://, https:// or sqlite://"),
        ("sqlite:", "begin it with http://, https:// or sqlite://"),
        ("ftp://host", "neither with http:// nor with https://"),
        ("http://", "names no host"),
        ("http:///path", "names no host"),
        ("http://.:1", "names no host"),
        ("http://a..b", "names no host"),
        (f"http://{'a' * 64}.org", "names no host"),
        ("http://host:", "a port is a number"),
        ("http://host:0", "a port is a number"),
        ("http://host:65536", "a port is a number"),
        ("http://host:http", "a port is a number"),
        ("http://::1:7890", "needs brackets"),
        ("http://[::1", "Invalid IPv6"),
        ("http://ho st", "a space or a control character"),
        ("http://host:7890\nx", "a space or a control character"),
        ("http://host/?queue=mail", "more than host, port and path"),
        ("sqlite://var/lib/zq", "sqlite:///var/lib/zq"),
        ("sqlite:///data/ha#sh", "without them"),
        ("sqlite:///data/zq#", "without them"),
        ("sqlite:///data/zq?mode=ro", "without them"),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str, reason: str) -> None:
    with pytest.raises(zq.InvalidOption) as refused:
        connect(url)
    assert reason in refused.value.message
    assert "\n" not in refused.value.message
    if not url.startswith("sqlite"):
        with pytest.raises(zq.InvalidOption):
            HistoryReader(url)


@pytest.mark.parametrize(
    "url",
    ["http://[::1]:7890", "http://[::1]", "https://queue.example.org./zq/", "http://a_b:1"],
)
def test_what_is_an_address_is_taken(url: str) -> None:
    connect(url)


def test_a_secret_in_an_address_is_not_said_again() -> None:
    with pytest.raises(zq.InvalidOption) as refused:
        connect("http://user:hunter2@host")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ключ", "€"])
def test_a_token_that_no_header_holds_is_refused(token: str) -> None:
    with pytest.raises(zq.InvalidOption) as refused:
        connect("http://host", token)
    assert token not in refused.value.message


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
async def secure(
    tmp_path: Path, authority: Authority, request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    """A server with a certificate for localhost; `True` has it ask clients for theirs."""
    cert, key = authority.issue("server")
    more = {"tls_client_ca": authority.file} if getattr(request, "param", False) else {}
    site = Site(tmp_path / "data", {"tls_cert": cert, "tls_key": key, **more})
    await site.start()
    yield site
    await site.stop()


def by_name(site: Site) -> str:
    """The address by which the certificate knows the server."""
    return site.url.replace("127.0.0.1", "localhost")


asks_clients = pytest.mark.parametrize("secure", [True], indirect=True)

Why = Callable[[str, Tls], Awaitable[str]]


@pytest.fixture(params=[AioTransport, BlockingTransport])
def why(request: pytest.FixtureRequest) -> Why:
    """What one try says of a server that cannot be reached."""

    async def why(url: str, tls: Tls) -> str:
        transport: Transport = request.param(Address(url, tls=tls))
        with pytest.raises(Unreachable) as failed:
            if isinstance(transport, BlockingTransport):
                await asyncio.to_thread(zq.client.backend.run, transport.send(COUNT))
            else:
                await transport.send(COUNT)
        await transport.close()
        assert "\n" not in failed.value.message
        return failed.value.message

    return why


COUNT = Request("GET", "/jobs/count")


async def test_tls_against_plain_http_says_so(site: Site, why: Why) -> None:
    said = await why(site.url.replace("http:", "https:"), Tls())
    assert said.endswith(f"the server there does not use TLS: write {site.url}")


async def test_plain_http_against_tls_says_so(secure: Site, why: Why) -> None:
    said = await why(secure.url.replace("https:", "http:"), Tls())
    assert f"If it serves TLS, write {secure.url}" in said


async def test_a_certificate_for_another_name_says_so(
    secure: Site, authority: Authority, why: Why
) -> None:
    said = await why(secure.url, Tls(ca=authority.file))
    assert "its certificate is not valid for '127.0.0.1'" in said
    assert "--san 127.0.0.1" in said


async def test_a_certificate_of_a_stranger_says_so(secure: Site, why: Why) -> None:
    said = await why(by_name(secure), Tls())
    assert "its certificate is not trusted" in said
    assert "--ca, ZQ_CA or zq.Tls(ca=…)" in said


@asks_clients
async def test_a_server_that_wants_a_certificate_says_so(
    secure: Site, authority: Authority, why: Why
) -> None:
    assert "zq.Tls(certificate=…, key=…)" in await why(by_name(secure), Tls(authority.file))
    tls = Tls(authority.file, *authority.issue("worker"))
    async with zq.App(by_name(secure), tls=tls) as app:
        assert await app.backend.count() == 0


async def test_a_host_that_does_not_exist_says_so(why: Why) -> None:
    said = await why("http://nowhere.invalid", Tls())
    assert "there is no host 'nowhere.invalid'" in said


async def test_nobody_there_says_so(why: Why) -> None:
    said = await why("http://127.0.0.1:1", Tls())
    assert said.endswith("http://127.0.0.1:1: connection refused. Is `zq serve` running?")


@asks_clients
async def test_variables_name_the_files_of_tls(
    secure: Site, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = authority.issue("worker")
    for name, file in (("CA", authority.file), ("CLIENT_CERT", cert), ("CLIENT_KEY", key)):
        monkeypatch.setenv(f"ZQ_{name}", str(file))
    async with zq.App(by_name(secure)) as app:
        assert await app.backend.count() == 0
    reader = HistoryReader(by_name(secure))
    assert (await asyncio.to_thread(reader.page)).max_seq == 0
    reader.close()


@pytest.mark.parametrize("text", ["no certificate", None])
def test_a_file_that_is_no_certificate_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(zq.InvalidOption, match=r"ca\.pem cannot be used") as refused:
        Tls(file).context()
    assert isinstance(refused.value.__cause__, OSError | ssl.SSLError)


async def test_an_address_with_a_path_too_many_says_so(site: Site) -> None:
    backend = HttpBackend(Address(f"{site.url}/queues"))
    with pytest.raises(zq.BackendError, match=r"the address ends in /queues: is that meant\?"):
        await backend.count()
    await backend.close()


@pytest.mark.parametrize(
    "url", ["localhost:7890", "ftp://a", "http://", "http://u@h", "http://h?a=1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(zq.InvalidOption, match=r"address|token"):
        App(url)


@pytest.mark.parametrize("blocks", [False, True])
async def test_the_next_of_several_addresses_is_asked_when_one_does_not_answer(
    site: Site, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_URL", f"http://127.0.0.1:1/,{site.url}")
    async with App() as app:
        if blocks:
            assert await asyncio.to_thread(run, app.backend.blocking.count()) == 0
        else:
            assert await app.backend.count() == 0
        await site.stop()
        with pytest.raises(zq.Unavailable, match=r"127\.0\.0\.1"):
            await app.backend.count()


def test_each_of_several_addresses_is_checked() -> None:
    with pytest.raises(zq.InvalidOption, match="a port is a number"):
        connect("http://one:7890,http://two:port")


async def test_the_address_and_the_key_may_come_from_variables(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_URL", site.url + "/")
    async with App() as app:
        assert await app.backend.count() == 0
