"""Rows beside those of jobs are mended after the disk has changed them."""

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, PutBudget, ReopenBudget, drawing
from zq.instance import examine, salvage
from zq.model.commands import Claim, Succeed
from zq.model.job import JobRecord, JobSettings
from zq.model.log import HISTORY_LOG, Bounds, HistoryOptions
from zq.store.errors import DamagedDatabase, StoreDamaged
from zq.store.logs import read_log
from zq.store.sqlite.moving import source
from zq.store.sqlite.restore import restoring

from ..rig import FOREVER, Rig

DRAWS = drawing((Draw("b"),))
SHARES = JobSettings(fair_key="a")  # type: ignore[call-arg]
POLICY = BudgetPolicy(10)

EVERYTHING = {"drawn": 2, "shared": 2, "plain": 1}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """A store with jobs that wait in two lines, and with one that waits in none."""
    rig = Rig(tmp_path / "data")
    await rig.open()
    await rig.run(CreateBudget("b", POLICY))
    await rig.keep(2, queue="drawn", options=DRAWS)
    await rig.keep(2, queue="shared", options=SHARES)
    await rig.keep(1, queue="plain")
    yield rig
    await rig.close()


def harm(directory: Path, statement: str) -> None:
    """Change rows as the disk may."""
    with closing(sqlite3.connect(directory / "zq.db", isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        assert other.execute(statement).rowcount > 0


async def taken(rig: Rig) -> dict[str, int]:
    """How many jobs a claim gets, by queue."""
    return count(await rig.take(10))


def count(jobs: list[JobRecord]) -> dict[str, int]:
    return {name: sum(job.queue == name for job in jobs) for name in {job.queue for job in jobs}}


def named(rig: Rig) -> set[tuple[str, str]]:
    return {(row.source, row.key) for row in rig.store.quarantined.latest}


LINES = {
    "draws that are no JSON": """draws = '[["b"",1]]' WHERE queue = 'drawn'""",
    "draws of another form": """draws = '[["b",[]]]' WHERE queue = 'drawn'""",
    "a queue that is no text": "queue = CAST(x'ff' AS TEXT) WHERE queue = 'drawn'",
    "a key that is no text": "fair_key = CAST(x'3dff' AS TEXT) WHERE queue = 'shared'",
    "another queue": "queue = 'other' WHERE queue = 'shared'",
}


@pytest.mark.parametrize("opens_anew", [False, True], ids=["running", "started"])
@pytest.mark.parametrize("damage", LINES)
async def test_jobs_of_a_bad_line_come_as_before(damage: str, opens_anew: bool, rig: Rig) -> None:
    if opens_anew:
        await rig.close()
    harm(rig.directory, f"UPDATE lines SET {LINES[damage]}")
    if opens_anew:
        assert any("lines" in finding for finding in examine(rig.directory).damage) or (
            damage == "another queue"
        )
        await rig.open()
    assert await taken(rig) == EVERYTHING
    assert {source for source, _ in named(rig)} == {"lines"}
    assert await taken(rig) == {}


async def test_nobody_gets_a_job_of_another_queue(rig: Rig) -> None:
    harm(rig.directory, "UPDATE lines SET queue = 'other' WHERE queue = 'shared'")
    result = await rig.run(claims=[Claim(("other",), [(1, 10)])])
    assert result.claimed == [[]]
    assert await taken(rig) == EVERYTHING


@pytest.mark.parametrize("key", ["CAST(x'ff' AS TEXT)", "'c'"], ids=["no text", "another"])
async def test_a_budget_whose_row_is_lost_is_held_until_it_is_set(key: str, rig: Rig) -> None:
    await rig.close()
    harm(rig.directory, f"UPDATE budgets SET key = {key} WHERE key = 'b'")
    await rig.open()
    assert await taken(rig) == {"shared": 2, "plain": 1}
    assert ("budgets", "b") in named(rig)
    await rig.run(PutBudget("b", POLICY), ReopenBudget("b"))
    assert await taken(rig) == {"drawn": 2}


@pytest.mark.parametrize(
    "damage",
    [
        "budgets SET allocation = -1",
        "budgets SET level = -9000000000000000000",
        "shares SET fair_key = CAST(x'ff' AS TEXT)",
        "shared_queues SET queue = CAST(x'ff' AS TEXT)",
        "fair_limits SET fair_key = CAST(x'ff' AS TEXT)",
    ],
)
async def test_a_row_that_its_table_would_refuse_keeps_no_other_job(damage: str, rig: Rig) -> None:
    if "fair_limits" in damage:
        harm(rig.directory, "INSERT INTO fair_limits VALUES ('shared', 'a', 1.0, NULL, NULL)")
    await rig.close()
    harm(rig.directory, f"UPDATE {damage}")
    await rig.open()
    rest = EVERYTHING.items() - ({("drawn", 2)} if "budgets" in damage else set())
    assert (await taken(rig)).items() >= rest


async def test_wrong_counts_are_counted_again(rig: Rig) -> None:
    harm(rig.directory, "UPDATE queue_counts SET n = 0 WHERE queue = 'drawn'")
    assert await taken(rig) == EVERYTHING
    assert named(rig) == {("queue_counts", "all")}


LOGS = {
    "a name that is no text": "name = CAST(x'ff' AS TEXT)",
    "another name": "name = 'other'",
    "a first number below zero": "min_seq = min_seq - 9000000000000000000",
    "a first number beyond the last": "min_seq = 9000000000000000000",
    "a last number below zero": "max_seq = max_seq - 9000000000000000000",
    "an earlier last number": "max_seq = 1",
    "a size below zero": "bytes = bytes - 9000000000000000000",
}


@pytest.mark.parametrize("opens_anew", [False, True], ids=["running", "started"])
@pytest.mark.parametrize("damage", LOGS)
async def test_a_log_whose_row_has_changed_goes_on(
    damage: str, opens_anew: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path / "recorded", history=HistoryOptions("lab", Bounds(records=1_000)))
    await rig.open()
    await attempt(rig, 3)
    if opens_anew:
        await rig.close()
    harm(rig.directory, f"UPDATE logs SET {LOGS[damage]} WHERE name = 'history'")
    if opens_anew:
        assert any("logs history" in finding for finding in examine(rig.directory).damage)
        await rig.open()
    try:
        await attempt(rig, 2)
        page = await rig.read(read_log, HISTORY_LOG, None, FOREVER, 100)
        seqs = [b.first_seq + n for b in page.batches for n in range(len(b.records))]
        assert (page.min_seq, page.max_seq, seqs) == (1, 5, [1, 2, 3, 4, 5])
        assert ("logs", "history") in named(rig)
        kept = "SELECT max_records FROM logs WHERE name = 'history'"
        assert await rig.look(lambda it: it.execute(kept).fetchone()) == (1_000,)
    finally:
        await rig.close()


async def test_a_start_makes_the_lost_row_of_a_log_anew(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "recorded", history=HistoryOptions("lab", Bounds()))
    await rig.open()
    await attempt(rig, 3)
    await rig.close()
    harm(rig.directory, "DELETE FROM logs WHERE name = 'history'")
    await rig.open()
    try:
        assert rig.store.logged == 3
        assert ("logs", "history") in named(rig)
    finally:
        await rig.close()


async def attempt(rig: Rig, count: int) -> None:
    """Have some jobs done, in a commit each."""
    for key in await rig.keep(count):
        await rig.take(1)
        await rig.run(Succeed([key]))


@pytest.mark.parametrize("name", ["epoch", "id_suffix", "high_water"])
async def test_a_start_says_which_name_is_lost(name: str, rig: Rig) -> None:
    await rig.close()
    harm(rig.directory, f"UPDATE meta SET name = CAST(x'ff' AS TEXT) WHERE name = '{name}'")
    with pytest.raises(StoreDamaged, match=f"it has lost its {name}.*zq salvage"):
        await rig.open()


NEEDED = {
    "id_suffix": ["'AB'", "'abcdefghijkl'", "7"],
    "high_water": ["'many'", "x'00'", "-1"],
    "epoch": ["7"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in NEEDED.items() for value in values]
)
async def test_a_wrong_name_or_number_of_a_database_is_found_and_made_anew_by_a_salvage(
    name: str, value: str, rig: Rig, tmp_path: Path
) -> None:
    keys = [*await rig.statuses()]
    await rig.close()
    harm(rig.directory, f"UPDATE meta SET value = {value} WHERE name = '{name}'")
    assert any(f"it has lost its {name}" in found for found in examine(rig.directory).damage)
    with pytest.raises(StoreDamaged, match=f"it has lost its {name}.*zq salvage"):
        await rig.open()
    with pytest.raises(DamagedDatabase, match=name), source(str(rig.directory)):
        pytest.fail("it can be read")
    with pytest.raises(DamagedDatabase, match=name):
        restored(rig.directory, tmp_path / "restored")

    assert salvage(rig.directory, tmp_path / "new", lambda _done, _all: None).gaps == {"meta": 1}
    new = Rig(tmp_path / "new")
    await new.open()
    try:
        assert [*await new.statuses()] == keys
        assert (await new.keep(1))[0] > keys[-1]
    finally:
        await new.close()


@pytest.mark.parametrize("value", ["substr(value, 1, 9)", "7", "'{}'"])
async def test_the_endings_of_former_ids_are_set_aside_if_they_cannot_be_read(
    value: str, rig: Rig, tmp_path: Path
) -> None:
    await rig.close()
    directory = tmp_path / "restored"
    restored(rig.directory, directory)
    harm(directory, f"UPDATE meta SET value = {value} WHERE name = 'former_suffixes'")
    assert any("unreadable: meta former_suffixes" in each for each in examine(directory).damage)
    with pytest.raises(DamagedDatabase, match="zq salvage"), source(str(directory)):
        pytest.fail("it can be read")
    assert salvage(directory, tmp_path / "new", lambda _done, _all: None).gaps == {"meta": 1}
    restored(directory, tmp_path / "twice")
    for each in (Rig(directory), Rig(tmp_path / "twice")):
        await each.open()
        try:
            assert await taken(each) == EVERYTHING
            assert named(each) == {("meta", "former_suffixes")}
        finally:
            await each.close()


REFUSED = {
    "priority": "priority = 70000",
    "status": "status = 77",
    "held": "held = 9",
    "lease": "lease_until = 5",
    "group": "group_id = ''",
}


@pytest.mark.parametrize("rule", REFUSED)
async def test_a_job_that_its_table_would_refuse_is_found_and_set_aside(
    rule: str, rig: Rig, tmp_path: Path
) -> None:
    (key,) = await rig.keep(1, queue="plain")
    await rig.close()
    harm(rig.directory, f"UPDATE jobs SET {REFUSED[rule]} WHERE id = {key}")
    (found,) = examine(rig.directory).damage
    # A job of another status is not counted as it is kept.
    words = "kept counts" if rule == "status" else "unreadable: jobs .*: CHECK constraint failed"
    assert re.search(words, found)

    report = salvage(rig.directory, tmp_path / "salvaged", lambda _done, _all: None)
    assert (report.gaps, report.set_aside) == ({}, 1)
    restored(rig.directory, tmp_path / "restored")
    for directory in (rig.directory, tmp_path / "salvaged", tmp_path / "restored"):
        each = Rig(directory)
        await each.open()
        try:
            assert await taken(each) == EVERYTHING
            assert named(each) >= {("jobs", str(key))}
            row = await each.look(lambda it: it.execute(ROW_OF_JOB).fetchone()[0])
            assert row.startswith(b"INSERT INTO jobs (id, ") and str(key).encode() in row
        finally:
            await each.close()


ROW_OF_JOB = "SELECT row FROM quarantine WHERE source = 'jobs'"


async def test_a_restore_that_finds_more_than_it_can_mend_names_the_salvage(
    rig: Rig, tmp_path: Path
) -> None:
    await rig.close()
    harm(rig.directory, "UPDATE queue_counts SET n = n + 1 WHERE queue = 'plain'")
    with pytest.raises(DamagedDatabase, match=r"kept counts.*zq salvage"):
        restored(rig.directory, tmp_path / "restored")


def restored(directory: Path, new: Path) -> None:
    """Restore the database of a directory."""
    with (directory / "zq.db").open("rb") as file, restoring(new) as write:
        write(file, 0, lambda _done, _all: None)


@pytest.mark.parametrize("table", ["lines", "budgets", "shares", "shared_queues"])
async def test_a_salvage_makes_lost_rows_anew(table: str, rig: Rig, tmp_path: Path) -> None:
    await rig.close()
    harm(rig.directory, f"DELETE FROM {table}")
    salvage(rig.directory, tmp_path / "new", lambda _done, _all: None)
    new = Rig(tmp_path / "new")
    await new.open()
    try:
        rest = EVERYTHING.items() - ({("drawn", 2)} if table == "budgets" else set())
        assert (await taken(new)).items() == rest
    finally:
        await new.close()
