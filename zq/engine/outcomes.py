"""The verbs about how jobs end: results, waiting for them, look-up, cancelling, retention."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from zq.engine.sweeps import Sweeps
from zq.engine.waiters import Waiter, Waiters
from zq.model.clock import Clock
from zq.model.commands import Cancel, Command, Retain
from zq.model.errors import JobNotFound
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import Job, Retention
from zq.model.outcome import Outcome
from zq.model.reach import EVERYWHERE, Reach
from zq.store import reads
from zq.store.store import Store

Submit = Callable[[Command], Awaitable[object]]


class Outcomes:
    """A part of the engine. As there, what is beyond a caller's reach does not exist."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdCodec,
        waiters: Waiters,
        sweeps: Sweeps,
        submit: Submit,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._waiters = waiters
        self._sweeps = sweeps
        self._submit = submit

    async def result(self, id: str, reach: Reach, wait_ms: int) -> Outcome:
        """How a job came out; waits up to `wait_ms` for that. Raises `JobNotFound`.

        An outcome that is not final says what the job is doing when the time is up.
        """
        with self.waiter(wait_ms) as waiter:
            self._waiters.watch(waiter, self._known(id))
            waiter.nudge()
            return await self.wait(waiter, reach, visible=reach is EVERYWHERE)

    @contextmanager
    def waiter(self, wait_ms: int) -> Iterator[Waiter]:
        """One who waits for so long, from now on."""
        with self._waiters.waiter() as waiter:
            if not wait_ms:
                waiter.expire()
            timer = self._clock.call_later(wait_ms / 1000, waiter.expire)
            try:
                yield waiter
            finally:
                timer.cancel()

    async def wait(self, waiter: Waiter, reach: Reach, *, visible: bool) -> Outcome:
        """What `result` answers, for a waiter that has been given its job.

        `visible` says that the job is known to lie within reach: what the waiter is told of another
        is not told on before it has been looked at.
        """
        while True:
            await waiter.news()
            if waiter.outcome is not None and visible:
                return waiter.outcome
            found = await self._look(waiter, reach)
            if found is None:
                if waiter.outcome is not None and visible:
                    return waiter.outcome
                raise JobNotFound
            visible = True
            if found.is_final or waiter.is_over:
                return waiter.outcome or found

    async def by_key(self, unique_key: str, reach: Reach) -> Job:
        """The job that owns a unique key, with its payload and result. Raises `JobNotFound`."""
        job = await self._store.read(reads.get_owner, unique_key, reach, self._clock.now_ms())
        if job is None:
            raise JobNotFound
        return job

    async def cancel(self, id: str, force: bool, reach: Reach) -> Job:
        """Cancel a job; one in flight only by force. Raises `JobNotFound`, `NotCancellable`."""
        return await self._job(Cancel(key=self._known(id), force=force, reach=reach))

    async def cancel_by_key(self, unique_key: str, force: bool, reach: Reach) -> Job:
        """The same for the owner of a unique key."""
        return await self._job(Cancel(unique_key=unique_key, force=force, reach=reach))

    async def cancel_all(self, filter: Filter, force: bool) -> int:
        """Cancel the jobs that match and can be cancelled, slice by slice; how many it were."""
        return await self._sweeps.cancel(filter, force)

    async def retain(self, id: str, retention: Retention, reach: Reach) -> Job:
        """Keep a finished job for so long from now. Raises `JobNotFound`, `NotFinished`."""
        return await self._job(Retain(key=self._known(id), retention=retention, reach=reach))

    async def _look(self, waiter: Waiter, reach: Reach) -> Outcome | None:
        assert waiter.key is not None
        now = self._clock.now_ms()
        return await self._store.read(reads.get_outcome, waiter.key, reach, now)

    async def _job(self, command: Command) -> Job:
        job = await self._submit(command)
        assert isinstance(job, Job)
        return job

    def _known(self, id: str) -> int:
        key = self._ids.key(id)
        if key is None:
            raise JobNotFound
        return key
