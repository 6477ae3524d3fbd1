"""Jobs that lie behind others in a worker go back after a while: another worker may be idle."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from zq.client.backend import Backend
from zq.client.values import Delivery, Held
from zq.client.worker.acks import persistently

BEHIND_S = 1.0
"""The longest time that a prefetched job waits in a worker before it goes back, in seconds."""

LONGEST_BEHIND_S = 2.0
"""If it comes back, no other worker wants it: it may then lie twice as long, up to this."""

LOOK_EVERY_S = 0.5


class Patience:
    """Decides which of the jobs that have not begun go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        """The first sighting of each job of the last look."""
        self._given: frozenset[str] = frozenset()
        self._seconds = BEHIND_S

    def tired_of(self, waiting: Sequence[str]) -> list[str]:
        """The waiting jobs that have lain too long. They are given back now."""
        now = self._clock()
        self._since = {id: self._since.get(id, now) for id in waiting}
        tired = [id for id, since in self._since.items() if now - since >= self._seconds]
        if tired:
            again = not self._given.isdisjoint(tired)
            self._seconds = min(2 * self._seconds, LONGEST_BEHIND_S) if again else BEHIND_S
            self._given = frozenset(tired)
            for id in tired:
                del self._since[id]
        return tired


async def give_back_tired(
    backend: Backend, waiting: Callable[[], list[str]], take: Callable[[str], Delivery]
) -> None:
    """Give back what lies too long, for ever. `take` takes a job from those that wait."""
    patience = Patience()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        tired = [take(id) for id in patience.tired_of(waiting())]
        if tired:
            held = [Held(each.id, each.lease) for each in tired]
            await persistently(partial(backend.release, held))
