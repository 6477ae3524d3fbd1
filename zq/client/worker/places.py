"""Places for ordinary functions: threads or processes, each with one job at a time.

Programs under test lend their own thread. A test has a database connection that belongs to its
thread, with a transaction that nobody else sees. So the worker's event loop runs in another thread,
and the thread that waits for the worker runs its functions.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeVar

from zq.client.worker.execution import Execution
from zq.client.worker.handlers import Handler

P = ParamSpec("P")
T = TypeVar("T")

calling: ContextVar["CallingThread | None"] = ContextVar("calling", default=None)
"""The thread that waits for this event loop, where it runs the loop's ordinary functions."""


class CallingThread(Executor):
    """Runs functions in the thread that made it, while that thread waits by `run` or `wait_for`."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()

    @property
    def is_here(self) -> bool:
        """True if the present thread is the one that made it."""
        return threading.get_ident() == self._thread

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function as soon as the thread waits."""
        done: Future[T] = Future()
        self._calls.put(lambda: _run(done, lambda: function(*args, **kwargs)))
        return done

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function in an event loop of another thread, until it ends.

        Raises what it raises.
        """

        async def live() -> T:
            calling.set(self)
            async with self._for_asgiref():
                return await work()

        return self.wait_for(lambda: asyncio.run(live()))

    def _for_asgiref(self) -> AbstractAsyncContextManager[object]:
        """Within this, coroutines that ask asgiref for the thread of the database get this one.

        Django's do so.
        """
        if "asgiref.sync" not in sys.modules:
            return nullcontext()
        from asgiref.sync import ThreadSensitiveContext

        try:
            lent: AbstractAsyncContextManager[object] = ThreadSensitiveContext(executor=self)
        except TypeError:  # asgiref before 3.13 makes threads of its own
            return nullcontext()
        return lent

    def wait_for(self, function: Callable[[], T]) -> T:
        """Run a blocking function in another thread, until it ends."""
        done: Future[T] = Future()
        done.add_done_callback(lambda _: self._calls.put(lambda: None))
        threading.Thread(target=_run, args=(done, function), name="zq-calling").start()
        while not done.done():
            self._calls.get()()
        return done.result()


def _run(done: "Future[T]", function: Callable[[], T]) -> None:
    try:
        result = function()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(result)


Call = Callable[[], Any]
Came = tuple[Any, BaseException | None]
"""The outcome of a call: its result, or the error that it raised."""


class Place(Protocol):
    """A place where one function runs at a time."""

    is_elsewhere: bool
    """True if it is another process, which has an app of its own."""

    async def prepare(self, handler: Handler) -> None:
        """Prepare for a handler, before its time begins."""

    async def run(self, execution: Execution) -> Any:
        """Return the result of the handler. The execution may end it."""

    async def shut_down(self) -> None:
        """Let it do what the app wants done after the last job."""

    def close(self) -> None:
        """Leave the place. Work that still runs there no longer counts."""


class Places:
    """The free places, the last used first."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._all = places
        self._free: asyncio.LifoQueue[Place] = asyncio.LifoQueue()
        for place in reversed(places):
            self._free.put_nowait(place)

    async def take(self) -> Place:
        """Wait for a free place. Give it back with `put`."""
        return await self._free.get()

    def put(self, place: Place) -> None:
        """Make the place free again."""
        self._free.put_nowait(place)

    async def shut_down(self, seconds: float) -> None:
        """Let all places run the app's shutdown after the last job, within a time in seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(place.shut_down() for place in self._all))

    def close(self) -> None:
        """Leave all places."""
        for place in self._all:
            place.close()


class Thread:
    """A place for a thread, which starts when it is first needed. A thread cannot be killed.

    A thread that ignores `job.cancelled` is left behind, and the place gets another. It does not
    keep the interpreter from ending.
    """

    is_elsewhere = False

    def __init__(self, number: int) -> None:
        self._name = f"zq-job-{number}"
        self._calls: SimpleQueue[Call | None] | None = None

    async def prepare(self, handler: Handler) -> None:
        """Do nothing: a thread needs no preparation."""

    async def shut_down(self) -> None:
        """Do nothing: the worker runs the app's shutdown for its threads."""

    async def run(self, execution: Execution) -> Any:
        """Return the result of the handler. To end it, the thread is told, and may clean up."""
        args, kwargs = execution.handler.arguments(execution.running)
        function = execution.handler.function
        work = self._submit(lambda: function(*args, **kwargs))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if execution.reason is None or not await _patiently(work):
                self.close()
                execution.leave_behind(work, "the thread")
                raise
        result, error = work.result()
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Let the thread end after its present call."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.put(None)

    def _begin(self, call: Callable[[], None]) -> None:
        if self._calls is None:
            self._calls = SimpleQueue()
            threading.Thread(
                target=_work, args=(self._calls,), name=self._name, daemon=True
            ).start()
        self._calls.put(call)

    def _submit(self, call: Call) -> asyncio.Future[Came]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Came] = loop.create_future()
        context = copy_context()

        def run() -> None:
            came = context.run(_came, call)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_settle, done, came)

        self._begin(run)
        return done


class CallingPlace(Thread):
    """The thread that waits for the worker, see `CallingThread`. It cannot be left behind."""

    def __init__(self, thread: CallingThread) -> None:
        super().__init__(0)
        self._thread = thread

    def _begin(self, call: Callable[[], None]) -> None:
        self._thread.submit(call)


async def _patiently(work: asyncio.Future[Came]) -> bool:
    """Wait for a thread that was told to end. Return whether it ends before a second cancel."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait({work})
    return work.done()


def _work(calls: "SimpleQueue[Call | None]") -> None:
    while (call := calls.get()) is not None:
        call()
        del call


def _came(call: Call) -> Came:
    try:
        return call(), None
    except BaseException as error:  # StopIteration too, which no future accepts
        return None, error


def _settle(done: asyncio.Future[Came], came: Came) -> None:
    if not done.done():
        done.set_result(came)
