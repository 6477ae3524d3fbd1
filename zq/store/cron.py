"""What may be read of cron, whichever the store is."""

from typing import NamedTuple, Protocol

from zq.model.cron.crons import CronEntry, CronGroup, DueCron


class EntryPlace(NamedTuple):
    """Where an entry stands in the order of groups and names."""

    group: str
    entry: str


FIRST_PLACE = EntryPlace("", "")
"""Before all entries."""


class CronReads(Protocol):
    """Each method sees one moment, and nothing that is not on the disk.

    They raise what the methods of `zq.store.api.Reads` raise.
    """

    async def groups(self) -> list[str]:
        """The names of all groups, in byte order."""

    async def queues(self, group: str | None = None) -> list[tuple[str, str | None]]:
        """The groups, or one, with each queue of their jobs; None where there is no entry."""

    async def group(self, group: str) -> CronGroup | None:
        """A group without its entries."""

    async def entries(self, group: str, most: int) -> list[CronEntry]:
        """The entries of a group by name. Raises `TooLarge` beyond `most` bytes of templates."""

    async def entry(self, group: str, entry: str) -> tuple[CronGroup | None, CronEntry | None]:
        """An entry and its group, as far as they are there."""

    async def count(self) -> int:
        """How many entries there are in all groups."""

    async def due(self, now: int, limit: int) -> list[DueCron]:
        """Up to `limit` entries that are due at `now`, the earliest first."""

    async def timed_ahead(self, now: int, after: EntryPlace, limit: int) -> list[DueCron]:
        """Up to `limit` entries beyond `after` whose next time was computed later than `now`."""
