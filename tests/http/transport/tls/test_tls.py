"""Both versions of HTTP inside TLS, and which clients are admitted."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from conformance.client import new_job
from conformance.site import Site
from conformance.streams import PATIENCE_S
from http2.peer import GET, Peer, changed
from http2.serving import Answering
from hyperframe.frame import DataFrame, HeadersFrame

from zq.engine.inbox import PendingReply
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import codec_by
from zq.http.transport.listener import Listener
from zq.http.transport.tls import CertificateError, CertificateFiles, Certificates, client_name
from zq.http.transport.turns import LoopTurns
from zq.model.clock import SystemClock

from .authority import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


@pytest.fixture
async def site(authority: Authority, tmp_path: Path) -> AsyncIterator[Site]:
    """A server with a certificate for localhost."""
    cert, key = authority.issue("server")
    site = Site(tmp_path / "data", {"tls_cert": cert, "tls_key": key})
    await site.start()
    yield site
    await site.stop()


async def exchange(port: int, request: bytes, tls: ssl.SSLContext | None) -> bytes:
    """Send these bytes, read to the end."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
    )
    writer.write(request)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


HTTP1 = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("alpn", [["h2"], ["h2", "http/1.1"], ["http/1.1"], []])
async def test_an_http_2_preface_is_served_whatever_alpn_said(
    site: Site, authority: Authority, alpn: list[str]
) -> None:
    async with await Peer.open(site.port, tls=authority.client(*alpn)) as peer:
        connection = peer.writer.get_extra_info("ssl_object")
        assert connection.selected_alpn_protocol() == (alpn[0] if alpn else None)
        assert (await peer.get(1)).status == 200


@pytest.mark.parametrize("alpn", [["http/1.1"], []])
async def test_http_1_is_served_inside_tls(
    site: Site, authority: Authority, alpn: list[str]
) -> None:
    answer = await exchange(site.port, HTTP1, authority.client(*alpn))
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_the_url_says_https(site: Site) -> None:
    assert site.url == f"https://127.0.0.1:{site.port}"


async def test_clear_text_is_not_answered(site: Site) -> None:
    try:
        answer = await exchange(site.port, HTTP1, None)
    except ConnectionError:
        answer = b""
    assert b"HTTP/" not in answer


async def test_tls_before_1_2_is_refused(site: Site, authority: Authority) -> None:
    context = authority.client()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await exchange(site.port, HTTP1, context)


async def test_a_take_stream_lives_inside_tls(site: Site, authority: Authority) -> None:
    async with await Peer.open(site.port, tls=authority.client("h2")) as peer:
        peer.send(peer.headers(1, changed(GET, path="/jobs/take")))
        await peer.until(HeadersFrame, 1)
        peer.send(
            peer.headers(3, changed(GET, method="POST", path="/jobs"), ("END_HEADERS",)),
            DataFrame(3, str(new_job()).replace("'", '"').replace("None", "1").encode()),
            DataFrame(3, b"", flags=["END_STREAM"]),
        )
        delivered = await peer.until(DataFrame, 1)
        assert isinstance(delivered, DataFrame)
        assert b'"queue":"default"' in delivered.data


# Certificates of clients


async def test_only_a_client_with_a_certificate_of_that_ca_is_let_in(
    site: Site, authority: Authority, tmp_path: Path
) -> None:
    await site.restart(tls_client_ca=authority.file)
    known = authority.client("h2", certificate=authority.issue("worker-7"))
    async with await Peer.open(site.port, tls=known) as peer:
        assert (await peer.get(1)).status == 200
    stranger = Authority(tmp_path / "elsewhere", "stranger").issue("worker-7")
    for certificate in (None, stranger):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            answer = await exchange(site.port, HTTP1, authority.client(certificate=certificate))
            # TLS 1.3 tells a client of its refusal only when it reads.
            raise ConnectionError(answer)


@pytest.mark.parametrize("alpn", ["h2", "http/1.1"])
async def test_a_request_knows_the_name_in_its_clients_certificate(
    authority: Authority, alpn: str
) -> None:
    names: list[str | None] = []

    async def note(request: web.BaseRequest) -> web.Response:
        names.append(client_name(request))
        return web.Response()

    files = CertificateFiles(*authority.issue("server"), authority.file)
    clock = SystemClock()
    listener = Listener(
        Answering(note),
        "off",
        replies=PendingReply,
        gate=Gate(clock, Counter(), max_connections=10, max_per_peer=0),
        clock=clock,
        turns=LoopTurns(),
        header_timeout=60,
        make_codec=codec_by("h2"),
        tls=Certificates(files).context,
    )
    _, port = await listener.start("127.0.0.1", 0)
    tls = authority.client(alpn, certificate=authority.issue("worker-7"))
    if alpn == "h2":
        async with await Peer.open(port, tls=tls) as peer:
            assert (await peer.get(1)).status == 200
    else:
        await exchange(port, HTTP1, tls)
    await listener.stop(1.0)
    assert names == ["worker-7"]


