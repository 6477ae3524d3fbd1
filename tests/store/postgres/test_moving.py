"""Moves between a data directory and PostgreSQL keep everything, also those that were cut off."""

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from click.testing import CliRunner, Result
from outbox.postgres import the_server
from process.server import refused, running

from store.rig import POLICY, Orders, Rig, new_job
from zq.cli.group import main
from zq.model.commands import Claim
from zq.model.ids import HOLDER_BITS, FormerSuffix
from zq.model.lifecycle import Status
from zq.store import moving
from zq.store.moving import MovedTable, MoveSide, Row
from zq.store.postgres import moving as postgres
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.store import open_store
from zq.store.sqlite import moving as sqlite
from zq.tick.runner import make_ticks

from .full import fill

RENEWED = {"epoch", "id_suffix", "high_water", "former_suffixes"}


class Contents(NamedTuple):
    """Everything that a store holds."""

    meta: dict[str, str]
    tables: dict[str, tuple[MovedTable, list[Row]]]


def contents(side: MoveSide) -> Contents:
    rows = {table.name: (table, sorted(side.rows(table), key=repr)) for table in side.tables}
    return Contents(side.meta(), rows)


def in_directory(path: Path) -> Contents:
    with sqlite.source(str(path)) as side:
        return contents(side)


def in_database(address: str) -> Contents:
    with postgres.source(address) as side:
        return contents(side)


def move(*words: object) -> Result:
    return CliRunner().invoke(main, ["move", *map(str, words)])


@pytest.fixture
def full(tmp_path: Path) -> Path:
    fill(tmp_path / "full")
    return tmp_path / "full"


@pytest.fixture
def address() -> str:
    return the_server().new_database()


def test_both_stores_have_the_same_tables(full: Path, address: str) -> None:
    with sqlite.source(str(full)) as ours, postgres.target(address) as theirs:
        assert ours.tables == theirs.tables


def test_everything_is_kept_there_and_back(full: Path, address: str, tmp_path: Path) -> None:
    file = (full / "zq.db").read_bytes()
    before = in_directory(full)
    there = move(full, address)
    assert (there.exit_code, there.stderr) == (0, ""), there.output
    assert "jobs: " in there.stdout and "the same in both (checksum " in there.stdout
    assert (full / "zq.db").read_bytes() == file
    assert {path.name for path in full.iterdir()} == {"zq.db"}
    inside = in_database(address)
    assert inside.tables == before.tables
    told = msgspec.json.decode(move(address, tmp_path / "back", "--json").stdout)
    assert told["resumed"] == 0
    assert told["tables"]["jobs"]["rows"] == len(before.tables["jobs"][1])
    after = in_directory(tmp_path / "back")
    assert after.tables == before.tables
    for one, other in ((before, inside), (inside, after)):
        assert {n: v for n, v in one.meta.items() if n not in RENEWED} == {
            n: v for n, v in other.meta.items() if n not in RENEWED
        }
        # New ids end in another way than those from before.
        assert len({one.meta["id_suffix"], other.meta["id_suffix"]}) == 2
        assert len({one.meta["epoch"], other.meta["epoch"]}) == 2
        former = msgspec.json.decode(other.meta["former_suffixes"], type=list[FormerSuffix])
        assert former[-1].suffix == one.meta["id_suffix"]


async def test_a_server_goes_on_from_it(full: Path, address: str, tmp_path: Path) -> None:
    """What is new gets its numbers behind what was moved, in either store."""
    assert move(full, address).exit_code == 0
    async with running(tmp_path / "none", "--store", address) as server:
        stopped = move(address, tmp_path / "back")
        assert (stopped.exit_code, stopped.stdout) == (75, "")
        assert "another server uses this database: stop it" in stopped.stderr
        async with server.client() as client:
            await client.enqueue(queue="new")
    assert move(address, tmp_path / "back").exit_code == 0
    rig = Rig(tmp_path / "back")
    await rig.open()
    counts = await rig.store.reads.counts(rig.now)
    assert sum(n for (queue, _), n in counts.items() if queue == "new") == 1
    await rig.close()


async def test_jobs_that_a_server_of_any_slot_held_are_ready_again(
    address: str, tmp_path: Path
) -> None:
    ticks = make_ticks(POLICY, Random(1), {})
    stores = [await open_store(address, ticks, read_timeout=60.0, servers=3) for _ in range(3)]
    orders = Orders(stores[-1].at_start.last_key)
    for slot, store in enumerate(stores):
        claim = Claim(None, [((slot << HOLDER_BITS) + 1, 2)])
        await store.tick(orders.tick([orders.enqueue([new_job()] * 3)], [claim]))
    for store in stores:
        # Else a server that is still there may return the jobs of one that has gone.
        assert store._watch is not None
        await store._watch.stop()
    for store in stores:
        await store.abandon()
    assert move(address, tmp_path / "back").exit_code == 0
    rig = Rig(tmp_path / "back")
    await rig.open()
    returned, statuses = rig.store.at_start.returned, await rig.statuses()
    await rig.close()
    assert (returned, [*statuses.values()]) == (6, [Status.READY] * 9)


