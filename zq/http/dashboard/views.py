"""What each topic of the live view shows, as documents without nulls."""

from collections.abc import Awaitable, Callable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import msgspec

from zq import __version__
from zq.http.dashboard.frames import Document
from zq.http.dashboard.mask import Mask
from zq.http.ops.status import status_document
from zq.model.errors import ScopeMissing
from zq.model.lifecycle import NAMES
from zq.model.reach import EVERYWHERE, Reach
from zq.model.waits import pause_text
from zq.service import Services
from zq.service.overview import Overview, WatchedQueue
from zq.wire.failures import groups_document
from zq.wire.sweeps import running_document

WORST = 20
MOST_ROWS = 100
MOST_FINDINGS = 20
NEVER = 2**63


class View(NamedTuple):
    """What one reader wants to see. Equal views share their frames."""

    topic: str
    reach: Reach
    q: str = ""
    sort: str = "worst"
    first: int = 0
    limit: int = 50
    queue: str = ""


SORTS: dict[str, Callable[[WatchedQueue], Any]] = {
    "worst": lambda queue: (
        queue.figures.oldest_ready_at or NEVER,
        -queue.waiting,
        queue.figures.queue,
    ),
    "waiting": lambda queue: (-queue.waiting, queue.figures.queue),
    "failing": lambda queue: (-queue.figures.failures.five_minutes, queue.figures.queue),
    "name": lambda queue: queue.figures.queue,
}


class Views:
    """Makes the documents."""

    def __init__(self, services: Services, mask: Mask | None) -> None:
        self._services = services
        self._mask = mask
        self.topics: dict[str, Callable[[View, Overview], Awaitable[Document]]] = {
            "overview": self._overview,
            "pulse": self._pulse,
            "queues": self._queues,
            "queue": self._queue,
            "workers": self._workers,
            "failures": self._failures,
            "sweeps": self._sweeps,
            "health": self._health,
        }

    async def document(self, view: View, overview: Overview) -> Document:
        """The document of a view at this moment."""
        within = overview.within(view.reach)
        document = await self.topics[view.topic](view, within)
        return document | {"pulse": _pulse(within)}

    async def _pulse(self, _view: View, _overview: Overview) -> Document:
        return {}

    async def _overview(self, view: View, overview: Overview) -> Document:
        findings = overview.findings[:MOST_FINDINGS]
        worst = nsmallest(WORST, overview.queues, key=SORTS["worst"])
        return {
            "findings": [_plain(finding._asdict()) for finding in findings],
            "queues": _rows(worst),
            "order": [queue.figures.queue for queue in worst],
            "known_queues": len(overview.queues),
            **await self._sweeps(view, overview),
        }

    async def _queues(self, view: View, overview: Overview) -> Document:
        found = [queue for queue in overview.queues if view.q in queue.figures.queue]
        shown = nsmallest(view.first + view.limit, found, key=SORTS[view.sort])[view.first :]
        return {
            "queues": _rows(shown),
            "order": [queue.figures.queue for queue in shown],
            "matching": len(found),
        }

    async def _queue(self, view: View, overview: Overview) -> Document:
        view.reach.require([view.queue])
        found = [queue for queue in overview.queues if queue.figures.queue == view.queue]
        workers = [w for w in overview.workers if not w.queues or view.queue in w.queues]
        settings = await self._services.queues.settings(view.queue, view.reach)
        return {
            "queue": _row(found[0]) if found else {},
            "settings": msgspec.to_builtins(settings),
            "workers": [
                _plain(worker._asdict() | {"held": len(worker.held)}) for worker in workers
            ],
        }

    async def _workers(self, _view: View, overview: Overview) -> Document:
        texts = self._services.ids.texts
        return {
            "workers": [
                _plain(worker._asdict() | {"held": texts(worker.held)[:50]})
                for worker in overview.workers
            ]
        }

    async def _sweeps(self, view: View, _overview: Overview) -> Document:
        ids = self._services.ids
        return {
            "sweeps": [
                msgspec.to_builtins(running_document(s.id, s.outline, s.changed, s.passed, ids))
                for s in self._services.sweeps.running(view.reach)
            ]
        }

    async def _failures(self, view: View, _overview: Overview) -> Document:
        groups = await self._services.failures.groups((), view.reach)
        document = groups_document(groups, self._services.ids)
        if self._mask is not None:
            document = msgspec.structs.replace(
                document,
                groups=[
                    msgspec.structs.replace(group, message=self._mask.text(group.message))
                    for group in document.groups
                ],
            )
        found: Document = msgspec.to_builtins(document)
        return _plain(found)

    async def _health(self, view: View, overview: Overview) -> Document:
        if view.reach is not EVERYWHERE:
            raise ScopeMissing("this key is limited to some queues, and this is about all of them")
        health = self._services.admin.health()
        return {"status": msgspec.to_builtins(status_document(overview.status, health))}


def _pulse(overview: Overview) -> Document:
    findings = overview.findings
    return {
        "zq": __version__,
        "totals": {name: overview.totals.get(status, 0) for status, name in NAMES.items()},
        "findings": len(findings),
        "worst": findings[0].severity if findings else 0,
        "workers": len(overview.workers),
    }


def _rows(queues: Sequence[WatchedQueue]) -> Document:
    return {queue.figures.queue: _row(queue) for queue in queues}


def _row(queue: WatchedQueue) -> Document:
    figures = queue.figures
    row: Document = {
        "counts": {NAMES[status]: n for status, n in figures.counts.items() if n},
        "delivered": round(figures.deliveries.minute, 1),
        "completed": round(figures.completions.minute, 1),
        "failed": round(figures.failures.minute, 1),
        "workers": queue.workers,
    }
    if figures.oldest_ready_at is not None:
        row["since"] = figures.oldest_ready_at
    if queue.settings is not None and queue.settings.paused:
        row["paused"] = True
        row["pause"] = pause_text(queue.settings)
    return row


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}
