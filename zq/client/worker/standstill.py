"""Tells of a worker that stands still: of code that blocks its event loop, and of a deadlock.

A coroutine that blocks holds up all jobs of its worker and the renewal of their leases. The loop
cannot tell of it meanwhile, so a thread does.

A job that waits for another one keeps its place meanwhile. If all places of a worker are kept so,
and no other worker takes from the queues of the awaited jobs, none of them can begin.
"""

import asyncio
import contextlib
import logging
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from traceback import StackSummary, extract_stack

from zq.client.backend import Backend
from zq.client.errors import BackendError, Deadlock, JobNotFound
from zq.client.worker.execution import Execution

log = logging.getLogger("zq.worker")

BEAT_S = 1.0
"""How often the loop says that it runs."""

STILL_S = 5.0
"""A loop that has said nothing for this long stands still."""

_OURS = f"{Path(__file__).parents[2]}/"
_CALLER = str(Path(__file__).with_name("executor.py"))
_LOOP = f"{asyncio.__path__[0]}/"


@contextlib.contextmanager
def watching_loop() -> Iterator[None]:
    """Watch the event loop of this thread."""
    watch = _Watch(asyncio.get_running_loop())
    thread = threading.Thread(target=watch.run, name="zq-standstill", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.end()


class _Watch:
    """The watch of one event loop, with its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._ended = threading.Event()
        self._beat()

    def run(self) -> None:
        """Watch the loop until `end` is called."""
        told = 0.0
        while not self._ended.wait(BEAT_S):
            last = self._last
            if told and last > told:
                log.warning("the event loop goes on, after %.1f s", last - told)
                told = 0.0
            if not told and time.monotonic() - last > STILL_S and (stack := self._stack()):
                told = last
                log.warning(
                    "the event loop has stood still for %g s, so no other job of this worker goes"
                    " on and no lease is renewed: await what takes long, or make the task an"
                    " ordinary function, which runs in a thread",
                    STILL_S,
                    extra={"fields": {"traceback": "".join(stack.format())}},
                )

    def end(self) -> None:
        """End the watch."""
        self._timer.cancel()
        self._ended.set()

    def _beat(self) -> None:
        self._last = time.monotonic()
        self._timer = self._loop.call_later(BEAT_S, self._beat)

    def _stack(self) -> StackSummary:
        """The frames that block the loop; none if it waits for the processor only."""
        frame = sys._current_frames().get(self._thread)
        stack = extract_stack(frame) if frame is not None else StackSummary()
        files = [each.filename for each in stack]
        first = 0
        for index, file in enumerate(files):
            if file == _CALLER:
                first = index + 1
                break
            if file.startswith(_LOOP):
                first = index + 1
        no_authors = (_OURS, _LOOP, selectors.__file__)
        kept = [each for each in stack[first:] if not each.filename.startswith(no_authors)]
        return StackSummary.from_list(kept)


class Deadlocks:
    """Looks for deadlocks among the executions of one worker. It may be asked in any thread."""

    def __init__(
        self, worker_id: str, under_way: Iterable[Execution], is_full: Callable[[], bool]
    ) -> None:
        self._worker_id = worker_id
        self._under_way = under_way
        self._is_full = is_full

    async def refuse(self, backend: Backend) -> None:
        """Raise `Deadlock` if no running job of this worker can go on."""
        everything = list(self._under_way)
        begun = [each.running for each in everything if each.started_at]
        awaited = {each.waits_for for each in begun}
        # One that has not begun here waits for a thread.
        if None in awaited or not (self._is_full() or len(begun) < len(everything)):
            return
        stuck = awaited - {each.id for each in begun}
        try:
            queues = [await self._queue_of(backend, str(id)) for id in stuck]
        except (BackendError, JobNotFound):
            return
        if all(queues):
            names = f" of the queue {', '.join(sorted({str(each) for each in queues}))}"
            raise Deadlock(
                f"all {len(begun)} places of this worker are taken by jobs that wait for jobs, and"
                f" no other worker takes those{names if stuck else ''}: give the worker a larger"
                " --concurrency (and --threads), start another one, or let a chain or a chord go on"
                " with the results"
            )

    async def _queue_of(self, backend: Backend, id: str) -> str | None:
        """The queue of a job that only this worker could begin. None if another one may end it."""
        job = await backend.get(id)
        own: set[str] = set()
        for worker in await backend.operations.workers():
            takes = not worker.queues or job.queue in worker.queues
            if worker.id == self._worker_id:
                own.update(worker.held)
            elif takes:
                return None
        waits_here = job.status == "ready" or (job.status == "in_flight" and id in own)
        return job.queue if waits_here else None
