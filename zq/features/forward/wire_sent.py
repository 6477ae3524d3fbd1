"""Jobs of a lane as the receiver is sent them: bodies of `POST /jobs`, with what they came with.

The receiver starts from its own clock: a job that may still wait for a while says for how long.
Batches are left out, for their jobs have been folded here.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from zq.model.job import (
    DEFAULT_PRIORITY,
    BroughtFields,
    JobRecord,
    SettingFields,
    without_former_key,
)
from zq.model.sharing import values_of
from zq.model.unique import NAMES, KeySpace
from zq.rooms import parts
from zq.wire.bodies import JobBody

_SHOWN = {name: made for shown in parts("wire_job", "SHOWN", dict) for name, made in shown.items()}
"""What makes the fields of rooms whose settings have another form in a body."""

_encode = msgspec.json.Encoder().encode


def sent_jobs(jobs: Sequence[JobRecord], steady: int) -> bytes:
    """Jobs with their payloads as the items of a list in JSON.

    `steady` is the time with which their times are compared, in milliseconds.
    """
    return _encode([_body(job, steady) for job in jobs])[1:-1]


def _body(job: JobRecord, steady: int) -> JobBody:
    assert job.payload is not None, "payloads that are stored apart have been read"
    payload, job = Raw(job.payload), without_former_key(job)
    priority = None if job.priority == DEFAULT_PRIORITY else job.priority
    if (
        job.options is None
        and job.extras is None
        and job.unique_key is None
        and job.group is None
        and job.expires_at is None
    ):
        return JobBody(queue=job.queue, type=job.type, payload=payload, priority=priority)
    # Copies for targets are told apart by their queues even if they have no key.
    in_queue = job.unique_key is not None and job.unique_in is KeySpace.QUEUE
    return JobBody(
        queue=job.queue,
        type=job.type,
        payload=payload,
        priority=priority,
        unique_key=job.unique_key,
        unique_while=None if job.unique_while is None else NAMES[job.unique_while],
        unique_in="queue" if in_queue else None,
        group=job.group,
        ttl_ms=None if job.expires_at is None else max(1, job.expires_at - steady),
        **_fields(job),
    )


def _fields(job: JobRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if job.options is not None:
        fields |= values_of(SettingFields, job.options)
        for name, shown in _SHOWN.items():
            value = getattr(job.options, name)
            fields[name] = None if value is None else shown(value)
    if job.extras is not None:
        fields |= values_of(BroughtFields, job.extras)
        fields.pop("batch", None)
        if job.extras.meta is not None:
            fields["meta"] = Raw(job.extras.meta)
    return fields
