"""One schedule that cannot be evaluated is set aside and named, and all others fire."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random

import pytest
from blank import lay_out
from conformance.streams import pause
from manual_clock import ManualClock
from store.rig import new_job

from zq.config import Settings
from zq.features.crons.engine import SURVEY_S, Scheduler
from zq.features.crons.model import CronSchedule, EntryDraft, GroupPatch
from zq.features.crons.model_expression import CronExpression
from zq.features.crons.service_running import Crons
from zq.features.crons.store import CronReads, EntryPlace
from zq.instance import Instance
from zq.model.filters import Filter
from zq.model.reach import EVERYWHERE
from zq.operators.page.service import Overviews

EVERY_MINUTE = "0 * * * * *"
BROKEN = {
    "expression": "0 * * * * MON~FRI",
    "timezone": "Area/Gone",
}
"""What another version of zq, or another host, may have stored, by its column."""


async def put(instance: Instance, group: str) -> None:
    draft = EntryDraft("e", CronExpression(EVERY_MINUTE), "UTC", None, new_job(queue=group))
    await instance.services[Crons].put_entry(group, draft, EVERYWHERE)


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
        await pause()


@pytest.mark.parametrize("column", BROKEN)
async def test_others_fire_beside_a_schedule_that_cannot_be_evaluated(
    instance: Instance,
    clock: ManualClock,
    tmp_path: Path,
    column: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    services, scheduler = instance.services, instance.engine[Scheduler]
    for group in ("bad", "good"):
        await put(instance, group)
    write(tmp_path, column, BROKEN[column])
    await pass_until(instance, clock, "good", 3)
    while not scheduler.faulty.entries:
        clock.advance(1000)
        await pause()

    assert await fired(instance, "bad") == 0
    ((group, entry, reason),) = scheduler.faulty.named
    assert (group, entry) == ("bad", "e")
    assert BROKEN[column].lower() in reason.lower()
    assert caplog.text.count("a cron entry cannot be evaluated and is set aside") == 1
    assert (await services[Crons].entry("bad", "e", EVERYWHERE)).fault == reason
    assert (await services[Crons].entry("good", "e", EVERYWHERE)).fault is None
    look = await services[Overviews].take()
    assert any("bad/e is set aside" in finding.text for finding in look.findings)
    # Its group can still be changed.
    _, entries = await services[Crons].change_group("bad", GroupPatch(timezone="CET"), EVERYWHERE)
    assert entries is not None and len(entries) == 1

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
    while not instance.engine[Scheduler].faulty.entries:
        clock.advance(1000)
        await pause()
    await put(instance, "bad")
    await pass_until(instance, clock, "bad", 1)


@asynccontextmanager
async def server(root: Path, clock: ManualClock) -> AsyncIterator[Instance]:
    instance = Instance(Settings(root_dir=root), clock=clock, rng=Random(1))
    await instance.start()
    try:
        yield instance
    finally:
        instance.engine.let_go()
        await instance.stop()


async def test_an_entry_that_becomes_due_while_the_schedules_are_surveyed_fires_at_once(
    clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path / "zq.db")
    async with server(tmp_path, clock) as before:
        await put(before, "good")
    survey = CronReads.schedules

    async def a_minute_passes(
        reads: CronReads, after: EntryPlace, limit: int
    ) -> list[CronSchedule]:
        page = await survey(reads, after, limit)
        if page:
            clock.advance(60_000)
        return page

    monkeypatch.setattr(CronReads, "schedules", a_minute_passes)
    async with server(tmp_path, clock) as again:
        for _ in range(5_000):
            if await fired(again, "good"):
                return
        pytest.fail("the entry waits for a clock that stands still")
