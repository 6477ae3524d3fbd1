"""Many jobs, one request after the other. Each request is stored completely or not at all."""

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
from typing import Any, TypeVar

from zq.client.errors import BackendError, cut_of
from zq.client.values import StoredJob, Submission

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
