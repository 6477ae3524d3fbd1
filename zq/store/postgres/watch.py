"""Looks after the other servers that share a database: which of them live, and what they have done.

A server is alive while its connection of ticks has the lock of its slot. If it is gone, and so is
its second connection, which this module has, the jobs of the server are returned. A host that is
lost without a word, or a process that was stopped, still has both: its heart beats no more, so
PostgreSQL is asked to end them. With the lock a server has lost what it needs to commit, so nobody
who comes back can settle what others have taken.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import psycopg

from zq.model.clock import SteadyClock
from zq.model.commands import Deadlines, Due
from zq.model.log import HISTORY_LOG
from zq.store.api import OthersNews
from zq.store.errors import StoreError
from zq.store.postgres.connection import SESSION, TICK_SESSION, Connection, connect, store_errors
from zq.store.postgres.owning import GRACE_S, LEADING, LOCK_CLASS, WATCHED, value_of
from zq.store.postgres.queries import compiled
from zq.store.postgres.recovery import recoveries
from zq.store.postgres.transaction import TEXTS

log = logging.getLogger(__name__)

CHANNEL = "zq_slot_"
"""Each server has a channel of its own: this name and the number of its slot."""

LOOK_S = 0.5
"""The time between two looks at everything. A server also looks for jobs and mail when it is
notified."""

LEAST_S = 0.01
"""The least time between two notifications of a server, and between two looks for jobs and mail."""

HUNGRY_ROUNDS = 2
"""A server is hungry for so many looks after a claim of it came short: a taker that still waits has
claimed again by then."""

STOPPED_S = 5.0
"""A server whose heart has not beaten for so long is dead."""

STOPPED_LOOKS = 6
"""So many looks, one after the other, must have found it silent. A machine that stops as a whole,
or has too much to do, lets every heart rest, and this server's looks as well."""

MOST_MAIL = 10_000


class OtherServer(NamedTuple):
    """Another server that has the database: for how many seconds its heart has not beaten, and
    which of its connections PostgreSQL has."""

    slot: int
    start: int
    silent_s: float
    ticks: bool
    watches: bool


