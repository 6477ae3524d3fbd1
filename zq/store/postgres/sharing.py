"""What ticks of servers that share a database may do at the same time, and what they remember.

Most ticks run beside those of other servers: they share their turn. All that they do concerns rows
that they insert, or that they have locked before they decide about them, and a claim passes over
rows that others have locked. `BESIDE` names the statements of which that is true. A tick that needs
any other one is undone, and takes its turn alone: then all decide as one server does, as long as
they remember nothing that another has changed since.

A row has the version of what ticks remember. A tick that changes it gives it the next number, in a
turn of its own. The others only state the version that they know, and fail at once if there is
another by now, which costs no round trip. After such a failure, and after a tick that has changed
the version itself, the next one asks for it first.
"""

from zq.store.errors import StoreBusy

BESIDE = frozenset(
    (
        *("claim_any", "claim_queue", "count_merged", "take", "take_on_terms"),
        *("read_held", "read_current", "read_stale", "read_briefs", "read_jobs"),
        *("complete", "complete_with_results", "give_back", "release", "extend", "forgive_stall"),
        "read_owners",
        *("fail", "note_last_failures", "bury"),
        *("known_error_groups", "write_error_groups", "write_failure_counts"),
        *("delete_jobs", "delete_payloads", "delete_results", "delete_errors", "read_purgeable"),
        *("read_due", "read_waited", "promote"),
        *("count", "deadlines", "note_clock", "raise_high_water", "tell"),
    )
)
"""The statements of ticks that share their turn."""

OF_ALL_SERVERS = ("group_id", "line")
"""Columns of new jobs that concern other jobs than these, if they have a value."""

MOST_KEYS = 64
"""A tick that shares its turn locks the unique keys of its new jobs, so that it knows their owners
for sure. PostgreSQL has room for some thousand locks, so a tick with more keys has its own turn."""

MOST_ALONE = 64
"""At most so many ticks take their turns alone because others had to."""


class TurnNeeded(StoreBusy):
    """A tick that shares its turn needs one of its own. Nothing was changed."""


class Memory:
    """The version of what this server's ticks remember, and which of them share their turn."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.version = 0
        self.asks = True
        """True if the next transaction asks for the version before it decides anything."""
        self.foreign = 0
        """How often what is remembered was changed by others than this server's ticks, as far as
        that was noticed."""
        self._alone = 0
        """So many of the next ticks take their turns alone."""
        self._in_vain = 0
        """How many did so after the last one that had to, since none could share its turn."""

    @property
    def shares(self) -> bool:
        """True if the next tick shares its turn, as long as it needs none of its own."""
        return not self._alone

    def found(self, version: int) -> None:
        """Learn the version that the database has."""
        if version != self.version:
            self.version = version
            self.foreign += 1

    def recovered(self) -> None:
        """Note that this server has returned the jobs of another one, outside its own ticks.

        That changes what they remember: budgets, fair keys and groups.
        """
        self.foreign += 1

    def committed(self, *, changes: bool, beside: bool) -> None:
        """Note that a transaction was committed which was of this version."""
        self.version += changes
        self.asks = changes
        if beside:
            self._in_vain = 0
        elif self._alone:
            self._alone -= 1

    def doubt(self) -> None:
        """Note that a transaction has failed: there may be another version by now."""
        self.asks = True
        self._alone = max(self._alone, 1)

    def needs_turn(self) -> None:
        """Note that a tick could not share its turn. If that goes on, fewer try it."""
        self._in_vain = min(2 * self._in_vain or 1, MOST_ALONE)
        self._alone = self._in_vain
