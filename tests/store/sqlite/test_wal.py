"""Damage in the log is found, told and kept, and the check of a directory leaves every byte."""

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from zq.cli.group import main
from zq.model.commands import AcknowledgeDamage
from zq.store.errors import DamagedDatabase
from zq.store.sqlite.check import examine
from zq.store.sqlite.damage import MOST_KEPT_LOGS
from zq.store.sqlite.moving import source
from zq.store.sqlite.wal import LogWalk, walk

from ..rig import Rig, Ticker

HEADER, FRAME = 32, 24 + 4096
JOBS = 18


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A directory as a killed server leaves it: one change a frame or more in its log."""
    root = tmp_path / "killed"
    root.mkdir()
    ticker = Ticker(root / "zq.db")
    ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for _ in range(6):
        ticker.store(JOBS // 6)
    kept = tmp_path / "data"
    shutil.copytree(root, kept)
    (kept / "zq.lock").write_text("1\n")
    ticker.close()
    return kept


def frames_in(root: Path) -> int:
    return ((root / "zq.db-wal").stat().st_size - HEADER) // FRAME


def commits_in(root: Path) -> list[int]:
    """The frames that end a change."""
    log = (root / "zq.db-wal").read_bytes()
    return [
        frame
        for frame in range(1, frames_in(root) + 1)
        if any(log[HEADER + (frame - 1) * FRAME + 4 :][:4])
    ]


def flip(root: Path, place: int) -> None:
    with (root / "zq.db-wal").open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def body_of(frame: int) -> int:
    return HEADER + (frame - 1) * FRAME + 24 + 100


def kept_logs(root: Path) -> list[Path]:
    return [*root.glob("zq.db-wal.damaged-*")]


def bytes_of(root: Path) -> dict[str, tuple[str, int]]:
    """The content and the time of every file, and the time of the directory."""
    found = {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in root.iterdir()
    }
    return found | {".": ("", root.stat().st_mtime_ns)}


def test_a_sound_log_is_recovered_to_its_end(killed: Path) -> None:
    frames = frames_in(killed)
    assert walk(killed / "zq.db-wal") == LogWalk(frames, frames)


def test_frames_of_an_earlier_round_are_no_damage(tmp_path: Path) -> None:
    with closing(Ticker(tmp_path / "zq.db")) as ticker:
        ticker.store(500)
        ticker.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        before = frames_in(tmp_path)
        ticker.store(1)
        found = walk(tmp_path / "zq.db-wal")
    assert found is not None and found.bad is None
    assert found.recovered == found.frames < before


@pytest.mark.parametrize("part", ["page number", "salt", "checksum", "body"])
def test_one_flipped_bit_anywhere_in_a_frame_is_found(part: str, killed: Path) -> None:
    place = {"page number": 3, "salt": 9, "checksum": 17, "body": 1000}[part]
    frames = frames_in(killed)
    *_, before, _ = commits_in(killed)
    for frame in range(1, frames + 1):
        flip(killed, HEADER + (frame - 1) * FRAME + place)
        found = walk(killed / "zq.db-wal")
        assert found is not None and found.bad == frame
        assert found.is_torn is (frame == frames)
        assert found.is_last_change is (frame > before)
        flip(killed, HEADER + (frame - 1) * FRAME + place)


@pytest.mark.parametrize("shared", [True, False], ids=["with -shm", "without -shm"])
@pytest.mark.parametrize("frame", [1, 5, -1])
def test_the_check_tells_of_a_damaged_log_and_leaves_every_byte(
    frame: int, shared: bool, killed: Path
) -> None:
    frame = frame if frame > 0 else frames_in(killed)
    flip(killed, body_of(frame))
    if not shared:
        (killed / "zq.db-shm").unlink()
    before = bytes_of(killed)
    report = examine(killed)
    assert f"page {frame} does not fit, and a start loses" in report.damage[0]
    assert bytes_of(killed) == before


@pytest.mark.parametrize("harm", ["none", "log header", "page", "no log", "cut"])
def test_the_check_never_changes_a_byte(harm: str, killed: Path) -> None:
    if harm == "log header":
        flip(killed, 20)
    elif harm == "page":
        with (killed / "zq.db").open("r+b") as file:
            file.seek(3 * 4096)
            file.write(bytes(4096))
    elif harm == "no log":
        with closing(sqlite3.connect(killed / "zq.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    elif harm == "cut":
        os.truncate(killed / "zq.db-wal", HEADER + 3 * FRAME + 100)
    before = bytes_of(killed)
    report = examine(killed)
    assert bool(report.damage) is (harm in ("log header", "page"))
    assert bytes_of(killed) == before


async def test_a_damaged_log_is_kept_and_named_until_it_is_acknowledged(killed: Path) -> None:
    flip(killed, body_of(4))
    damaged = (killed / "zq.db-wal").read_bytes()
    rig = Rig(killed)
    await rig.open()
    (kept,) = kept_logs(killed)
    assert kept.read_bytes() == damaged
    assert kept.stat().st_mode & 0o777 == 0o600
    (named,) = rig.store.quarantined.latest
    assert (named.source, named.key) == ("wal", kept.name)
    assert "page 4 does not fit" in named.reason

    await rig.reopen()
    assert rig.store.quarantined.rows == 1
    await rig.run(AcknowledgeDamage())
    assert rig.store.quarantined.rows == 0
    await rig.reopen()
    assert rig.store.quarantined.rows == 0
    assert kept.exists()
    await rig.close()


async def test_a_start_that_was_cut_off_after_it_had_kept_the_log_keeps_no_second_copy(
    killed: Path,
) -> None:
    flip(killed, body_of(4))
    shutil.copy(killed / "zq.db-wal", killed / "zq.db-wal.damaged-2026-11-25T000000Z")
    rig = Rig(killed)
    await rig.open()
    assert len(kept_logs(killed)) == 1
    assert rig.store.quarantined.rows == 1
    await rig.close()


async def test_the_newest_damaged_logs_are_kept(killed: Path) -> None:
    names = [f"zq.db-wal.damaged-2026-11-{day:02}T000000Z" for day in range(1, MOST_KEPT_LOGS + 2)]
    for name in reversed(names):
        (killed / name).write_text("an earlier one")
    flip(killed, body_of(4))
    damaged = (killed / "zq.db-wal").read_bytes()
    rig = Rig(killed)
    await rig.open()
    *earlier, new = sorted(path.name for path in kept_logs(killed))
    assert earlier == names[2:]
    assert (killed / new).read_bytes() == damaged
    await rig.close()


@pytest.mark.parametrize("way", ["power cut", "kill", "power cut, and a flushed change is bad"])
async def test_a_change_that_a_power_cut_has_left_with_holes_is_not_kept(
    way: str, killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may write the pages of the last flush in any order. Those before were flushed."""
    *_, before, end = commits_in(killed)
    for frame in (before + 1, end - 1) if "flushed" not in way else (before, before + 1):
        flip(killed, body_of(frame))
    if way.startswith("power cut"):
        monkeypatch.setattr("zq.model.clock.BOOT_ID", tmp_path / "boot_id")
        (tmp_path / "boot_id").write_text("another boot\n")
    rig = Rig(killed)
    await rig.open()
    is_kept = way != "power cut"
    assert len(kept_logs(killed)) == rig.store.quarantined.rows == is_kept
    assert len(await rig.statuses()) == JOBS - JOBS // 6 * (2 if "flushed" in way else 1)
    await rig.close()


