"""TLS of a server in its own process: the log line, SIGHUP, and a start that is refused."""

import os
import signal
from pathlib import Path

import pytest
from http2.peer import GET, Peer, changed
from hyperframe.frame import DataFrame, HeadersFrame
from tls.authority import Authority

from .server import refused, running


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
async def test_sighup_reloads_certificates_and_a_stream_goes_on(tmp_path: Path, loop: str) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    flags = ("--tls-cert", str(cert), "--tls-key", str(key), "--event-loop", loop)
    async with running(tmp_path / "data", *flags) as server:
        assert (await server.logged("listening"))["fields"]["scheme"] == "https"
        async with await Peer.open(server.port, tls=authority.client("h2")) as peer:
            peer.send(peer.headers(1, changed(GET, path="/jobs/take")))
            await peer.until(HeadersFrame, 1)
            authority.issue("renewed", file="server")
            server.signal(signal.SIGHUP)
            await server.logged("certificates reloaded")
            async with await Peer.open(server.port, tls=authority.client("h2")) as other:
                certificate = other.writer.get_extra_info("peercert")
                assert certificate["subject"] == ((("commonName", "renewed"),),)
            post = changed(GET, method="POST", path="/jobs")
            peer.send(peer.headers(3, post, ("END_HEADERS",)))
            peer.send(DataFrame(3, b'{"queue":"q","type":"t","payload":1}', flags=["END_STREAM"]))
            await peer.until(DataFrame, 1)
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
    assert server.errors == b""


async def test_sighup_without_tls_is_survived(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        server.signal(signal.SIGHUP)
        await server.logged("nothing to reload: there are no keys and no certificates")
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0


async def test_certificates_that_cannot_be_used_end_the_start_with_78(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    cert.write_text("no certificate")
    code, server = await refused(tmp_path / "data", "--tls-cert", str(cert), "--tls-key", str(key))
    assert code == os.EX_CONFIG
    (line,) = [line for line in server.log if line["level"] == "ERROR"]
    assert line["fields"]["message"].startswith(f"--tls-cert {cert} and --tls-key {key}")
    assert server.errors == b""
