"""Findings, figures, queues and workers as parts of the documents of the live view.

No value is null: what is not known is left out.
"""

from collections.abc import Sequence
from typing import Any

from zq.features.diagnosis.model import FindingGroup
from zq.model.job import JobRecord
from zq.model.lifecycle import NAMES
from zq.model.pauses import pause_text
from zq.operators.page.http.frames import Document
from zq.operators.page.service_overview import WatchedQueue
from zq.operators.page.service_tiles import Tiles
from zq.service.admin import OpenStream


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
