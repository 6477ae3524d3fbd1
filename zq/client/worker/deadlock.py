"""Finds jobs that wait for ever: their worker is full of jobs that wait for jobs.

A job that waits for another one keeps its place meanwhile. If all places of a worker are kept so,
and no other worker takes from the queues of the awaited jobs, none of them can begin.
"""

from collections.abc import Callable, Iterable

from zq.client.backend import Backend
from zq.client.errors import BackendError, Deadlock, JobNotFound
from zq.client.worker.execution import Execution


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
