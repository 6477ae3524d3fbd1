"""Sweeps and the audit of a server at an address."""

from urllib.parse import quote, urlencode

from zq.client.http.calls import SWEEP_MS, HttpCall, HttpRead, filtered, with_query
from zq.client.values import JobQuery
from zq.features.audit.wire import ActionDocument, ActionsDocument
from zq.features.sweeps.client import SweepVerb
from zq.features.sweeps.wire import (
    SweepDocument,
    SweepPreviewDocument,
    SweepsDocument,
    UndoneDocument,
)


class HttpSweeps:
    """A `zq.features.sweeps.client.ServerSweeps`."""

    def __init__(self, call: HttpCall, read: HttpRead) -> None:
        self._call = call
        self._read = read

    async def preview(
        self, verb: SweepVerb, query: JobQuery, *, force: bool = False
    ) -> SweepPreviewDocument:
        """How many jobs a change would change now, and an id of this moment."""
        more = {"verb": verb} | ({"force": "true"} if force else {})
        path = filtered("/sweeps/preview", query, **more)
        return self._read(await self._call("GET", path), SweepPreviewDocument)

    async def cancel(
        self, query: JobQuery, *, force: bool = False, reason: str | None = None
    ) -> int:
        """Cancel the matching jobs."""
        path = filtered("/jobs/cancel", query, **because(reason))
        reply = await self._call("POST", path, {"force": force}, wait_ms=SWEEP_MS)
        return self._read(reply, dict[str, int])["cancelled"]

    async def delete(self, query: JobQuery, *, reason: str | None = None) -> int:
        """Delete the matching jobs."""
        path = filtered("/jobs", query, **because(reason))
        reply = await self._call("DELETE", path, wait_ms=SWEEP_MS)
        return self._read(reply, dict[str, int])["deleted"]

    async def running(self) -> list[SweepDocument]:
        """The sweeps under way."""
        return self._read(await self._call("GET", "/sweeps"), SweepsDocument).sweeps

    async def ended(self, limit: int) -> list[SweepDocument]:
        """The sweeps that have changed jobs."""
        reply = await self._call("GET", f"/sweeps/ended?limit={limit}")
        return self._read(reply, SweepsDocument).sweeps

    async def get(self, id: str) -> SweepDocument:
        """One sweep."""
        return self._read(await self._call("GET", _path(id)), SweepDocument)

    async def stop(self, id: str) -> None:
        """Stop a sweep."""
        await self._call("DELETE", _path(id))

    async def undo(self, id: str, *, reason: str | None = None) -> UndoneDocument:
        """Take back the jobs that a sweep has cancelled."""
        path = with_query(f"{_path(id)}/undo", because(reason))
        return self._read(await self._call("POST", path, wait_ms=SWEEP_MS), UndoneDocument)

    async def audit(self, before: int | None, limit: int) -> list[ActionDocument]:
        """Actions of operators."""
        place = {} if before is None else {"before": before}
        reply = await self._call("GET", f"/audit?{urlencode({'limit': limit, **place})}")
        return self._read(reply, ActionsDocument).actions


def because(reason: str | None) -> dict[str, str]:
    """The parameter of a reason, if there is one."""
    return {"reason": reason} if reason else {}


def _path(id: str) -> str:
    return f"/sweeps/{quote(id, safe='')}"
