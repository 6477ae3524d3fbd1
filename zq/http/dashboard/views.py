"""What each topic of the live view shows, as documents without nulls."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import msgspec

from zq import __version__
from zq.http.dashboard.frames import Document
from zq.http.dashboard.mask import Mask
from zq.http.dashboard.rates import DeliveryRates
from zq.http.dashboard.tree import Branch, branches
from zq.http.ops.status import status_document
from zq.model.errors import ScopeMissing
from zq.model.lifecycle import NAMES
from zq.model.reach import EVERYWHERE, Reach
from zq.model.waits import pause_text
from zq.service import Services
from zq.service.admin import OpenStream
from zq.service.diagnosis import Finding
from zq.service.overview import Overview, WatchedQueue
from zq.wire.failures import groups_document
from zq.wire.sweeps import running_document

WORST = 20
MOST_ROWS = 100
MOST_FINDINGS = 20
MOST_ALIKE = 5
"""Of the same kind. A hundred queues without a worker must not hide what else is wrong."""

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
    tree: bool = False
    under: str = ""
    """Of a tree, the prefix whose branches are shown."""


SORTS: dict[str, Callable[[WatchedQueue], Any]] = {
    "worst": lambda queue: queue.figures.oldest_ready_at or NEVER,
    "waiting": lambda queue: -queue.waiting,
    "failing": lambda queue: -queue.figures.failures.five_minutes,
    "name": lambda queue: queue.figures.queue,
}
"""Of queues that are alike in that, the one with more ready jobs comes first, and then the name."""


def foremost(queues: Sequence[WatchedQueue], sort: str, most: int) -> list[WatchedQueue]:
    """The first of some queues in an order.

    It runs at each look, so that only queues which may be among them are compared in full.
    """
    order = SORTS[sort]
    places = list(map(order, queues))
    last = nsmallest(most, places)[-1:]
    near = [queue for queue, place in zip(queues, places, strict=True) if [place] <= last]
    near.sort(key=lambda queue: (order(queue), -queue.waiting, queue.figures.queue))
    return near[:most]


class Views:
    """Makes the documents."""

    def __init__(self, services: Services, mask: Mask | None) -> None:
        self._services = services
        self._mask = mask
        self._rates = DeliveryRates()
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
        self._rates.learn(overview.workers, overview.at)
        within = overview.within(view.reach)
        document = await self.topics[view.topic](view, within)
        return document | {"pulse": _pulse(within)}

    async def _pulse(self, _view: View, _overview: Overview) -> Document:
        return {}

    async def _overview(self, view: View, overview: Overview) -> Document:
        findings = _foremost(overview.findings)
        worst = foremost(overview.queues, "worst", WORST)
        return {
            "findings": [_plain(finding._asdict()) for finding in findings],
            "queues": _rows(worst),
            "order": [queue.figures.queue for queue in worst],
            "known_queues": len(overview.queues),
            **await self._sweeps(view, overview),
        }

    async def _queues(self, view: View, overview: Overview) -> Document:
        found = [queue for queue in overview.queues if view.q in queue.figures.queue]
        together = dict[str, Branch]()
        if view.tree:
            found, together = await branches(found, view.under, self._services.turns)
        shown = foremost(found, view.sort, view.first + view.limit)[view.first :]
        return {
            "queues": {
                queue.figures.queue: _branch(branch)
                if (branch := together.get(queue.figures.queue))
                else _row(queue)
                for queue in shown
            },
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
            "workers": [self._worker(worker) | {"held": len(worker.held)} for worker in workers],
        }

    async def _workers(self, _view: View, overview: Overview) -> Document:
        texts = self._services.ids.texts
        return {
            "workers": [
                self._worker(worker) | {"held": texts(worker.held)[:50]}
                for worker in overview.workers
            ]
        }

    def _worker(self, worker: OpenStream) -> Document:
        more = {"holds": len(worker.held), "rate": self._rates.of(worker)}
        return _plain(worker._asdict() | more)

    async def _sweeps(self, view: View, _overview: Overview) -> Document:
        ids = self._services.ids
        return {
            "sweeps": [
                msgspec.to_builtins(running_document(s.id, s.outline, s.changed, s.passed, ids))
                for s in self._services.sweeps.running(view.reach)
            ]
        }

    async def _failures(self, view: View, overview: Overview) -> Document:
        groups = await self._services.failures.groups((), view.reach)
        document = groups_document(groups, self._services.ids, overview.at)
        if self._mask is not None:
            document = msgspec.structs.replace(
                document,
                groups=[
                    msgspec.structs.replace(group, message=await self._mask.text(group.message))
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


def _foremost(findings: Sequence[Finding]) -> list[Finding]:
    """The worst of each kind, the worst first."""
    alike = Counter[str]()
    found = list[Finding]()
    for finding in findings:
        alike[finding.code] += 1
        if alike[finding.code] <= MOST_ALIKE:
            found.append(finding)
    return found[:MOST_FINDINGS]


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


def _branch(branch: Branch) -> Document:
    return _row(branch.sum) | {
        "branch": branch.queues,
        "paused_queues": branch.paused,
        "orphans": branch.orphans,
    }


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}
