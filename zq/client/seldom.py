"""Saying the same thing at most once a minute."""

import time
from collections.abc import Callable

EVERY_S = 60.0

MOST_KNOWN = 1_000
"""Things that are told apart; beyond that all is forgotten, and said anew."""


class Seldom:
    """Counts how often something happens, and says when that is to be told."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, int]] = {}
        """When each thing was told, and how often it has happened since."""

    def count(self, thing: str) -> int:
        """How often it has happened since it was told last, where it is to be told now; else 0."""
        now = self._clock()
        told, times = self._known.get(thing, (now - EVERY_S, 0))
        due = now - told >= EVERY_S
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[thing] = (now, 0) if due else (told, times + 1)
        return times + 1 if due else 0
