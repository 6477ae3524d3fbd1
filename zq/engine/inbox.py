"""Where commands wait for the next tick: bounded, sorted by kind, each with someone who waits."""

import asyncio
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from zq.model.budget_commands import BindSlice
from zq.model.commands import (
    AnyCommand,
    CancelSlice,
    Command,
    DeleteSlice,
    Enqueue,
    Extend,
    Fail,
    PatchSlice,
    Release,
    Return,
    ReviveSlice,
    Succeed,
)
from zq.model.cron.crons import Fire, WriteCron
from zq.model.errors import InboxFull, OutcomeUnknown, ServiceUnavailable, ZqError

MOST_BYTES = 8 * 1024 * 1024
"""Payload bytes that one tick stores, but for a single request that is larger."""

ROW_BYTES = 1024
"""Bytes of results, or of payloads, that count as one more row against the bounds on a tick."""

FAIR_ROWS = 4
"""Rows of new jobs that a tick takes in any case for each row of anything else."""


SETTLEMENTS = frozenset((Succeed, Fail, Extend, Release))
"""What a tick takes first."""

TOUCHING = frozenset((Succeed, Extend, Release, Return))
"""What ends, lengthens or gives back leases of many jobs."""

MANY = frozenset(
    (
        *(Succeed, Extend, Release, Return, PatchSlice, DeleteSlice, CancelSlice, ReviveSlice),
        *(BindSlice, WriteCron, Fire),
    )
)
"""What is about many jobs. The types are asked for by themselves: to ask whether a Struct is an
instance costs ten times as much."""


_ROWS = attrgetter("rows")

R = TypeVar("R")


class PendingReply(asyncio.Future[R | ZqError]):
    """What a tick will say to a command. An error is a result too: see `result_of`."""


class PendingCommand(msgspec.Struct, frozen=True):
    """A command, what it weighs, and the future of its result."""

    command: AnyCommand
    rows: int
    future: PendingReply[Any]

    def reply(self, result: object) -> None:
        """Hand over the result, unless whoever waited has gone away."""
        if not self.future.done():
            self.future.set_result(result)


