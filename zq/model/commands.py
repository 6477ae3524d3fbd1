"""The commands: everything that can change the database, as immutable values with typed results.

A command is completely validated before it exists, and ids of new jobs are made with it. The tick
applies it in one transaction with all other commands that wait. Jobs beyond a command's reach do
not exist for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from zq.model.clock import SteadyMark
from zq.model.effects import Effects
from zq.model.filters import Filter
from zq.model.ids import Mint
from zq.model.job import JobRecord, NewJob, Retention
from zq.model.leasing import Holder, Residents, Terms
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import QueueSettings, SettingsPatch
from zq.model.settling import Completion, Failure

R_co = TypeVar("R_co", covariant=True)


class SyncRule(IntEnum):
    """Which setting decides whether a command is on the disk before its answer."""

    CHANGES = 0
    ENQUEUES = 1
    NONE = 2
    """Neither: the tick finds out what was promised."""


class Command(msgspec.Struct, Generic[R_co], frozen=True):
    """A request to change the store. The type parameter is the type of its result.

    If a command is refused, its result is an error of the tree.
    """

    brings_more: ClassVar[bool] = False
    """True if the command needs new space, so that it is refused while the disk is full."""
    comes_last: ClassVar[bool] = False
    """True if it does nothing but bring jobs or records: a tick takes it after all others."""
    sync: ClassVar[SyncRule] = SyncRule.CHANGES
    items: ClassVar[str | None] = None
    """The field with the jobs, or other items, that it is about. None if it is about one."""
    rows_each: ClassVar[int] = 1
    """How much an item weighs against the limits of a tick."""
    has_size: ClassVar[bool] = False
    """True if the bytes in its field `size` weigh too."""
    follows: ClassVar[bool] = False
    """True if it follows what is done, so that it is taken however many others wait."""


class JobsCommand(Command[R_co], frozen=True):
    """A command about many jobs that exist."""

    items: ClassVar[str | None] = "keys"

    keys: Sequence[int]


AnyCommand = Command[object]


class SliceMark(msgspec.Struct, frozen=True):
    """Names the change of many jobs of which a command is a slice."""

    id: int


class Entered(msgspec.Struct, frozen=True):
    """What became of a slice of jobs that were to enter queues.

    `kept` counts those that stay as they were, by the codes of the reasons. `rest` has the keys of
    those that are left for another slice.
    """

    changed: int
    kept: Mapping[str, int] = {}
    rest: tuple[int, ...] = ()


class FoldedPayload(msgspec.Struct, frozen=True, gc=False):
    """The payload of a job after others were folded into it: JSON text, and its size in bytes."""

    payload: str
    payload_size: int


class FoldPlan(msgspec.Struct, frozen=True):
    """Which jobs of an enqueue are not stored, but folded into others.

    `folds` maps the index of a job to the key of its host, which may be another job of the command.
    `payloads` maps a host's key to its payload after the folds.
    """

    folds: Mapping[int, int]
    payloads: Mapping[int, FoldedPayload]


class EnqueueResult(msgspec.Struct, frozen=True):
    """The result of an `Enqueue`. `owners` maps the index of each duplicate to the existing job.

    `replaced` has the indexes of duplicates whose payload the owner has taken over. `gone` maps the
    index of a copy to the key of its original, if only the name of that job is still known.
    `folded` maps the index of each folded job to its host. `expiries` has the dates at which new
    jobs expire, by index.
    """

    owners: dict[int, JobRecord]
    replaced: set[int] = set()
    gone: dict[int, int] = {}
    expiries: dict[int, int] = {}
    folded: dict[int, JobRecord] = {}
    queues: dict[int, str] = {}
    """The first target of each job that went to the targets of its queue, by index."""
    unnamed: set[int] = set()
    """The indexes of jobs that are stored already, and whose ids nobody knows any more."""

    def stored(self, command: "Enqueue") -> Iterator[tuple[int, str, NewJob]]:
        """The jobs of its command that were stored, with their keys and queues."""
        known = self.known
        for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True)):
            if index not in known:
                yield key, self.queues.get(index, job.queue), job

    @property
    def known(self) -> set[int]:
        """The indexes of the jobs that were not stored, since they or others are there already."""
        return {*self.owners, *self.folded, *self.gone, *self.unnamed}

    @property
    def joined(self) -> dict[int, int]:
        """The keys of the existing jobs, by the index of each job that was not stored, if they are
        known."""
        others = self.owners | self.folded if self.folded else self.owners
        return {index: other.key for index, other in others.items()} | self.gone


ALL_STORED = EnqueueResult({})
"""The result of most commands: they bring only new jobs."""


class Enqueue(Command[EnqueueResult], frozen=True):
    """Store jobs, all or none, in order.

    The errors are `KeyConflict` if a unique key belongs to a job out of reach, `QueueFull` if a
    queue has no room for all of its new jobs, and what tells the maker of a `plan` that it is no
    longer valid. They mean that nothing was stored. A command without a plan has no job that could
    fold or become a host. With `defaults`, settings that jobs and their queues leave open are
    fixed: see `zq.model.settings`.
    """

    brings_more: ClassVar[bool] = True
    comes_last: ClassVar[bool] = True
    sync: ClassVar[SyncRule] = SyncRule.ENQUEUES
    items: ClassVar[str | None] = "jobs"
    has_size: ClassVar[bool] = True

    keys: Sequence[int]
    jobs: Sequence[NewJob]
    now: int
    size: int
    """The bytes that the jobs hold in memory. They count against the limit of a tick."""
    reach: Reach = EVERYWHERE
    plan: FoldPlan | None = None
    defaults: QueueSettings | None = None
    registered_only: bool = False
    """True if a queue without any settings is refused, as `QueueNotRegistered`."""
    sender: str | None = None
    """The producer that numbers the jobs, up to a slash in its name. Queues may be shared by it."""
    over_depth: bool = False
    """True if the jobs pass limits on depth, for they were accepted before, in another queue."""


class Settled(msgspec.Struct, frozen=True):
    """The keys that a `Succeed` left unchanged.

    `missing` jobs were not in flight. Of `stale` jobs the named delivery has ended.
    """

    missing: frozenset[int]
    stale: frozenset[int] = frozenset()


class Succeed(JobsCommand[Settled], frozen=True):
    """Acknowledge jobs.

    `said` has the completions that came with some of them, by key, and `size` their bytes. A `late`
    one, by the claimant of this name, is also about jobs whose lease is over, while nobody else has
    taken them.
    """

    has_size: ClassVar[bool] = True

    reach: Reach = EVERYWHERE
    said: Mapping[int, Completion] | None = None
    size: int = 0
    late: str | None = None


class Fail(Command[JobRecord], frozen=True):
    """Report a failure. Returns the changed job, `NotInFlight` or `StaleLease`.

    `late` is as for `Succeed`.
    """

    key: int
    failure: Failure
    reach: Reach = EVERYWHERE
    late: str | None = None


class Extended(msgspec.Struct, frozen=True):
    """The result of an `Extend`: the keys that were left unchanged, and the others' deadline.

    That is a date.
    """

    refused: Settled
    until: int


class Extend(JobsCommand[Extended], frozen=True):
    """Set the deadlines of leases to `lease_ms` from now.

    `leases` names the delivery of some of them, by key. With `resumed`, each job has a stall less:
    its worker has not died, but goes on after a broken connection.
    """

    leases: Mapping[int, int]
    lease_ms: int
    reach: Reach = EVERYWHERE
    resumed: bool = False


class Release(JobsCommand[Settled], frozen=True):
    """Return jobs that their worker does not want. No attempt is spent.

    With a delay they are scheduled for after it. `leases` is as for `Extend`.
    """

    leases: Mapping[int, int]
    delay_ms: int = 0
    reach: Reach = EVERYWHERE


class Return(Command[None], frozen=True):
    """Return the jobs that a stream held when it ended, or that reached nobody.

    A stall is counted for the jobs in `stalled`. Claimed jobs (`holder` 0) are named by their
    `leases`, by key, since all claimants share this holder.
    """

    items: ClassVar[str | None] = "keys"
    follows: ClassVar[bool] = True

    holder: int
    keys: Sequence[int]
    stalled: frozenset[int] = frozenset()
    leases: Mapping[int, int] | None = None


class NoteResidents(Command[None], frozen=True):
    """Note which streams would die with this process. See `ResidentStream`."""

    residents: Residents


class PatchJob(Command[JobRecord], frozen=True):
    """Patch one job. Messages call it `text_id`. Returns the changed job."""

    key: int
    text_id: str
    patch: Patch
    reach: Reach = EVERYWHERE


class PatchSlice(JobsCommand[Entered], frozen=True):
    """A slice of a sweep: patch those of `keys` that still match."""

    filter: Filter
    patch: Patch
    mark: SliceMark | None = None


class DeleteJob(Command[None], frozen=True):
    """Delete one job in any state. `JobNotFound` if it does not exist."""

    key: int
    reach: Reach = EVERYWHERE


class DeleteSlice(JobsCommand[int], frozen=True):
    """A slice of a sweep: delete those of `keys` that still match. Returns how many."""

    filter: Filter
    mark: SliceMark | None = None


class CancelJob(Command[JobRecord], frozen=True):
    """Cancel one job; one in flight only by `force`.

    The job is named by its `key`, or by the `lock` of the unique key that it owns. It remembers the
    sweep of the `mark`, as whose only slice this is stored then, so that it can be undone. Returns
    the changed job, `JobNotFound` or `NotCancellable`.
    """

    key: int | None = None
    lock: str | None = None
    force: bool = False
    reach: Reach = EVERYWHERE
    mark: SliceMark | None = None


class CancelSlice(JobsCommand[int], frozen=True):
    """A slice of a sweep: cancel those of `keys` that still match. Returns how many.

    The jobs remember the sweep of the `mark`.
    """

    filter: Filter
    force: bool
    mark: SliceMark | None = None


class RetainJob(Command[JobRecord], frozen=True):
    """Begin the retention of a finished job now. Returns the job, `JobNotFound` or `NotFinished`.

    Parts that `retention` leaves open are as for a job that finishes now.
    """

    key: int
    retention: Retention
    reach: Reach = EVERYWHERE


class Revive(Command[JobRecord], frozen=True):
    """Make a dead job ready again. Returns the changed job, or an error of those below.

    With `home` it goes to the queue in which it died first, also if it waits in a dead-letter
    queue. `defaults` are as for `Enqueue`. With `yields` it comes without its unique key if another
    job has that by now. The errors are `JobNotFound`, `NotDead`, `QueueOutOfReach`, `KeyTaken`,
    `QueueFull`, those of its budgets, and those of `zq.tick.entering`.
    """

    key: int
    reach: Reach = EVERYWHERE
    home: bool = False
    defaults: QueueSettings | None = None
    yields: bool = False


class ReviveSlice(JobsCommand[Entered], frozen=True):
    """A slice of a sweep: revive those of `keys` that still match.

    Jobs that came from another queue go back there if it lies within reach.
    """

    filter: Filter
    mark: SliceMark | None = None


class SetQueue(Command[QueueSettings], frozen=True):
    """Replace or patch a queue's settings. Returns the new settings.

    No job changes now: the settings apply to each job when they are next needed.
    """

    queue: str
    settings: QueueSettings | SettingsPatch


class SetAside(Command[None], frozen=True):
    """Set aside the unreadable rows among these rows of a table."""

    source: str
    keys: Sequence[Any]


class AcknowledgeDamage(Command[int], frozen=True):
    """Note that an operator knows of all that was set aside so far. Returns how many rows."""


class WriteNote(Command[None], frozen=True):
    """Store a text about the whole server, such as a schedule that was set while it ran."""

    name: str
    value: str


class Clear(Command[int], frozen=True):
    """Delete every job, and on request also the settings. Returns how many jobs there were."""

    settings: bool = False


class Claim(msgspec.Struct, frozen=True):
    """Hand out up to `limit` ready jobs of `queues` (None: all within reach) to the holders.

    `credits` lists holders with the number of jobs that each can take. Holders get jobs in turn.
    The first `idle` of these credits are for places without work: they are used up before the
    others, which are for jobs that wait at their worker. A holder may have a credit of each kind.
    `terms` has the requests of some of the holders. A holder whose terms name a claimant is 0 in
    the store, and itself in the result.
    """

    queues: tuple[str, ...] | None
    credits: Sequence[tuple[int, int]]
    reach: Reach = EVERYWHERE
    terms: Mapping[int, Terms] | None = None
    idle: int = 0
    leaves: bool = False
    """True if the jobs go to another server, so that it may take from queues that leave."""
    span: range | None = None
    """The keys of the jobs that may be taken, of those in no line. None stands for all."""
    lined: bool = True
    """False if jobs in lines are left to others."""
    limit: int = 0
    """The sum of the credits. The constructor computes it."""

    def __post_init__(self) -> None:
        limit = sum([credit for _, credit in self.credits])
        msgspec.structs.force_setattr(self, "limit", limit)


class Due(Enum):
    """The kinds of deadlines, in the order in which a tick attends to them."""

    LEASE = "a lease's deadline is over"
    EXPIRY = "a job that nobody took in time expires"
    PROMOTION = "a scheduled job becomes ready whose date has come"
    WAIT = "a scheduled job becomes ready that has waited for long enough"
    PURGE = "a finished job's retention is over"
    NAMES = "the name of a job is no longer recognised"
    TRIM = "the oldest records of a log are past their age"
    BUDGET = "a budget has enough tokens again for a job that waits"
    RECORDS = "records of a topic are past their age, or more than it may hold"
    WRITES = "a write to a topic is no longer recognised"
    PAUSE = "the pause of a queue ends"
    SHARE = "the rate of a fair key lets a job through again"


DATES = frozenset({Due.PROMOTION, Due.PAUSE})
"""The deadlines that are dates, by the wall clock. All others end durations, in steady time."""


Deadlines = Mapping[Due, int]
"""The next time of each kind, in milliseconds. A kind without a deadline is missing."""


class Tick(msgspec.Struct, frozen=True):
    """The work of one transaction: commands, deadlines, claims. Times are in milliseconds."""

    now: int
    """The wall time, for dates."""
    steady: int
    """The time for durations: see `zq.model.clock.SteadyClock`."""
    commands: Sequence[AnyCommand]
    claims: Sequence[Claim]
    due: frozenset[Due]
    durable: bool
    """True if the commit must be synced to the disk before anybody learns of it."""
    workers: Mapping[int, Holder] = {}
    """The workers, by the holders of their streams."""
    monotonic: float = 0.0
    """Seconds that never step back. Rates use them."""
    mint: Mint | None = None
    """Makes the keys of jobs that the tick itself brings."""
    mark: SteadyMark | None = None
    """The mark of the steady time, if it is to be stored."""


class TickResult(Effects):
    """The effects of a committed tick: everything that memory has to learn."""

    replies: list[object] = msgspec.field(default_factory=list)
    """One for each command, in order: its result, or the error to raise."""
    claimed: list[list[JobRecord]] = msgspec.field(default_factory=list)
    """One list for each claim: jobs with their new holders, in dispatch order."""
    deadlines: Deadlines | None = None
    """When something falls due next; None if the tick has not changed that."""
    found: Mapping[str, Any] = {}
    """The findings that rooms have asked for, such as the `next_firing` of an entry of cron, by the
    names of their statements."""
    openings: Mapping[str, float] = {}
    """Queues whose rate has limited a claim, and the monotonic time from which on they give
    more jobs."""
    durable: bool = False
    """True if the tick is on the disk before anybody hears of it."""
    flush_s: float = 0.0
    """Seconds from the commit of a durable tick until it was on the disk."""
