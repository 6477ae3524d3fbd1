"""Where commands wait for the next tick: bounded, sorted by kind, each with someone who waits."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from zq.model.commands import (
    CancelSlice,
    ChangeSlice,
    Command,
    DeleteSlice,
    Enqueue,
    Extend,
    Fail,
    Release,
    Return,
    ReviveSlice,
    Succeed,
)
from zq.model.errors import InboxFull, ZqError

MOST_BYTES = 8 * 1024 * 1024
"""Payload bytes that one tick stores, but for a single request that is larger."""

ROW_BYTES = 1024
"""Bytes of results, or of payloads, that count as one more row against the bounds on a tick."""

FAIR_ROWS = 4
"""Rows of new jobs that a tick takes in any case for each row of anything else."""


SETTLEMENTS = frozenset((Succeed, Fail, Extend, Release))
"""What a tick takes first."""

MANY = Extend | Release | Return | ChangeSlice | DeleteSlice | CancelSlice | ReviveSlice
"""What is about many jobs."""


class Reply(asyncio.Future[object]):
    """What a tick will say to a command. An error is a result too: see `result_of`."""


class Request(NamedTuple):
    """A command, what it weighs, and the future of its result."""

    command: Command
    rows: int
    future: Reply

    def reply(self, result: object) -> None:
        """Hand over the result, unless whoever waited has gone away."""
        if not self.future.done():
            self.future.set_result(result)


class Inbox:
    """Commands in the order in which a tick takes them: settlements, returns, changes, enqueues.

    Extending and releasing count as settlements.

    New jobs have one bound, everything else another, so that a flood of enqueues never keeps
    acknowledgements out. `wake` is called when something arrives.
    """

    def __init__(self, max_jobs: int, wake: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_jobs = max_jobs
        self._wake = wake
        self._settlements: deque[Request] = deque()
        self._returns: deque[Request] = deque()
        self._changes: deque[Request] = deque()
        self._enqueues: deque[Request] = deque()
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

    def submit(self, command: Command) -> Reply:
        """Queue a command. Raises `InboxFull`; a return is never refused."""
        rows = _rows_of(command)
        if isinstance(command, Enqueue):
            self._check(self.waiting_jobs)
            self.waiting_jobs += len(command.jobs)
            self.waiting_bytes += command.size
            self._waiting_new += rows
        else:
            if not isinstance(command, Return):
                self._check(self._waiting_rest)
            self._waiting_rest += rows
        request = Request(command, rows, Reply(loop=self._loop))
        self._queue(command).append(request)
        self._wake()
        return request.future

    def take(self, most_rows: int, beside: int) -> list[Request]:
        """The next tick's commands: at most about `most_rows` rows, at least one command.

        Where there is anything else, new jobs beyond `beside` rows may have to wait for the tick
        after: whoever acknowledges a job among bulks of new ones waits for one large tick, not for
        two.

        A job gets at most one settlement or return a tick; a second one waits for the next, so
        that the statements of a tick never meet a job twice.
        """
        taken: list[Request] = []
        touched: set[int] = set()
        rows = 0
        for queue in (self._settlements, self._returns, self._changes):
            while queue and rows < most_rows:
                command = queue[0].command
                if isinstance(command, Succeed | Extend | Release | Return):
                    if not touched.isdisjoint(command.keys):
                        break
                    touched.update(command.keys)
                elif isinstance(command, Fail):
                    if command.key in touched:
                        break
                    touched.add(command.key)
                rows += queue[0].rows
                taken.append(queue.popleft())
        self._waiting_rest -= rows
        room = most_rows - rows
        fair = max(rows * FAIR_ROWS, beside) if rows else room
        self._put_off = not self._put_off and fair < min(room, self._waiting_new)
        taken += self._take_enqueues(fair if self._put_off else room, bool(taken))
        self._next_rows = most_rows
        self.when_taken()
        return taken

    def drain(self) -> list[Request]:
        """Everything that waits, in one go."""
        queues = (self._settlements, self._returns, self._changes, self._enqueues)
        requests = [request for queue in queues for request in queue]
        for queue in queues:
            queue.clear()
        self.waiting_jobs = self.waiting_bytes = self._waiting_new = self._waiting_rest = 0
        self.when_taken()
        return requests

    def _take_enqueues(self, rows: int, some: bool) -> list[Request]:
        taken: list[Request] = []
        size = 0
        while self._enqueues:
            command = self._enqueues[0].command
            assert isinstance(command, Enqueue)
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

    def _check(self, waiting: int) -> None:
        if waiting >= self._max_jobs:
            raise InboxFull(
                f"{waiting} changes wait for the disk already: try again shortly, or raise"
                " --max-inbox-jobs"
            )

    def _queue(self, command: Command) -> deque[Request]:
        # By the type itself: to ask whether a Struct is an instance costs ten times as much.
        kind = type(command)
        if kind is Enqueue:
            return self._enqueues
        if kind in SETTLEMENTS:
            return self._settlements
        return self._returns if kind is Return else self._changes


def result_of(reply: object) -> object:
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


def _rows_of(command: Command) -> int:
    """What a command weighs in a tick: the rows that it is about, more where they are large."""
    if isinstance(command, Enqueue):
        return len(command.jobs) + command.size // ROW_BYTES
    if isinstance(command, Succeed):
        return len(command.keys) + command.size // ROW_BYTES
    return len(command.keys) if isinstance(command, MANY) else 1


def commands(requests: Sequence[Request]) -> list[Command]:
    """The commands of requests."""
    return [request.command for request in requests]