class Inbox:
    """Commands in the order in which a tick takes them: settlements, returns, changes, enqueues.

    Extending and releasing count as settlements.

    New jobs have one bound, everything else another, so that a flood of enqueues never keeps
    acknowledgements out. `awake` is set when something has arrived, or a tick is wanted otherwise.
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
        self._queues: dict[type, deque[PendingCommand]] = {
            Return: self._returns,
            **dict.fromkeys(SETTLEMENTS, self._settlements),
        }
        """Where what waits that is no change and brings no new jobs."""
        self.waiting_jobs = 0
        self.waiting_bytes = 0
        """Payload bytes of the jobs that wait."""
        self._waiting_new = 0
        self._waiting_rest = 0
        self._next_rows = max_jobs
        self._put_off = False
        self.when_taken: Callable[[], object] = _nobody_asks
        """Called when a tick has taken its commands."""

    def __bool__(self) -> bool:
        return bool(self._settlements or self._returns or self._changes or self._enqueues)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many (new jobs, rows of everything else) wait."""
        return self.waiting_jobs, self._waiting_rest

    @property
    def has_room(self) -> bool:
        """Whether the next tick would take more new jobs than wait, as far as one can tell."""
        few = self.waiting_jobs < self._max_jobs // 2 and self._waiting_new < self._next_rows
        return few or not self.waiting_jobs

    async def ask(self, command: Command[R]) -> R:
        """Have a command done by the next tick: its result.

        Raises its error, `InboxFull` or `ServiceUnavailable`. Whoever is cancelled here loses the
        answer, and the command is done all the same.
        """
        if self._is_closed:
            self.check_open()
        return result_of(await self.submit(command))

    def give_back(self, rest: Return) -> None:
        """Queue a return, which is never refused. After a failure the next start gives all back."""
        if not self._is_closed:
            self.submit(rest)

    def check_open(self) -> None:
        """Raise `ServiceUnavailable` where no tick will come any more."""
        if self._is_closed:
            raise ServiceUnavailable("the server is stopping after a failure of its disk")

    def check_room(self) -> None:
        """Raise `InboxFull` where new jobs may not wait, neither here nor elsewhere."""
        if self.waiting_jobs >= self._max_jobs:
            raise _full(self.waiting_jobs)

    def hold(self, jobs: int, size: int) -> None:
        """Count new jobs that wait elsewhere before they come here."""
        self.waiting_jobs += jobs
        self.waiting_bytes += size

    def let_go(self, jobs: int, size: int) -> None:
        """Count them no longer: they come now, or never."""
        if not self._is_closed:
            self.waiting_jobs -= jobs
            self.waiting_bytes -= size

    def submit(self, command: Command[R]) -> PendingReply[R]:
        """Queue a command. Raises `InboxFull`; a return is never refused."""
        kind = type(command)
        reply: PendingReply[R] = PendingReply(loop=self._loop)
        if type(command) is Enqueue:
            if self.waiting_jobs >= self._max_jobs:
                raise _full(self.waiting_jobs)
            rows = len(command.jobs) + command.size // ROW_BYTES
            self.waiting_jobs += len(command.jobs)
            self.waiting_bytes += command.size
            self._waiting_new += rows
            queue = self._enqueues
        else:
            if self._waiting_rest >= self._max_jobs and kind is not Return:
                raise _full(self._waiting_rest)
            rows = _rows_of(command) if kind in MANY else 1
            self._waiting_rest += rows
            queue = self._queues.get(kind, self._changes)
        queue.append(PendingCommand(command, rows, reply))
        self.awake.set()
        return reply

    def take(self, most_rows: int, beside: int) -> list[PendingCommand]:
        """The next tick's commands: at most about `most_rows` rows, at least one command.

        Where there is anything else, new jobs beyond `beside` rows may have to wait for the tick
        after: whoever acknowledges a job among bulks of new ones waits for one large tick, not for
        two.

        A job gets at most one settlement or return a tick; a second one waits for the next, so
        that the statements of a tick never meet a job twice.
        """
        taken: list[PendingCommand] = []
        if self._settlements or self._returns or self._changes:
            taken = self._take_rest(most_rows)
        rows = sum(map(_ROWS, taken))
        self._waiting_rest -= rows
        room = most_rows - rows
        fair = max(rows * FAIR_ROWS, beside) if rows else room
        self._put_off = not self._put_off and fair < min(room, self._waiting_new)
        if self._enqueues:
            taken += self._take_enqueues(fair if self._put_off else room, bool(taken))
        self._next_rows = most_rows
        self.when_taken()
        return taken

    def close(self) -> None:
        """The disk has failed: tell everybody who waits, and take nothing more."""
        self._is_closed = True
        for queue in (self._settlements, self._returns, self._changes, self._enqueues):
            for request in queue:
                request.reply(OutcomeUnknown("the server is stopping after a failure of its disk"))
            queue.clear()
        self.waiting_jobs = self.waiting_bytes = self._waiting_new = self._waiting_rest = 0
        self.when_taken()

    def _take_rest(self, most_rows: int) -> list[PendingCommand]:
        taken: list[PendingCommand] = []
        touched: set[int] = set()
        rows = 0
        for queue in (self._settlements, self._returns, self._changes):
            while queue and rows < most_rows:
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

    def _take_enqueues(self, rows: int, some: bool) -> list[PendingCommand]:
        taken: list[PendingCommand] = []
        size = 0
        while self._enqueues:
            command: Any = self._enqueues[0].command
            weight = self._enqueues[0].rows
            fits = weight <= rows and size + command.size <= MOST_BYTES
            if not fits and (taken or some):
                break
            rows -= weight
            size += command.size
            self._waiting_new -= weight
            self.waiting_jobs -= len(command.jobs)
            self.waiting_bytes -= command.size
            taken.append(self._enqueues.popleft())
        return taken


def result_of(reply: R | ZqError) -> R:
    """A command's result; raises where the result is an error."""
    if isinstance(reply, ZqError):
        try:
            raise reply
        finally:
            # The error knows this frame by its traceback. If the frame knew the error, the two, and
            # the whole request above them, would stay in memory until the next garbage collection.
            del reply
    return reply


def _nobody_asks() -> None:
    """Where nothing waits for the inbox."""


def _rows_of(command: Any) -> int:
    """What a command about many jobs weighs in a tick: a row each, more where they are large."""
    if type(command) is WriteCron:
        return 1 + len(command.entries)
    if type(command) is Fire:
        return 2 * len(command.firings)
    rows = len(command.keys)
    return rows + command.size // ROW_BYTES if type(command) is Succeed else rows


def _full(waiting: int) -> InboxFull:
    return InboxFull(
        f"{waiting} changes wait for the disk already: try again shortly, or raise --max-inbox-jobs"
    )
