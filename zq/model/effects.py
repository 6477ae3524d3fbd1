"""What memory has to learn of a transaction: whose jobs were taken from them, who may go on."""

from collections import Counter
from typing import Any

import msgspec

from zq.model.damage import Misfit
from zq.model.events import News


class Tally(msgspec.Struct):
    """How many jobs a tick has brought where."""

    stored: int = 0
    duplicates: int = 0
    """New jobs that were not stored, for their unique key has an owner or their name is known."""
    folded: int = 0
    """New jobs that were not stored, for they were folded into another."""
    completed: int = 0
    retried: int = 0
    died: int = 0
    not_in_flight: int = 0
    """Acknowledgements and failures of jobs that nobody held, or not by the delivery named."""
    returned: int = 0
    stalled: int = 0
    delivered: int = 0
    expired: int = 0
    fired: int = 0
    """Cron entries that were due and have moved on with their job."""
    put_off: int = 0
    """Cron entries that were due and stay so, for there was no room for their job."""

    def add(self, other: "Tally") -> None:
        """Count what another has counted too."""
        for name, more in zip(Tally.__struct_fields__, msgspec.structs.astuple(other), strict=True):
            if more:
                setattr(self, name, getattr(self, name) + more)


class Traffic(msgspec.Struct):
    """The same queue by queue, for as much of it as the queues' statistics tell."""

    delivered: Counter[str] = msgspec.field(default_factory=Counter)
    completed: Counter[str] = msgspec.field(default_factory=Counter)
    failed: Counter[str] = msgspec.field(default_factory=Counter)
    """Failures reported, whatever became of the job."""

    def add(self, other: "Traffic") -> None:
        """Count what another has counted too."""
        for name in Traffic.__struct_fields__:
            getattr(self, name).update(getattr(other, name))

    def take_back(self, other: "Traffic") -> None:
        """Count no longer what another has counted, and forget queues of which nothing is left."""
        for name in Traffic.__struct_fields__:
            ours: Counter[str] = getattr(self, name)
            for queue, n in getattr(other, name).items():
                if ours[queue] == n:
                    del ours[queue]
                else:
                    ours[queue] -= n

    def queues(self) -> set[str]:
        """All that are counted."""
        return {*self.delivered, *self.completed, *self.failed}


class Effects(msgspec.Struct):
    """What a transaction, or a part of it, has done that its replies do not tell."""

    ended: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Leases that are over, as (holder, key)."""
    revoked: list[int] = msgspec.field(default_factory=list)
    """Keys of the jobs that were cancelled or deleted while somebody held them."""
    lapsed: list[int] = msgspec.field(default_factory=list)
    """Keys of the jobs whose lease's deadline was over."""
    buried: dict[int, str] = msgspec.field(default_factory=dict)
    """Why jobs have died that did not die of a failure, by key."""
    woken: set[str] = msgspec.field(default_factory=set)
    """Queues that have ready jobs which they may not have had before."""
    left: set[str] = msgspec.field(default_factory=set)
    """Queues of which claims have left ready jobs, for they took as many bytes as they may."""
    news: list[News] = msgspec.field(default_factory=list)
    """What has happened to stored jobs, but for what the replies and the claims tell."""
    misfits: list[Misfit] = msgspec.field(default_factory=list)
    """Rows that were set aside, for they cannot be read."""
    logged: int = 0
    """The number of the last record of the history; 0 where none was added."""
    rows: int = 0
    """Rows inserted, updated or deleted."""
    tally: Tally = msgspec.field(default_factory=Tally)
    traffic: Traffic | None = None
    """None where nothing was delivered or settled: a transaction that only stores jobs has none."""

    def flow(self) -> Traffic:
        """The traffic, to count in."""
        if self.traffic is None:
            self.traffic = Traffic()
        return self.traffic

    def merge(self, part: "Effects") -> None:
        """Take over what a later part of the same transaction has done."""
        for name in Effects.__struct_fields__:
            if more := getattr(part, name):
                setattr(self, name, _merged(getattr(self, name), more))


def _merged(ours: Any, more: Any) -> Any:
    if ours is None:
        return more
    match more:
        case Tally() | Traffic():
            ours.add(more)
            return ours
        case set() | dict():
            return ours | more
        case list():
            return ours + more
        case _:
            # A number that only grows within a transaction.
            return max(ours, more)
