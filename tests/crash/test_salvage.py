"""What can be read of a damaged database is salvaged, and nothing else is taken for it.

`CRASH_SEED` chooses the damage.
"""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from process.server import refused
from store.rig import Ticker
from tiers import sizes

from zq.cli.group import main
from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget
from zq.instance import examine, salvage
from zq.model.job import JobSettings
from zq.store.errors import DamagedDatabase, DatabaseTooNew, ForeignDatabase

from .fleet import leave_free, small_disk
from .lives import seed
from .test_damage import PAGE, as_recovered, busy_ticks, flip, started, state_of

KINDS = ("flipped bits", "zeroed sectors", "half of the pages", "cut end")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a stopped server with jobs, payloads, results and errors on many pages."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    folder.mkdir()
    with closing(Ticker(folder / "zq.db")) as ticker:
        for _ in busy_ticks(ticker):
            pass
        ticker.store(300)
        ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def harm(file: Path, kind: str, random: Random) -> None:
    size = file.stat().st_size
    if kind == "flipped bits":
        for _ in range(8):
            flip(file, random.randrange(size), random.randrange(8))
        return
    with file.open("r+b") as opened:
        if kind == "cut end":
            opened.truncate(random.randrange(size // 2, size))
        elif kind == "zeroed sectors":
            for _ in range(6):
                opened.seek(random.randrange(size // 512) * 512)
                opened.write(bytes(512))
        else:
            pages = range(1, size // PAGE)
            for page in random.sample(pages, len(pages) // 2):
                opened.seek(page * PAGE)
                opened.write(bytes(PAGE))


def readable(file: Path, table: str, key: str) -> set[int]:
    """The keys of the rows that a plain loop over all keys reads."""
    found: set[int] = set()
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
        keys: list[int] = []
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.Error, UnicodeDecodeError):
                for (each,) in connection.execute(f"SELECT {key} FROM {table} ORDER BY 1 {order}"):
                    keys.append(each)
        for each in keys:
            with suppress(sqlite3.Error, UnicodeDecodeError):
                rows = connection.execute(f"SELECT * FROM {table} WHERE {key} = ?", [each])
                found.update(each for _ in rows.fetchall())
    return found


def keys_in(file: Path, sql: str) -> set[int]:
    with closing(sqlite3.connect(file)) as connection:
        return {int(key) for (key,) in connection.execute(sql)}


@sizes("files", 6, 200)
async def test_a_damaged_file_is_salvaged_as_far_as_it_can_be_read(
    files: int, sound: Path, tmp_path: Path
) -> None:
    random = Random(seed())
    ends = {"salvaged": 0, "nothing to read": 0}
    for number in range(files):
        kind = KINDS[number % len(KINDS)]
        old, new = tmp_path / f"old{number}", tmp_path / f"new{number}"
        shutil.copytree(sound, old)
        harm(old / "zq.db", kind, random)
        before = (old / "zq.db").read_bytes()
        try:
            salvage(old, new, lambda _done, _all: None)
        except (DamagedDatabase, ForeignDatabase, DatabaseTooNew):
            assert not new.exists()
            ends["nothing to read"] += 1
            continue
        assert (old / "zq.db").read_bytes() == before
        jobs = readable(old / "zq.db", "jobs", "id")
        payloads = readable(old / "zq.db", "payloads", "job_id")
        kept = keys_in(new / "zq.db", "SELECT id FROM jobs")
        aside = keys_in(new / "zq.db", "SELECT key FROM quarantine WHERE source = 'jobs'")
        # A flipped bit, or a part of a page, may make a row one that breaks the rules of its table.
        least = 0 if kind in ("half of the pages", "cut end") else 8
        assert len(jobs - kept - aside) <= least, kind
        saved = keys_in(new / "zq.db", "SELECT job_id FROM payloads")
        assert len(payloads - saved) <= least, kind
        assert await started(new) is not None
        ends["salvaged"] += 1
    print(ends)
    assert ends["salvaged"] > files // 2


async def test_a_sound_database_is_salvaged_whole(sound: Path, tmp_path: Path) -> None:
    report = salvage(sound, tmp_path / "new", lambda _done, _all: None)
    assert (report.gaps, report.set_aside) == ({}, 0)
    assert examine(tmp_path / "new").damage == []
    assert state_of(tmp_path / "new/zq.db") == as_recovered(state_of(sound / "zq.db"))
    for table in ("payloads", "errors", "meta"):
        with closing(sqlite3.connect(sound / "zq.db")) as connection:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert report.rows[table] == count


def test_the_command_tells_what_it_saved_and_what_not(sound: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(sound, old)
    harm(old / "zq.db", "half of the pages", Random(1))
    said = CliRunner().invoke(main, ["salvage", str(old), str(new)])
    assert said.exit_code == 0, said.output
    assert "gaps that could not be read" in said.output
    assert f"salvaged into {new}" in said.output
    said = CliRunner().invoke(main, ["salvage", str(old), str(new)])
    assert (said.exit_code, "is not empty" in said.output) == (2, True)


def test_what_is_kept_about_jobs_is_counted_again_when_some_are_left_out(tmp_path: Path) -> None:
    """A budget of which all jobs are lost can be deleted, and a key without jobs has none."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    drawing_both = JobSettings(budgets=(Draw("b", 2),), fair_key="k")  # type: ignore[call-arg]
    with closing(Ticker(old / "zq.db")) as ticker:
        ticker.run(CreateBudget("b", BudgetPolicy(9)))
        lost, _, running = ticker.store(3, options=drawing_both)
        assert ticker.take(1) == [lost]
        ticker.connection.execute("UPDATE jobs SET checksum = checksum + 1 WHERE id = ?", [lost])
        ticker.connection.execute("UPDATE jobs SET payload = 'torn' WHERE id = ?", [running])
        ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    salvage(old, new, lambda _done, _all: None)

    with closing(sqlite3.connect(new / "zq.db")) as connection:
        assert [*connection.execute("SELECT count(*) FROM quarantine")] == [(2,)]
        budgets = connection.execute("SELECT unfinished, waiting, in_use FROM budgets")
        assert [*budgets] == [(1, 1, 0)]
        shares = connection.execute("SELECT unfinished, waiting, in_flight FROM shares")
        assert [*shares] == [(1, 1, 0)]


def test_a_salvage_onto_a_disk_that_is_nearly_full_says_so_and_leaves_nothing(
    sound: Path, tmp_path: Path
) -> None:
    size = (sound / "zq.db").stat().st_size
    codes: set[int] = set()
    with small_disk(tmp_path / "disk", mib=8) as disk:
        for free in range(size // 8, 2 * size, size // 8):
            leave_free(disk, free)
            said = CliRunner().invoke(main, ["salvage", str(sound), str(disk / "new")])
            codes.add(said.exit_code)
            if said.exit_code == 0:
                shutil.rmtree(disk / "new")
                continue
            assert said.exit_code == 74, said.output
            assert any(words in said.output for words in ("is full", "are free", "No space")), (
                said.output
            )
            assert not (disk / "new").exists()
    assert codes == {0, 74}


async def test_a_start_that_has_no_space_for_a_salvage_says_so_and_changes_nothing(
    sound: Path, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", mib=8) as disk:
        shutil.copytree(sound, disk / "data")
        with closing(sqlite3.connect(disk / "data/zq.db", isolation_level=None)) as connection:
            connection.execute("UPDATE queue_counts SET n = n + 1 WHERE queue = 'q1'")
        before = (disk / "data/zq.db").read_bytes()
        for free in (len(before) // 2, len(before) * 9 // 8):
            leave_free(disk, free)
            code, server = await refused(disk / "data", "--on-damage", "salvage")
            assert code == 74, server.messages
            assert any(words in server.messages[-1] for words in ("is full", "are free"))
            assert (disk / "data/zq.db").read_bytes() == before
