"""The subscribers of ticks: each listening one learns once, after the waiting commands."""

import asyncio
from pathlib import Path
from random import Random

from zq.engine.after_commit import Committed
from zq.engine.delivery.streams import Streams
from zq.engine.inbox import Inbox, PendingReply
from zq.engine.loop import Durability, Guides, TickLoop
from zq.engine.news.waiters import HistoryReaders
from zq.engine.pace import Pace
from zq.engine.timetable import Alarm, Openings, Timetable
from zq.engine.upkeep import Upkeep
from zq.model.clock import ManualClock
from zq.model.commands import Clear
from zq.model.ids import Mint
from zq.model.job import BackoffRule
from zq.model.settling import Policy
from zq.store.sqlite.store import open_store
from zq.tick.runner import make_ticks


class Noting:
    """Notes what it is told."""

    def __init__(self, name: str, told: list[str], reply: list[PendingReply[int]]) -> None:
        self.listens = True
        self._name = name
        self._told = told
        self._reply = reply

    def learn(self, _: Committed) -> None:
        self._told.append(f"{self._name} {self._reply[0].done()}")


async def test_each_who_listens_hears_once_and_after_whoever_waits(tmp_path: Path) -> None:
    store = await open_store(
        tmp_path,
        make_ticks(Policy(3, BackoffRule(1, 1, 1), 0, 0), Random(1)),
        cache_bytes=2**20,
        read_timeout=5,
        max_wal=2**20,
    )
    clock, inbox = ManualClock(), Inbox(10)
    told: list[str] = []
    replies: list[PendingReply[int]] = []
    first, deaf, last = (Noting(name, told, replies) for name in ("first", "deaf", "last"))
    deaf.listens = False
    guides = Guides(
        Alarm(clock, inbox.awake.set),
        Timetable(clock, store.deadlines, 30),
        Openings(clock),
        Pace(),
        Upkeep(store, clock, HistoryReaders(0, recording=False)),
    )
    streams = Streams(0, 0, inbox.give_back)
    loop = TickLoop(
        *(store, clock, inbox, streams, guides, Durability(True, True), [first, deaf, last]),
        reschedule=lambda _: None,
        mint=Mint(0),
    )
    running = asyncio.create_task(loop.run())
    replies.append(inbox.submit(Clear()))
    assert await replies[0] == 0
    loop.stop()
    await running
    assert told == ["first True", "last True"]
    await store.close()
