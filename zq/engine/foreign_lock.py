"""Another program's lock on the database: how long it is in the way, and what the log says of it.

A sqlite3 shell in a transaction holds such a lock, and so do backup tools. Nothing is broken then.
Changes wait for a while, and are refused after that until the lock is gone.
"""

import logging

from zq.model.clock import Clock

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
"""The longest time that changes wait for the lock, in seconds. While it is held for longer, they
are refused at once."""


class ForeignLock:
    """The lock that is in the way at present, if any. The log names one that is held for long."""

    def __init__(self, clock: Clock) -> None:
        self.since: int | None = None
        """When it was met first, in milliseconds; None if nothing is in the way."""
        self._clock = clock
        self._met = 0.0
        self.is_long = False
        """True if changes are refused: it has been held for too long to wait for it."""

    def met(self) -> bool:
        """Note that it is in the way. Return whether that has lasted too long to wait for it."""
        now = self._clock.monotonic()
        if self.since is None:
            self.since, self._met = self._clock.now_ms(), now
        if now - self._met < PATIENCE_S:
            return False
        if not self.is_long:
            self.is_long = True
            log.warning(
                "another program holds the database's lock: changes are refused until it is"
                " released (fuser or lsof on zq.db shows which program)"
            )
        return True

    def seconds(self) -> float:
        """How long it has been in the way; 0 if nothing is."""
        return 0.0 if self.since is None else self._clock.monotonic() - self._met

    def gone(self) -> None:
        """Note that a transaction has begun: nothing is in the way."""
        if self.is_long:
            fields = {"held_s": round(self.seconds(), 1)}
            log.info("the database's lock is free again", extra={"fields": fields})
        self.since, self.is_long = None, False