@pytest.mark.parametrize("back", [False, True])
async def test_a_move_that_was_killed_goes_on(
    full: Path, address: str, tmp_path: Path, back: bool
) -> None:
    before = in_directory(full)
    if back:
        assert move(full, address).exit_code == 0
    source, target = (address, str(tmp_path / "new")) if back else (str(full), address)
    kills = 0
    while await a_killed_move(source, target):
        kills += 1
        assert kills < 50
    assert kills > 5
    read = in_directory(Path(target)) if back else in_database(target)
    assert read.tables == before.tables


@pytest.mark.parametrize("back", [False, True])
async def test_no_server_starts_before_a_move_is_complete(
    full: Path, address: str, tmp_path: Path, back: bool
) -> None:
    if back:
        assert move(full, address).exit_code == 0
    source, target = (address, str(tmp_path / "new")) if back else (str(full), address)
    assert await a_killed_move(source, target)
    words = ("--store", target) if not back else ()
    code, server = await refused(Path(target) if back else tmp_path / "none", *words)
    assert code == 78
    assert any("run `zq move` again" in message for message in server.messages)
    if not back:
        onwards = move(target, tmp_path / "other")
        assert onwards.exit_code == 78
        assert "a move into this database did not end" in onwards.stderr
    assert move(source, target).exit_code == 0


async def a_killed_move(source: str, target: str) -> bool:
    """Let a process move on that is killed; False if it came to the end before."""
    words = (sys.executable, "-m", "store.postgres.killed_move", source, target)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = await asyncio.create_subprocess_exec(*words, env=environment)
    code = await process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_a_source_that_has_changed_is_moved_anew(full: Path, address: str) -> None:
    with sqlite.source(str(full)) as source, postgres.target(address) as target:
        (jobs,) = [table for table in source.tables if table.name == "jobs"]
        mark = moving.MoveMark(moving.state_of(source), "jobs", [2**62])
        target.empty(msgspec.json.encode(mark).decode())
    with closing(sqlite3.connect(full / "zq.db")) as connection:
        connection.execute("UPDATE meta SET value = value || ' ' WHERE name = 'note:devices'")
        connection.commit()
    assert move(full, address).exit_code == 0
    with postgres.source(address) as moved:
        assert moved.count(jobs) > 300


def test_what_does_not_arrive_is_told(
    full: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = postgres.PostgresTarget.write

    def losing(self: postgres.PostgresTarget, table: MovedTable, rows: Any, mark: str) -> None:
        write(self, table, rows[1:] if table.name == "jobs" else rows, mark)

    monkeypatch.setattr(postgres.PostgresTarget, "write", losing)
    lost = move(full, address)
    assert lost.exit_code == 74
    assert "what was written is not what was read: jobs (" in lost.stderr
    monkeypatch.undo()
    assert move(full, address).exit_code == 0


def test_errors_say_what_to_do(full: Path, address: str, tmp_path: Path) -> None:
    both = move(full, tmp_path / "other")
    assert (both.exit_code, "one of both is a data directory" in both.stderr) == (2, True)
    assert move(tmp_path / "none", address).exit_code == 2
    assert "no server of this version has run on it" in move(address, tmp_path / "n").stderr
    assert move(full, address).exit_code == 0
    again = move(full, address)
    assert (again.exit_code, "DROP SCHEMA zq CASCADE" in again.stderr) == (2, True)
    filled = move(address, full)
    assert (filled.exit_code, "only a directory without" in filled.stderr) == (2, True)
    with closing(sqlite3.connect(full / "zq.db")) as connection:
        connection.execute("PRAGMA user_version = 1000")
    newer = move(full, the_server().new_database())
    assert (newer.exit_code, "schema version 1000" in newer.stderr) == (78, True)
    nobody = move(full, "postgresql://zq:secret@127.0.0.1:1/none")
    assert nobody.exit_code in (74, 78)
    assert "secret" not in nobody.output


def test_rows_of_the_inbox_are_not_left_behind(full: Path, address: str, tmp_path: Path) -> None:
    assert move(full, address).exit_code == 0
    with connect(address, SESSION) as other:
        other.execute("INSERT INTO inbox (document) VALUES ('{}')")
    left = move(address, tmp_path / "back")
    assert left.exit_code == 74
    assert "1 rows are in its table zq.inbox" in left.stderr


def test_a_damaged_source_is_named(full: Path, address: str) -> None:
    with (full / "zq.db").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(bytes(100 * 4096))
    damaged = move(full, address)
    assert damaged.exit_code == 74
    assert "`zq salvage` saves what can be read" in damaged.stderr
