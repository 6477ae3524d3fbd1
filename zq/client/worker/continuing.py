"""Enqueues what comes after a job of a chain or a chord, before the job is acknowledged.

A worker that dies in between leaves the job to another one, which does the same again. The dedupe
id of what comes next is that of the job or the chord, so it is stored once.

The results of a chord gather in one job of the queue `zq-chords`, which nobody takes: each result
folds into it under its index. Whoever finds all of them there enqueues what comes next, and then
removes the gathering job.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec

from zq.client.backend import Backend
from zq.client.errors import JobNotFound, JobState
from zq.client.flows import CHORD, THEN, ChordPlace
from zq.client.running import Running
from zq.client.values import Dedupe, Submission
from zq.model.batch import BatchRule

QUEUE = "zq-chords"
"""The queue of gathering jobs."""

GATHERING_MS = 7 * 24 * 3_600_000
"""How long the results of a chord are kept. One that takes longer does not go on."""

WINDOW_MS = 2 * GATHERING_MS
"""How long what comes next is recognised. A late second worker of a chord finds results for as long
as they are kept."""


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
    rule = BatchRule(f"zq-chord:{place.chord}", "true", "$existing + $new")
    part = _Part(QUEUE, "part", {str(place.index): result}, batch=rule, ttl_ms=GATHERING_MS)
    (host,) = await backend.enqueue([part])
    try:
        parts = (await backend.get(host.id)).payload
    except JobNotFound:  # another worker has found all results
        return
    if len(parts) == place.size:
        results = [parts[str(index)] for index in range(place.size)]
        await _enqueue(backend, then, f"chord:{place.chord}", results)
        with contextlib.suppress(JobNotFound, JobState):
            await backend.cancel(host.id)


async def _enqueue(backend: Backend, then: Submission, dedupe: str, result: Any) -> None:
    call = then.payload
    payload = {"args": [result, *call["args"]], "kwargs": call["kwargs"]}
    marked = Dedupe(dedupe, WINDOW_MS)
    await backend.enqueue([msgspec.structs.replace(then, payload=payload, dedupe=marked)])
