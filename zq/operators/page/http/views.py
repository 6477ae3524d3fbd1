"""What each topic of the live view shows, as documents without nulls: what is unknown is left out.

A frame is the whole document, or what has changed since the frame before: a merge patch (RFC 7396),
so no value of a document may be null.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from heapq import nsmallest
from typing import Any, NamedTuple

import msgspec

from zq import __version__
from zq.features.diagnosis.model import FindingGroup
from zq.features.diagnosis.service import Lookback
from zq.features.diagnosis.service_watched import WatchedQueue
from zq.features.failures.service import Failures
from zq.features.failures.verbs import cause_document
from zq.features.sweeps.service_running import Sweeps
from zq.features.sweeps.verbs import running_document
from zq.features.trends.service import Trends
from zq.features.waits.service import Waits
from zq.model.errors import ScopeMissing
from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.model.lifecycle import NAMES, Status
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import pause_text
from zq.operators.ops.http import status_document
from zq.operators.page.http.mask import Mask
from zq.operators.page.http.tree import Branch, branches
from zq.operators.page.service_overview import Overview, Tiles, tiles_of
from zq.service.admin import OpenStream
from zq.service.services import Services

Document = dict[str, object]


class ViewFrame:
    """A document at one moment, the number of its frame, and the document before it."""

    def __init__(self, number: int, at: int, document: Document, before: Document | None) -> None:
        self.number = number
        self.document = document
        self._at = at
        self._before = before

    @cached_property
    def document_alone(self) -> bytes:
        """The whole document, for somebody who wants no events."""
        return self._body("full", self.document)

    @cached_property
    def whole(self) -> bytes:
        """The event with the whole document."""
        return _event(self.document_alone)

    @cached_property
    def change(self) -> bytes:
        """The event with what has changed since the frame before."""
        return _event(self._body("patch", changed(self._before or {}, self.document)))

    def _body(self, name: str, content: object) -> bytes:
        return msgspec.json.encode({"seq": self.number, "at": self._at, name: content})


def _event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


def changed(before: Document, after: Document) -> Document:
    """The merge patch from one document to another; empty if they are equal."""
    patch: Document = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := changed(old, value):
                patch[name] = inner
        elif old != value or name not in before:
            patch[name] = value
    return patch


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its nulls."""
    return {name: value for name, value in document.items() if value is not None}


def tiles_document(tiles: Tiles) -> Document:
    """The figures over the page."""
    names = ("growth", "arrived", "done", "dead_per_minute")
    rates = {name: round(getattr(tiles, name), 2) for name in names}
    more = {
        "drained_ms": None if tiles.drained_ms is None else round(tiles.drained_ms),
        "oldest": None if tiles.oldest is None else tiles.oldest._asdict(),
        "failed": None if tiles.failed is None else round(tiles.failed, 4),
    }
    return plain(tiles._asdict() | rates | more)


def finding_document(kind: FindingGroup) -> Document:
    """The findings of one kind: those of queues with their queues, and how many are left out."""
    named = [
        plain({"queue": f.queue, "text": f.text, "jobs": f.jobs, "since": f.since})
        for f in kind.first
        if f.queue is not None
    ]
    return plain(
        {
            "code": kind.code,
            "severity": kind.severity,
            "since": kind.since,
            "jobs": kind.jobs,
            "text": kind.text,
            "queues": named or None,
            "more": kind.number - len(kind.first) if named else None,
        }
    )


def row(
    queue: WatchedQueue, wait_p95_ms: float | None = None, line: Sequence[int] | None = None
) -> Document:
    """One queue in a table. There are many, so that what says nothing is left out too.

    `line` has its waiting jobs every five minutes of the last hour.
    """
    figures, flow, settings = queue.figures, queue.flow, queue.settings
    ended = figures.completions.five_minutes + figures.failures.five_minutes
    is_paused = settings is not None and settings.paused
    return plain(
        {
            "counts": {NAMES[status]: n for status, n in figures.counts.items() if n},
            "delivered": _rate(figures.deliveries.minute),
            "failed": _rate(figures.failures.minute),
            "failed_share": round(figures.failures.five_minutes / ended, 4) if ended else None,
            "arrived": None if flow is None else _rate(flow.arrivals),
            "done": _rate(figures.completions.five_minutes if flow is None else flow.ends),
            "growth": None if flow is None else _rate(flow.arrivals - flow.ends) or None,
            "workers": queue.taken_by.workers,
            "slots": queue.taken_by.slots or None,
            "since": figures.oldest_ready_at,
            "wait_p95_ms": None if wait_p95_ms is None else round(wait_p95_ms),
            "line": line if line is not None and any(line[:-1]) else None,
            "state": queue.state,
            "state_text": None if queue.worst is None else queue.worst.text,
            "paused": True if is_paused else None,
            "pause": pause_text(settings) if settings is not None and is_paused else None,
        }
    )


