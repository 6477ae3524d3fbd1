"""The reader of an unreadable row has it set aside, and everything else goes on."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from zq.model.commands import AnyCommand, Claim, DeleteJob, Fail, SetAside, Succeed
from zq.model.errors import RecordsGone
from zq.model.filters import EVERYTHING
from zq.model.job import INLINE_PAYLOAD, JobRecord, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG, Bounds, HistoryOptions
from zq.model.reach import EVERYWHERE
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Completion, Failure
from zq.store.logs import read_log
from zq.store.sqlite.quarantine import UnreadableRows

from ..rig import NOW, Rig

LARGE = f'"{"x" * INLINE_PAYLOAD}"'

CHANGES = {
    "options of a wrong type": """options = '{"retry_limit":"x"}'""",
    "malformed options": "options = '{'",
    "malformed extras": "extras = '{'",
    "a type that is no text": "type = CAST(x'ff' AS TEXT)",
    "a payload that is no text": "payload = CAST(x'22ff22' AS TEXT)",
}
DAMAGE = {name: f"UPDATE jobs SET {change} WHERE id = :key" for name, change in CHANGES.items()}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """A store that can set rows aside, with a history."""
    rig = Rig(tmp_path / "data", history=HistoryOptions("here", Bounds(None, None, None)))
    await rig.open()
    heal(rig)
    yield rig
    await rig.close()


def heal(rig: Rig) -> None:
    async def set_aside(source: str, keys: Any) -> None:
        await rig.run(SetAside(source, keys))

    rig.store.when_unreadable = set_aside


def harm(rig: Rig, statement: str, **parameters: object) -> None:
    """Change the file as somebody would who knows nothing of its rules."""
    file = rig.directory / "zq.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        assert other.execute(statement, parameters).rowcount == 1


async def the_rest(rig: Rig) -> set[int]:
    jobs = await rig.store.reads.jobs_page(EVERYTHING, -1, False, 100, NOW)
    return {job.key for job in jobs}


def misfits(rig: Rig) -> list[tuple[str, str]]:
    return [(row.source, row.key) for row in rig.store.quarantined.latest]


async def counted(rig: Rig) -> int:
    return (await rig.store.reads.counts(NOW)).total()


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_claim_takes_what_is_left(
    damage: str, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    first, bad, last = await rig.keep(3)
    harm(rig, DAMAGE[damage], key=bad)
    assert [job.key for job in await rig.take(3)] == [first, last]
    assert misfits(rig) == [("jobs", str(bad))]
    assert rig.store.quarantined.rows == 1
    assert caplog.messages.count("a row cannot be read and was set aside") == 1
    assert await the_rest(rig) == {first, last}
    assert await counted(rig) == 2


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_listing_shows_what_is_left(damage: str, rig: Rig) -> None:
    first, bad, last = await rig.keep(3)
    harm(rig, DAMAGE[damage], key=bad)
    assert await the_rest(rig) == {first, last}
    assert await rig.store.reads.job(bad, EVERYWHERE, NOW) is None
    assert misfits(rig) == [("jobs", str(bad))]


Order = Callable[[list[int]], AnyCommand]
ORDERS: dict[str, Order] = {
    "acknowledged": lambda keys: Succeed(keys),
    "failed": lambda keys: Fail(keys[1], Failure("m")),
    "deleted": lambda keys: DeleteJob(keys[1]),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("damage", ["options of a wrong type", "malformed options"])
async def test_a_job_in_flight_that_cannot_be_read_frees_its_slot(
    damage: str, order: str, rig: Rig
) -> None:
    keys = await rig.keep(3)
    await rig.take(3)
    harm(rig, DAMAGE[damage], key=keys[1])
    result = await rig.run(ORDERS[order](keys))
    assert (1, keys[1]) in result.ended
    assert keys[1] in result.revoked
    assert misfits(rig) == [("jobs", str(keys[1]))]
    assert await counted(rig) == (0 if order == "acknowledged" else 2)


@pytest.mark.parametrize("damage", ["options of a wrong type", "malformed options"])
async def test_what_falls_due_goes_on(damage: str, rig: Rig) -> None:
    kept = JobSettings(retention=Retention(completed_ms=10))
    keys = await rig.keep(2, options=kept)
    await rig.take(2)
    await rig.run(Succeed(keys))
    harm(rig, DAMAGE[damage], key=keys[0])
    rig.now += 20
    await rig.run(purge=True)
    assert await counted(rig) == 0
    assert misfits(rig) == [("jobs", str(keys[0]))]


@pytest.mark.parametrize("damage", ["options of a wrong type", "malformed options"])
async def test_a_start_goes_on_and_knows_what_was_set_aside_before(damage: str, rig: Rig) -> None:
    first, bad = await rig.keep(2)
    await rig.take(2)
    harm(rig, DAMAGE[damage], key=bad)
    await rig.reopen()
    assert [job.key for job in await rig.take(2)] == [first]
    await rig.reopen()
    assert misfits(rig) == [("jobs", str(bad))]


async def test_the_head_of_a_group_that_cannot_be_read_makes_way(rig: Rig) -> None:
    bad, behind = await rig.keep(2, group="g")
    harm(rig, DAMAGE["malformed extras"], key=bad)
    assert await rig.take(1) == []
    assert [job.key for job in await rig.take(1)] == [behind]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM payloads WHERE job_id = :key",
        "UPDATE payloads SET body = CAST(x'22ff22' AS TEXT) WHERE job_id = :key",
    ],
)
async def test_a_job_without_its_payload_is_set_aside(statement: str, rig: Rig) -> None:
    good, bad = await rig.keep(2, payload=LARGE)
    harm(rig, statement, key=bad)
    assert await the_rest(rig) == {good}
    assert misfits(rig) == [("jobs", str(bad))]


async def test_a_job_without_its_result_is_set_aside(rig: Rig) -> None:
    keys = await rig.keep(2, options=JobSettings(retention=Retention(completed_ms=10**6)))
    await rig.take(2)
    told = Completion(result=LARGE, result_size=len(LARGE))
    await rig.run(Succeed(keys, said=dict.fromkeys(keys, told)))
    harm(rig, "DELETE FROM results WHERE job_id = :key", key=keys[0])
    assert await rig.store.reads.ending(keys[0], EVERYWHERE, NOW) is None
    assert await the_rest(rig) == {keys[1]}


async def test_a_record_of_an_error_that_cannot_be_read_leaves_the_others(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    for attempt in range(2):
        await rig.take(1)
        await rig.run(Fail(key, Failure(f"m{attempt}", kill=attempt == 1)))
        rig.now += 10**9
        await rig.run(promote=True)
    statement = (
        "UPDATE errors SET message = CAST(x'ff' AS TEXT) WHERE job_id = :key AND attempt = 2"
    )
    harm(rig, statement, key=key)
    outcome = await rig.store.reads.ending(key, EVERYWHERE, NOW)
    assert outcome is not None
    assert outcome.status is Status.DEAD
    records = await rig.errors(key)
    assert [record.message for record in records] == ["m0"]
    assert misfits(rig) == [("errors", f"{key}/2")]


@pytest.mark.parametrize(
    "change", ["shared = CAST(x'ff' AS TEXT)", "body = x'5b7b'", "body = CAST('[' AS BLOB)"]
)
async def test_a_history_goes_on_behind_records_that_cannot_be_read(change: str, rig: Rig) -> None:
    for key in await rig.keep(3):
        await rig.take(1)
        await rig.run(Succeed([key]))
    harm(rig, f"UPDATE log_batches SET {change}, checksum = NULL WHERE last_seq = 2")
    # The gap is told as one that retention has left: nobody takes two sides of it for neighbours.
    for after in (None, 0):
        page = await rig.read(read_log, HISTORY_LOG, after, 3, 10)
        assert [batch.first_seq for batch in page.batches] == [1]
    with pytest.raises(RecordsGone) as gone:
        await rig.read(read_log, HISTORY_LOG, 1, 3, 10)
    assert gone.value.min_seq == 3
    page = await rig.read(read_log, HISTORY_LOG, 2, 3, 10)
    assert [batch.first_seq for batch in page.batches] == [3]
    assert misfits(rig) == [("log_batches", "1/2")]


async def test_a_history_whose_first_and_last_records_cannot_be_read(rig: Rig) -> None:
    for key in await rig.keep(3):
        await rig.take(1)
        await rig.run(Succeed([key]))
    harm(rig, "UPDATE log_batches SET body = x'7b', checksum = NULL WHERE last_seq = 1")
    harm(rig, "UPDATE log_batches SET body = x'7b', checksum = NULL WHERE last_seq = 3")
    page = await rig.read(read_log, HISTORY_LOG, None, 3, 10)
    assert [batch.first_seq for batch in page.batches] == [2]
    with pytest.raises(RecordsGone) as gone:
        await rig.read(read_log, HISTORY_LOG, 2, 3, 10)
    assert gone.value.min_seq == 4
    page = await rig.read(read_log, HISTORY_LOG, 3, 3, 10)
    assert page.batches == []


@pytest.mark.parametrize(
    "settings", ['{"paused":"x"}', "{", '{"unknown":1}', '{"paused_until":"x"}']
)
async def test_settings_that_cannot_be_read_are_as_if_there_were_none(
    settings: str, rig: Rig
) -> None:
    (key,) = await rig.keep(1)
    harm(
        rig,
        "INSERT INTO queue_settings (queue, settings) VALUES ('q', :settings)",
        settings=settings,
    )
    await rig.reopen()
    assert [job.key for job in await rig.take(1)] == [key]
    assert await rig.store.reads.settings("q") == NO_SETTINGS
    assert misfits(rig) == [("queue_settings", "q")]


async def test_settings_that_can_be_read_stay(rig: Rig) -> None:
    harm(rig, """INSERT INTO queue_settings (queue, settings) VALUES ('q', '{"rate":2}')""")
    await rig.run(SetAside("queue_settings", ["q"]))
    assert await rig.store.reads.settings("q") == QueueSettings(rate=2)
    assert misfits(rig) == []


async def test_what_was_set_aside_can_be_put_back(rig: Rig) -> None:
    good, bad = await rig.keep(2, payload=LARGE, options=JobSettings(retry_limit=3))
    before = {job.key: job for job in await whole(rig)}
    harm(rig, "UPDATE jobs SET options = '{\"it''s' WHERE id = :key", key=bad)
    assert await the_rest(rig) == {good}
    await rig.close()
    with closing(sqlite3.connect(rig.directory / "zq.db", isolation_level=None)) as operator:
        ((row,),) = operator.execute("SELECT row FROM quarantine")
        operator.execute(row.decode().replace("{\"it''s", '{"retry_limit":3}'))
        operator.execute("DELETE FROM quarantine")
        operator.execute("UPDATE queue_counts SET n = n + 1 WHERE queue = 'q' AND status = 1")
    await rig.open()
    assert {job.key: job for job in await whole(rig)} == before


async def whole(rig: Rig) -> list[JobRecord]:
    return await rig.store.reads.jobs_page(EVERYTHING, -1, False, 100, NOW)


async def test_a_read_that_no_repair_helps_ends(rig: Rig) -> None:
    def look(connection: sqlite3.Connection) -> None:
        raise UnreadableRows("jobs", [])

    with pytest.raises(UnreadableRows):
        await rig.look(look)


async def test_a_claim_of_many_sets_aside_all_that_cannot_be_read(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    keys = await rig.keep(100)
    for bad in keys[::2]:
        harm(rig, DAMAGE["options of a wrong type"], key=bad)
    result = await rig.run(claims=[Claim(None, [(1, 50)])])
    assert [job.key for job in result.claimed[0]] == keys[1::2]
    assert rig.store.quarantined.rows == 50
    assert len(rig.store.quarantined.latest) == 10
