"""The fair keys that queues take from their new jobs: from a field, or from who numbers them.

Jobs that have nothing there share one key, which is empty: else they would wait by their age beside
keys that wait by their shares.
"""

import msgspec

from zq.features.fair.model import key_from
from zq.features.fair.model_jobs import fair_key_of
from zq.model.commands import Enqueue
from zq.model.job import NO_OPTIONS, NewJob
from zq.model.places import place_at
from zq.model.settings import BY_PRODUCER
from zq.store.api import Sliced
from zq.tick.work import UnitOfWork

SLICE_BYTES = 256 * 1024
"""So many bytes of payloads are read, in about a millisecond, before other tasks have a turn."""

MOST_READ = 1024 * 1024
"""Larger payloads are not looked into: that takes more than 2 ms a MiB."""


def keyed(work: UnitOfWork, command: Enqueue) -> Sliced[Enqueue]:
    """The command with the keys of its jobs, as far as they bring none and their queues say where.

    A job keeps the key that it got when it came, whatever becomes of the setting.
    """
    queues = work.rulebook.keyed
    jobs: list[NewJob] = []
    passed = 0
    for job in command.jobs:
        if job.queue in queues and fair_key_of(job.options) is None:
            jobs.append(_with_key(work, job, command.sender))
            passed += job.payload_size
            if passed > SLICE_BYTES:
                passed = 0
                yield None
        else:
            jobs.append(job)
    return msgspec.structs.replace(command, jobs=jobs)


def _with_key(work: UnitOfWork, job: NewJob, sender: str | None) -> NewJob:
    rule = work.settings_of(job.queue).fair
    assert rule is not None and rule.key is not None
    found: str | None = None
    if rule.key == BY_PRODUCER:
        found = sender
    elif job.payload_size <= MOST_READ:
        meta = None if job.extras is None else job.extras.meta
        found = key_from(place_at(rule.key).read(job.payload, meta))
    options = msgspec.structs.replace(job.options or NO_OPTIONS, fair_key=found or "")
    return msgspec.structs.replace(job, options=options)
