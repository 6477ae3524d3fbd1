"""Backups and compactions: complete, one at a time, within the disk, for whom; and damage."""

import asyncio
import io
import os
import sqlite3
import tarfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from conformance.client import Client
from conformance.keyed import secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq import instance
from zq.store.errors import DamagedDatabase, StoreFailed, StoreFull
from zq.store.sqlite.store import SqliteStore
from zq.wire.archive import MEMBER

ADMIN: dict[str, Any] = {"no_admin": False, "admin_port": 0}

pytestmark = pytest.mark.settings(**ADMIN)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(trust_env=False) as session:
        yield session


async def backup(http: aiohttp.ClientSession, site: Site) -> bytes:
    async with http.post(f"{site.admin_url}/backup") as answer:
        assert answer.status == 200
        return await answer.read()


def jobs_in(archive: bytes) -> int:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        member = tar.extractfile(MEMBER)
        assert member is not None
        with closing(sqlite3.connect(":memory:")) as connection:
            data = bytearray(member.read())
            data[18:20] = b"\1\1"  # what lies in memory has no log
            connection.deserialize(bytes(data))
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            (count,) = connection.execute("SELECT count(*) FROM jobs").fetchone()
            return int(count)


async def test_a_backup_is_a_tar_that_other_programs_read(
    site: Site, http: aiohttp.ClientSession, client: Client
) -> None:
    await client.enqueue_many(20, payload="x" * 10_000)
    async with http.post(f"{site.admin_url}/backup") as answer:
        headers, body = answer.headers, await answer.read()
    assert headers["Content-Type"] == "application/gzip"
    assert headers["Content-Disposition"] == 'attachment; filename="backup.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as tar:
        assert [(m.name, m.mode) for m in tar] == [("zizq-root", 0o700), (MEMBER, 0o600)]
    assert jobs_in(body) == 20
    assert len(body) < int(headers["Zq-Unpacked-Bytes"])


@pytest.mark.settings(**ADMIN, disk_reserve=2**52)
async def test_a_backup_that_would_take_the_reserve_is_refused(
    site: Site, http: aiohttp.ClientSession
) -> None:
    async with http.post(f"{site.admin_url}/backup") as answer:
        assert answer.status == 507
        assert "--disk-reserve" in (await answer.json())["error"]
        assert answer.headers["Zq-Error"] == "storage_full"


