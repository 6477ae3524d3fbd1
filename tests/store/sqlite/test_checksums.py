"""A text that the disk has changed is set aside; nobody gets another text than was stored."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from zq.instance import examine, salvage
from zq.model.commands import Fail, PatchJob, SetAside, SetQueue, Succeed
from zq.model.filters import EVERYTHING
from zq.model.job import BackoffRule, Extras, JobSettings, Retention
from zq.model.log import HISTORY_LOG, Bounds, HistoryOptions
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings
from zq.model.settling import Completion, Failure
from zq.store.logs import read_log

from ..rig import NOW, Rig

FLIPS = 24

KEPT = JobSettings(retention=Retention(completed_ms=10**6))


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await rig.open()
    heal(rig)
    yield rig
    await rig.store.abandon()


@pytest.fixture
async def recording(tmp_path: Path) -> AsyncIterator[Rig]:
    """A store that records its history."""
    rig = Rig(tmp_path / "recorded", history=HistoryOptions("device", Bounds()))
    await rig.open()
    heal(rig)
    yield rig
    await rig.store.abandon()


def heal(rig: Rig) -> None:
    async def set_aside(source: str, keys: Any) -> None:
        await rig.run(SetAside(source, keys))

    rig.store.when_unreadable = set_aside


def harmless(content: bytes, place: int) -> bytes:
    """The content with a bit flipped that leaves a text one: a digit, a letter."""
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


async def flip(rig: Rig, text: bytes, place: int) -> None:
    """Flip a bit of a text in the file itself, wherever it lies there, and open it again."""
    await rig.close()
    file = rig.directory / "zq.db"
    content = file.read_bytes()
    # Bytes of a row that has moved may be left elsewhere.
    assert text in content
    file.write_bytes(content.replace(text, harmless(text, place)))
    await rig.open()
    heal(rig)


def misfits(rig: Rig) -> list[tuple[str, str]]:
    return [(row.source, row.key) for row in rig.store.quarantined.latest]


@pytest.mark.parametrize("size", [40, 3000])
async def test_no_flipped_bit_of_a_payload_gives_another_payload(size: int, rig: Rig) -> None:
    random = Random(size)
    payloads = [f'"{number:04}{"5" * size}"' for number in range(FLIPS)]
    keys = [(await rig.keep(1, payload=payload))[0] for payload in payloads]
    (good,) = await rig.keep(1, payload='"good"')
    for number, payload in enumerate(payloads):
        text = payload[:200].encode()
        await flip(rig, text, random.randrange(5, min(size, 200)))
        if number % 2:
            page = await rig.store.reads.jobs_page(EVERYTHING, -1, False, 1000, NOW)
            assert keys[number] not in [job.key for job in page]
            assert await rig.store.reads.job(keys[number], EVERYWHERE, NOW) is None
        elif size <= 512:
            taken = [job.key for job in await rig.take(1)]
            assert keys[number] not in taken
        else:
            assert keys[number] not in await bodies(rig, [keys[number]])
        assert misfits(rig)[0] == ("jobs", str(keys[number]))
    assert rig.store.quarantined.rows == FLIPS
    assert [job.key for job in await rig.take(100)] == [good]


async def bodies(rig: Rig, keys: list[int]) -> dict[int, str]:
    return await rig.store.reads.payloads(keys)


def harm(rig: Rig, statement: str, **parameters: object) -> None:
    with closing(sqlite3.connect(rig.directory / "zq.db", isolation_level=None)) as other:
        assert other.execute(statement, parameters).rowcount == 1


@pytest.mark.parametrize(
    "change",
    [
        "type = 'sens'",
        "payload = '1'",
        """extras = json_set(extras, '$.meta', '{"a":2}')""",
        """extras = json_set(extras, '$.traceparent', 'other')""",
        "extras = NULL",
        "checksum = checksum + 1",
    ],
)
async def test_what_a_job_carries_is_what_was_stored(change: str, rig: Rig) -> None:
    extras = Extras(meta='{"a":1}', content_type="text/plain", traceparent="trace")
    first, bad, last = await rig.keep(3, payload="2", extras=extras)
    harm(rig, f"UPDATE jobs SET {change} WHERE id = :key", key=bad)
    assert [job.key for job in await rig.take(3)] == [first, last]
    assert misfits(rig) == [("jobs", str(bad))]
    assert "checksum" in rig.store.quarantined.latest[0].reason


SET = JobSettings(
    retry_limit=25, backoff=BackoffRule(2, 100, 0), dead_letter="q-dead", lease_ms=60_000
)


@pytest.mark.parametrize(
    "change",
    [
        "options = replace(options, '25', '24')",
        "options = replace(options, '100', '101')",
        "options = replace(options, 'q-dead', 'q-deae')",
        "options = replace(options, 'lease_ms', 'lease_mr')",
        "options = NULL",
    ],
)
async def test_a_job_is_treated_by_the_options_that_were_stored(change: str, rig: Rig) -> None:
    first, bad, last = await rig.keep(3, options=SET)
    harm(rig, f"UPDATE jobs SET {change} WHERE id = :key", key=bad)
    assert [job.key for job in await rig.take(3)] == [first, last]
    assert misfits(rig) == [("jobs", str(bad))]


async def test_changed_options_have_a_checksum_and_hide_no_older_damage(rig: Rig) -> None:
    sound, bare, bad = await rig.keep(3, options=SET)
    harm(rig, "UPDATE jobs SET payload = '1' WHERE id = :key", key=bad)
    for key in (sound, bare):
        await rig.run(PatchJob(key, str(key), Patch(retry_limit=3)))
    await rig.run(PatchJob(bare, str(bare), Patch(retry_limit=None, backoff=None, lease_ms=None)))
    rows = await rig.look(
        lambda connection: connection.execute(
            "SELECT id, options FROM jobs WHERE checksum IS NOT NULL ORDER BY id"
        ).fetchall()
    )
    assert len(rows) == 3
    assert [job.key for job in await rig.take(3)] == [sound, bare]
    harm(rig, "UPDATE jobs SET options = replace(options, ':3', ':2') WHERE id = :key", key=sound)
    await rig.close()
    assert "changed on the disk: jobs" in "".join(examine(rig.directory).damage)
    await rig.open()


async def test_flipped_settings_of_a_queue_are_set_aside(rig: Rig) -> None:
    for queue in ("a", "b"):
        await rig.run(SetQueue(queue, QueueSettings(concurrency=25)))
    harm(
        rig,
        "UPDATE queue_settings SET settings = replace(settings, '25', '24') WHERE queue = :queue",
        queue="b",
    )
    await rig.close()
    assert [line.split(" (")[0] for line in examine(rig.directory).damage] == [
        "changed on the disk: queue_settings b"
    ]
    await rig.open()
    heal(rig)
    assert [row.source for row in rig.store.quarantined.latest] == ["queue_settings"]
    assert [*await rig.store.reads.all_settings()] == ["a"]


@pytest.mark.parametrize("size", [4, 2000])
async def test_a_result_is_what_was_stored(size: int, rig: Rig) -> None:
    good, bad = await rig.keep(2, options=KEPT)
    await rig.take(2)
    told = Completion(result=f'"{"x" * size}"', result_size=size + 2)
    await rig.run(Succeed([good, bad], said=dict.fromkeys([good, bad], told)))
    table, column, key = ("jobs", "result", "id") if size < 512 else ("results", "body", "job_id")
    harm(rig, f"UPDATE {table} SET {column} = replace({column}, 'x', 'y') WHERE {key} = :k", k=bad)
    assert await rig.store.reads.ending(bad, EVERYWHERE, NOW) is None
    ending = await rig.store.reads.ending(good, EVERYWHERE, NOW)
    assert ending is not None and ending.result == told.result
    assert misfits(rig) == [("jobs", str(bad))]


async def test_a_record_of_an_error_is_what_was_stored(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    await rig.take(1)
    await rig.run(Fail(key, Failure("lost", kill=True)))
    harm(rig, "UPDATE errors SET message = 'last' WHERE job_id = :key", key=key)
    assert await rig.errors(key) == []
    assert misfits(rig) == [("errors", f"{key}/1")]


@pytest.mark.parametrize(
    "change",
    [
        "body = CAST(replace(CAST(body AS TEXT), '\"t\"', '\"s\"') AS BLOB)",
        "shared = replace(shared, 'device', 'devicf')",
        "shared = replace(shared, 'device\"', 'device\" ')",
    ],
)
async def test_the_history_tells_of_what_was_stored(change: str, recording: Rig) -> None:
    rig = recording
    for key in await rig.keep(3):
        await rig.take(1)
        await rig.run(Succeed([key]))
    harm(rig, f"UPDATE log_batches SET {change} WHERE last_seq = 2")
    # The log's row knows how many bytes there are, which is another check.
    size = "SELECT sum(length(body) + length(shared)) FROM log_batches WHERE log = logs.id"
    harm(rig, f"UPDATE logs SET bytes = ({size}) WHERE name = '{HISTORY_LOG}'")
    await rig.close()
    assert [line.split(" (")[0] for line in examine(rig.directory).damage] == [
        "changed on the disk: log_batches 1/2"
    ]
    await rig.open()
    heal(rig)
    page = await rig.read(read_log, HISTORY_LOG, None, 3, 10)
    assert [batch.first_seq for batch in page.batches] == [1]
    assert misfits(rig) == [("log_batches", "1/2")]


async def test_rows_from_before_the_checksums_are_taken_as_they_are(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    harm(rig, "UPDATE jobs SET checksum = NULL, payload = '9' WHERE id = :key", key=key)
    assert [job.payload for job in await rig.take(1)] == ["9"]


async def damaged(rig: Rig) -> list[int]:
    keys = await rig.keep(2, payload="2")
    keys += await rig.keep(2, payload=f'"{"x" * 2000}"')
    harm(rig, "UPDATE jobs SET payload = '3' WHERE id = :key", key=keys[1])
    harm(rig, "UPDATE payloads SET body = replace(body, 'x', 'y') WHERE job_id = :k", k=keys[3])
    await rig.close()
    return keys


async def test_a_check_names_what_does_not_fit(rig: Rig) -> None:
    await damaged(rig)
    report = examine(rig.directory)
    assert len(report.damage) == 2
    assert all(text.startswith("changed on the disk: jobs ") for text in report.damage)
    await rig.open()


async def test_a_salvage_sets_aside_what_does_not_fit(rig: Rig, tmp_path: Path) -> None:
    keys = await damaged(rig)
    report = salvage(rig.directory, tmp_path / "new", lambda _done, _all: None)
    assert report.set_aside == 2
    with closing(sqlite3.connect(tmp_path / "new/zq.db")) as connection:
        left = [key for (key,) in connection.execute("SELECT id FROM jobs ORDER BY id")]
    assert left == [keys[0], keys[2]]
    await rig.open()
