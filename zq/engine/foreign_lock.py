"""Keeps in mind how long something is in the way of all changes, and logs it.

It is another program's lock on the database, as a sqlite3 shell in a transaction and backup tools
hold it, or the lost connection to a database. Nothing is broken then. Changes wait for a while, and
are refused after that until it is gone.
"""

import logging

from zq.model.clock import Clock
from zq.model.errors import DatabaseAway, DatabaseLocked, ZqError
from zq.store.errors import StoreAway, StoreBusy

log = logging.getLogger(__name__)

PATIENCE_S = 5.0
"""The longest time that changes wait for the lock, in seconds. While it is held for longer, they
are refused at once."""


class ForeignLock:
    """Knows what is in the way at present, if anything. The log names what stays for long."""

    def __init__(self, clock: Clock) -> None:
        self.since: int | None = None
        """When it was met first, in milliseconds; None if nothing is in the way."""
        self._clock = clock
        self._met = 0.0
        self.is_long = False
        """True if changes are refused: it has been held for too long to wait for it."""
        self.refusal: ZqError = DatabaseLocked()
        """The answer to changes meanwhile."""

    def met(self, cause: StoreBusy) -> bool:
        """Note that it is in the way. Return whether that has lasted too long to wait for it."""
        self.refusal = refusal_by(cause)
        now = self._clock.monotonic()
        if self.since is None:
            self.since, self._met = self._clock.now_ms(), now
        if now - self._met < PATIENCE_S:
            return False
        if not self.is_long:
            self.is_long = True
            if isinstance(cause, StoreAway):
                log.warning("%s: changes are refused until it is there again", cause)
            else:
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
            log.info("the database takes changes again", extra={"fields": fields})
        self.since, self.is_long = None, False


def refusal_by(cause: StoreBusy) -> ZqError:
    """The answer to a change that cannot be made for this cause."""
    return DatabaseAway(str(cause)) if isinstance(cause, StoreAway) else DatabaseLocked()
