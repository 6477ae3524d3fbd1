"""Payloads that come to queues by other ways than their doors: they meet the same rules.

A room has the rules (`payload_rules` of `zq.tick.hooks`). They are held against new jobs before the
inbox, where a large payload is read in pieces. A transaction cannot do that, so it reads few bytes,
and leaves jobs beyond them to another one.
"""

from collections.abc import Collection, Mapping, Sequence

from zq.model.checksums import fits
from zq.model.errors import ZqError
from zq.model.job import INLINE_PAYLOAD, JobRecord
from zq.model.queue_errors import NotCompared
from zq.tick.hooks import PayloadRules
from zq.tick.work import UnitOfWork

MOST_READ = 1024 * 1024
"""Larger payloads are not read: a MiB of JSON takes up to 10 ms."""

MOST_READ_TOGETHER = 2 * MOST_READ
"""The bytes of payloads, stored apart, that are read for one change."""


class ComingPayloads:
    """Holds new jobs that come to queues behind the doors against the rules of these queues."""

    def __init__(self, work: UnitOfWork, queues: Collection[str]) -> None:
        self._rules = _rules_of(work, queues)

    def refusal(self, queue: str, payload: str) -> ZqError | None:
        """Why a new job may not come to a queue; None if it may."""
        if self._rules is None:
            return None
        return self._rules.refusal(payload if len(payload) <= MOST_READ else None, [queue])


def _rules_of(work: UnitOfWork, queues: Collection[str]) -> PayloadRules | None:
    find = work.hooks.payload_rules
    return None if find is None or not queues else find(work, queues)


class ArrivingPayloads:
    """Holds the payloads of jobs against the rules of the queues that these are to enter."""

    def __init__(self, work: UnitOfWork, arrivals: Sequence[tuple[JobRecord, str]]) -> None:
        self._bodies: Mapping[int, str] = {}
        self._unread: set[int] = set()
        fanning = work.rulebook.fanning
        self._ways = {queue: (queue, *fanning.get(queue, ())) for _, queue in arrivals}
        """Where jobs come that enter a queue: there, and to its targets."""
        self._rules = _rules_of(work, {place for way in self._ways.values() for place in way})
        if self._rules is not None:
            self._read(work, [job for job, _ in arrivals])

    def refusal(self, job: JobRecord, queue: str) -> ZqError | None:
        """Why a job may not enter a queue; None if it may."""
        if self._rules is None:
            return None
        if job.key in self._unread:
            return NotCompared()
        payload: str | None = job.payload or "null"
        if job.payload_size > MOST_READ:
            if queue in (job.queue, job.extras and job.extras.origin):
                # It was compared when it came there as a new job.
                return None
            payload = None
        elif job.payload_size > INLINE_PAYLOAD:
            # One that is damaged is set aside when somebody reads it.
            payload = self._bodies.get(job.key, "null")
        return self._rules.refusal(payload, self._ways[queue])

    def sorted_out(
        self, queue: str, jobs: Sequence[JobRecord]
    ) -> tuple[list[JobRecord], list[int]]:
        """The jobs that may enter a queue, and the keys of those that are left to another look."""
        found = [(job, self.refusal(job, queue)) for job in jobs]
        rest = [job.key for job, why in found if isinstance(why, NotCompared)]
        return [job for job, why in found if why is None], rest

    def _read(self, work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
        room = MOST_READ_TOGETHER
        wanted: list[int] = []
        for job in jobs:
            if INLINE_PAYLOAD < job.payload_size <= MOST_READ:
                room -= job.payload_size
                if room < 0:
                    self._unread.add(job.key)
                else:
                    wanted.append(job.key)
        if wanted:
            rows = work.tx.table("read_payloads", keys=wanted)
            self._bodies = {key: body for key, body, stored in rows if fits(body, stored)}
