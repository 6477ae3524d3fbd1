"""The connection of ticks, and their thread.

The connection is made again when it is lost, and a tick's outcome is never guessed. The lock of the
slot is held by this connection. So whoever holds it next knows that the transaction of the
connection before has ended, and that the row of a tick is either there or will never be.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from zq.store.errors import Fenced, StoreAway, StoreFailed
from zq.store.postgres.connection import SESSION, TICK_SESSION, Connection, connect, store_errors
from zq.store.postgres.owning import take_over, value_of
from zq.store.postgres.pipeline import Pipeline
from zq.store.postgres.queries import compiled, load

T = TypeVar("T")

SILENT_S = 2.0
"""For so long the thread works or waits before anybody is told."""

LOOK_S = 1.0
"""The time between two looks."""


class TickThread:
    """Runs functions one after the other. It alone uses the connection of ticks.

    A connection may be silent for long: the host behind it is lost, or a process there was stopped.
    So the event loop looks at the clock, and the thread is not asked.
    """

    def __init__(self) -> None:
        self.when_away: Callable[[StoreAway], object] = bool
        """Called at each look once a function takes long, with the cause."""
        self.cause: StoreAway | None = None
        """Why the function under way waits, as far as it knows that."""
        self._executor = ThreadPoolExecutor(1, "zq-tick")
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        """The monotonic time at which the function under way began."""
        self._timer = self._loop.call_later(LOOK_S, self._check_silence)

    async def run(self, function: Callable[..., T], *args: object) -> T:
        return await self._loop.run_in_executor(self._executor, self._do, function, args)

    def close(self, *, wait: bool = True) -> None:
        """End the thread once it has run what it was asked to."""
        self._timer.cancel()
        self._executor.shutdown(wait=wait)

    def _do(self, function: Callable[..., T], args: tuple[object, ...]) -> T:
        self._since = time.monotonic()
        try:
            return function(*args)
        finally:
            self._since = self.cause = None

    def _check_silence(self) -> None:
        self._timer = self._loop.call_later(LOOK_S, self._check_silence)
        since = self._since
        if since is None:
            return
        seconds = time.monotonic() - since
        if seconds >= SILENT_S:
            silent = f"PostgreSQL has not answered a transaction for {seconds:.0f} seconds"
            self.when_away(self.cause or StoreAway(silent))


log = logging.getLogger(__name__)

_TEXTS = load("zq.store.postgres.ticking")
_NOTE, _FORGET, _FIND, _LEAVE, _RELEASE = (
    compiled(_TEXTS[name]) for name in ("note", "forget", "find", "leave", "release")
)

KEPT = 1000
"""So many ticks leave their rows before they are deleted together."""

CONNECT_S = 2
"""How long one attempt to connect again may take."""

PAUSE_S = 0.1
"""The pause between two attempts to learn the outcome of a tick."""


class TickPipeline(Pipeline):
    """The pipeline of ticks. Each commit has a number, once the number of the start is known."""

    def __init__(
        self, address: str, slot: int, connection: Connection, *, shares: bool = False
    ) -> None:
        """`shares`: other servers may have the database too, in other slots."""
        super().__init__(connection)
        self.start = 0
        """The number of this start of a server; 0 while it is not known."""
        self.when_away: Callable[[StoreAway], object] = bool
        """Called at each attempt in vain to learn the outcome of a tick."""
        self._address = address
        self._slot = slot
        self._shares = shares
        self._no = 0
        self._done = 0
        """The number of the last tick that was committed."""
        self._formers: set[object] = {self.process}
        """The processes of this connection, and of attempts to make another that were lost too."""
        self._unsynced = False
        """True if PostgreSQL may not have flushed all commits yet."""

    def commit(self, durable: bool = True) -> None:
        if not self.start:
            super().commit()
            return
        self._no += 1
        number = {"start": self.start, "no": self._no}
        try:
            self.send(_NOTE, number)
            if not self._no % KEPT:
                self.send(_FORGET, number)
            super().commit(durable)
        except StoreAway:
            if not self._was_committed(number):
                raise
        self._done = self._no
        self._unsynced = not durable

    def sync(self) -> None:
        """Have all commits flushed: the commit of an empty tick that is durable flushes them."""
        if self._unsynced:
            self.mend()
            self.begin()
            self.commit()

    def release(self) -> None:
        """Give the locks back, for whoever starts next. There is no tick after it.

        PostgreSQL may end the process of a closed connection much later.
        """
        self.send(_LEAVE, {"slot": self._slot})
        self.rows(self.send(_RELEASE))

    def mend(self) -> None:
        """Connect again if the connection is lost. Raises `StoreAway` if that is impossible now.

        Raises `Fenced` if another server has had the database meanwhile, or has returned the jobs
        of this one.
        """
        self.notice_loss()
        if not self.connection.closed:
            return
        connection = connect(self._address, SESSION | TICK_SESSION, CONNECT_S)
        try:
            with store_errors():
                self._formers.add(connection.info.backend_pid)
                take_over(connection, self._slot, self._formers, shares=self._shares)
                start = value_of(
                    connection,
                    "UPDATE servers SET postmaster = pg_postmaster_start_time()"
                    f" WHERE slot = {self._slot} AND start = {self.start} RETURNING start",
                )
        except BaseException:
            connection.close()
            raise
        if start is None:
            connection.close()
            raise Fenced("another server has had the database since the connection was lost")
        self.adopt(connection)
        self._formers = {self.process}
        if self._done and not self._has({"start": self.start, "no": self._done}):
            connection.close()
            raise StoreFailed(
                "PostgreSQL has lost commits: it was started again before it had flushed them, or"
                " this is a copy that had not got them yet"
            )
        log.info("the connection to PostgreSQL is there again")

    def _was_committed(self, number: dict[str, int]) -> bool:
        """Learn what has become of a tick whose COMMIT was not answered."""
        log.warning("the answer of a COMMIT was lost: the row of its tick says if it was done")
        while True:
            try:
                self.mend()
                return self._has(number)
            except StoreAway as error:
                if self.gives_up:
                    raise StoreFailed(f"what became of a tick cannot be learned: {error}") from None
                self.when_away(error)
                time.sleep(PAUSE_S)

    def _has(self, number: dict[str, int]) -> bool:
        return bool(self.rows(self.send(_FIND, number)))
