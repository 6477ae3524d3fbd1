"""The reads of cron, for every store."""

from typing import NamedTuple, Protocol, TypeVar

from zq.features.crons.model import NEXT_FIRING, CronEntry, CronGroup, CronSchedule, DueCron
from zq.features.schemas.model import StoredSchema
from zq.store.api import Recovery

T = TypeVar("T")


class EntryPlace(NamedTuple):
    """The place of an entry in the order of groups and names."""

    group: str
    entry: str


FIRST_PLACE = EntryPlace("", "")
"""The place before all entries."""


class CronReads(Protocol):
    """Each method sees one moment, and nothing that is not on the disk.

    They raise the errors of `zq.store.api.Reads`.
    """

    async def groups(self) -> list[str]:
        """The names of all groups, in byte order."""

    async def queues(self, group: str | None = None) -> list[tuple[str, str | None]]:
        """The queues of each group's jobs, or of one group's; None for a group without entries."""

    async def group(self, group: str) -> CronGroup | None:
        """A group without its entries."""

    async def entries(self, group: str, most: int) -> list[CronEntry]:
        """The entries of a group by name. Raises `TooLarge` beyond `most` bytes of templates."""

    async def entry(self, group: str, entry: str) -> tuple[CronGroup | None, CronEntry | None]:
        """An entry and its group, each None if it does not exist."""

    async def count(self) -> int:
        """How many entries there are in all groups."""

    async def tally(self) -> list[str]:
        """The queue of each entry's job."""

    async def due(self, now: int, limit: int) -> list[DueCron]:
        """Up to `limit` entries that are due at `now`, the earliest first."""

    async def timed_ahead(self, now: int, after: EntryPlace, limit: int) -> list[DueCron]:
        """Up to `limit` entries beyond `after` whose next time was computed later than `now`."""

    async def schedules(self, after: EntryPlace, limit: int) -> list[CronSchedule]:
        """The schedules of up to `limit` entries beyond `after`."""

    async def note(self, name: str) -> str | None:
        """A text about the whole server, as `WriteNote` has stored it."""

    async def noted(self, name: str, kind: type[T]) -> T | None:
        """A note that is JSON, as a value of its kind. One that is none is set aside."""

    async def schemas(self) -> list[StoredSchema]:
        """The schemas of payloads, in the order of their queues."""


RECOVERY = Recovery(found=(NEXT_FIRING,))
"""When the first entry was due."""
