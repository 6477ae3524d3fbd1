"""Enqueues what comes after a job of a chain or a chord, before the job is acknowledged.

A worker that dies in between leaves the job to another one, which does the same again. The dedupe
id of what comes next is that of the job or the chord, so it is stored once.

The members of a chord are the leaves of a binary tree, in which node k has the children 2k and
2k + 1. A member goes up from its leaf. At each node it leaves its result, if it comes first, and is
done; if the other side was there before, it goes on to the next node. So whoever passes the root
knows that all others have left their results: it alone reads them, and enqueues what comes next.
A member that runs again finds its own result where it has left it, or takes the same way.

The results lie in jobs of the queue `zq-chords`, scheduled for the time at which they expire. So no
worker takes them, and the diagnosis does not count them as waiting.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from zq.client.backend import Backend
from zq.client.errors import JobNotFound, JobState
from zq.client.flows import CHORD, DELAY, THEN, ChordPlace
from zq.client.running import Running
from zq.client.values import Dedupe, Submission
from zq.model.clock import now_ms
from zq.model.job import Retention

T = TypeVar("T")

QUEUE = "zq-chords"
"""The queue of the results of chords."""

KEPT_MS = 7 * 24 * 3_600_000
"""How long the results of a chord are kept. One that takes longer does not go on."""

WINDOW_MS = 2 * KEPT_MS
"""How long what comes next is recognised. A late second worker of a chord finds results for as long
as they are kept."""

MOST_AT_ONCE = 16
"""The most results that one request asks for."""


async def go_on(backend: Backend, running: Running[Any], result: Any) -> None:
    """Enqueue what comes after this job, if anything does and no other job is missing."""
    meta: Mapping[str, Any] = running.delivery.meta or {}
    if THEN not in meta:
        return
    then = msgspec.convert(meta[THEN], Submission)
    if then.traceparent is None:
        then = msgspec.structs.replace(then, traceparent=running.traceparent)
    if then.meta is not None and DELAY in then.meta:
        then = msgspec.structs.replace(then, ready_at=now_ms() + then.meta[DELAY])
    if CHORD not in meta:
        await _enqueue(backend, then, f"chain:{running.id}", result)
        return
    place = msgspec.convert(meta[CHORD], ChordPlace)
    if not await _passes_root(backend, place, result):
        return
    keys = [_key(place, node) for node in range(1, place.size)]
    try:
        parts = await _each(keys, backend.by_key)
    except JobNotFound:  # another worker of this member has gone on
        return
    results = {place.index: result} | {int(part.type): part.payload for part in parts}
    await _enqueue(
        backend, then, f"chord:{place.chord}", [results[index] for index in range(place.size)]
    )
    await _each(keys, lambda key: _remove(backend, key))


async def _passes_root(backend: Backend, place: ChordPlace, result: Any) -> bool:
    """Leave the result at the first node that nobody has reached. Return True if there is none."""
    member = str(place.index)
    expires_at = now_ms() + KEPT_MS
    node = (place.size + place.index) // 2
    while node:
        key = _key(place, node)
        # A result that is left at a node has the index of its member as its type.
        part = Submission(
            queue=QUEUE,
            type=member,
            payload=result,
            ready_at=expires_at,
            unique_key=key,
            unique_while="exists",
            ttl_ms=1,
            retention=Retention(completed_ms=KEPT_MS),  # else a lost answer fails the member
        )
        (stored,) = await backend.enqueue([part])
        if not stored.duplicate or stored.type == member:
            return False
        node //= 2
    return True


def _key(place: ChordPlace, node: int) -> str:
    return f"zq-chord:{place.chord}:{node}"


async def _remove(backend: Backend, key: str) -> None:
    with contextlib.suppress(JobNotFound, JobState):
        await backend.cancel_by_key(key)


async def _each(keys: Sequence[str], ask: Callable[[str], Awaitable[T]]) -> list[T]:
    """The answers for all keys. Raises the first error."""
    found: list[T] = []
    for start in range(0, len(keys), MOST_AT_ONCE):
        found += await asyncio.gather(*map(ask, keys[start : start + MOST_AT_ONCE]))
    return found


async def _enqueue(backend: Backend, then: Submission, dedupe: str, result: Any) -> None:
    call = then.payload
    payload = {"args": [result, *call["args"]], "kwargs": call["kwargs"]}
    marked = Dedupe(dedupe, WINDOW_MS)
    await backend.enqueue([msgspec.structs.replace(then, payload=payload, dedupe=marked)])
