"""The verbs about sweeps that have ended: reading them, and undoing a cancellation."""

from typing import NamedTuple, Self

from zq.features.sweeps.model import (
    MOST_SWEEPS,
    NOBODY,
    NothingToUndo,
    StoredSweep,
    SweepAuthor,
    SweepNotFound,
    SweepPreview,
)
from zq.features.sweeps.service_running import Sweeps
from zq.features.sweeps.store import SweepReads
from zq.model.filters import Filter
from zq.model.job import MAX_TIME
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store

_PAGE = 200


class UndoneSweep(NamedTuple):
    """How many jobs were taken back, how many stay cancelled and why, and how many are gone."""

    undone: int
    kept: dict[str, int]
    gone: int


class EndedSweeps:
    """The sweeps that have changed jobs and no longer run."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services[Sweeps])

    def __init__(self, store: Store, sweeps: Sweeps) -> None:
        self._reads = store.reads.of(SweepReads)
        self._sweeps = sweeps

    async def latest(self, reach: Reach, before: int | None, limit: int) -> list[StoredSweep]:
        """Up to `limit` sweeps within reach with ids below `before`, the latest first."""
        found: list[StoredSweep] = []
        place = MAX_TIME if before is None else before
        while len(found) < limit:
            page = await self._reads.sweeps(place, _PAGE)
            found += [sweep for sweep in page if self._has_ended(sweep, reach)]
            if len(page) < _PAGE:
                break
            place = page[-1].id
        return found[:limit]

    async def get(self, id: int, reach: Reach) -> StoredSweep:
        """One sweep that has ended. Raises `SweepNotFound`."""
        page = await self._reads.sweeps(id + 1, 1)
        if not page or page[0].id != id or not _within(page[0], reach):
            raise SweepNotFound(
                f"no sweep {id} has changed jobs that this caller may see: GET /sweeps/ended lists"
                f" those that are known, the latest {MOST_SWEEPS:,} at most"
            )
        return page[0]

    async def left(self, sweep: StoredSweep) -> SweepPreview:
        """How many of the jobs that a sweep has cancelled are still there, cancelled."""
        return await self._sweeps.preview(_cancelled_by(sweep))

    async def undo(self, id: int, reach: Reach, author: SweepAuthor = NOBODY) -> UndoneSweep:
        """Take back the jobs that a sweep has cancelled, and no others.

        They wait again in their old places, with their attempts and unique keys. Raises
        `SweepNotFound`, `NothingToUndo` or `TooManySweeps`.
        """
        if self._sweeps.under_way(id, reach) is not None:
            raise NothingToUndo(f"sweep {id} is running: stop it first by DELETE /sweeps/{id}")
        sweep = await self.get(id, reach)
        verb = sweep.outline.verb
        if verb != "cancel":
            raise NothingToUndo(f"sweep {id} is no cancellation, but `{verb}`: it has no undo")
        done = await self._sweeps.undo(_cancelled_by(sweep), author)
        gone = sweep.changed - sweep.undone - done.changed - done.kept.total()
        if not done.changed and not done.kept:
            raise NothingToUndo(
                f"none of the {sweep.changed:,} jobs of sweep {id} is left to take back:"
                f" {sweep.undone:,} were taken back before, and the others are deleted, or no"
                " longer retained: enqueue them again"
            )
        return UndoneSweep(done.changed, dict(done.kept), max(gone, 0))

    def _has_ended(self, sweep: StoredSweep, reach: Reach) -> bool:
        return _within(sweep, reach) and self._sweeps.under_way(sweep.id, reach) is None


def _cancelled_by(sweep: StoredSweep) -> Filter:
    reach = sweep.outline.filter.reach
    return Filter(statuses=(Status.CANCELLED,), swept=sweep.id, reach=reach)


def _within(sweep: StoredSweep, reach: Reach) -> bool:
    return all(map(reach.covers, sweep.outline.filter.reach.prefixes))
