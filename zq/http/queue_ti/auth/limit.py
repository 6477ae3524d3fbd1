"""The limit of logins: a password cannot be found by trying many."""

import math
from collections import defaultdict, deque

from zq.model.clock import Clock
from zq.model.user_errors import TooManyLogins

MOST, WITHIN_S = 10, 60.0
MOST_PEERS = 10_000
"""With more addresses than this, those that have not come lately are forgotten."""


class LoginLimit:
    """Counts attempts by the address of the connection, which no header can change."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: defaultdict[str, deque[float]] = defaultdict(deque)

    def count(self, peer: str) -> None:
        """Count an attempt. Raises `TooManyLogins`."""
        now = self._clock.monotonic()
        if len(self._attempts) > MOST_PEERS:
            self._forget(now)
        attempts = self._attempts[peer]
        while attempts and attempts[0] <= now - WITHIN_S:
            attempts.popleft()
        if len(attempts) >= MOST:
            raise TooManyLogins(math.ceil(attempts[0] + WITHIN_S - now))
        attempts.append(now)

    def _forget(self, now: float) -> None:
        over = [peer for peer, all in self._attempts.items() if all[-1] <= now - WITHIN_S]
        for peer in over:
            del self._attempts[peer]
