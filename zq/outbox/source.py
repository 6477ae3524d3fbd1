"""A database as the relay reads it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zq.model.errors import ZqError

MOST_ROWS = 10_000
MOST_BYTES = 16 * 2**20
"""The limits of what is read at once. One row is always read."""

IDLE_S = 5.0
"""How long `Source.changed` waits at most. A notification may get lost; a row must not."""


class DatabaseUnavailable(ZqError):
    """The database cannot be reached, or has no table `zq_outbox`."""

    code = "database_unavailable"


class OutboxRow(NamedTuple):
    """A row that is committed and still has to be sent."""

    id: int
    document: str


class Source(Protocol):
    """One database. Every verb may raise `DatabaseUnavailable`; then it is closed and opened."""

    async def open(self) -> None:
        """Connect, unless it is connected."""

    async def leads(self) -> bool:
        """True if this relay is the one that moves rows. The others wait for its end."""

    async def rows(self) -> Sequence[OutboxRow]:
        """The oldest rows, by id. It always begins with the first one that is left."""

    async def mark(self, id: int, now: int) -> bool:
        """Note, before they are sent, that the rows up to this one are sent now (milliseconds).

        Return False if that has been noted before: the earlier time stays.
        """

    async def unmark(self, id: int) -> None:
        """Take the note back, since no row has been sent."""

    async def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows. Rows with smaller ids may become visible later, and stay."""

    async def set_aside(self, id: int, error: str) -> None:
        """Keep a row that the server refuses, out of the way."""

    async def set_aside_late(self, before: int, error: str) -> int:
        """Keep rows out of the way that may have been sent before this moment. Return how many."""

    async def changed(self) -> None:
        """Wait until there may be rows that the last `rows` has not seen."""

    async def close(self) -> None:
        """Disconnect. It may be called twice."""
