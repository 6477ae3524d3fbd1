"""The shares of keys: what a tick changes of them, by the formula of `zq.features.fair.model`."""

import msgspec

from zq.features.fair.model import (
    SHORTEST_MS,
    correction,
    finish_of,
    least_start,
    mean_after,
    start_of,
    virtual_after,
)

COLUMNS = (
    "queue, fair_key, weight, finish, mean, owed, unfinished, waiting, in_flight, paid_until,"
    " opens_at"
)
"""The columns of a fair key."""

Name = tuple[str, str]
"""A queue and one of its keys."""


class KeyShare(msgspec.Struct, array_like=True, gc=False):
    """A key of a queue, in the order of the store's columns, and what is set for it."""

    queue: str
    key: str
    weight: float
    finish: float
    mean: float | None
    owed: float
    unfinished: int
    waiting: int
    in_flight: int
    paid_until: float | None
    opens_at: int | None
    set_weight: float | None
    set_in_flight: int | None
    set_rate: float | None

    @property
    def name(self) -> Name:
        """The queue and the key."""
        return self.queue, self.key

    @property
    def pull(self) -> float:
        """The weight that holds: what is set for the key, or else what its jobs bring."""
        return self.weight if self.set_weight is None else self.set_weight

    @property
    def row(self) -> tuple[object, ...]:
        """The columns that are stored."""
        return msgspec.structs.astuple(self)[:11]


class SharedQueue(msgspec.Struct, array_like=True, gc=False):
    """A queue with keys: its virtual time, and the mean and the number of its unfinished jobs."""

    queue: str
    virtual: float = 0.0
    mean: float = SHORTEST_MS
    unfinished: int = 0


class KeyNotes(msgspec.Struct, gc=False):
    """What the moves of a transaction have done to the jobs of a key."""

    unfinished: int = 0
    came: int = 0
    """Jobs that have become ready."""
    left: int = 0
    """Jobs that are not ready any more."""
    delivered: int = 0
    brought: int = 0
    """Jobs in flight that have come from another queue."""
    ran: list[float | None] = []
    """What those count that are no longer in flight, in milliseconds; None is what their key was
    charged with."""
    weight: float | None = None
    """What the latest new job brings."""


def end_jobs(share: KeyShare, queue: SharedQueue, notes: KeyNotes) -> None:
    """Change a key and its queue by the jobs that are no longer in flight."""
    for ran in notes.ran:
        charged = share.owed / share.in_flight if share.in_flight else 0.0
        share.owed -= charged
        share.in_flight = max(share.in_flight - 1, 0)
        if ran is None:
            continue
        corrected = correction(charged, ran, share.pull)
        share.finish += corrected
        if share.waiting:
            queue.virtual = virtual_after(queue.virtual, share.finish, corrected)
        share.mean = mean_after(share.mean, ran)
        queue.mean = mean_after(queue.mean, ran)


def change(share: KeyShare, queue: SharedQueue, notes: KeyNotes) -> None:
    """Change a key and its queue by what else has happened to its jobs, after `end_jobs`."""
    pull = share.pull
    if notes.came and not share.waiting:
        share.finish = start_of(queue.virtual, share.finish)
    if notes.delivered:
        charged = charged_to(share, queue)
        share.finish = start_of(first_start(share, queue), share.finish)
        last = share.finish
        for _ in range(notes.delivered):
            last, share.finish = share.finish, finish_of(share.finish, charged, pull)
        queue.virtual = start_of(queue.virtual, last)
        share.owed += charged * notes.delivered
        share.in_flight += notes.delivered
    if notes.brought:
        # It is nobody's turn, so the queue's time stays.
        charged = charged_to(share, queue)
        for _ in range(notes.brought):
            share.finish = finish_of(start_of(queue.virtual, share.finish), charged, pull)
        share.owed += charged * notes.brought
        share.in_flight += notes.brought
    share.waiting = max(share.waiting + notes.came - notes.left, 0)
    share.unfinished = max(share.unfinished + notes.unfinished, share.waiting + share.in_flight)
    queue.unfinished = max(queue.unfinished + notes.unfinished, 0)


def first_start(share: KeyShare, queue: SharedQueue) -> float:
    """The least tag at which the next job of a key begins."""
    return least_start(queue.virtual, charged_to(share, queue), share.pull, share.in_flight)


def charged_to(share: KeyShare, queue: SharedQueue) -> float:
    """What a delivery is charged with: the mean of the key, or that of its queue."""
    return queue.mean if share.mean is None else share.mean
