"""The verb of workers that tell how far they are."""

from zq.engine.events import Events
from zq.model.clock import Clock
from zq.model.errors import NotInFlight, StaleLease
from zq.model.events import Event, EventType
from zq.model.ids import IdCodec
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.store import reads
from zq.store.store import Store


class Progress:
    """A part of the engine."""

    def __init__(self, store: Store, clock: Clock, ids: IdCodec, events: Events) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._events = events

    async def report(self, id: str, data: str, lease: int | None, reach: Reach) -> None:
        """Tell listeners of a job in flight; `data` is JSON text. It is not stored.

        Raises `NotInFlight`, or `StaleLease` where the delivery that is named has ended.
        """
        key, now = self._ids.key(id), self._clock.now_ms()
        if key is None:
            raise NotInFlight
        job = await self._store.read(reads.get_row, key, reach, now)
        if job is None:
            raise NotInFlight
        held = job.status is Status.IN_FLIGHT
        if lease is not None and not (held and job.deliveries == lease):
            raise StaleLease
        if not held:
            raise NotInFlight
        event = Event(EventType.PROGRESS, key, job.queue, job.unique_key, job.attempts + 1, data)
        self._events.add(now, [event])
