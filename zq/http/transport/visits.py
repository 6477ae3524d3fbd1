"""Timed visits to thousands of objects. Visits that are due at about the same time go together."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from zq.model.clock import Clock, Timer

Visit = Callable[[], Any]


class Visits:
    """Calls back at the first common moment after a given time, with one timer for all.

    A timer for each object would wake the event loop once for each. `step` is the time in seconds
    between two moments.
    """

    def __init__(self, clock: Clock, step: float) -> None:
        self._clock = clock
        self._step = step
        self._moments: dict[int, dict[Visit, None]] = {}
        self._next = self._gone = 0
        self._timer: Timer | None = None

    def book(self, seconds: float, visit: Visit) -> int:
        """Call back after this many seconds, or up to a step later.

        Returns the moment, by which the visit can be cancelled.
        """
        moment = math.ceil((self._clock.monotonic() + seconds) / self._step)
        # A timer may be a little early. A visit booked for the same moment would then come at once.
        moment = max(moment, self._gone + 1)
        visits = self._moments.get(moment)
        if visits is None:
            visits = self._moments[moment] = {}
            if self._timer is None or moment < self._next:
                self._set_timer(moment)
        visits[visit] = None
        return moment

    def cancel(self, moment: int, visit: Visit) -> None:
        """Cancel a visit. This has no effect after the visit."""
        self._moments.get(moment, {}).pop(visit, None)

    def _go(self) -> None:
        self._gone = self._next
        visits = self._moments[self._gone]
        while visits:  # a visit may cancel another
            visit, _ = visits.popitem()
            try:
                visit()
            except Exception as error:
                # The other visits must still happen, as with the event loop's timers.
                context = {"message": "a visit failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
        del self._moments[self._gone]
        self._timer = None
        if self._moments:
            self._set_timer(min(self._moments))

    def _set_timer(self, moment: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = moment
        delay = moment * self._step - self._clock.monotonic()
        self._timer = self._clock.call_later(max(delay, 0.0), self._go)
