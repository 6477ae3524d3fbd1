"""The verbs that complete what somebody types, from what the server has."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from zq.engine.turns import Turns
from zq.features.failures.model import FailureRange
from zq.features.failures.service import NAMES_ALONE, Failures
from zq.features.search.store import SearchReads
from zq.model.clock import Clock
from zq.model.lifecycle import NAMES
from zq.model.names import near
from zq.model.reach import Reach
from zq.service.admin import Admin
from zq.service.queues import Queues
from zq.service.services import Services
from zq.store.api import Store

MOST = 20
"""The most suggestions that are made at once."""

AT_A_TIME = 50
"""The names that are compared with a mistyped one in a slice: a comparison takes about 20 µs."""

LONGEST_COMPARED = 128
"""A longer name is no mistyped one. Comparing takes the square of the length."""


class Suggestion(NamedTuple):
    """One value, and how many jobs or failures have it, if that is known.

    A filter takes the `value` in its place, where it is another text.
    """

    text: str
    n: int | None = None
    value: str | None = None


class NearQueues(NamedTuple):
    """True if a queue is known, and the names of known ones that are like it."""

    known: bool
    near: Sequence[str]


class Suggestions:
    """Suggestions for the fields of a filter. Queues beyond the caller's reach are not told."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(
            services.store,
            services.clock,
            services.queues,
            services[Failures],
            services.admin,
            services.turns,
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queues: Queues,
        failures: Failures,
        admin: Admin,
        turns: Turns,
    ) -> None:
        self._reads = store.reads.of(SearchReads)
        self._clock = clock
        self._queues = queues
        self._failures = failures
        self._admin = admin
        self._turns = turns
        self.fields = {
            "queue": self._of_queues,
            "type": self._of_types,
            "cause": self._of_causes,
            "status": self._of_statuses,
            "payload": self._of_payload_keys,
        }
        """The fields that can be completed. Types and keys are those of a sample of jobs."""

    async def complete(
        self, field: str, typed: str, queue: str | None, reach: Reach
    ) -> list[Suggestion]:
        """Up to `MOST` values of one of the `fields`, in their order, that contain what is typed.

        Those that begin with it come first. Raises `QueueOutOfReach`.
        """
        if queue is not None:
            reach.require([queue])
        begun, within = list[Suggestion](), list[Suggestion]()
        wanted = typed.casefold()
        for number, each in enumerate(await self.fields[field](queue, reach), start=1):
            text = each.text.casefold()
            if text.startswith(wanted):
                begun.append(each)
            elif wanted in text:
                within.append(each)
            if not number % 1_000:
                await self._turns.next()
        return [*begun, *within][:MOST]

    async def near(self, queue: str, reach: Reach) -> NearQueues:
        """The queues whose names are like this one. Raises `QueueOutOfReach`."""
        reach.require([queue])
        known = set(await self._queues.names(reach)) | set(await self._queues.all_settings(reach))
        known.update(filter(reach.covers, self._queues.active()))
        known.update(name for each in self._admin.workers(reach) for name in each.queues)
        if queue in known or len(queue) > LONGEST_COMPARED:
            return NearQueues(queue in known, ())
        names = sorted(name for name in known if len(name) <= LONGEST_COMPARED)
        likely: list[str] = []
        for start in range(0, len(names), AT_A_TIME):
            likely += near(queue, names[start : start + AT_A_TIME])
            await self._turns.next()
        return NearQueues(False, near(queue, likely))

    async def _of_queues(self, _queue: str | None, reach: Reach) -> Iterable[Suggestion]:
        totals: dict[str, int] = {}
        for (queue, _), n in (await self._queues.counts()).items():
            if n and reach.covers(queue):
                totals[queue] = totals.get(queue, 0) + n
        return [Suggestion(queue, totals[queue]) for queue in sorted(totals)]

    async def _of_types(self, queue: str | None, reach: Reach) -> Iterable[Suggestion]:
        found = await self._reads.types(queue, reach, self._clock.now_ms())
        return map(Suggestion, sorted(found))

    async def _of_payload_keys(self, queue: str | None, reach: Reach) -> Iterable[Suggestion]:
        found = await self._reads.payload_keys(queue, reach, self._clock.now_ms())
        return map(Suggestion, sorted(found))

    async def _of_causes(self, queue: str | None, reach: Reach) -> Iterable[Suggestion]:
        queues = (queue,) if queue else ()
        look = await self._failures.groups(reach, queues, FailureRange.WEEK, depth=NAMES_ALONE)
        return [Suggestion(group.message, group.total, group.signature) for group in look.first]

    async def _of_statuses(self, queue: str | None, reach: Reach) -> Iterable[Suggestion]:
        counts = await self._queues.counts()
        totals = dict.fromkeys(NAMES, 0)
        for (each, status), n in counts.items():
            if reach.covers(each) and queue in (None, each):
                totals[status] += n
        return [Suggestion(NAMES[status], n) for status, n in totals.items()]
