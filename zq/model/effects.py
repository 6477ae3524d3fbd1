"""The effects of a transaction that memory has to learn: ended leases, woken queues, news."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from zq.model.events import News
from zq.model.job import ErrorRecord
from zq.model.lifecycle import Status


class Misfit(NamedTuple):
    """A row that was set aside: its table, its key there, why, and when (milliseconds)."""

    source: str
    key: str
    reason: str
    at: int


class Quarantined(NamedTuple):
    """All rows that were set aside: their number, and the latest of them."""

    rows: int
    latest: Sequence[Misfit]


class Tally(msgspec.Struct):
    """How many jobs a tick has moved, by kind of move."""

    stored: int = 0
    duplicates: int = 0
    """New jobs that were not stored, since their unique key has an owner or their name is known."""
    folded: int = 0
    """New jobs that were not stored, since they were folded into another job."""
    completed: int = 0
    retried: int = 0
    died: int = 0
    not_in_flight: int = 0
    """Acknowledgements and failures of jobs that were not held, or not under this delivery."""
    returned: int = 0
    stalled: int = 0
    delivered: int = 0
    expired: int = 0
    fired: int = 0
    """Cron entries that were due and have moved on with their job."""
    put_off: int = 0
    """Cron entries that were due and stay due, since there was no room for their job."""

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for name, more in zip(Tally.__struct_fields__, msgspec.structs.astuple(other), strict=True):
            if more:
                setattr(self, name, getattr(self, name) + more)


class Traffic(msgspec.Struct):
    """Deliveries, completions and failures by queue."""

    delivered: Counter[str] = msgspec.field(default_factory=Counter)
    completed: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    """Reported failures, whatever happened to the job then."""

    def add(self, other: "Traffic") -> None:
        """Add the counts of another one."""
        for name in Traffic.__struct_fields__:
            getattr(self, name).update(getattr(other, name))

    def take_back(self, other: "Traffic") -> None:
        """Subtract the counts of another one, and drop queues whose counts are zero."""
        for name in Traffic.__struct_fields__:
            ours: Counter[str] = getattr(self, name)
            for queue, n in getattr(other, name).items():
                if ours[queue] == n:
                    del ours[queue]
                else:
                    ours[queue] -= n

    def queues(self) -> set[str]:
        """All queues with a count."""
        return {*self.delivered, *self.completed, *self.failed}


class Effects(msgspec.Struct):
    """The effects of a transaction, or of a part of it, that its replies do not show."""

    ended: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Leases that have ended, as (holder, key)."""
    revoked: list[int] = msgspec.field(default_factory=list)
    """Keys of the jobs that were cancelled or deleted while somebody held them."""
    lapsed: list[int] = msgspec.field(default_factory=list)
    """Keys of the jobs whose lease was past its deadline."""
    buried: dict[int, tuple[str, int]] = msgspec.field(default_factory=dict)
    """The reasons of jobs that have died without a failure, by key."""
    fatal: dict[int, ErrorRecord] = msgspec.field(default_factory=dict)
    """The failures that jobs have died of, by key."""
    woken: set[str] = msgspec.field(default_factory=set)
    """Queues that may have ready jobs which they did not have before."""
    left: set[str] = msgspec.field(default_factory=set)
    """Queues with ready jobs left: a claim took as many bytes, or looked as far, as it may."""
    news: list[News] = msgspec.field(default_factory=list)
    """The events of stored jobs, except for those that replies and claims show."""
    brought: list[tuple[Any, Any]] = msgspec.field(default_factory=list)
    """Enqueues that were parts of other commands, with their replies: new jobs are news, too."""
    misfits: list[Misfit] = msgspec.field(default_factory=list)
    """Rows that were set aside because they cannot be read."""
    acknowledged: int = 0
    """How many rows that were set aside an operator has acknowledged."""
    logged: int = 0
    """The number of the last record of the history; 0 if none was added."""
    appended: set[str] = msgspec.field(default_factory=set)
    """Topics in which readers may find something new."""
    dropped: set[str] = msgspec.field(default_factory=set)
    """Topics that were deleted."""
    displaced: list[tuple[str, int]] = msgspec.field(default_factory=list)
    """How many jobs made room for others, by the name of what has the bound."""
    promised: bool = False
    """True if the tick did something that must be on the disk before anybody hears of it."""
    rows: int = 0
    """Rows inserted, updated or deleted."""
    tally: Tally = msgspec.field(default_factory=Tally)
    counted: set[str] = msgspec.field(default_factory=set)
    """Queues whose numbers of jobs by status have changed."""
    arrived: list[Mapping[tuple[str, Status], int]] = msgspec.field(default_factory=list)
    """How many jobs were stored, by queue and status."""
    traffic: list[tuple[str, Counter[str]]] = msgspec.field(default_factory=list)
    """Deliveries, completions and failures by queue, as (field of `Traffic`, counts)."""

    def merge(self, part: "Effects") -> None:
        """Add the effects of a later part of the same transaction."""
        for name in Effects.__struct_fields__:
            if more := getattr(part, name):
                setattr(self, name, _merged(getattr(self, name), more))


def _merged(ours: Any, more: Any) -> Any:
    match more:
        case Tally():
            ours.add(more)
            return ours
        case set() | dict():
            return ours | more
        case list():
            return ours + more
        case _:
            # The number of a record only grows within a transaction.
            return max(ours, more)
