"""The commands that wait for the next tick: limited, sorted by kind, each with its reply.

New jobs come in if the disk has room for them, which `Admission` knows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, Protocol, TypeVar

import msgspec

from zq.model.clock import Clock
from zq.model.commands import (
    AnyCommand,
    Command,
    Extend,
    Fail,
    Release,
    Return,
    Succeed,
)
from zq.model.errors import BulkTooLarge, DiskFailed, InboxFull, StorageFull, WalFull, ZqError
from zq.store.api import SCARCE, Store

MOST_BYTES = 8 * 1024 * 1024
"""The most bytes of payloads that a tick stores, unless a single request is larger."""

FAIR_ROWS = 4
"""The rows of new jobs that a tick takes at least, for each row of any other command."""


ROW_BYTES = 1024
"""How many bytes of results or payloads count as one more row against the limits of a tick."""


SETTLEMENTS = frozenset((Succeed, Fail, Extend, Release))
"""The kinds that a tick takes first."""

TOUCHING = frozenset((Succeed, Extend, Release, Return))
"""The kinds that end, lengthen or return leases of many jobs. Types are compared directly, since
`isinstance` costs ten times as much for a Struct."""


SPACE_CHECK_S = 1.0
"""While jobs come, the disk is checked at least this often, since others fill it too."""

JOB_ROW_BYTES = 512
"""The approximate size of a job besides its payload, in the table and its indexes."""

ENOUGH = 1 << 62
"""The free bytes of a store that does not know its disk."""

COPIES = 2
"""Each byte is written to the log and, by a checkpoint, to the database."""

_ROWS = attrgetter("rows")

R = TypeVar("R")


class Followed:
    """A request of which somebody wants to know whether it has changed anything."""

    has_changed = False
    """True once a command that it asked for is done, or a part of one."""

    def note(self, reply: R | ZqError) -> R | ZqError:
        """Note the reply to a command, and return it."""
        self.has_changed |= not isinstance(reply, ZqError) or reply.is_partial
        return reply


FOLLOWED: ContextVar[Followed | None] = ContextVar("followed", default=None)
"""The request that is served, and whatever tasks it begins."""


class PendingReply(asyncio.Future[R | ZqError]):
    """The result of a command. An error is a result too: see `result_of`."""


class PendingCommand(msgspec.Struct, frozen=True):
    """A command, its weight, how many items it is about, and the future of its result."""

    command: AnyCommand
    rows: int
    count: int
    future: PendingReply[Any]

    def reply(self, result: object) -> None:
        """Set the result, unless nobody waits any more."""
        if not self.future.done():
            self.future.set_result(result)


class Inbox:
    """Commands in the order in which a tick takes them: settlements, returns, changes, enqueues.

    Extending and releasing count as settlements.

    New jobs and records have one limit, all other commands another, so a flood of them never keeps
    acknowledgements out. `awake` is set when a command has arrived or a tick is wanted.
    """

    def __init__(self, max_jobs: int) -> None:
        self.awake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._max_jobs = max_jobs
        self._is_closed = False
        self._settlements: deque[PendingCommand] = deque()
        self._returns: deque[PendingCommand] = deque()
        self._changes: deque[PendingCommand] = deque()
        self._enqueues: deque[PendingCommand] = deque()
        self.commands = 0
        """How many of them wait."""
        self._queues: dict[type, deque[PendingCommand]] = {
            Return: self._returns,
            **dict.fromkeys(SETTLEMENTS, self._settlements),
        }
        """The line of the other commands: neither changes nor new jobs."""
        self.waiting_jobs = 0
        self.waiting_bytes = 0
        """The payload bytes of the jobs that wait."""
        self._waiting_new = 0
        self._waiting_rest = 0
        self._next_rows = max_jobs
        self._put_off = False
        self.when_taken: Callable[[], object] | None = None
        """Called when a tick has taken its commands."""

    @property
    def waiting(self) -> tuple[int, int]:
        """How many new jobs wait, and how many rows of everything else."""
        return self.waiting_jobs, self._waiting_rest

    @property
    def has_room(self) -> bool:
        """True if the next tick would probably take more new jobs than wait."""
        few = self.waiting_jobs < self._max_jobs // 2 and self._waiting_new < self._next_rows
        return few or not self.waiting_jobs

    async def ask(self, command: Command[R]) -> R:
        """Have the next tick do a command. Return its result.

        Raises the command's error, `InboxFull` or `DiskFailed`. If the caller is cancelled,
        only the answer is lost: the command is done.
        """
        if self._is_closed:
            self.check_open()
        request = FOLLOWED.get()
        if request is None:
            return result_of(await self.submit(command))
        return result_of(request.note(await self.submit(command)))

    def give_back(self, rest: Return) -> None:
        """Queue a return. It is never refused. After a failure the next start returns all jobs."""
        if not self._is_closed:
            self.submit(rest)

    def check_open(self) -> None:
        """Raise `DiskFailed` if no tick will come any more."""
        if self._is_closed:
            raise DiskFailed

    def check_room(self) -> None:
        """Raise `InboxFull` if too many new jobs wait, here and elsewhere."""
        if self.waiting_jobs >= self._max_jobs:
            raise _full(self.waiting_jobs)

    def hold(self, jobs: int, size: int) -> None:
        """Reserve room for new jobs that are still planned elsewhere, such as those of batches."""
        self.waiting_jobs += jobs
        self.waiting_bytes += size

    def let_go(self, jobs: int, size: int) -> None:
        """Count them no longer: they come now, or never."""
        if not self._is_closed:
            self.waiting_jobs -= jobs
            self.waiting_bytes -= size

    def submit(self, command: Command[R]) -> PendingReply[R]:
        """Queue a command. Raises `InboxFull`, unless it follows what is done."""
        kind = type(command)
        reply: PendingReply[R] = PendingReply(loop=self._loop)
        about: Any = command
        rows = count = 1
        if kind.items is not None:
            count = len(getattr(command, kind.items))
            rows = count * kind.rows_each or 1
            if kind.has_size:
                rows += about.size // ROW_BYTES
        if kind.comes_last:
            if self.waiting_jobs >= self._max_jobs:
                raise _full(self.waiting_jobs)
            self.waiting_jobs += count
            self.waiting_bytes += about.size
            self._waiting_new += rows
            queue = self._enqueues
        else:
            if self._waiting_rest >= self._max_jobs and not kind.follows:
                raise _full(self._waiting_rest)
            self._waiting_rest += rows
            queue = self._queues.get(kind, self._changes)
        queue.append(PendingCommand(command, rows, count, reply))
        self.commands += 1
        self.awake.set()
        return reply

    def take(self, most_rows: int, beside: int) -> list[PendingCommand]:
        """The next tick's commands: at most about `most_rows` rows, and at least one command.

        If there are other commands, new jobs beyond `beside` rows may have to wait for the tick
        after, which takes the first of them however large it is. Thus an acknowledgement among bulk
        enqueues waits for one large tick, not for two, and a bulk never waits for a tick without
        acknowledgements.

        A job gets at most one settlement or return a tick; a second one waits for the next, so
        that the statements of a tick never meet a job twice.
        """
        taken: list[PendingCommand] = []
        room, in_turn = most_rows, self._put_off
        self._put_off = False
        if self._settlements or self._returns or self._changes:
            taken = self._take_rest(most_rows)
            rows = sum(map(_ROWS, taken))
            self._waiting_rest -= rows
            room -= rows
            fair = max(rows * FAIR_ROWS, beside)
            if not in_turn and fair < min(room, self._waiting_new):
                room, self._put_off = fair, True
        if self._enqueues:
            new = self._take_enqueues(room, in_turn or not taken)
            self._put_off = self._put_off or not new
            taken += new
        self.commands -= len(taken)
        self._next_rows = most_rows
        if self.when_taken is not None:
            self.when_taken()
        return taken

    def close(self) -> None:
        """The disk has failed: answer everybody with an error, and accept nothing more."""
        self._is_closed = True
        for queue in (self._settlements, self._returns, self._changes, self._enqueues):
            for request in queue:
                request.reply(DiskFailed())
            queue.clear()
        self.waiting_jobs = self.waiting_bytes = self._waiting_new = self._waiting_rest = 0
        self.commands = 0
        if self.when_taken is not None:
            self.when_taken()

    def _take_rest(self, most_rows: int) -> list[PendingCommand]:
        taken: list[PendingCommand] = []
        touched: set[int] = set()
        rows = 0
        for queue in (self._settlements, self._returns, self._changes):
            # One of each kind, so that a flood of acknowledgements keeps no change out.
            most = max(most_rows, rows + 1)
            while queue and rows < most:
                command: Any = queue[0].command
                if type(command) in TOUCHING:
                    if not touched.isdisjoint(command.keys):
                        break
                    touched.update(command.keys)
                elif type(command) is Fail:
                    if command.key in touched:
                        break
                    touched.add(command.key)
                rows += queue[0].rows
                taken.append(queue.popleft())
        return taken

    def _take_enqueues(self, rows: int, in_turn: bool) -> list[PendingCommand]:
        """The first commands with so many rows. If it is their turn, at least one."""
        taken: list[PendingCommand] = []
        queue, size = self._enqueues, 0
        while queue:
            first = queue[0]
            command: Any = first.command
            fits = first.rows <= rows and size + command.size <= MOST_BYTES
            if not fits and (taken or not in_turn):
                break
            rows -= first.rows
            size += command.size
            self._waiting_new -= first.rows
            self.waiting_jobs -= first.count
            taken.append(queue.popleft())
        self.waiting_bytes -= size
        return taken


def result_of(reply: R | ZqError) -> R:
    """The result of a command. If it is an error, raise it."""
    if isinstance(reply, ZqError):
        try:
            raise reply
        finally:
            # The traceback of the error refers to this frame. If the frame referred to the error
            # too, the whole request would stay in memory until the next garbage collection.
            del reply
    return reply


def _full(waiting: int) -> InboxFull:
    return InboxFull(
        f"{waiting} changes wait for the disk already: try again shortly, or raise --max-inbox-jobs"
    )


class PayloadCheck(Protocol):
    """A check that may refuse new jobs before they are stored."""

    @property
    def in_use(self) -> object:
        """True, or not empty, while some payloads have to be checked."""

    async def require(self, payloads: Sequence[tuple[str, str]]) -> None:
        """Raise an error unless each payload, given with its queue, may be stored."""


class Admission:
    """Decides whether the disk has room for new jobs. Acknowledgements are always accepted.

    Between two checks of the disk, admitted bytes are counted, so that a burst cannot fill the disk
    unnoticed. New jobs that come together are stored in one transaction, for which all others wait:
    so they are bounded by `max_bytes`.
    """

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, disk_reserve: int, max_bytes: int
    ) -> None:
        self.checks: list[PayloadCheck] = []
        """The checks of new payloads."""
        self._max_bytes = max_bytes
        self._store = store
        self._clock = clock
        self._inbox = inbox
        self._disk_reserve = disk_reserve
        self._looked = float("-inf")
        self._left = 0
        self.when_scarce: Callable[[], object] = bool
        """Called when a look at the disk finds that space has become scarce, and, at most once in
        `SPACE_CHECK_S`, when it finds no room for new jobs."""
        self._is_scarce = False
        self._full = float("-inf")

    def admit(self, jobs: int, payload_bytes: int) -> None:
        """Count jobs that will be stored together.

        Raises `BulkTooLarge`, and `StorageFull` or `WalFull` if there is no room.
        """
        if payload_bytes > self._max_bytes and jobs > 1:
            raise BulkTooLarge(payload_bytes, self._max_bytes)
        cost = _cost(jobs, payload_bytes)
        looked_lately = self._clock.monotonic() - self._looked < SPACE_CHECK_S
        if cost > self._left or not looked_lately or self._store.wal_is_over:
            # A frame with its own error would keep the error, and the request's body, in memory.
            result_of(self.refusal(cost))
        self._left -= cost

    def refusal(self, cost: int = 0) -> ZqError | None:
        """The error for new jobs with this many bytes; None if there is room."""
        if not self._has_space(cost):
            if not self._disk_reserve:
                return StorageFull(
                    "there is no room for them where the data lies: new jobs are refused. With"
                    " --disk-reserve 0 none is kept for deliveries and acknowledgements: if they"
                    " stop too, free some space"
                )
            return StorageFull(
                f"less than {self._disk_reserve} bytes would be free where the data lies: new jobs"
                " are refused, acknowledgements still pass. Free some space, or lower"
                " --disk-reserve"
            )
        if self._store.wal_is_over:
            return WalFull(
                "the write-ahead log is over --max-wal, for another program that reads the database"
                " keeps it from being emptied: new jobs are refused until it ends,"
                " acknowledgements still pass"
            )
        return None

    def _has_space(self, cost: int) -> bool:
        now = self._clock.monotonic()
        if cost > self._left or now - self._looked >= SPACE_CHECK_S:
            self._looked = now
            # Admitted jobs will still be written, even if no more are admitted.
            owed = _cost(self._inbox.waiting_jobs, self._inbox.waiting_bytes)
            owed += self._store.uncopied_bytes
            free = self._store.free_bytes()
            self._left = ENOUGH if free is None else free - self._disk_reserve - owed
            was_scarce = self._is_scarce
            self._is_scarce = free is not None and free < SCARCE * self._disk_reserve
            is_full = self._left < cost and now - self._full >= SPACE_CHECK_S
            if is_full:
                self._full = now
            if is_full or (self._is_scarce and not was_scarce):
                self.when_scarce()
        return self._left >= cost


def _cost(jobs: int, payload_bytes: int) -> int:
    return COPIES * (payload_bytes + jobs * JOB_ROW_BYTES)
