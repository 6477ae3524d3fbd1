"""Runs a handler without a task, as long as it waits for ticks only.

Most requests wait for one tick and nothing else. A task for each of them would cost as much as
their work, because the event loop makes it, schedules it, wakes it and passes its end on. Here the
tick's reply resumes the handler directly.
"""

import asyncio
import inspect
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Handling:
    """Runs one handler from `begin` to its end. `ended` is called with its error, or with None.

    A handler that waits for one of the `replies` is resumed by it directly. For anything else it
    waits in a task, as usual.
    """

    __slots__ = ("_cancelled", "_coroutine", "_ended", "_replies", "_waits_for")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        ended: Callable[[BaseException | None], object],
        replies: type[asyncio.Future[Any]],
    ) -> None:
        self._coroutine = coroutine
        self._ended = ended
        self._replies = replies
        self._waits_for: asyncio.Future[Any] | None = None
        self._cancelled = False
        """Set if the handler is to end when it is resumed."""

    def begin(self) -> None:
        """Run the handler until it has to wait. `ended` may be called before this returns."""
        self._step(None)

    def cancel(self) -> None:
        """End the handler where it waits. The commands that it has submitted still run."""
        if self._waits_for is not None and not self._waits_for.cancel():
            self._cancelled = True  # The reply has come, and is about to resume the handler.

    async def wait(self) -> None:
        """Wait until the handler has ended."""
        while self._waits_for is not None:
            await asyncio.wait([self._waits_for])

    def _step(self, waited_for: asyncio.Future[Any] | None) -> None:
        self._waits_for = None
        try:
            if self._cancelled:
                self._cancelled = False
                awaited = self._coroutine.throw(asyncio.CancelledError())
            else:
                awaited = self._coroutine.send(None)
        except StopIteration:
            self._ended(None)
        except (Exception, asyncio.CancelledError) as error:
            self._ended(error)
        else:
            self._wait(awaited)

    def _wait(self, awaited: Any) -> None:
        if isinstance(awaited, self._replies):
            # A task marks a future that it waits for in the same way.
            awaited._asyncio_future_blocking = False
            self._waits_for = awaited
            awaited.add_done_callback(self._step)
        else:
            task = asyncio.get_running_loop().create_task(_resumed(self._coroutine, awaited))
            self._waits_for = task
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if inspect.getcoroutinestate(self._coroutine) == inspect.CORO_SUSPENDED:
            # The task was cancelled before its first turn, so the handler does not know of it.
            self._cancelled = True
            self._step(task)
            return
        self._waits_for = None
        self._ended(asyncio.CancelledError() if task.cancelled() else task.exception())


async def _resumed(coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
    # Python 3.12 makes tasks of nothing but coroutine functions.
    await _rest(coroutine, awaited)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """The rest of a coroutine that has begun and waits for `awaited`."""
    while True:
        try:
            if awaited is not None:  # One turn of the loop has passed by now.
                yield awaited
        except BaseException as error:
            try:
                awaited = coroutine.throw(error)
            except StopIteration:
                return
        else:
            yield from coroutine  # The coroutine goes on at the same place.
            return
