"""The limit of failed logins: a password cannot be found by trying many."""

import math
from collections import defaultdict, deque

from zq.doors.queue_ti.errors import TooManyLogins
from zq.model.clock import Clock
from zq.model.keys import digest_of

MOST_PER_NAME, MOST_PER_PEER, WITHIN_S = 10, 100, 60.0
"""Many users may share the address of a proxy, so a name has a lower limit than an address."""

MOST_KNOWN = 10_000
"""With more names and addresses than this, those that have not come lately are forgotten."""

Counted = tuple[str, bytes]


class LoginLimit:
    """Counts failed attempts by name and address, and by the address of the connection alone.

    No header can change that address. An attempt counts from its beginning, so that many at once
    are counted too, until it has succeeded.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: defaultdict[Counted, deque[float]] = defaultdict(deque)

    def count(self, name: str, peer: str) -> None:
        """Count an attempt. Raises `TooManyLogins`."""
        now = self._clock.monotonic()
        if len(self._attempts) > MOST_KNOWN:
            self._forget(now)
        of_name, of_peer = (self._attempts[each] for each in _counted(name, peer))
        for attempts, most in ((of_name, MOST_PER_NAME), (of_peer, MOST_PER_PEER)):
            while attempts and attempts[0] <= now - WITHIN_S:
                attempts.popleft()
            if len(attempts) >= most:
                raise TooManyLogins(math.ceil(attempts[0] + WITHIN_S - now))
        of_name.append(now)
        of_peer.append(now)

    def succeeded(self, name: str, peer: str) -> None:
        """Count an attempt no longer, for its password was right."""
        for each in _counted(name, peer):
            attempts = self._attempts.get(each)
            if attempts:
                attempts.pop()

    def _forget(self, now: float) -> None:
        over = [
            each for each, all in self._attempts.items() if not all or all[-1] <= now - WITHIN_S
        ]
        for each in over:
            del self._attempts[each]


def _counted(name: str, peer: str) -> tuple[Counted, Counted]:
    # A name may be long, and its hash is not.
    return (peer, digest_of(name.encode())), (peer, b"")
