"""Everything that can change the database, as small immutable values, and what comes back.

A command is fully validated before it exists; ids of new jobs are minted with it. The tick applies
it in one transaction with whatever else waits. Beyond a command's reach, jobs do not exist for it.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from zq.model.filters import Filter
from zq.model.job import Job, NewJob, Retention
from zq.model.outcome import Completion
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settling import Failure


class Enqueue(msgspec.Struct, frozen=True):
    """Store jobs, all or none, in order. Result: an `Enqueued`.

    Where a unique key belongs to a job out of reach: `KeyConflict`, and nothing is stored.
    """

    keys: Sequence[int]
    jobs: Sequence[NewJob]
    now: int
    size: int
    """Bytes that the jobs hold in memory, for the bound on a tick."""
    reach: Reach = EVERYWHERE


class Enqueued(msgspec.Struct, frozen=True):
    """What an `Enqueue` did. `owners` maps the index of each duplicate to the job that exists.

    `replaced` has the indexes of those whose payload the owner has taken over.
    """

    owners: dict[int, Job]
    replaced: frozenset[int] = frozenset()


class Succeed(msgspec.Struct, frozen=True):
    """Acknowledge jobs. Result: a `Settled`.

    `said` has what was said with some of them, by key, and `size` the bytes of it.
    """

    keys: Sequence[int]
    reach: Reach = EVERYWHERE
    said: Mapping[int, Completion] | None = None
    size: int = 0


class Settled(msgspec.Struct, frozen=True):
    """The keys that a `Succeed` left alone.

    `missing` were not in flight; of `stale` ones the delivery that was named has ended.
    """

    missing: frozenset[int]
    stale: frozenset[int] = frozenset()


class Fail(msgspec.Struct, frozen=True):
    """Report a failure. Result: the job as it is now, or `NotInFlight`."""

    key: int
    failure: Failure
    reach: Reach = EVERYWHERE


class Return(msgspec.Struct, frozen=True):
    """Give back what a holder has when its stream ends. Result: None."""

    holder: int
    keys: Sequence[int]


class Change(msgspec.Struct, frozen=True):
    """Patch one job, named `text_id` in messages. Result: the job, or an error of the tree."""

    key: int
    text_id: str
    patch: Patch
    reach: Reach = EVERYWHERE


class ChangeSlice(msgspec.Struct, frozen=True):
    """A slice of a sweep: patch those of `keys` that still match. Result: how many changed."""

    keys: Sequence[int]
    filter: Filter
    patch: Patch


class Delete(msgspec.Struct, frozen=True):
    """Delete one job in whatever state. Result: None, or `JobNotFound`."""

    key: int
    reach: Reach = EVERYWHERE


class DeleteSlice(msgspec.Struct, frozen=True):
    """A slice of a sweep: delete those of `keys` that still match. Result: how many went."""

    keys: Sequence[int]
    filter: Filter


class Cancel(msgspec.Struct, frozen=True):
    """Cancel one job; one in flight only by `force`.

    The job is named by its `key`, or as the owner of a `unique_key`. Result: the job as it is now,
    `JobNotFound` or `NotCancellable`.
    """

    key: int | None = None
    unique_key: str | None = None
    force: bool = False
    reach: Reach = EVERYWHERE


class CancelSlice(msgspec.Struct, frozen=True):
    """A slice of a sweep: cancel those of `keys` that still match. Result: how many it were."""

    keys: Sequence[int]
    filter: Filter
    force: bool


class Retain(msgspec.Struct, frozen=True):
    """Keep a finished job for so long from now. Result: the job, `JobNotFound` or `NotFinished`.

    What `retention` leaves open is as it would be for a job that finishes now.
    """

    key: int
    retention: Retention
    reach: Reach = EVERYWHERE


class Clear(msgspec.Struct, frozen=True):
    """Delete every job. Result: how many there were."""


Command = (
    Enqueue
    | Succeed
    | Fail
    | Return
    | Change
    | ChangeSlice
    | Delete
    | DeleteSlice
    | Cancel
    | CancelSlice
    | Retain
    | Clear
)


class Claim(msgspec.Struct, frozen=True):
    """Hand out up to `limit` ready jobs of `queues` (None: of all within reach) to the holders.

    `credits` lists (holder, how many it can take). Jobs are dealt out in turn.
    """

    queues: tuple[str, ...] | None
    credits: Sequence[tuple[int, int]]
    reach: Reach = EVERYWHERE

    @property
    def limit(self) -> int:
        return sum(credit for _, credit in self.credits)


class Due(Enum):
    """What falls due at a wall time, in the order in which a tick attends to it."""

    PROMOTION = "a scheduled job becomes ready"
    PURGE = "a finished job's retention is over"


Deadlines = Mapping[Due, int]
"""When each of them falls due next, in milliseconds; what is not there waits for nothing."""


class Tick(msgspec.Struct, frozen=True):
    """One transaction's work: what waits, what is due, who can take. Times in milliseconds."""

    now: int
    commands: Sequence[Command]
    claims: Sequence[Claim]
    due: frozenset[Due]
    durable: bool
    """Whether the commit is to be synced to the disk before anyone hears of it."""


class Tally(msgspec.Struct):
    """How many jobs a tick has brought where."""

    stored: int = 0
    duplicates: int = 0
    """New jobs that were not stored, for their unique key has an owner."""
    completed: int = 0
    retried: int = 0
    died: int = 0
    not_in_flight: int = 0
    """Acknowledgements and failures of jobs that nobody held, or not by the delivery named."""
    returned: int = 0
    delivered: int = 0

    def add(self, other: "Tally") -> None:
        """Count what another has counted too."""
        for name in Tally.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class TickResult(msgspec.Struct):
    """What a committed tick did: all that memory has to learn."""

    replies: list[object]
    """One a command, in order: its result, or the exception to raise."""
    ended: list[tuple[int, int]]
    """Leases that are over, as (holder, key)."""
    claimed: list[list[Job]]
    """One list a claim, jobs carrying their new holder; in dispatch order."""
    cancelled: list[int]
    """Keys of the jobs that were cancelled."""
    woken: set[str]
    """Queues that have ready jobs which they may not have had before."""
    deadlines: Deadlines | None
    """When something falls due next; None where the tick has not moved it."""
    rows: int
    """Rows inserted, updated or deleted."""
    tally: Tally
    commit_s: float = 0.0
    """Seconds that the COMMIT took: of a durable tick, those until the disk has it."""
