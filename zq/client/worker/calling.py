"""The calling thread as the one place of ordinary functions, for programs under test.

A test has a database connection that belongs to its thread, with a transaction that nobody else
sees. So the worker's event loop runs in another thread, and the thread that waits for the worker
runs its functions.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

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
