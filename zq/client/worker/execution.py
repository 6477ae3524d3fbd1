"""The life of a handler: it begins, has limited time, may be cancelled, cleans up, and ends.

Every execution is a task of its own, and owns the tasks that its handler starts. To end it, a
caller gives a reason and a time for the clean-up. A handler that goes on after that is cancelled
once more. If it goes on even then, it is a runaway: the log names it, and the worker leaves it
behind without waiting for it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary

from zq.client.formats import said_by
from zq.client.running import Reason, Running, current
from zq.client.values import MISSING
from zq.client.worker.handlers import Handler

log = logging.getLogger("zq.worker")

INSISTING_S = 0.1
"""After a second cancellation, a handler has this long until it counts as a runaway."""

Work = asyncio.Future[Any]
"""A task, or a call that a thread runs."""


class Execution:
    """One delivery under way, with everything that its handler has started.

    `on_over` is called once, when all of it has ended or was left behind.
    """

    __slots__ = (
        *("after", "error", "handler", "is_over", "reason", "result", "running", "seconds"),
        *("started_at", "_clean_up_s", "_context", "_runaway", "_main", "_on_over", "_over"),
        *("_side", "_timer"),
    )

    def __init__(
        self,
        running: Running[Any],
        handler: Handler,
        runaway: "RunawayWork",
        clean_up_s: float,
        context: Context,
        on_over: Callable[["Execution"], None],
    ) -> None:
        """`context` is the worker's. The steps after the handler run in it."""
        self.running = running
        self.handler = handler
        self.after: Execution | None = None
        """An earlier execution of the same job, which must be over before this one begins."""
        self.reason: Reason | None = None
        """The reason why the execution was ended early, if it was. The first reason counts."""
        self.seconds: float | None = None
        """The time that the handler may take from its start, in seconds."""
        self.started_at = 0.0
        """The time at which the handler began, in seconds since the epoch."""
        self.result: Any = MISSING
        self.error: BaseException | None = None
        self.is_over = False
        self._runaway = runaway
        self._clean_up_s = clean_up_s
        self._context = context
        self._on_over = on_over
        self._main: asyncio.Task[None] | None = None
        self._side: set[Work] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Event | None = None
        running.on_task = self._own

    def begin(self, work: Callable[["Execution"], Coroutine[Any, Any, None]]) -> None:
        """Run this in a task of its own, whose context is a copy."""
        loop = self.running.loop = asyncio.get_running_loop()
        self._main = asyncio.Task(work(self), loop=loop)
        self._main.add_done_callback(self._on_main_done, context=self._context)

    def limit(self, seconds: float | None) -> None:
        """Note that the handler begins now, and may take this long."""
        self.seconds = seconds
        if seconds is not None and self.reason is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self.end, "timeout", context=self._context)

    def unlimit(self) -> None:
        """Note that the handler has returned in time."""
        if self.reason is None and self._timer is not None:
            self._timer.cancel()

    def end(self, reason: Reason, clean_up_s: float | None = None) -> None:
        """Cancel it. It may clean up for this long; a second call can shorten that."""
        if self.is_over:
            return
        seconds = self._clean_up_s if clean_up_s is None else min(clean_up_s, self._clean_up_s)
        # If the handler has ended for another reason, the tasks that it left are cancelled already.
        works = self._main is not None and not self._main.done()
        first = works and self.reason is None
        if first or clean_up_s is not None:
            self._then(seconds, self._insist)
        if first and self._main is not None:
            self.reason = self.running.reason = reason
            self.running.end()
            self._main.cancel(reason)

    async def ended(self) -> None:
        """Wait until it is over."""
        if not self.is_over:
            if self._over is None:
                self._over = asyncio.Event()
            await self._over.wait()

    def leave_behind(self, work: Work, what: str) -> None:
        """Stop waiting for work that cannot be ended."""
        self._runaway.add(work, f"{what} of {self.handler.name}", self.running)

    # Its tasks

    def _own(self, task: Work) -> None:
        """The handler has started a task, which must end with the handler."""
        if task.done():
            return
        if self._side is None:
            self._side = set()
        self._side.add(task)
        task.add_done_callback(self._on_side_done, context=self._context)
        if self._main is not None and self._main.done():
            task.cancel()

    def _on_main_done(self, task: asyncio.Task[None]) -> None:
        if self.is_over:
            return
        if task.cancelled():
            self.error = self.error or asyncio.CancelledError()
        elif (error := task.exception()) is not None:
            self.error = error
        self.running.end()
        if not self._side:
            self._finish()
            return
        if self.reason is None:
            # The time limit was the handler's, which has ended. Its remaining tasks may clean up.
            self._then(self._clean_up_s, self._insist)
        for each in list(self._side):
            each.cancel()

    def _on_side_done(self, task: Work) -> None:
        assert self._side is not None
        self._side.discard(task)
        works = self._main is not None and not self._main.done()
        if works and not task.cancelled() and isinstance(task.exception(), TaskExited):
            self.error = task.exception()
            assert self._main is not None
            self._main.cancel()
        if not self._side and self._main is not None and self._main.done():
            self._finish()

    # Its end

    def _then(self, seconds: float, step: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, step, context=self._context)

    def _insist(self) -> None:
        """Cancel it once more: the time for the clean-up is over too."""
        self._then(INSISTING_S, self._give_up)
        for each in self._left():
            each.cancel()

    def _give_up(self) -> None:
        for each in self._left():
            what = "the coroutine" if each is self._main else "a task"
            self.leave_behind(each, what)
        self._finish()

    def _left(self) -> list[Work]:
        everything = [self._main, *(self._side or ())]
        return [each for each in everything if each is not None and not each.done()]

    def _finish(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._over is not None:
            self._over.set()
        # A cycle would be left to the garbage collector, one for each job.
        self._main = self.running.on_task = None
        self._on_over(self)


class RunawayWork:
    """Work that goes on although it was told to end. `on_full` is called if it is too much."""

    def __init__(self, most: int, on_full: Callable[[], None]) -> None:
        self._most = most
        self._on_full = on_full
        self._works: set[Work] = set()

    def __len__(self) -> int:
        return len(self._works)

    def add(self, work: Work, what: str, job: Running[Any]) -> None:
        """Log the name of the work, and log its end if it ends later."""
        label = f"{job.type} {job.id} ({job.queue})"
        log.error(
            "%s goes on although %s was told to end (%s); its result will be dropped",
            *(what, label, job.reason or "its handler has ended"),
        )
        self._works.add(work)
        work.add_done_callback(lambda _: self._ended(work, what, label))
        if len(self._works) == self._most:
            self._on_full()

    def _ended(self, work: Work, what: str, label: str) -> None:
        self._works.discard(work)
        if not work.cancelled():
            work.exception()  # nobody else reads the error
        log.info("%s, which went on after it was told to end, has ended: %s", what, label)


class TaskExited(Exception):
    """A task that a handler has started raised SystemExit or KeyboardInterrupt.

    asyncio would pass these on to the event loop, and end the worker. They end the job instead.
    """


async def _contained(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise TaskExited(f"a task of the handler raised {said_by(error)}") from error


class _Watch:
    """A task factory that tells an execution which tasks its handler starts."""

    def __init__(self, before: Any) -> None:
        self.before = before
        self.users = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Any, /, **options: Any) -> Work:
        context = options.get("context")
        running = current.get(None) if context is None else context.get(current)
        if running is not None and running.on_task is not None and asyncio.iscoroutine(work):
            work = _contained(work)
        if self.before is None:
            task: Work = asyncio.Task(work, loop=loop, **options)
        else:
            task = self.before(loop, work, **options)
        if running is not None and running.on_task is not None:
            running.on_task(task)
        return task


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()


@contextlib.contextmanager
def watching_tasks() -> Iterator[None]:
    """Watch the tasks that handlers start in this event loop, however many workers it has."""
    loop = asyncio.get_running_loop()
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = _Watch(loop.get_task_factory())
        loop.set_task_factory(watch)
    watch.users += 1
    try:
        yield
    finally:
        watch.users -= 1
        # A factory that other code has put around this one stays.
        factory: Any = loop.get_task_factory()
        if watch.users == 0 and factory is watch:
            loop.set_task_factory(watch.before)
            del _watches[loop]
