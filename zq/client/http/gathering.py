"""Single enqueues of many callers: those of one turn of the event loop share a request.

The first caller of a turn is served at once, alone. Other callers in the same turn go together in
the next turn. This happens when the event loop is busy, or when one answer or one commit of the
server wakes many callers. Nobody waits for other callers, or for their answers. A batch is only an
attempt: a caller whose job it did not store sends it alone, and gets the answer that it would have
had without the others.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextvars import Context
from typing import Any, NamedTuple, TypeVar

from zq.client.errors import BackendError, ZqError, cut_of
from zq.client.values import StoredJob, Submission

MOST_JOBS = 100
MOST_BYTES = 2**18
"""The limits of a batch. A larger job goes alone, and delays no other."""


class Encoded(NamedTuple):
    """A job in the form in which it is sent. A `safe` one may be sent twice."""

    text: bytes
    safe: bool


Fate = StoredJob | ZqError | None
"""The fate of a job of a batch. None: it is not stored, and its caller must send it."""

Alone = Callable[[Encoded], Awaitable[StoredJob]]
Together = Callable[[Sequence[Encoded]], Awaitable[Sequence[Fate]]]

_Waiting = tuple[Encoded, asyncio.Future[Fate]]


class Gatherer:
    """Gathers the jobs of several callers into one request. In another event loop it starts
    over."""

    def __init__(self, alone: Alone, together: Together) -> None:
        """`together` tries once, and returns the fate of each job. It raises nothing."""
        self._alone = alone
        self._together = together
        self._turn: _Turn | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_alone": self._alone, "_together": self._together, "_turn": None}

    async def store(self, job: Encoded) -> StoredJob:
        """Store a job, alone or with others. Raises the errors of `alone`."""
        fate = None
        if len(job.text) <= MOST_BYTES:
            turn = self._here()
            if turn.has_begun:
                fate = await turn.wait(job)
            else:
                turn.begin()
        if fate is None:
            return await self._alone(job)
        if isinstance(fate, ZqError):
            raise fate
        return fate

    def _here(self) -> "_Turn":
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn.loop is not loop:
            self._turn = _Turn(loop, self._together)
        return self._turn


class _Turn:
    """The state of an event loop: whether a request is under way, and who has come since."""

    def __init__(self, loop: asyncio.AbstractEventLoop, together: Together) -> None:
        self.loop = loop
        self.has_begun = False
        self._together = together
        self._waiting: list[_Waiting] = []
        self._sending: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Gather the callers that come from now until the turn ends."""
        self.has_begun = True
        # The batch must not have the context of its first caller, such as its trace.
        self.loop.call_soon(self._end, context=Context())

    def wait(self, job: Encoded) -> asyncio.Future[Fate]:
        """The fate of a job. A caller that gives up before it is sent is left out."""
        told: asyncio.Future[Fate] = self.loop.create_future()
        self._waiting.append((job, told))
        return told

    def _end(self) -> None:
        self.has_begun = False
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for batch in _batches([each for each in waiting if not each[1].done()]):
                sending = self.loop.create_task(self._send(batch))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        try:
            fates = await self._together([job for job, _ in batch])
            for (_, told), fate in zip(batch, fates, strict=True):
                if not told.done():
                    told.set_result(fate)
        except Exception as error:
            for _, told in batch:
                if not told.done():
                    told.set_exception(error)
        finally:
            for _, told in batch:
                told.cancel()  # without effect, unless the event loop ends


def _batches(waiting: Sequence[_Waiting]) -> Iterator[Sequence[_Waiting]]:
    """Distribute the callers among batches within the limits."""
    batch: list[_Waiting] = []
    size = 0
    for each in waiting:
        size += len(each[0].text)
        if batch and (len(batch) == MOST_JOBS or size > MOST_BYTES):
            yield batch
            batch, size = [], len(each[0].text)
        batch.append(each)
    if batch:
        yield batch


Batch = Sequence[Submission]
Stored = AsyncGenerator[list[StoredJob], None]
Enqueue = Callable[[Batch], Awaitable[list[StoredJob]]]

R = TypeVar("R")
A = TypeVar("A")


async def one_by_one(enqueue: Enqueue, batches: Iterable[Batch]) -> Stored:
    """The stored jobs of each batch. A batch that is too large for the server is split."""
    for batch in batches:
        try:
            stored = await enqueue(batch)
        except BackendError as error:
            async for part in _in_halves(enqueue, batch, error):
                yield part
        else:
            yield stored


async def overlapped(
    enqueue: Enqueue,
    batches: Iterable[Batch],
    prepare: Callable[[Batch], R],
    send: Callable[[R], Coroutine[Any, Any, A]],
    read: Callable[[A], list[StoredJob]],
) -> Stored:
    """Like `one_by_one`, but a request is prepared, and an answer read, while the server works.

    A request is sent once the one before it is answered. So their order is that of the batches, and
    nothing after a refused batch is stored.
    """
    left = iter(batches)
    under_way: tuple[Batch, asyncio.Task[A]] | None = None
    try:
        while True:
            batch, request, trouble = _next(left, prepare)
            answers: list[A] = []
            if under_way is not None:
                sent, sending = under_way
                under_way = None
                try:
                    answers.append(await sending)
                except BackendError as error:
                    async for part in _in_halves(enqueue, sent, error):
                        yield part
            if request is not None:
                assert batch is not None
                under_way = batch, asyncio.create_task(send(request))
                await asyncio.sleep(0)  # after one turn of the event loop the request is sent
            for answer in answers:
                yield read(answer)
            if trouble is not None:
                raise trouble
            if under_way is None:
                return
    finally:
        if under_way is not None:
            under_way[1].cancel()


def _next(
    left: Iterator[Batch], prepare: Callable[[Batch], R]
) -> tuple[Batch | None, R | None, Exception | None]:
    """The next batch with its request; None at the end; or the error that ends the jobs."""
    try:
        batch = next(left, None)
        return batch, None if batch is None else prepare(batch), None
    except Exception as error:
        return None, None, error


_HALVED = ("too_large", "bulk_too_large", "too_many_items", "too_many_values", "too_many_compared")
"""The codes of errors by which fewer jobs would pass."""


async def _in_halves(enqueue: Enqueue, batch: Batch, error: BackendError) -> Stored:
    """Store the refused jobs in smaller requests, if that can help. Raises the error if not."""
    if error.code not in _HALVED or len(batch) == 1:
        raise error
    cut = cut_of(error, len(batch))
    async for part in one_by_one(enqueue, (batch[:cut], batch[cut:])):
        yield part
