"""What may be read of the inbox, whichever the store is."""

from typing import NamedTuple, Protocol

MOST_COUNTED = 1_000
"""So many refused rows are counted."""


class InboxRow(NamedTuple):
    """A row that is committed: a job in the form of `POST /jobs`."""

    id: int
    document: bytes


class RefusedRows(NamedTuple):
    """The rows that cannot become jobs: how many, and the ids and codes of the first."""

    rows: int = 0
    first: tuple[tuple[int, str], ...] = ()


class InboxReads(Protocol):
    """The reads of the inbox. They raise what the methods of `zq.store.reads.Reads` raise."""

    is_there: bool
    """True if the store has an inbox: others may write into its database."""

    async def inbox_rows(self, after: int) -> list[InboxRow]:
        """The first rows behind one, in the order of their ids; not too many at a time."""

    async def refused(self) -> RefusedRows:
        """The rows that were refused, up to `MOST_COUNTED`."""

    async def changed(self, seconds: float) -> None:
        """Wait until others have written, or for so long: not every change is told."""

    async def stop_listening(self) -> None:
        """End what `changed` has begun."""