def _rate(per_s: float) -> float:
    """With as many digits as are read; a whole number where that is exact."""
    rounded = round(per_s, 1 if abs(per_s) >= 1 else 2)
    return int(rounded) if rounded.is_integer() else rounded


def worker_document(
    worker: OpenStream, jobs: Sequence[str], stuck: frozenset[int], rate: float
) -> Document:
    """One stream of a worker. `jobs` are the ids of the first that it holds."""
    return {
        "id": worker.id,
        "queues": worker.queues,
        "held": len(worker.held),
        "busy": worker.busy,
        "concurrency": worker.concurrency,
        "prefetch": worker.prefetch,
        "jobs": jobs,
        "stuck": len(stuck.intersection(worker.held)),
        "seen_at": worker.seen_at,
        "silent": worker.silent,
        "failed": worker.failed,
        "rate": rate,
        "delivered": worker.delivered,
        "since": worker.since,
        "draining": worker.draining,
        "address": worker.address,
        "client": worker.client,
        "unsent_bytes": worker.unsent_bytes,
    }


def held_document(job: JobRecord, id: str, is_stuck: bool) -> Document:
    """A job that a worker holds."""
    return {
        "id": id,
        "type": job.type,
        "queue": job.queue,
        "since": job.dequeued_at or 0,
        "attempts": job.attempts,
        "stuck": is_stuck,
    }


WORST = 20
MOST_ROWS = 100
MOST_JOBS = 50
"""The most ids of a worker's jobs that are shown."""


class View(NamedTuple):
    """The choice of one reader: a topic, with its filters and its order. Equal views share their
    frames."""

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
    worker: str = ""


SORTS: dict[str, Callable[[WatchedQueue], Any]] = {
    "worst": lambda queue: queue.place,
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
            "worker": self._worker,
            "failures": self._failures,
            "findings": self._findings,
            "sweeps": self._sweeps,
            "health": self._health,
        }

    async def document(self, view: View, overview: Overview) -> Document:
        """The document of a view at this moment."""
        self._rates.learn(overview.workers, overview.at)
        within = overview.within(view.reach)
        document = await self.topics[view.topic](view, within)
        causes = (await self._services[Failures].causes(view.reach)).total
        wrong = _wrong(within) if within.is_whole else {}
        return document | {"pulse": _pulse(within) | wrong | {"causes": causes}}

    async def _pulse(self, _view: View, _overview: Overview) -> Document:
        return {}

    async def _overview(self, view: View, overview: Overview) -> Document:
        tiles = tiles_document(tiles_of(overview)) | await self._before(view, overview)
        if not overview.is_whole:
            return {"tiles": tiles, "known_queues": len(overview.queues), "partial": True}
        worst = foremost(overview.queues, "worst", WORST)
        return {
            "tiles": tiles,
            "findings": [finding_document(kind) for kind in overview.kinds],
            "queues": await self._rows(worst),
            "order": [queue.figures.queue for queue in worst],
            "known_queues": len(overview.queues),
            **await self._failures(view, overview),
            **await self._sweeps(view, overview),
        }

    async def _findings(self, view: View, overview: Overview) -> Document:
        """The queues with findings of the kind `q`, after the first ones."""
        found = [each for each in overview.findings if each.code == view.q and each.queue]
        shown = found[view.first : view.first + view.limit]
        return {
            "queues": [{"queue": each.queue, "text": each.text} for each in shown],
            "known": len(found),
        }

    async def _queues(self, view: View, overview: Overview) -> Document:
        found = [queue for queue in overview.queues if view.q in queue.figures.queue]
        together = dict[str, Branch]()
        if view.tree:
            found, together = await branches(found, view.under, self._services.turns)
        shown = foremost(found, view.sort, view.first + view.limit)[view.first :]
        rows = await self._rows([each for each in shown if each.figures.queue not in together])
        return {
            "queues": rows
            | {
                name: _branch(branch)
                for each in shown
                if (branch := together.get(name := each.figures.queue)) is not None
            },
            "order": [queue.figures.queue for queue in shown],
            "matching": len(found),
        }

    async def _queue(self, view: View, overview: Overview) -> Document:
        view.reach.require([view.queue])
        found = [queue for queue in overview.queues if queue.figures.queue == view.queue]
        workers = [worker for worker in overview.workers if worker.takes(view.queue)]
        settings = await self._services.queues.settings(view.queue, view.reach)
        why = await self._services[Waits].why_of(view.queue, view.reach)
        return {
            "queue": (await self._rows(found)).get(view.queue, {}),
            "settings": msgspec.to_builtins(settings),
            "workers": [self._stream(worker, overview) for worker in workers],
            "inherited": msgspec.to_builtins(self._services.queues.inherited),
            "why": msgspec.to_builtins(why),
        }

    async def _workers(self, _view: View, overview: Overview) -> Document:
        return {"workers": [self._stream(worker, overview) for worker in overview.workers]}

    async def _worker(self, view: View, overview: Overview) -> Document:
        streams = [stream for stream in overview.workers if stream.id == view.worker]
        keys = tuple(key for stream in streams for key in stream.held)[:MOST_JOBS]
        held = await self._services.listing.page(Filter(keys=keys), -1, False, MOST_JOBS)
        jobs = {job.key: job for job in held.jobs}
        text = self._services.ids.text
        failures = sorted(failure for stream in streams for failure in stream.failures)
        return {
            "streams": [self._stream(stream, overview) for stream in streams],
            "jobs": [
                held_document(job, text(key), key in overview.stuck)
                for key in keys
                if (job := jobs.get(key)) is not None
            ],
            "failures": [
                failure._asdict()
                | {"id": text(failure.key), "message": await self._masked(failure.message)}
                for failure in reversed(failures)
            ],
        }

    async def _before(self, view: View, overview: Overview) -> Document:
        """Earlier values of the figures over the page. They are known of all queues together."""
        causes = (await self._services[Failures].causes(view.reach)).total
        if view.reach is not EVERYWHERE:
            return {"causes": causes}
        lookback = self._services[Lookback]
        lines = await lookback.waiting({None: overview.totals.get(Status.READY, 0)})
        failed = await lookback.failed_before()
        return plain({"causes": causes, "line": lines[None], "failed_before": failed})

    async def _rows(self, queues: Sequence[WatchedQueue]) -> Document:
        """Queues by name."""
        wait_ms = self._services[Trends].wait_ms
        lines = await self._services[Lookback].waiting(
            {queue.figures.queue: queue.waiting for queue in queues}
        )
        return {
            (name := queue.figures.queue): row(queue, wait_ms(name, 0.95), lines.get(name))
            for queue in queues
        }

    async def _masked(self, said: str) -> str:
        return said if self._mask is None else await self._mask.text(said)

    def _stream(self, worker: OpenStream, overview: Overview) -> Document:
        jobs = self._services.ids.texts(worker.held[:MOST_JOBS])
        return worker_document(worker, jobs, overview.stuck, self._rates.of(worker))

    async def _sweeps(self, view: View, _overview: Overview) -> Document:
        ids = self._services.ids
        return {
            "sweeps": [
                msgspec.to_builtins(running_document(s.id, s.outline, s.changed, s.passed, ids))
                for s in self._services[Sweeps].running(view.reach)
            ]
        }

    async def _failures(self, view: View, _overview: Overview) -> Document:
        look = await self._services[Failures].causes(view.reach)
        causes = [cause_document(group, self._services.ids) for group in look.first]
        if self._mask is not None:
            for cause in causes:
                cause.message = await self._mask.text(cause.message)
        return {"causes": msgspec.to_builtins(causes)}

    async def _health(self, view: View, overview: Overview) -> Document:
        if view.reach is not EVERYWHERE:
            raise ScopeMissing("this key is limited to some queues, and this is about all of them")
        health = self._services.admin.health()
        return {"status": msgspec.to_builtins(status_document(overview.status, health))}


