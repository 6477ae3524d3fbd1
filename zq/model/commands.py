"""Everything that can change the database, as small immutable values, and what comes back.

A command is fully validated before it exists; ids of new jobs are minted with it. The tick applies
it in one transaction with whatever else waits. Beyond a command's reach, jobs do not exist for it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from zq.model.damage import Misfit
from zq.model.events import News
from zq.model.filters import Filter
from zq.model.job import Job, NewJob, Retention
from zq.model.leasing import Terms
from zq.model.outcome import Completion
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings, SettingsPatch
from zq.model.settling import Failure


class Enqueue(msgspec.Struct, frozen=True):
    """Store jobs, all or none, in order. Result: an `Enqueued`.

    Where a unique key belongs to a job out of reach: `KeyConflict`; where a queue has no room for
    all of its new jobs: `QueueFull`. Nothing is stored then.
    """

    keys: Sequence[int]
    jobs: Sequence[NewJob]
    now: int
    size: int
    """Bytes that the jobs hold in memory, for the bound on a tick."""
    reach: Reach = EVERYWHERE


class Enqueued(msgspec.Struct, frozen=True):
    """What an `Enqueue` did. `owners` maps the index of each duplicate to the job that exists.

    `replaced` has the indexes of those whose payload the owner has taken over. `gone` has the keys
    of the jobs, by the index of their duplicate, of which only the name is still known.
    """

    owners: dict[int, Job]
    replaced: set[int] = set()
    gone: dict[int, int] = {}
    expiries: dict[int, int] = {}

    @property
    def duplicates(self) -> dict[int, int]:
        """The keys of the jobs that are there already, by the index of each that was not stored."""
        return {index: owner.key for index, owner in self.owners.items()} | self.gone


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
    """Report a failure. Result: the job as it is now, `NotInFlight` or `StaleLease`."""

    key: int
    failure: Failure
    reach: Reach = EVERYWHERE


class Extend(msgspec.Struct, frozen=True):
    """Let leases last `lease_ms` from now. Result: an `Extended`.

    `leases` names the delivery that is meant of some of them, by key.
    """

    keys: Sequence[int]
    leases: Mapping[int, int]
    lease_ms: int
    reach: Reach = EVERYWHERE


class Extended(msgspec.Struct, frozen=True):
    """What an `Extend` did: the keys that it left alone, and the deadline of all others."""

    refused: Settled
    until: int


class Release(msgspec.Struct, frozen=True):
    """Give jobs back that their worker does not want, at no cost to them. Result: a `Settled`.

    With a delay they are scheduled for after it. `leases` is as for `Extend`.
    """

    keys: Sequence[int]
    leases: Mapping[int, int]
    delay_ms: int = 0
    reach: Reach = EVERYWHERE


class Return(msgspec.Struct, frozen=True):
    """Give back what a stream had when it ended, or what nobody heard of. Result: None.

    Of the jobs in `stalled` a stall is counted. Claimed jobs (`holder` 0) are named by their
    `leases`, by key, since many claimants share their holder.
    """

    holder: int
    keys: Sequence[int]
    stalled: frozenset[int] = frozenset()
    leases: Mapping[int, int] | None = None


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


class Retry(msgspec.Struct, frozen=True):
    """Make a dead job ready again. Result: the job as it is now, `JobNotFound` or `NotDead`."""

    key: int
    reach: Reach = EVERYWHERE


class ReviveSlice(msgspec.Struct, frozen=True):
    """A slice of a sweep: revive those of `keys` that still match. Result: how many it were.

    Jobs that came from another queue go back there, if that lies within reach.
    """

    keys: Sequence[int]
    filter: Filter


class SetQueue(msgspec.Struct, frozen=True):
    """Replace a queue's settings, or patch them. Result: the settings, or an error of the tree.

    It touches no job: what follows from it follows for each job when its time comes.
    """

    queue: str
    settings: QueueSettings | SettingsPatch


class SetAside(msgspec.Struct, frozen=True):
    """Set those of the rows of a table aside that cannot be read. Result: None."""

    source: str
    keys: Sequence[Any]


class Clear(msgspec.Struct, frozen=True):
    """Delete every job, and settings too if asked for. Result: how many jobs there were."""

    settings: bool = False


Command = (
    Enqueue
    | Succeed
    | Fail
    | Extend
    | Release
    | Return
    | SetAside
    | Change
    | ChangeSlice
    | Delete
    | DeleteSlice
    | Cancel
    | CancelSlice
    | Retain
    | Retry
    | ReviveSlice
    | SetQueue
    | Clear
)


class Claim(msgspec.Struct, frozen=True):
    """Hand out up to `limit` ready jobs of `queues` (None: of all within reach) to the holders.

    `credits` lists (holder, how many it can take). Jobs are dealt out in turn. `terms` has what
    some of the holders ask for; one with a claimant there is 0 in the store, and itself in the
    result.
    """

    queues: tuple[str, ...] | None
    credits: Sequence[tuple[int, int]]
    reach: Reach = EVERYWHERE
    terms: Mapping[int, Terms] | None = None

    @property
    def limit(self) -> int:
        return sum(credit for _, credit in self.credits)


class Due(Enum):
    """What falls due at a wall time, in the order in which a tick attends to it."""

    LEASE = "a lease's deadline is over"
    EXPIRY = "a job that nobody took in time expires"
    PROMOTION = "a scheduled job becomes ready"
    PURGE = "a finished job's retention is over"
    NAMES = "the name of a job is no longer recognised"
    TRIM = "the oldest records of a log are past their age"


Deadlines = Mapping[Due, int]
"""When each of them falls due next, in milliseconds; what is not there waits for nothing."""


class Tick(msgspec.Struct, frozen=True):
    """One transaction's work: what waits, what is due, who can take. Times in milliseconds."""

    now: int
    steady: int
    """The time by which leases go: see `zq.model.clock.SteadyClock`."""
    commands: Sequence[Command]
    claims: Sequence[Claim]
    due: frozenset[Due]
    durable: bool
    """Whether the commit is to be synced to the disk before anyone hears of it."""
    workers: Mapping[int, str] = {}
    """What workers call themselves, by the holders of their streams."""
    monotonic: float = 0.0
    """Seconds that never step back: what rates go by."""


