"""What ticks remember while other servers share the database, and when that is out of date.

Ticks of all servers come one after the other, by a lock that each takes when it begins. So each
decides as if it were alone, as long as it remembers nothing that another has changed since. A row
has the version of that. A tick that changes what others may remember gives it the next number.

Most ticks change nothing of that. They only state the version that they know, and fail at once if
there is another by now, which costs no round trip. After such a failure, and after a tick that has
changed the version itself, the next one asks for it first.
"""


class Memory:
    """The version of what this server's ticks remember."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.version = 0
        self.asks = True
        """True if the next transaction asks for the version before it decides anything."""
        self.foreign = 0
        """How often others have changed what is remembered, as far as that was noticed."""

    def found(self, version: int) -> None:
        """Learn the version that the database has."""
        if version != self.version:
            self.version = version
            self.foreign += 1

    def committed(self, *, changes: bool) -> None:
        """Note that a transaction was committed which was of this version."""
        self.version += changes
        self.asks = changes

    def doubt(self) -> None:
        """Note that a transaction has failed: there may be another version by now."""
        self.asks = True
