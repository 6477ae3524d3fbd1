"""Removes the old versions of rows: every change of a row leaves one, and claims wade through them.

Autovacuum looks once a minute, which is too seldom for tables whose rows live for a second.
"""

import asyncio
import contextlib
import logging
import time

from zq.store.api import Bloat
from zq.store.errors import StoreError
from zq.store.postgres.connection import SCHEMA, SESSION, Connection, connect, cut, store_errors

log = logging.getLogger(__name__)

BUSY_S, IDLE_S = 2.0, 10.0
"""The time between two looks: while ticks change rows, and while none does."""

CONNECT_S = 2
"""How long it tries to connect. The next look tries again."""

LEAST_DEAD = 1_000
DEAD_SHARE = 10
"""A table is vacuumed if it has more dead rows than this, and one for so many live ones."""

LONGEST_S = 60.0
"""The longest pause of a table whose dead rows cannot be removed, since somebody may read them."""

_TABLES = f"""
    SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = '{SCHEMA}'
"""
_OLDEST = """
    SELECT extract(epoch FROM clock_timestamp() - since)::float8, who FROM (
        SELECT xact_start, 'process ' || pid || ' (' || application_name || ')'
        FROM pg_stat_activity
        WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
        UNION ALL
        SELECT prepared, 'prepared transaction ' || gid
        FROM pg_prepared_xacts WHERE database = current_database()
    ) AS snapshots (since, who)
    WHERE since IS NOT NULL ORDER BY since LIMIT 1
"""


class Vacuum:
    """Vacuums table by table, on a connection of its own. `bloat` has what it found last."""

    def __init__(self, address: str) -> None:
        self.bloat = Bloat()
        self.has_changed = True
        """Set by ticks, so that a server at rest looks seldom."""
        self._address = address
        self._connection: Connection | None = None
        self._pauses: dict[str, float] = {}
        """For how many seconds each table is left alone, if its last vacuum was in vain."""
        self._next: dict[str, float] = {}
        """When each table may be vacuumed next."""
        self._task: asyncio.Task[None] | None = None
        self._ends = False

    def start(self) -> None:
        """Begin, in the event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End. A vacuum under way is left to PostgreSQL."""
        if self._task is None:
            return
        self._ends = True
        self._task.cancel()
        if self._connection is not None:
            cut(self._connection)
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._pause()
                # The thread is waited for, also by a stop: it has the connection.
                vacuuming = loop.run_in_executor(None, self._try_to_vacuum)
                try:
                    await asyncio.shield(vacuuming)
                finally:
                    await asyncio.wait([vacuuming])
        finally:
            if self._connection is not None:
                await loop.run_in_executor(None, self._connection.close)

    async def _pause(self) -> None:
        waited = 0.0
        while waited < (BUSY_S if self.has_changed else IDLE_S):
            await asyncio.sleep(BUSY_S)
            waited += BUSY_S
        self.has_changed = False

    def _try_to_vacuum(self) -> None:
        try:
            with store_errors():
                if self._connection is None:
                    self._connection = connect(self._address, SESSION, CONNECT_S)
                self.vacuum(self._connection)
        except StoreError as error:
            if not self._ends:
                log.warning(f"the database was not vacuumed: {error}")
            if self._connection is not None and self._connection.closed:
                self._connection = None

    def vacuum(self, connection: Connection) -> list[str]:
        """Vacuum the tables that need it. Return their names."""
        vacuumed = []
        before = _dead_rows(connection)
        for name, (live, dead) in before.items():
            now = time.monotonic()
            if dead > LEAST_DEAD + live // DEAD_SHARE and now >= self._next.get(name, 0.0):
                # To cut the end of a file off would need a lock that ticks wait for.
                connection.execute(f"VACUUM (TRUNCATE FALSE, SKIP_LOCKED) {name}".encode())
                vacuumed.append(name)
        after = _dead_rows(connection) if vacuumed else before
        for name in vacuumed:
            is_vain = after[name][1] > before[name][1] // 2
            longer = min(2 * (self._pauses.get(name) or BUSY_S), LONGEST_S)
            self._pauses[name] = longer if is_vain else 0.0
            self._next[name] = time.monotonic() + self._pauses[name]
        oldest = connection.execute(_OLDEST.encode()).fetchone()
        age, holder = (float(str(oldest[0])), str(oldest[1])) if oldest else (0.0, "")
        self.bloat = Bloat(sum(dead for _, dead in after.values()), max(age, 0.0), holder)
        return vacuumed


def _dead_rows(connection: Connection) -> dict[str, tuple[int, int]]:
    """How many live and dead rows each table has, as PostgreSQL counts them."""
    found = connection.execute(_TABLES.encode()).fetchall()
    return {str(name): (int(str(live)), int(str(dead))) for name, live, dead in found}