async def stalled(site: Site) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Somebody who asks for a backup and reads its head only."""
    host, port = site.admin_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(f"POST /backup HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode())
    assert b"200" in await reader.readline()
    return reader, writer


async def fill(client: Client) -> None:
    """More than any buffer between server and client holds, and that cannot be packed."""
    for _ in range(16):
        await client.enqueue_many(10, payload=os.urandom(40_000).hex())


async def test_there_is_one_backup_at_a_time_and_one_that_is_left_makes_room(
    site: Site, http: aiohttp.ClientSession, client: Client
) -> None:
    await fill(client)
    _, writer = await stalled(site)
    async with http.post(f"{site.admin_url}/backup") as answer:
        assert (answer.status, answer.headers["Zq-Error"]) == (503, "backup_running")
    writer.close()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with http.post(f"{site.admin_url}/backup") as answer:
                if answer.status == 200:
                    assert jobs_in(await answer.read()) == 160
                    return


@pytest.mark.settings(**ADMIN, answer_timeout=5_000)
async def test_who_does_not_read_a_backup_is_cut_off(
    site: Site, http: aiohttp.ClientSession, client: Client
) -> None:
    await fill(client)
    reader, writer = await stalled(site)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            site.clock.advance(1_000)
            async with http.post(f"{site.admin_url}/backup") as answer:
                if answer.status == 200:
                    break
    # It was cut, not ended.
    with pytest.raises(ConnectionError):
        while await reader.read(65_536):
            pass
        raise ConnectionResetError  # an abort may look like an end
    writer.close()


async def test_a_read_error_cuts_the_answer_short(
    site: Site, http: aiohttp.ClientSession, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(client)

    def shorter(database: Any) -> Any:
        yield b"\x1f\x8b"
        raise OSError("no such sector")

    monkeypatch.setattr("zq.operators.admin.http.routes.pack", shorter)
    with pytest.raises(aiohttp.ClientError):
        await backup(http, site)
    monkeypatch.undo()
    assert jobs_in(await backup(http, site)) == 160


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("not-manage", 403), ("shop", 403)])
@pytest.mark.parametrize("path", ["backup", "compact", "damage/acknowledge"])
async def test_it_takes_a_key_for_the_whole_server(
    tmp_path: Path, http: aiohttp.ClientSession, key: str | None, status: int, path: str
) -> None:
    site = Site(tmp_path / "data", {**ADMIN, "keys": write_keys(tmp_path / "keys")})
    await site.start()
    try:
        for name, expected in ((key, {status}), ("only-manage", {200, 204})):
            headers = {} if name is None else {"Authorization": f"Bearer {secret(name)}"}
            async with http.post(f"{site.admin_url}/{path}", headers=headers) as answer:
                assert answer.status in expected
    finally:
        await site.stop()


async def test_the_addresses_are_for_keys_that_open_the_admin_listener(
    tmp_path: Path, http: aiohttp.ClientSession
) -> None:
    site = Site(tmp_path / "data", {**ADMIN, "keys": write_keys(tmp_path / "keys")})
    await site.start()
    expected = {"": 401, "only-read": 200, "only-manage": 200, "only-take": 403, "shop": 403}
    try:
        for url in (site.url, site.admin_url):
            for name, status in expected.items():
                headers = {"Authorization": f"Bearer {secret(name)}"} if name else {}
                async with http.get(f"{url}/listeners", headers=headers) as answer:
                    assert answer.status == status, name
                    assert (site.admin_url in await answer.text()) == (status == 200)
    finally:
        await site.stop()


async def test_compaction_gives_everything_back_beside_ticks(
    site: Site, http: aiohttp.ClientSession, client: Client
) -> None:
    stored: list[str] = []
    for _ in range(20):
        stored += await client.enqueue_many(10, payload="x" * 100_000)
    kept = await client.enqueue_many(3, payload="y" * 50_000)
    await client.delete("/jobs", id=",".join(stored[:100]))
    await client.delete("/jobs", id=",".join(stored[100:]))
    file = site.root / "zq.db"
    compacting = asyncio.ensure_future(http.post(f"{site.admin_url}/compact"))
    while not compacting.done():
        kept += await client.enqueue_many(1)
    assert (await compacting).status == 204
    assert file.stat().st_size < 2**20
    assert (site.root / "zq.db-wal").stat().st_size < 2**18
    assert sorted(job["id"] for job in await client.jobs(limit=2000)) == kept


async def test_compaction_that_waits_is_told_when_the_disk_fails(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [StoreFull("full"), StoreFailed("broken")]

    async def fails(_self: SqliteStore, *, spare: bool = True) -> bool:
        raise errors.pop(0)

    monkeypatch.setattr(SqliteStore, "tidy", fails)
    for status in (507, 500):
        async with http.post(f"{site.admin_url}/compact") as answer:
            assert answer.status == status
    monkeypatch.undo()


async def test_a_compaction_goes_on_for_others_when_one_who_waits_goes_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()
    tidy = SqliteStore.tidy

    async def held(store: SqliteStore, *, spare: bool = True) -> bool:
        if not spare:
            begun.set()
            await may_go_on.wait()
        return await tidy(store, spare=spare)

    monkeypatch.setattr(SqliteStore, "tidy", held)
    maintenance = site.server.services.maintenance
    first, second = (asyncio.create_task(maintenance.compact()) for _ in range(2))
    await begun.wait()
    first.cancel()
    await asyncio.wait([first])
    third = asyncio.create_task(maintenance.compact())
    may_go_on.set()
    await asyncio.gather(second, third)


async def test_what_is_restored_has_what_was_acknowledged(
    site: Site, http: aiohttp.ClientSession, client: Client, tmp_path: Path
) -> None:
    ids = await client.enqueue_many(3)
    archive = await backup(http, site)
    await client.enqueue_many(3)
    await site.stop()

    spoilt = archive[:-9] + bytes([archive[-9] ^ 1]) + archive[-8:]
    for bad in (archive[:-1], archive[: len(archive) // 2], spoilt, b"", b"no gzip"):
        with pytest.raises(DamagedDatabase):
            instance.restore(io.BytesIO(bad), tmp_path / "other", lambda _done, _all: None)
        assert not (tmp_path / "other").exists()
    instance.restore(io.BytesIO(archive), tmp_path / "other", lambda _done, _all: None)
    site.root = tmp_path / "other"
    await site.start()
    assert [job["id"] for job in await client.jobs()] == ids


async def test_damage_is_told_everywhere_until_it_is_acknowledged(
    site: Site, http: aiohttp.ClientSession, client: Client
) -> None:
    id = (await client.enqueue())["id"]
    with closing(sqlite3.connect(site.root / "zq.db", isolation_level=None)) as other:
        other.execute("UPDATE jobs SET type = CAST(x'ff' AS TEXT)")
    assert await client.jobs() == []
    health = (await client.get("/health")).doc
    assert health["status"] == "damaged"
    async with http.get(f"{site.admin_url}/damage") as answer:
        found = await answer.json()
    assert found == health["quarantined"]
    assert (found["rows"], found["latest"][0]["key"]) == (1, id)
    assert "zq_set_aside 1" in (await client.get("/metrics")).body.decode()
    async with http.post(f"{site.admin_url}/damage/acknowledge") as answer:
        assert await answer.json() == {"acknowledged": 1}
    await site.restart()
    health = (await client.get("/health")).doc
    assert (health["status"], "quarantined" in health) == ("ok", False)
    assert "zq_set_aside 0" in (await client.get("/metrics")).body.decode()
