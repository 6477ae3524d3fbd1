"""Overload, small enough for every run: requests are refused, acknowledgements pass."""

from pathlib import Path

from conformance.client import new_job
from process.server import running

from . import overload
from .disk import Disk
from .overload import JOBS_EACH, STALLED, WINDOW

ROOM_MB = 100
"""Memory that a server may take for what is asked of it here."""

REFUSALS, LARGE = 64, "x" * 2**20
REFUSED_MB = 32
"""Memory that refusals may take: half of what they would, if what is refused stayed."""


async def test_producers_beyond_the_inbox_wait_for_their_turn(disk: Disk) -> None:
    environment = disk.environment(sync_ms=20)  # while it lasts all of them are at the door
    async with (
        running(disk.root, "--max-inbox-jobs", "500", env=environment) as server,
        server.client() as client,
    ):
        report = await overload.producers(server, client, 50, requests=2, brief=True)

        assert report.counts["201"] == 50 * 2
        assert report.counts["stored"] == 50 * 2 * 100
        assert report.peak_rss < report.calm_rss + ROOM_MB


async def test_workers_that_stop_reading_keep_only_their_window(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        report = await overload.workers(server, client, 20, brief=True)

        assert report.counts["done"] >= 20 * JOBS_EACH - 20 // STALLED * WINDOW
        assert report.peak_rss < report.calm_rss + ROOM_MB


async def test_connections_that_say_nothing_disturb_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        report = await overload.silent(server, client, 300, brief=True)

        assert report.counts["opened"] == 300
        assert report.peak_rss < report.calm_rss + ROOM_MB


async def test_a_reader_that_pins_the_log_makes_enqueues_wait_and_nothing_else(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, "--max-wal", "8MiB") as server, server.client() as client:
        report = await overload.pinned(server, client, tmp_path / "zq.db", mib=20, brief=True)

        assert report.counts["201"] > 0
        assert report.counts["503"] > 0
        assert report.counts["MiB of WAL"] < 20
        assert report.counts["stored afterwards"] == 10
        assert report.peak_rss < report.calm_rss + ROOM_MB


async def test_enqueues_without_room_leave_nothing_in_memory(tmp_path: Path) -> None:
    flags = ("--disk-reserve", "1000000GiB")
    async with running(tmp_path, *flags) as server, server.client() as client:
        before = overload.rss_mb(server)
        for _ in range(REFUSALS):
            reply = await client.post("/jobs", new_job(payload=LARGE))
            assert reply.status == 507

        assert overload.rss_mb(server) < before + REFUSED_MB


async def test_reports_on_jobs_that_nobody_holds_leave_nothing_in_memory(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        id = (await client.enqueue())["id"]
        before = overload.rss_mb(server)
        for _ in range(REFUSALS):
            reply = await client.post(f"/jobs/{id}/failure", {"message": LARGE})
            assert reply.status == 404

        assert overload.rss_mb(server) < before + REFUSED_MB
