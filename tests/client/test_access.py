"""Servers with keys and with TLS."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.keyed import secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S
from tls.authority import Authority

import zq
from zq.client.app import App


@pytest.fixture
async def locked(tmp_path: Path) -> AsyncIterator[Site]:
    """A server that wants a key."""
    site = Site(tmp_path / "locked", {"keys": write_keys(tmp_path / "keys")})
    await site.start()
    yield site
    await site.stop()


async def test_a_key_opens_the_server_to_both_transports(locked: Site) -> None:
    async with App(locked.url, token=secret("root")) as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        first = await double.enqueue(1)
        second = await asyncio.to_thread(double.enqueue_sync, 2)
        await zq.Worker(app).run_until_idle(PATIENCE_S)

        assert [await first.result(), await second.result()] == [2, 4]


async def test_a_key_may_come_from_a_variable(
    locked: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_TOKEN", secret("root"))
    async with App(locked.url) as app:
        assert await app.backend.count() == 0


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        (None, "unauthorized", 401),
        ("nobody", "unauthorized", 401),
        ("only-read", "scope_missing", 403),
    ],
)
async def test_a_wrong_key_is_refused_with_the_servers_code(
    locked: Site, name: str | None, code: str, status: int
) -> None:
    async with App(locked.url, token=None if name is None else secret(name)) as app:
        app.task(lambda: None, name="work")  # type: ignore[call-overload]
        for attempt in (
            app.queue("q").enqueue("a", 1),
            asyncio.to_thread(app.queue("q").sync.enqueue, "a", 1),
            zq.Worker(app, queues=["q"]).run(),
        ):
            with pytest.raises(zq.BackendError) as refused:
                await attempt
            assert (refused.value.code, refused.value.status) == (code, status)


async def test_a_server_with_tls_is_known_by_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "certificates")
    cert, key = authority.issue("server")
    mine = authority.issue("client")
    settings = {"tls_cert": cert, "tls_key": key, "tls_client_ca": authority.file}
    site = Site(tmp_path / "data", settings)
    await site.start()
    url = f"https://localhost:{site.port}"
    known = zq.Tls(authority.file, *mine)

    async with App(url, tls=known) as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        job = await asyncio.to_thread(double.enqueue_sync, 4)
        await zq.Worker(app).run_until_idle(PATIENCE_S)
        assert await job.result() == 8
    for tls in (None, zq.Tls(certificate=mine[0], key=mine[1])):
        async with App(url, tls=tls) as stranger:
            with pytest.raises(zq.Unavailable, match="certificate"):
                await stranger.queue("q").enqueue("a", 1)
            with pytest.raises(zq.Unavailable, match="certificate"):
                await asyncio.to_thread(stranger.queue("q").sync.enqueue, "a", 1)
    monkeypatch.setenv("ZQ_CA", str(tmp_path / "missing.pem"))
    async with App(url) as wrong:
        with pytest.raises(zq.InvalidOption, match=r"missing\.pem"):
            await wrong.queue("q").enqueue("a", 1)
    await site.stop()
