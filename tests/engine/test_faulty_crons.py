"""One schedule that cannot be evaluated is set aside and named, and all others fire."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from store.rig import new_job

from zq.engine.scheduler import SURVEY_S
from zq.instance import Instance
from zq.model.clock import ManualClock
from zq.model.cron.crons import EntryDraft, GroupPatch
from zq.model.cron.expression import CronExpression
from zq.model.filters import Filter
from zq.model.reach import EVERYWHERE

EVERY_MINUTE = "0 * * * * *"
BROKEN = {
    "expression": "0 * * * * MON~FRI",
    "timezone": "Area/Gone",
}
"""What another version of zq, or another host, may have stored, by its column."""


async def put(instance: Instance, group: str) -> None:
    draft = EntryDraft("e", CronExpression(EVERY_MINUTE), "UTC", None, new_job(queue=group))
    await instance.services.crons.put_entry(group, draft, EVERYWHERE)


def write(root: Path, column: str, value: str) -> None:
    """Change the schedule of the bad entry behind the server's back."""
    with closing(sqlite3.connect(root / "zq.db", isolation_level=None)) as other:
        other.execute(f"UPDATE cron_entries SET {column} = ? WHERE cron = 'bad'", [value])


async def fired(instance: Instance, group: str) -> int:
    return await instance.services.listing.count(Filter(queues=(group,)))


async def pass_until(instance: Instance, clock: ManualClock, group: str, jobs: int) -> None:
    """Let minutes pass until a group has enqueued so many jobs."""
    while await fired(instance, group) < jobs:
        clock.advance(1000)
        await asyncio.sleep(0)


@pytest.mark.parametrize("column", BROKEN)
async def test_others_fire_beside_a_schedule_that_cannot_be_evaluated(
    instance: Instance,
    clock: ManualClock,
    tmp_path: Path,
    column: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    services, scheduler = instance.services, instance.engine.scheduler
    for group in ("bad", "good"):
        await put(instance, group)
    write(tmp_path, column, BROKEN[column])
    await pass_until(instance, clock, "good", 3)
    while not scheduler.faulty.entries:
        clock.advance(1000)
        await asyncio.sleep(0)

    assert await fired(instance, "bad") == 0
    ((group, entry, reason),) = scheduler.faulty.named
    assert (group, entry) == ("bad", "e")
    assert BROKEN[column].lower() in reason.lower()
    assert caplog.text.count("a cron entry cannot be evaluated and is set aside") == 1
    assert (await services.crons.entry("bad", "e", EVERYWHERE)).fault == reason
    assert (await services.crons.entry("good", "e", EVERYWHERE)).fault is None
    look = await services.lookout.look()
    assert any("bad/e is set aside" in finding.text for finding in look.findings)
    # Its group can still be changed.
    _, entries = await services.crons.change_group("bad", GroupPatch(timezone="CET"), EVERYWHERE)
    assert len(entries) == 1

    # It makes up for what it has missed once it can be evaluated again.
    write(tmp_path, column, {"expression": EVERY_MINUTE, "timezone": "UTC"}[column])
    clock.advance(round(SURVEY_S * 1000))
    await pass_until(instance, clock, "bad", 2)
    assert scheduler.faulty.entries == 0


async def test_a_schedule_that_is_put_again_leaves_its_fault_behind(
    instance: Instance, clock: ManualClock, tmp_path: Path
) -> None:
    await put(instance, "bad")
    write(tmp_path, "expression", BROKEN["expression"])
    while not instance.engine.scheduler.faulty.entries:
        clock.advance(1000)
        await asyncio.sleep(0)
    await put(instance, "bad")
    await pass_until(instance, clock, "bad", 1)