def _wrong(overview: Overview) -> Document:
    kinds = overview.kinds
    return {"findings": len(kinds), "worst": kinds[0].severity if kinds else 0}


def _pulse(overview: Overview) -> Document:
    return {
        "zq": __version__,
        "totals": {name: overview.totals.get(status, 0) for status, name in NAMES.items()},
        "workers": len(overview.workers),
        "queues": len(overview.queues),
    }


def _branch(branch: Branch) -> Document:
    return row(branch.sum) | {
        "branch": branch.queues,
        "paused_queues": branch.paused,
        "orphans": branch.orphans,
    }


class _Seen(NamedTuple):
    """A stream as the last look saw it. Times are in milliseconds."""

    at: int
    delivered: int
    rate: float


class DeliveryRates:
    """Remembers the streams of the last look."""

    def __init__(self) -> None:
        self._at = -1
        self._seen: dict[tuple[str, int], _Seen] = {}

    def learn(self, workers: Iterable[OpenStream], at: int) -> None:
        """Note what a look has seen. Looking again at the same moment changes nothing."""
        if at == self._at:
            return
        self._at = at
        self._seen = {_name(worker): self._next(worker, at) for worker in workers}

    def of(self, worker: OpenStream) -> float:
        """The rate between the last two looks, or since the stream is open."""
        found = self._seen.get(_name(worker))
        return 0.0 if found is None else found.rate

    def _next(self, worker: OpenStream, at: int) -> _Seen:
        before = self._seen.get(_name(worker), _Seen(worker.since, 0, 0.0))
        if at <= before.at:
            return before
        rate = (worker.delivered - before.delivered) * 1000 / (at - before.at)
        return _Seen(at, worker.delivered, round(rate, 1))


def _name(worker: OpenStream) -> tuple[str, int]:
    return worker.id, worker.since
