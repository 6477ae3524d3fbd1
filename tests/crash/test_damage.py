"""Damaged files: a prefix is recovered, or the start is refused; never in silence.

`CRASH_SEED` chooses the bits.
"""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from process.server import refused
from store.rig import Rig, Ticker, new_job
from tiers import sizes

from zq.model.commands import Fail, Succeed
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store.errors import DatabaseTooNew, ForeignDatabase, StoreError

from .lives import seed

PAGE, WAL_HEADER, FRAME_HEADER = 4096, 32, 24
FRAME = FRAME_HEADER + PAGE

SET_ASIDE = "a row cannot be read and was set aside"
TORN = "the log ends in pages that are unfinished or damaged: changes in them are lost"
DAMAGED_LOG = "the log is damaged in the middle"

Core = tuple[int, str, int, int]
State = dict[int, Core]
"""Queue, priority, status and attempts of each job by key: what decides what happens to it."""


class Original(NamedTuple):
    """A directory as a killed server leaves it, and the states that each transaction led to."""

    root: Path
    states: list[State]

    def copy(self, folder: Path) -> Path:
        """A directory to damage."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.root, folder)
        return folder


def state_of(file: Path) -> State:
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT id, queue, priority, status, attempts FROM jobs")
        return {row[0]: tuple(row[1:]) for row in rows}


def busy_ticks(ticker: Ticker) -> Iterator[None]:
    """Transactions that put something onto pages of every kind."""
    for round in range(4):
        ticker.store(30, queue=f"q{round}", priority=round)
        yield
        ticker.store(2, payload=f'"{"x" * 20_000}"')
        yield
        ticker.run(
            ticker.enqueue([new_job(unique_key=f"k{round}", unique_while=Scope.ACTIVE)]),
            ticker.enqueue([new_job(ready_at=ticker.now + 10**9)]),
        )
        yield
        keys = ticker.take(20)
        yield
        ticker.run(Succeed(keys[:10]), *(Fail(key, Failure("boom")) for key in keys[10:]))
        yield


def original(folder: Path, *, copied: bool) -> Original:
    """A database whose changes are all in the log, or all `copied` into the database."""
    folder.mkdir()
    file = folder / "zq.db"
    ticker = Ticker(file)
    ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    states = [state_of(file), *(state_of(file) for _ in busy_ticks(ticker))]
    if copied:
        ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = folder.with_name(f"{folder.name}-killed")
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*-shm"))
    ticker.close()
    return Original(kept, states)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return original(tmp_path_factory.mktemp("logged") / "data", copied=False)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Original:
    return original(tmp_path_factory.mktemp("copied") / "data", copied=True)


async def started(root: Path) -> State | None:
    """What a server would find there; None where it refuses to start."""
    rig = Rig(root)
    try:
        await rig.open()
    except (StoreError, DatabaseTooNew, ForeignDatabase):
        return None
    await rig.close()
    return state_of(root / "zq.db")


def as_recovered(state: State) -> State:
    """What a start makes of a state: nothing is in flight."""
    return {
        key: (queue, priority, 1 if status == 2 else status, attempts)
        for key, (queue, priority, status, attempts) in state.items()
    }


def kept_logs(root: Path) -> list[Path]:
    return [*root.glob("zq.db-wal.damaged-*")]


def flip(file: Path, place: int, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        (byte,) = opened.read(1)
        opened.seek(place)
        opened.write(bytes([byte ^ (1 << bit)]))


@sizes("every", 16, 1)
async def test_a_log_cut_anywhere_gives_back_a_prefix(
    every: int, logged: Original, tmp_path: Path
) -> None:
    """Each so many pages, and one byte before and after."""
    size = (logged.root / "zq.db-wal").stat().st_size
    possible = [as_recovered(state) for state in logged.states]
    found = []
    boundaries = range(WAL_HEADER, size + 1, FRAME)
    assert boundaries[-1] == size
    tried = {*boundaries[::every], size}
    for cut in sorted({c + d for c in tried for d in (-1, 0, 1) if c + d <= size}):
        root = logged.copy(tmp_path / "cut")
        os.truncate(root / "zq.db-wal", cut)
        state = await started(root)
        assert state in possible, cut
        found.append(possible.index(state))
    assert found == sorted(found), "a longer log gave back less"
    assert (found[0], found[-1]) == (0, len(possible) - 1)


@sizes("every", 16, 1)
async def test_a_flipped_bit_in_the_log_is_told(
    every: int, logged: Original, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed())
    frames = (logged.root / "zq.db-wal").stat().st_size // FRAME
    possible = [as_recovered(state) for state in logged.states]
    ends: Counter[str] = Counter()
    header = range(0, WAL_HEADER, min(every, 4))  # at least one byte of each number
    places = [(byte, "header") for byte in header]
    tried = sorted({*range(0, frames, every), frames - 1})
    for frame in tried:
        start = WAL_HEADER + frame * FRAME
        places += [
            (start + random.randrange(FRAME_HEADER), "frame header"),
            (start + FRAME_HEADER + random.randrange(PAGE), "frame body"),
        ]
    for place, region in places:
        root = logged.copy(tmp_path / "flipped")
        flip(root / "zq.db-wal", place, random.randrange(8))
        caplog.clear()
        state = await started(root)
        if state is None:
            ends[f"{region}: refused"] += 1
            continue
        assert state in possible[:-1], (region, place)
        kept = kept_logs(root)
        if (place - WAL_HEADER) // FRAME == frames - 1:
            # Nothing follows the last page: it may as well be what a power cut has torn.
            assert TORN in caplog.messages and not kept, (region, place)
        else:
            assert any(text.startswith(DAMAGED_LOG) for text in caplog.messages), (region, place)
            assert kept[0].stat().st_size == (logged.root / "zq.db-wal").stat().st_size
        ends[f"{region}: prefix"] += 1
    print(dict(ends))
    assert ends["header: refused"] == len(header)
    assert ends["frame header: prefix"] == ends["frame body: prefix"] == len(tried)


async def test_a_log_that_ends_well_is_no_reason_for_a_word(
    logged: Original, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await started(logged.copy(tmp_path / "sound")) == as_recovered(logged.states[-1])
    assert TORN not in caplog.messages


@sizes("bits", 60, 5000)
async def test_a_flipped_bit_in_the_database_never_loses_or_moves_a_job_in_silence(
    bits: int, copied: Original, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed())
    size = (copied.root / "zq.db").stat().st_size
    ends: Counter[str] = Counter()
    for number in range(bits):
        # The header and the first page, which has the schema, more densely than the rest.
        place = random.randrange((100, PAGE, size, size)[number % 4])
        root = copied.copy(tmp_path / "flipped")
        flip(root / "zq.db", place, random.randrange(8))
        caplog.clear()
        state = await started(root)
        told = {
            int(record.fields["key"]): record.fields["reason"]  # type: ignore[attr-defined]
            for record in caplog.records
            if record.message == SET_ASIDE
        }
        ends["refused" if state is None else "set aside" if told else "the same jobs"] += 1
        if state is not None:
            expected = as_recovered(copied.states[-1])
            assert state == {key: job for key, job in expected.items() if key not in told}, place
            assert told.keys() <= expected.keys() and all(told.values()), place
    print(dict(ends))
    assert ends["refused"] > 0


async def test_a_refusal_names_the_file_the_damage_and_a_way_out(
    copied: Original, logged: Original, tmp_path: Path
) -> None:
    root = copied.copy(tmp_path / "database")
    with closing(sqlite3.connect(root / "zq.db", isolation_level=None)) as connection:
        connection.execute("UPDATE queue_counts SET n = n + 1 WHERE queue = 'q1'")
    code, server = await refused(root)
    assert code == 74
    for words in (str(root / "zq.db"), "it is damaged", "kept counts", "zq salvage OLD NEW"):
        assert words in server.messages[-1]

    root = logged.copy(tmp_path / "log")
    flip(root / "zq.db-wal", 20, 3)
    code, server = await refused(root)
    assert code == 74
    assert "the header of its log zq.db-wal is damaged" in server.messages[-1]
