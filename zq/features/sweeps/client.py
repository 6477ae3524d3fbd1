"""Changes of many jobs: looking ahead, what runs and what has ended, and undo."""

from typing import Literal

from zq.client.asking import SWEEP_MS, Ask, filters
from zq.client.values import JobQuery, StoredJob
from zq.features.sweeps import verbs
from zq.features.sweeps.verbs import Requeued, SweepPreviewDocument, UndoneDocument
from zq.features.sweeps.verbs import SweepDocument as SweepDocument

SweepVerb = Literal["cancel", "delete", "requeue", "patch"]


class ServerSweeps:
    """The sweeps of one server. Verbs raise what those of `zq.client.backend.Backend` raise."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def preview(
        self, verb: SweepVerb, query: JobQuery, *, force: bool = False
    ) -> SweepPreviewDocument:
        """How many jobs a change would change now, and an id of this moment."""
        more = {"verb": verb} | ({"force": "true"} if force else {})
        return await self._ask(verbs.PREVIEW, query=filters(query) | more)

    async def cancel(
        self, query: JobQuery, *, force: bool = False, reason: str | None = None
    ) -> int:
        """Cancel the matching jobs. Return how many."""
        choice = filters(query) | _because(reason)
        done = await self._ask(verbs.CANCEL, {"force": force}, choice, wait_ms=SWEEP_MS)
        return done.cancelled

    async def delete(self, query: JobQuery, *, reason: str | None = None) -> int:
        """Delete the matching jobs, in any status. Return how many. It cannot be taken back."""
        choice = filters(query) | _because(reason)
        return (await self._ask(verbs.DELETE, query=choice, wait_ms=SWEEP_MS)).deleted

    async def requeue(self, query: JobQuery, limit: int | None, *, reason: str | None) -> Requeued:
        """Bring back at most `limit` matching dead jobs."""
        choice = filters(query) | _because(reason)
        return await self._ask(verbs.REQUEUE, {"limit": limit}, choice, wait_ms=SWEEP_MS)

    async def cancel_one(self, id: str, *, force: bool, undo: bool) -> StoredJob:
        """Cancel a job. With `undo`, the job has the id of a sweep that takes it back."""
        body = {"force": force} | ({"undo": True} if undo else {})
        return await self._ask(verbs.CANCEL_ONE.read_as(StoredJob), body, id=id)

    async def running(self) -> list[SweepDocument]:
        """The sweeps under way, the oldest first."""
        return (await self._ask(verbs.RUNNING)).sweeps

    async def ended(self, limit: int) -> list[SweepDocument]:
        """Up to `limit` sweeps that have changed jobs, the latest first."""
        return (await self._ask(verbs.ENDED_ONES, query={"limit": str(limit)})).sweeps

    async def get(self, id: str) -> SweepDocument:
        """One sweep. For a cancellation that has ended, it says how many jobs are `left`."""
        return await self._ask(verbs.GET, id=id)

    async def stop(self, id: str) -> None:
        """Stop a sweep between two slices."""
        await self._ask(verbs.STOP, id=id)

    async def undo(self, id: str, *, reason: str | None = None) -> UndoneDocument:
        """Take back the jobs that a sweep has cancelled."""
        return await self._ask(verbs.UNDO, query=_because(reason), wait_ms=SWEEP_MS, id=id)


def _because(reason: str | None) -> dict[str, str]:
    return {"reason": reason} if reason else {}