class Watch:
    """The second connection of a server. It beats, looks, notifies, and is notified."""

    def __init__(
        self,
        address: str,
        slot: int,
        start: int,
        steady: SteadyClock,
        recover: Callable[[int, int], Awaitable[object]],
    ) -> None:
        """`recover` returns the jobs of the server of a slot and a start, which has died."""
        self.when_heard: Callable[[OthersNews], object] = bool
        self.others: list[OtherServer] = []
        """The other servers, as they were seen last."""
        self.leads = False
        """True while this server's second connection has the lock of the one that leads."""
        self._address = address
        self._own = {"slot": slot, "start": start}
        self._steady = steady
        self._recover = recover
        self._connection: Connection | None = None
        self._judges_at = 0.0
        """The monotonic time before which no other is taken for dead."""
        self._is_locked = False
        self._looked = -math.inf
        """When all others were looked at last."""
        self._silent: dict[tuple[int, int], int] = {}
        """By slot and start, how many looks have found those silent that the last one found so."""
        self._awake = asyncio.Event()
        self._tells = False
        self._hungry = 0
        """For so many more looks this server is hungry."""
        self._told_hunger = False
        """True if others know that it is."""
        self._read = self._passed_on = 0
        """The last piece of mail that was read, and the last one that was passed on as well."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the event loop."""
        self._task = asyncio.create_task(self._run(), name="zq-watch")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def tell(self) -> None:
        """Tell other servers soon that there may be something for them.

        Only those hear of it that are hungry, or have mail.
        """
        if self.others and not self._tells:
            self._tells = True
            self._awake.set()

    def hunger(self) -> None:
        """Note that a claim of this server came short: others are to tell it of their jobs."""
        self._hungry = HUNGRY_ROUNDS
        if self.others and not self._told_hunger:
            self._awake.set()

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._aside(self._open)
                    await self._turn()
                    continue
                except StoreError as error:
                    log.warning(f"other servers cannot be looked after: {error}")
                except Exception as error:
                    log.error("the look after other servers has failed", exc_info=error)
                self._close()
                await asyncio.sleep(LOOK_S)
        finally:
            self._close()

    async def _turn(self) -> None:
        """Look once, and wait for the next reason to do so."""
        led = self.leads
        news = await self._aside(self._exchange_news, self._steady.read()[1])
        if news is not None:
            if self.others or news.ended or self.leads != led:
                self.when_heard(news)
            self._passed_on = self._read
        for other in self.others:
            if self._is_dead(other):
                await self._recover(other.slot, other.start)
            elif self._is_stopped(other):
                log.warning(f"the heart of the server of slot {other.slot} does not beat")
                await self._aside(self._end, other.slot)
        await asyncio.sleep(LEAST_S)
        await self._news()

    def _is_dead(self, other: OtherServer) -> bool:
        return self._may_judge and not (other.ticks or other.watches)

    def _is_stopped(self, other: OtherServer) -> bool:
        looks = self._silent.get((other.slot, other.start), 0)
        return self._may_judge and other.silent_s > STOPPED_S and looks >= STOPPED_LOOKS

    @property
    def _may_judge(self) -> bool:
        return time.monotonic() >= self._judges_at

    async def _aside(self, function: Callable[..., Any], *args: object) -> Any:
        """Run a function in a thread, which a cancelled task waits for."""
        running = asyncio.get_running_loop().run_in_executor(None, function, *args)
        try:
            return await asyncio.shield(running)
        finally:
            if not running.done():
                await asyncio.wait([running])

    async def _news(self) -> None:
        """Wait for a notification, for something to tell, or for the next look."""
        assert self._connection is not None, "it was opened before the look"
        loop = asyncio.get_running_loop()
        try:
            descriptor = self._connection.fileno()
        except psycopg.Error as error:
            raise StoreError(str(error)) from error
        loop.add_reader(descriptor, self._awake.set)
        try:
            async with asyncio.timeout(LOOK_S):
                await self._awake.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(descriptor)
        self._awake.clear()

    # In a thread

    def _open(self) -> None:
        if self._connection is None:
            self._connection = connect(self._address, SESSION | TICK_SESSION)
            self._is_locked = False
            with store_errors():
                self._connection.execute("SET synchronous_commit = off")
                self._connection.execute(f"LISTEN {CHANNEL}{self._own['slot']}".encode())

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._judges_at = time.monotonic() + GRACE_S
        self._connection = None
        self.leads = False

    def _exchange_news(self, steady: int) -> OthersNews | None:
        """Tell the others what they have to know. Return what they told, if anything."""
        connection = self._connection
        assert connection is not None, "it was opened before"
        with store_errors():
            self._is_locked = self._is_locked or self._locks(self._own["slot"] + WATCHED)
            if self._tells:
                self._tells = False
                self._rows("tell_others", channel=CHANNEL)
            # What another has committed since this one's last claim is not told, as it knows of no
            # hunger yet. So this one looks for jobs once more.
            looks = self._tell_hunger()
            connection.pgconn.consume_input()
            while connection.pgconn.notifies() is not None:
                looks = True
            if time.monotonic() - self._looked >= LOOK_S:
                return self._make_round(steady)
            return OthersNews(*self._mail()) if looks else None

    def _tell_hunger(self) -> bool:
        """Let others know that this server is hungry. True if they did not know it before."""
        if not self._hungry or self._told_hunger:
            return False
        self._rows("note_hunger")
        self._told_hunger = True
        return True

    def _make_round(self, steady: int) -> OthersNews:
        self._looked = time.monotonic()
        self.leads = self.leads or self._locks(LEADING)
        self._hungry -= self._hungry > 0
        self._told_hunger = self._hungry > 0
        self._rows("beat", steady=steady, is_hungry=self._told_hunger)
        self.others = [OtherServer(*row) for row in self._rows("other_servers")]
        silent = [(o.slot, o.start) for o in self.others if o.silent_s > 2 * LOOK_S]
        self._silent = {each: self._silent.get(each, 0) + 1 for each in silent}
        logged = self._rows("extent", log=HISTORY_LOG)[0][2]
        return OthersNews(
            *self._mail(), self._deadlines(), self._found(), logged=logged, is_round=True
        )

    def _locks(self, lock: int) -> bool:
        """Take a lock, if nobody has it."""
        assert self._connection is not None, "it was opened before"
        asked = f"SELECT pg_try_advisory_lock({LOCK_CLASS}, {lock})"
        return bool(value_of(self._connection, asked))

    def _mail(self) -> tuple[list[tuple[int, int]], list[int], list[int]]:
        """Leases of this server that others have ended: all, the revoked and the lapsed ones."""
        if self._passed_on:
            self._rows("drop_mail", upto=self._passed_on)
        mail = self._rows("read_mail", limit=MOST_MAIL)
        self._read = mail[-1][0] if mail else 0
        return (
            [(holder, key) for _, holder, key, _, _ in mail],
            [key for _, _, key, revoked, _ in mail if revoked],
            [key for _, _, key, _, lapsed in mail if lapsed],
        )

    def _found(self) -> dict[str, Any]:
        found = {name: self._rows(name) for room in recoveries() for name in room.found}
        return {name: rows[0][0] if rows else None for name, rows in found.items()}

    def _deadlines(self) -> Deadlines:
        (times,) = self._rows("deadlines")
        return {due: time for due, time in zip(Due, times, strict=True) if time is not None}

    def _end(self, slot: int) -> None:
        with store_errors():
            self._rows("end_server", slot=slot)

    def _rows(self, name: str, **parameters: object) -> list[tuple[Any, ...]]:
        assert self._connection is not None, "it was opened before"
        statement = compiled(TEXTS[name])
        values = statement.bound({**self._own, **parameters})
        cursor = self._connection.execute(statement.sql, values)
        return cursor.fetchall() if cursor.description else []
