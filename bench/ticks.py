"""zq's ticks alone, on a database of their own: no server, no event loop, no flush."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from zq.model.commands import AnyCommand, Claim, Due, Enqueue, Tick, TickResult
from zq.model.ids import Mint
from zq.model.job import NewJob
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settling import Policy
from zq.store.sqlite import upkeep
from zq.store.sqlite.connection import WRITER_PRAGMAS, WRITER_STATEMENTS
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.transaction import SqliteTransaction
from zq.tick.hooks import Options
from zq.tick.runner import NO_OPTIONS, TickRunner

NOW = 1_790_000_000_000
WORKERS = 4
BULK = 1_000


class Ticks:
    """Runs ticks with four workers, by default all at the same moment.

    `watched` may replace the connection. `options` are what rooms are told.
    """

    def __init__(
        self,
        path: Path,
        watched: Callable[[sqlite3.Connection], sqlite3.Connection] = lambda connection: connection,
        options: Options = NO_OPTIONS,
    ) -> None:
        self.connection = sqlite3.connect(
            path, isolation_level=None, cached_statements=WRITER_STATEMENTS
        )
        for name, value in WRITER_PRAGMAS.items():
            self.connection.execute(f"PRAGMA {name} = {value}")
        migrate(self.connection)
        self._mint = Mint(upkeep.recover(self.connection).last_key)
        transactions = partial(SqliteTransaction, watched(self.connection))
        self._runner = TickRunner(transactions, Policy(), Random(1), self._mint.last, options)

    def run(
        self,
        *commands: AnyCommand,
        claim: int = 0,
        reach: Reach = EVERYWHERE,
        due: frozenset[Due] = frozenset(),
        now: int = NOW,
    ) -> TickResult:
        """Run one tick, in which the workers can take `claim` jobs together."""
        places = range(1, WORKERS + 1)
        credits = [(place, (claim + WORKERS - place) // WORKERS) for place in places]
        credits = [(place, credit) for place, credit in credits if credit]
        claims = [Claim(queues=None, credits=credits, reach=reach)] if claim else []
        return self._runner.run(Tick(now, now, commands, claims, due, durable=True))

    def enqueue(self, jobs: Sequence[NewJob]) -> Enqueue:
        """The command that stores jobs."""
        return Enqueue(keys=self._mint.take(len(jobs), NOW), jobs=jobs, now=NOW, size=0)

    def store(self, jobs: Sequence[NewJob], a_tick: int = BULK) -> None:
        """Store jobs, `a_tick` in each tick."""
        for start in range(0, len(jobs), a_tick):
            self.run(self.enqueue(jobs[start : start + a_tick]))
            upkeep.checkpoint(self.connection)

    def claim(self, jobs: int) -> list[int]:
        """Claim jobs for the workers. Return their keys."""
        return taken(self.run(claim=jobs))


def taken(result: TickResult) -> list[int]:
    """The keys of the jobs that a tick has handed out."""
    return [job.key for hand in result.claimed for job in hand]


def new_job(number: int, queues: int, **rest: object) -> NewJob:
    """A job like those of the loads."""
    return plain_job(number, f"queue-{number % queues}", **rest)


def plain_job(number: int, queue: str, **rest: object) -> NewJob:
    payload = text(number)
    return NewJob(queue, "send-email", payload, len(payload), **rest)  # type: ignore[arg-type]


def text(number: int) -> str:
    return f'{{"n":{number},"user":"u-{number:06d}"}}'
