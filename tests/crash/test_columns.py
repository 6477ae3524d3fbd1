"""A bit flips in each column of a job: nobody gets other work in silence.

`CRASH_SEED` chooses the bits.
"""

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from store.rig import NOW, Rig, Ticker
from tiers import sizes

from zq.model.commands import Fail
from zq.model.job import BackoffRule, CarriedFields, Extras, JobRecord, JobSettings
from zq.model.settling import Failure
from zq.model.sharing import values_of
from zq.model.unique import Scope
from zq.store.errors import DatabaseTooNew, ForeignDatabase, StoreError

from .cells import cells
from .lives import seed
from .test_damage import flip

RULES = JobSettings(retry_limit=25, backoff=BackoffRule(2.0, 100, 0), dead_letter="dead-ones")
BROUGHT: dict[str, Any] = {
    "meta": '{"tenant":"a"}',
    "traceparent": "00-0af7",
    "content_type": "text/csv",
}

WORK = {"queue", "type", "payload", "options", "extras"}
"""What a worker gets, and how its report is treated. What may go unnoticed is the order, counts and
times of a job: its priority, its attempts and stalls, when it failed."""


async def taken(root: Path) -> list[JobRecord] | None:
    """The jobs that a server would hand out; None if it refuses to start, or tells an error."""
    rig = Rig(root)
    rig.now = NOW + 10**6
    try:
        await rig.open()
        try:
            await rig.run(promote=True)
            return await rig.take(100)
        finally:
            await rig.store.abandon()
    except (StoreError, DatabaseTooNew, ForeignDatabase, sqlite3.Error):
        return None


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, list[str]]:
    """A directory, the key of a job with values in most columns, and the columns."""
    folder = tmp_path_factory.mktemp("columns") / "data"
    folder.mkdir()
    with closing(Ticker(folder / "zq.db")) as ticker:
        ticker.store(5, queue="near", payload='"other"')
        (key,) = ticker.store(
            1,
            queue="mail",
            type="send",
            payload='{"n":12345}',
            priority=300,
            options=RULES,
            extras=Extras(**BROUGHT),
            group="customer",
            unique_key="once",
            unique_while=Scope.ACTIVE,
            ttl_ms=10**9,
        )
        ticker.take(1, queues=("mail",))
        ticker.run(Fail(key, Failure("boom")))
        ticker.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        columns = [
            row[1] for row in ticker.connection.execute("PRAGMA table_xinfo(jobs)") if row[6] == 0
        ]
    return folder, key, columns


@pytest.mark.parametrize("checked", [True, False], ids=["small", "large"])
@sizes("bits", 2, 16)
async def test_a_flipped_bit_of_a_job_gives_nobody_other_work(
    bits: int,
    checked: bool,
    sound: tuple[Path, int, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not checked:
        # A start does not look through a large database.
        monkeypatch.setattr("zq.store.sqlite.damage.CHECKED_BYTES", 0)
    folder, key, columns = sound
    places = dict(cells(folder / "zq.db", len(columns)))[key]
    root = tmp_path / "flipped"
    shutil.copytree(folder, root)
    truth = next(job for job in await taken(root) or [] if job.key == key)
    random = Random(seed())
    ends: Counter[str] = Counter()
    for column, place in zip(columns, places, strict=True):
        for _ in range(bits):
            shutil.rmtree(root)
            shutil.copytree(folder, root)
            flip(root / "zq.db", random.choice(place), random.randrange(8))
            jobs = await taken(root)
            got = [job for job in jobs or [] if job.key == key]
            if jobs is None or not got:
                ends[f"{column}: {'told' if jobs is None or told(root) else 'not handed out'}"] += 1
                continue
            (changed,) = [different(truth, job) for job in got]
            ends[f"{column}: {'another ' + ' '.join(changed) if changed else 'the same'}"] += 1
            assert not WORK.intersection(changed), (column, changed)
    print(*sorted(ends.items()), sep="\n")
    for column in ("type", "payload", "options", "checksum"):
        assert ends[f"{column}: told"] == bits


def told(root: Path) -> bool:
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        return bool(connection.execute("SELECT count(*) FROM quarantine").fetchone()[0])


def different(truth: JobRecord, job: JobRecord) -> list[str]:
    """The fields in which a job is not what it was."""
    names = [name for name in JobRecord.__struct_fields__ if name != "extras"]
    changed = [name for name in names if getattr(job, name) != getattr(truth, name)]
    carried = job.extras and values_of(CarriedFields, job.extras) | {"meta": job.extras.meta}
    return changed if carried == BROUGHT else [*changed, "extras"]
