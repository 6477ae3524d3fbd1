"""Everything that can change the database, as small immutable values, and what comes back.

A command is fully validated before it exists; ids of new jobs are minted with it. The tick applies
it in one transaction with whatever else waits. Beyond a command's reach, jobs do not exist for it.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

import msgspec

from zq.model.batch import BatchPlan
from zq.model.effects import Effects
from zq.model.filters import Filter
from zq.model.job import JobRecord, NewJob, Retention
from zq.model.leasing import Terms
from zq.model.outcome import Completion
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings, SettingsPatch
from zq.model.settling import Failure

R_co = TypeVar("R_co", covariant=True)


class Command(msgspec.Struct, Generic[R_co], frozen=True):
    """What can be asked of the store. The parameter is the type of its result.

    Where a command is refused, an error of the tree comes in place of the result.
    """


AnyCommand = Command[object]


class EnqueueResult(msgspec.Struct, frozen=True):
    """What an `Enqueue` did. `owners` maps the index of each duplicate to the job that exists.

    `replaced` has the indexes of those whose payload the owner has taken over. `gone` has the keys
    of the jobs, by the index of their duplicate, of which only the name is still known. `folded`
    maps the index of each job that was folded to its host.
    """

    owners: dict[int, JobRecord]
    replaced: set[int] = set()
    gone: dict[int, int] = {}
    expiries: dict[int, int] = {}
    folded: dict[int, JobRecord] = {}

    @property
    def joined(self) -> dict[int, int]:
        """The keys of the jobs that are there already, by the index of each that was not stored."""
        others = self.owners | self.folded if self.folded else self.owners
        return {index: other.key for index, other in others.items()} | self.gone


class Enqueue(Command[EnqueueResult], frozen=True):
    """Store jobs, all or none, in order.

    Where a unique key belongs to a job out of reach: `KeyConflict`; where a queue has no room for
    all of its new jobs: `QueueFull`; where a `plan` no longer holds: `StalePlan`. Nothing is stored
    then. A command without a plan brings no job that could fold or be folded into. With `defaults`,
    what jobs and their queues do not say is fixed by them: see `zq.model.fixing`.
    """

    keys: Sequence[int]
    jobs: Sequence[NewJob]
    now: int
    size: int
    """Bytes that the jobs hold in memory, for the bound on a tick."""
    reach: Reach = EVERYWHERE
    plan: BatchPlan | None = None
    defaults: QueueSettings | None = None


class Settled(msgspec.Struct, frozen=True):
    """The keys that a `Succeed` left alone.

    `missing` were not in flight; of `stale` ones the delivery that was named has ended.
    """

    missing: frozenset[int]
    stale: frozenset[int] = frozenset()


class Succeed(Command[Settled], frozen=True):
    """Acknowledge jobs.

    `said` has what was said with some of them, by key, and `size` the bytes of it.
    """

    keys: Sequence[int]
    reach: Reach = EVERYWHERE
    said: Mapping[int, Completion] | None = None
    size: int = 0


class Fail(Command[JobRecord], frozen=True):
    """Report a failure. The job as it is then, `NotInFlight` or `StaleLease`."""

    key: int
    failure: Failure
    reach: Reach = EVERYWHERE


class Extended(msgspec.Struct, frozen=True):
    """What an `Extend` did: the keys that it left alone, and the deadline of all others."""

    refused: Settled
    until: int


class Extend(Command[Extended], frozen=True):
    """Let leases last `lease_ms` from now.

    `leases` names the delivery that is meant of some of them, by key.
    """

    keys: Sequence[int]
    leases: Mapping[int, int]
    lease_ms: int
    reach: Reach = EVERYWHERE


class Release(Command[Settled], frozen=True):
    """Give jobs back that their worker does not want, at no cost to them.

    With a delay they are scheduled for after it. `leases` is as for `Extend`.
    """

    keys: Sequence[int]
    leases: Mapping[int, int]
    delay_ms: int = 0
    reach: Reach = EVERYWHERE


class Return(Command[None], frozen=True):
    """Give back what a stream had when it ended, or what nobody heard of.

    Of the jobs in `stalled` a stall is counted. Claimed jobs (`holder` 0) are named by their
    `leases`, by key, since many claimants share their holder.
    """

    holder: int
    keys: Sequence[int]
    stalled: frozenset[int] = frozenset()
    leases: Mapping[int, int] | None = None


class PatchJob(Command[JobRecord], frozen=True):
    """Patch one job, named `text_id` in messages; the job as it is then."""

    key: int
    text_id: str
    patch: Patch
    reach: Reach = EVERYWHERE


class PatchSlice(Command[int], frozen=True):
    """A slice of a sweep: patch those of `keys` that still match. How many it were."""

    keys: Sequence[int]
    filter: Filter
    patch: Patch


class DeleteJob(Command[None], frozen=True):
    """Delete one job in whatever state. `JobNotFound` where it is not there."""

    key: int
    reach: Reach = EVERYWHERE


class DeleteSlice(Command[int], frozen=True):
    """A slice of a sweep: delete those of `keys` that still match. How many it were."""

    keys: Sequence[int]
    filter: Filter


class CancelJob(Command[JobRecord], frozen=True):
    """Cancel one job; one in flight only by `force`.

    The job is named by its `key`, or by the `lock` of the unique key that it owns. It answers the
    job as it is then, `JobNotFound` or `NotCancellable`.
    """

    key: int | None = None
    lock: str | None = None
    force: bool = False
    reach: Reach = EVERYWHERE


class CancelSlice(Command[int], frozen=True):
    """A slice of a sweep: cancel those of `keys` that still match. How many it were."""

    keys: Sequence[int]
    filter: Filter
    force: bool


class RetainJob(Command[JobRecord], frozen=True):
    """Keep a finished job for so long from now. The job, `JobNotFound` or `NotFinished`.

    What `retention` leaves open is as it would be for a job that finishes now.
    """

    key: int
    retention: Retention
    reach: Reach = EVERYWHERE


class Revive(Command[JobRecord], frozen=True):
    """Make a dead job ready again. The job as it is then, `JobNotFound` or `NotDead`.

    To send it `home` means to the queue in which it died first, also where it waits in a
    dead-letter queue. `defaults` are as for `Enqueue`.
    """

    key: int
    reach: Reach = EVERYWHERE
    home: bool = False
    defaults: QueueSettings | None = None


class ReviveSlice(Command[int], frozen=True):
    """A slice of a sweep: revive those of `keys` that still match. How many it were.

    Jobs that came from another queue go back there, if that lies within reach.
    """

    keys: Sequence[int]
    filter: Filter


class SetQueue(Command[QueueSettings], frozen=True):
    """Replace a queue's settings, or patch them. What is set then.

    It touches no job: what follows from it follows for each job when its time comes.
    """

    queue: str
    settings: QueueSettings | SettingsPatch


class SetAside(Command[None], frozen=True):
    """Set those of the rows of a table aside that cannot be read."""

    source: str
    keys: Sequence[Any]


class Clear(Command[int], frozen=True):
    """Delete every job, and settings too if asked for. How many jobs there were."""

    settings: bool = False


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
    limit: int = 0
    """The sum of the credits; whoever makes a claim leaves that to it."""

    def __post_init__(self) -> None:
        limit = sum([credit for _, credit in self.credits])
        msgspec.structs.force_setattr(self, "limit", limit)


class Due(Enum):
    """What falls due at a wall time, in the order in which a tick attends to it."""

    LEASE = "a lease's deadline is over"
    EXPIRY = "a job that nobody took in time expires"
    PROMOTION = "a scheduled job becomes ready"
    PURGE = "a finished job's retention is over"
    NAMES = "the name of a job is no longer recognised"
    TRIM = "the oldest records of a log are past their age"
    BUDGET = "a budget has enough tokens again for a job that waits"


Deadlines = Mapping[Due, int]
"""When each of them falls due next, in milliseconds; what is not there waits for nothing."""


class Tick(msgspec.Struct, frozen=True):
    """One transaction's work: what waits, what is due, who can take. Times in milliseconds."""

    now: int
    steady: int
    """The time by which leases go: see `zq.model.clock.SteadyClock`."""
    commands: Sequence[AnyCommand]
    claims: Sequence[Claim]
    due: frozenset[Due]
    durable: bool
    """Whether the commit is to be synced to the disk before anyone hears of it."""
    workers: Mapping[int, str] = {}
    """What workers call themselves, by the holders of their streams."""
    monotonic: float = 0.0
    """Seconds that never step back: what rates go by."""


class TickResult(Effects):
    """What a committed tick did: all that memory has to learn."""

    replies: list[object] = msgspec.field(default_factory=list)
    """One a command, in order: its result, or the exception to raise."""
    claimed: list[list[JobRecord]] = msgspec.field(default_factory=list)
    """One list a claim, jobs carrying their new holder; in dispatch order."""
    deadlines: Deadlines | None = None
    """When something falls due next; None where the tick has not moved it."""
    rescheduled: bool = False
    """Whether cron entries have come, gone or moved on, so that `next_firing` is to be heard."""
    next_firing: int | None = None
    """When the first of the cron entries is due, in milliseconds, where there is one."""
    openings: Mapping[str, float] = {}
    """Queues whose rate gave a claim less than it asked for, and the monotonic time from which on
    it gives more."""
    flush_s: float = 0.0
    """Seconds from the commit of a durable tick until the disk has it."""
