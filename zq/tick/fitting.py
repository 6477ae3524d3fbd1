"""Payloads that come to queues by other ways than their doors: they meet the same rules.

A room has the rules (`payload_rules` of `zq.tick.hooks`). They are held against new jobs before the
inbox, and against all others in their transaction. Payloads are compared in slices, so that the
event loop serves others meanwhile.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from zq.model.checksums import fits
from zq.model.errors import NotCompared, TooManyCompared, ZqError
from zq.model.job import INLINE_PAYLOAD, JobRecord
from zq.model.parts import in_parts
from zq.store.api import Sliced
from zq.tick.hooks import PayloadRules
from zq.tick.work import UnitOfWork

MOST_READ = 1024 * 1024
"""The bytes of payloads that are read together. A larger payload is read alone."""

MOST_STEPS = 200_000
"""The steps after which a change of many jobs leaves the rest to another transaction: they take
about 50 ms, or as long as 0.8 MiB of payloads."""

MOST_STEPS_OF_NEW = 2_000_000
"""The steps for the new jobs of one command: they take half a second, or as long as 8 MiB."""

Arrival = tuple[JobRecord, str]
"""A stored job as it was before, and the queue that it is to enter."""

Comparison = tuple[JobRecord, Collection[str]]
"""A stored job, and the queues with whose rules its payload is compared."""


class ComingPayloads:
    """Holds new jobs that come to queues behind the doors against the rules of these queues."""

    def __init__(self, work: UnitOfWork, queues: Collection[str]) -> None:
        self._rules = _rules_of(work, queues)

    def refusal(self, queue: str, payload: str) -> Sliced[ZqError | None]:
        """Why a new job may not come to a queue; None if it may."""
        if self._rules is None:
            return None
        if self._rules.steps > MOST_STEPS_OF_NEW:
            return TooManyCompared(MOST_STEPS_OF_NEW)
        return (yield from self._rules.refusal(payload, [queue]))


def misfits(
    work: UnitOfWork, compared: Sequence[Comparison], *, all_now: bool = False
) -> Sliced[dict[int, ZqError]]:
    """Why jobs may not come to queues, by their keys: their payloads break rules there.

    The payloads for which a transaction would take long are `NotCompared`, unless `all_now`.
    """
    found: dict[int, ZqError] = {}
    rules = _rules_of(work, {queue for _, queues in compared for queue in queues})
    if rules is None:
        return found
    most = None if all_now else MOST_STEPS
    for part in in_parts(compared, lambda each: each[0].payload_size, MOST_READ):
        bodies: Mapping[int, str] = {}
        if most is None or rules.steps <= most:
            bodies = yield from _bodies(work, [job for job, _ in part])
        for job, queues in part:
            if most is not None and rules.steps > most:
                found[job.key] = NotCompared()
                continue
            # One that is damaged is set aside when somebody reads it.
            payload = bodies.get(job.key, job.payload or "null")
            why = yield from rules.refusal(payload, queues)
            if why is not None:
                found[job.key] = why
    return found


def _rules_of(work: UnitOfWork, queues: Collection[str]) -> PayloadRules | None:
    find = work.hooks.payload_rules
    return None if find is None or not queues else find(work, queues)


def _bodies(work: UnitOfWork, jobs: Sequence[JobRecord]) -> Sliced[Mapping[int, str]]:
    """The payloads of jobs that are stored apart, by key."""
    apart = [job for job in jobs if job.payload_size > INLINE_PAYLOAD]
    if not apart:
        return {}
    read = partial(_read, work, [job.key for job in apart])
    if sum([job.payload_size for job in apart]) <= MOST_READ:
        return read()
    bodies: Mapping[int, str] = yield read
    return bodies


def _read(work: UnitOfWork, keys: Sequence[int]) -> Mapping[int, str]:
    rows = work.tx.table("read_payloads", keys=keys)
    return {key: body for key, body, stored in rows if fits(body, stored)}
