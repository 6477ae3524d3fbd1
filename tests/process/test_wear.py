"""What a server writes to a card: pages a commit, flushes, and what it says of both."""

import struct
from pathlib import Path

from conformance.client import Client

from process.server import ServerProcess, running

JOB = {"queue": "mail", "type": "hello", "payload": {"to": "x" * 100}}

JOBS = 20

MOST_PAGES = 4
"""A job, its place in two indexes, and the count of its queue."""

EDGE_BYTES = 12 * 1024


def commits_of(log: Path) -> tuple[int, list[int]]:
    """The size of a page, and the pages of each commit in a log."""
    content = log.read_bytes()
    (size,) = struct.unpack_from(">I", content, 8)
    commits, pages = [], 0
    for start in range(32, len(content) - size, 24 + size):
        if content[start + 8 : start + 16] != content[16:24]:
            break  # of an earlier round
        pages += 1
        if struct.unpack_from(">I", content, start + 4)[0]:
            commits.append(pages)
            pages = 0
    return size, commits


async def store(client: Client, count: int = JOBS) -> None:
    for _ in range(count):
        assert (await client.post("/jobs", JOB)).status == 201


async def flushes(client: Client) -> float:
    text = (await client.send("GET", "/metrics")).body.decode()
    line = next(line for line in text.splitlines() if line.startswith("zq_fsync_seconds_count"))
    return float(line.split()[-1])


async def stored_pages(server: ServerProcess, folder: Path) -> tuple[int, list[int]]:
    async with server.client() as client:
        await store(client)
    return commits_of(folder / "zq.db-wal")


async def test_a_lone_job_writes_four_pages(tmp_path: Path) -> None:
    async with running(tmp_path, "--upkeep-interval", "1h") as server:
        size, commits = await stored_pages(server, tmp_path)
    assert size == 4096
    assert sorted(commits)[-JOBS // 2] <= MOST_PAGES


async def test_a_lone_job_writes_less_than_12_kib_on_a_small_device(tmp_path: Path) -> None:
    async with running(tmp_path, "--preset", "edge") as server:
        size, commits = await stored_pages(server, tmp_path)
    pages = sorted(commits)[len(commits) // 2]
    # The end of a commit lies in a block of 4 KiB that the next one writes once more.
    assert size == 1024
    assert pages * (24 + size) + 4096 <= EDGE_BYTES


async def test_an_idle_server_copies_its_log_when_it_has_rested(tmp_path: Path) -> None:
    """With the preset that is after a minute: a job now and then costs no copy of its own."""
    async with running(tmp_path, "--preset", "edge") as server, server.client() as client:
        await store(client, 1)
        before = (tmp_path / "zq.db").stat().st_mtime_ns
        await store(client, 1)
        assert (tmp_path / "zq.db").stat().st_mtime_ns == before


async def test_changes_of_an_interval_share_a_flush(tmp_path: Path) -> None:
    async with running(tmp_path, "--flush-interval", "1m") as server, server.client() as client:
        before = await flushes(client)
        await store(client)
        assert await flushes(client) - before <= 1
        health = (await client.get("/health")).doc
        assert health["commit_mode"] == health["enqueue_commit_mode"] == "buffered"
        assert health["may_lose_ms"] == 120_000


async def test_a_server_says_what_it_has_written_and_what_that_is_a_year(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await store(client)
        health = (await client.get("/health")).doc
        assert health["may_lose_ms"] == 0
        written = health["storage_written"]
        text = (await client.send("GET", "/metrics")).body.decode()
    (line,) = (
        line for line in text.splitlines() if line.startswith("zq_storage_written_bytes_total ")
    )
    assert float(line.split()[1]) >= written["bytes"]
    # Twenty jobs in a younger server than a minute count as those of a minute.
    assert written["bytes_a_year"] <= written["bytes"] * 365 * 24 * 60
