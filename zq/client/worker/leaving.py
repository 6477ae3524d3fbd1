"""How a worker takes leave: it asks for no more jobs, and gives back those that it does not run."""

import asyncio
import contextlib
from collections.abc import Sequence

from zq.client.backend import Backend
from zq.client.errors import ZqError
from zq.client.events import Listeners
from zq.client.http.transport import jittered
from zq.client.values import Delivery
from zq.client.worker.holding import give_back

LAST_POSTS_S = 5.0
"""How long a stopping worker tries to send its last reports, if its time allows."""


class Leaving:
    """What a stopping worker has to give back, and whether the server knows that it stops."""

    def __init__(self, backend: Backend, events: Listeners, worker: str) -> None:
        self.unstarted: dict[str, Delivery] = {}
        """Jobs that came too late to begin here, by id: one that comes again is named once."""
        self.returned: dict[str, None] = {}
        """The ids of the jobs that went back."""
        self._backend = backend
        self._events = events
        self._worker = worker
        self._has_come = asyncio.Event()
        self._asked = False

    def add(self, delivery: Delivery) -> None:
        """Give a job back, soon."""
        self.unstarted[delivery.id] = delivery
        self._has_come.set()

    def on_lost(self) -> None:
        """The stream has broken. The server does not know of the next one that its worker stops."""
        self._asked = False

    async def ask_for_no_more(self) -> None:
        """Take leave: what the server sends no more, and gets back, its worker did not die of."""
        if self._asked:
            return
        # The stream may break before the answer. The next one then has to be asked.
        self._asked, is_heard = True, False
        try:
            with contextlib.suppress(ZqError, TimeoutError):
                async with asyncio.timeout(LAST_POSTS_S):
                    await self._backend.drain(self._worker)
                is_heard = True
        finally:
            self._asked = self._asked and is_heard

    async def return_unstarted(self) -> None:
        """Give back what has not begun, as soon as no others can come in its place."""
        self._has_come.clear()
        await self.ask_for_no_more()
        await self.give_back([], LAST_POSTS_S)

    async def return_what_comes(self) -> None:
        """Give back what comes all the same, for ever: over a stream that was opened again so that
        running jobs go on, or because the server did not hear that no more are wanted.

        To ask before such a job has come would send those that run here to another worker.
        """
        attempt = 0
        while True:
            await self._has_come.wait()
            await self.return_unstarted()
            attempt = 0 if self._asked else attempt + 1
            if attempt:
                await asyncio.sleep(jittered(attempt))

    async def give_back(self, unfinished: Sequence[Delivery], seconds: float) -> None:
        """Give back what has not begun, and these jobs, which have."""
        unstarted = [*self.unstarted.values()]
        meant = {each.id: each for each in [*unfinished, *unstarted]}
        gone = await give_back(self._backend, self._events, [*meant.values()], seconds)
        self.returned |= dict.fromkeys(gone)
        for each in unstarted:
            if self.unstarted.get(each.id) is each:
                del self.unstarted[each.id]
