"""A handler at work. It gets a task only if it waits for anything but a tick.

Most requests wait for one tick and nothing else. A task for each of them would cost as much as what
they do: it is made, scheduled, woken, and its end passed on. Here the tick's reply lets the handler
go on directly. Whatever else a handler waits for, it waits for as part of a task, as usual.
"""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from zq.engine.inbox import Reply


class Handling:
    """Runs one handler from `begin` to its end, which `ended` hears of by its error, or None."""

    __slots__ = ("_coroutine", "_ended", "_waits_for")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        ended: Callable[[BaseException | None], object],
    ) -> None:
        self._coroutine = coroutine
        self._ended = ended
        self._waits_for: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """Run the handler as far as it comes. `ended` may be called before this returns."""
        self._step(None)

    def cancel(self) -> None:
        """End the handler where it waits. What it has submitted lives on."""
        if self._waits_for is not None:
            self._waits_for.cancel()

    async def wait(self) -> None:
        """Until the handler has ended."""
        while self._waits_for is not None:
            await asyncio.wait([self._waits_for])

    def _step(self, waited_for: asyncio.Future[Any] | None) -> None:
        self._waits_for = None
        try:
            awaited = self._coroutine.send(None)
        except StopIteration:
            self._ended(None)
        except (Exception, asyncio.CancelledError) as error:
            self._ended(error)
        else:
            self._wait(awaited)

    def _wait(self, awaited: Any) -> None:
        if isinstance(awaited, Reply):
            # What a task does with a future that it is to wait for.
            awaited._asyncio_future_blocking = False
            self._waits_for = awaited
            awaited.add_done_callback(self._step)
        else:
            task = asyncio.get_running_loop().create_task(_rest(self._coroutine, awaited))
            self._waits_for = task
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._waits_for = None
        self._ended(asyncio.CancelledError() if task.cancelled() else task.exception())


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """What is left of a coroutine that has begun and waits for `awaited`."""
    while True:
        try:
            if awaited is not None:  # a bare turn of the loop has passed by now
                yield awaited
        except BaseException as error:
            try:
                awaited = coroutine.throw(error)
            except StopIteration:
                return
        else:
            yield from coroutine  # it goes on where it is
            return