# New certificates


def common_name(writer: asyncio.StreamWriter) -> str:
    """Of the server's certificate."""
    subject = writer.get_extra_info("peercert")["subject"]
    return str(dict(pair for part in subject for pair in part)["commonName"])


async def test_a_reload_changes_new_connections_and_leaves_open_streams_alone(
    site: Site, authority: Authority
) -> None:
    tls = authority.client("h2")
    async with await Peer.open(site.port, tls=tls) as peer:
        peer.send(peer.headers(1, changed(GET, path="/jobs/take")))
        await peer.until(HeadersFrame, 1)
        authority.issue("renewed", file="server")
        site.server.reload()
        async with await Peer.open(site.port, tls=tls) as other:
            assert common_name(other.writer) == "renewed"
            assert (await other.get(1)).status == 200
        assert common_name(peer.writer) == "server"
        peer.send(peer.headers(3, changed(GET, method="POST", path="/jobs"), ("END_HEADERS",)))
        peer.send(DataFrame(3, b'{"queue":"q","type":"t","payload":1}', flags=["END_STREAM"]))
        await peer.until(DataFrame, 1)


async def test_a_reload_of_bad_files_keeps_the_old_certificate(
    site: Site, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    cert, _ = authority.issue("other")
    cert.replace(cert.with_name("server.pem"))  # no longer matches its key
    site.server.reload()
    assert "the certificates stay as they are: --tls-cert" in caplog.text
    async with await Peer.open(site.port, tls=authority.client("h2")) as peer:
        assert common_name(peer.writer) == "server"


async def trusting_the_first(site: Site, tmp_path: Path) -> tuple[Path, Authority, Authority]:
    """Start the server with the first of two authorities of clients, in a file of its own."""
    file = tmp_path / "clients.pem"
    first, second = (Authority(tmp_path / name, name) for name in ("first", "second"))
    file.write_bytes(first.file.read_bytes())
    await site.restart(tls_client_ca=file)
    return file, first, second


async def test_a_reload_replaces_the_ca_of_clients(
    site: Site, authority: Authority, tmp_path: Path
) -> None:
    file, first, second = await trusting_the_first(site, tmp_path)
    old = authority.client("h2", certificate=first.issue("old"))
    async with await Peer.open(site.port, tls=old) as peer:
        assert (await peer.get(1)).status == 200
    file.write_bytes(second.file.read_bytes())
    site.server.reload()
    new = authority.client("h2", certificate=second.issue("new"))
    async with await Peer.open(site.port, tls=new) as peer:
        assert (await peer.get(1)).status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        raise ConnectionError(await exchange(site.port, HTTP1, old))


def resumed(port: int, tls: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLSession:
    """Make a request in a session, if there is one, and return the session. Raises OSError."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        tls.wrap_socket(plain, server_hostname="localhost", session=session) as connection,
    ):
        connection.sendall(HTTP1)
        assert connection.recv(64).startswith(b"HTTP/1.1 200 ")
        assert connection.session is not None
        return connection.session


async def test_a_session_from_before_a_reload_lets_nobody_in(
    site: Site, authority: Authority, tmp_path: Path
) -> None:
    file, first, second = await trusting_the_first(site, tmp_path)
    old = authority.client(certificate=first.issue("old"))
    old.maximum_version = ssl.TLSVersion.TLSv1_2  # TLS 1.3 has no sessions without tickets
    session = await asyncio.to_thread(resumed, site.port, old, None)
    site.server.reload()
    session = await asyncio.to_thread(resumed, site.port, old, session)
    file.write_bytes(second.file.read_bytes())
    site.server.reload()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.to_thread(resumed, site.port, old, session)


@pytest.mark.parametrize("wrong", ["cert", "key", "client_ca"])
@pytest.mark.parametrize("content", [None, b"", b"no pem"], ids=["missing", "empty", "garbage"])
def test_files_that_cannot_be_used_are_named(
    authority: Authority, wrong: str, content: bytes | None
) -> None:
    files = CertificateFiles(*authority.issue("server"), authority.file)
    path: Path = getattr(files, wrong)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(CertificateError, match=f"--tls-{wrong.replace('_', '-')} .*{path.name}"):
        Certificates(files)