class Tally(msgspec.Struct):
    """How many jobs a tick has brought where."""

    stored: int = 0
    duplicates: int = 0
    """New jobs that were not stored, for their unique key has an owner or their name is known."""
    completed: int = 0
    retried: int = 0
    died: int = 0
    not_in_flight: int = 0
    """Acknowledgements and failures of jobs that nobody held, or not by the delivery named."""
    returned: int = 0
    stalled: int = 0
    delivered: int = 0
    expired: int = 0

    def add(self, other: "Tally") -> None:
        """Count what another has counted too."""
        for name in Tally.__struct_fields__:
            if more := getattr(other, name):
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
    revoked: list[int]
    """Keys of the jobs that were cancelled or deleted while somebody held them."""
    lapsed: list[int]
    """Keys of the jobs whose lease's deadline was over."""
    buried: dict[int, str]
    """Why jobs have died that did not die of a failure, by key."""
    expired: list[int]
    """Keys of the jobs that have expired."""
    woken: set[str]
    """Queues that have ready jobs which they may not have had before."""
    deadlines: Deadlines | None
    """When something falls due next; None where the tick has not moved it."""
    logged: int
    """The number of the last record of the history; 0 where none was added."""
    rows: int
    """Rows inserted, updated or deleted."""
    tally: Tally
    traffic: Traffic | None = None
    """None where nothing was delivered or settled."""
    news: list[News] = msgspec.field(default_factory=list)
    """What has happened to stored jobs, but for what the replies and `claimed` tell."""
    left: set[str] = msgspec.field(default_factory=set)
    """Queues of which claims have left ready jobs, for they took as many bytes as they may."""
    openings: Mapping[str, float] = {}
    """Queues whose rate gave a claim less than it asked for, and the monotonic time from which on
    it gives more."""
    misfits: Sequence[Misfit] = ()
    """Rows that were set aside, for they cannot be read."""
    flush_s: float = 0.0
    """Seconds from the commit of a durable tick until the disk has it."""