async def test_what_a_power_cut_tears_at_the_end_of_the_log_is_not_kept(killed: Path) -> None:
    os.truncate(killed / "zq.db-wal", HEADER + 5 * FRAME + 2000)
    rig = Rig(killed)
    await rig.open()
    assert not kept_logs(killed)
    assert rig.store.quarantined.rows == 0
    await rig.close()


HARMS = {"header": (20, "header of its log"), "middle": (body_of(4), "a start loses")}


@pytest.mark.parametrize("harm", HARMS)
def test_a_move_leaves_no_acknowledged_job_behind_in_a_damaged_log(harm: str, killed: Path) -> None:
    place, told = HARMS[harm]
    flip(killed, place)
    with pytest.raises(DamagedDatabase, match=told), source(str(killed)):
        pytest.fail("it can be read")


def test_a_move_takes_a_log_whose_end_a_power_cut_has_torn(killed: Path) -> None:
    flip(killed, body_of(frames_in(killed)))
    with source(str(killed)) as side:
        assert side.highest_key() > 0


def salvaged(killed: Path, new: Path) -> tuple[int, str]:
    """How many jobs a salvage finds, and what it says of its losses."""
    said = CliRunner().invoke(main, ["salvage", str(killed), str(new)])
    assert said.exit_code == 0, said.output
    with closing(sqlite3.connect(new / "zq.db")) as connection:
        return connection.execute("SELECT count(*) FROM jobs").fetchone()[0], said.stderr


def test_a_salvage_tells_what_it_loses_of_a_damaged_log(killed: Path, tmp_path: Path) -> None:
    flip(killed, body_of(frames_in(killed) // 2))
    jobs, told = salvaged(killed, tmp_path / "new")
    assert 0 < jobs < JOBS
    assert "not salvaged: its log zq.db-wal is damaged: page" in told


@pytest.mark.parametrize("shared", [True, False], ids=["with -shm", "without -shm"])
@pytest.mark.parametrize("place", range(0, HEADER, 3))
def test_a_salvage_reads_the_changes_behind_a_damaged_header(
    place: int, shared: bool, killed: Path, tmp_path: Path
) -> None:
    flip(killed, place)
    if not shared:
        (killed / "zq.db-shm").unlink()
    before = bytes_of(killed)
    assert salvaged(killed, tmp_path / "new") == (JOBS, "")
    assert bytes_of(killed) == before


def test_a_salvage_tells_what_it_loses_behind_a_damaged_header(
    killed: Path, tmp_path: Path
) -> None:
    flip(killed, 20)
    flip(killed, body_of(frames_in(killed) // 2))
    jobs, told = salvaged(killed, tmp_path / "new")
    assert 0 < jobs < JOBS
    assert "not salvaged: the header of its log zq.db-wal is damaged, and" in told
