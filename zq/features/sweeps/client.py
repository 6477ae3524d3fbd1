"""Changes of many jobs: looking ahead, what runs and what has ended, undo; and the audit."""

from typing import Literal, Protocol

from zq.client.values import JobQuery
from zq.features.audit.wire import ActionDocument as ActionDocument
from zq.features.sweeps.wire import SweepDocument as SweepDocument
from zq.features.sweeps.wire import SweepPreviewDocument, UndoneDocument

SweepVerb = Literal["cancel", "delete", "requeue", "patch"]


class ServerSweeps(Protocol):
    """The sweeps of one server. Verbs raise what those of `zq.client.backend.Backend` raise."""

    async def preview(
        self, verb: SweepVerb, query: JobQuery, *, force: bool = False
    ) -> SweepPreviewDocument:
        """How many jobs a change would change now, and an id of this moment."""

    async def cancel(
        self, query: JobQuery, *, force: bool = False, reason: str | None = None
    ) -> int:
        """Cancel the matching jobs. Return how many."""

    async def delete(self, query: JobQuery, *, reason: str | None = None) -> int:
        """Delete the matching jobs, in any status. Return how many. It cannot be taken back."""

    async def running(self) -> list[SweepDocument]:
        """The sweeps under way, the oldest first."""

    async def ended(self, limit: int) -> list[SweepDocument]:
        """Up to `limit` sweeps that have changed jobs, the latest first."""

    async def get(self, id: str) -> SweepDocument:
        """One sweep. For a cancellation that has ended, it says how many jobs are `left`."""

    async def stop(self, id: str) -> None:
        """Stop a sweep between two slices."""

    async def undo(self, id: str, *, reason: str | None = None) -> UndoneDocument:
        """Take back the jobs that a sweep has cancelled."""

    async def audit(self, before: int | None, limit: int) -> list[ActionDocument]:
        """Up to `limit` actions of operators with numbers below `before`, the latest first."""
