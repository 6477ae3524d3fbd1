"""Enqueues what comes after a job of a chain or a chord, before the job is acknowledged.

A worker that dies in between leaves the job to another one, which does the same again. The dedupe
id of what comes next is that of the job or the chord, so it is stored once.

Each result of a chord is a job of its own in the queue `zq-chords`, stored once by its unique key.
So a member writes its own result alone, whatever the size of the chord, and counts those that are
there. Whoever counts all of them reads them once, and enqueues what comes next. Nobody takes these
jobs, since they are scheduled for a time when they have expired.
"""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from zq.client.backend import Backend
from zq.client.errors import ZqError
from zq.client.flows import CHORD, THEN, ChordPlace
from zq.client.running import Running
from zq.client.values import Dedupe, JobQuery, Submission

QUEUE = "zq-chords"
"""The queue of the results of chords."""

GATHERING_MS = 7 * 24 * 3_600_000
"""How long the results of a chord are kept. One that takes longer does not go on."""

WINDOW_MS = 2 * GATHERING_MS
"""How long what comes next is recognised. A late second worker of a chord finds results for as long
as they are kept."""

PAGE = 50
"""How many results are read at once."""


class _Part(Submission, frozen=True, omit_defaults=True):
    ttl_ms: int | None = None


async def go_on(backend: Backend, running: Running[Any], result: Any) -> None:
    """Enqueue what comes after this job, if anything does and no other job is missing."""
    meta: Mapping[str, Any] = running.delivery.meta or {}
    if THEN not in meta:
        return
    then = msgspec.convert(meta[THEN], Submission)
    if then.traceparent is None:
        then = msgspec.structs.replace(then, traceparent=running.traceparent)
    if CHORD not in meta:
        await _enqueue(backend, then, f"chain:{running.id}", result)
        return
    place = msgspec.convert(meta[CHORD], ChordPlace)
    kind = f"zq-chord:{place.chord}"
    part = _Part(
        *(QUEUE, kind, {"index": place.index, "result": result}),
        ready_at=round(time.time() * 1000) + 2 * GATHERING_MS,
        unique_key=f"{kind}:{place.index}",
        unique_while="exists",
        ttl_ms=GATHERING_MS,
    )
    await backend.enqueue([part])
    gathered = JobQuery(queues=(QUEUE,), types=(kind,))
    if await backend.count(gathered) < place.size:
        return
    results = await _results(backend, gathered)
    if len(results) == place.size:
        ordered = [results[index] for index in range(place.size)]
        await _enqueue(backend, then, f"chord:{place.chord}", ordered)
        with contextlib.suppress(ZqError):  # a key may not permit it: they expire
            await backend.sweeps.delete(gathered, reason="a chord has gathered its results")


async def _results(backend: Backend, gathered: JobQuery) -> dict[int, Any]:
    """The results of a chord, by the places of its members."""
    results: dict[int, Any] = {}
    after = None
    while True:
        page = await backend.jobs(gathered, after=after, limit=PAGE)
        results |= {job.payload["index"]: job.payload["result"] for job in page.jobs}
        after = page.after
        if after is None:
            return results


async def _enqueue(backend: Backend, then: Submission, dedupe: str, result: Any) -> None:
    call = then.payload
    payload = {"args": [result, *call["args"]], "kwargs": call["kwargs"]}
    marked = Dedupe(dedupe, WINDOW_MS)
    await backend.enqueue([msgspec.structs.replace(then, payload=payload, dedupe=marked)])
