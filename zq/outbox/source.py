"""A database as the relay reads it."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zq.model.errors import ZqError

MOST_ROWS = 10_000
MOST_BYTES = 16 * 2**20
"""The limits of what is read at once. One row is always read."""

IDLE_S = 5.0
"""How long `Source.changed` waits at most. A notification may get lost; a row must not."""


class DatabaseUnavailable(ZqError):
    """The database cannot be reached, or lacks a table of the outbox."""

    code = "database_unavailable"


class RelayNotNeeded(ZqError):
    """The database is zq's own: its server takes the rows of the outbox by itself."""

    code = "relay_not_needed"

    def __init__(self) -> None:
        super().__init__(
            "the zq server of this database takes the rows of its outbox by itself: no relay is"
            " needed"
        )


class OutboxRow(NamedTuple):
    """A row that is committed and still has to be sent."""

    id: int
    document: bytes | str
    """Bytes if the database does not see to it that it is text."""


class OutboxLane(NamedTuple):
    """The producer that sends the rows, and which rows have numbers. It is stored beside them."""

    producer: str
    epoch: str
    first: int = 1
    """The number of the first of `ids`. The others follow without gaps."""
    ids: Sequence[int] = ()

    @property
    def next(self) -> int:
        """The number of the row after the last one that has a number."""
        return self.first + len(self.ids)


def new_lane() -> OutboxLane:
    """A lane for a table that has none: nobody else has its name."""
    return OutboxLane(f"outbox-{secrets.token_hex(8)}", new_epoch())


def new_epoch() -> str:
    """An epoch that no other lane has had."""
    return secrets.token_hex(8)


class RefusedRow(NamedTuple):
    """A row that the server refuses, and why."""

    id: int
    error: str


class Source(Protocol):
    """One database. Every verb may raise `DatabaseUnavailable`; then it is closed and opened.

    What a verb has changed is on the disk when it returns: a number must not be given twice.
    """

    async def open(self) -> None:
        """Connect, unless it is connected."""

    async def leads(self) -> bool:
        """True if this relay is the one that moves rows. The others wait for its end."""

    async def lane(self) -> OutboxLane | None:
        """The lane of the outbox. None: no row has ever been sent."""

    async def make(self, lane: OutboxLane) -> None:
        """Store the first lane, unless there is one by now."""

    async def move(
        self, lane: OutboxLane, to: OutboxLane, refusal: RefusedRow | None = None
    ) -> bool:
        """Change the lane, and set the refused row aside, if the lane is still as given.

        Return False if it was not, for another relay has changed it: then nothing is changed.
        """

    async def rows_of(self, ids: Sequence[int]) -> list[OutboxRow]:
        """The rows, among these, that are still to be sent, in the order of the ids."""

    async def oldest(self) -> list[OutboxRow]:
        """The oldest rows that are to be sent, by id, within the limits."""

    async def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows. Rows with smaller ids may become visible later, and stay."""

    async def changed(self) -> None:
        """Wait until there may be rows that the last `oldest` has not seen."""

    async def close(self) -> None:
        """Disconnect. It may be called twice."""
