"""The body of a bulk enqueue, which is checked in slices: many jobs would hold the event loop."""

from collections.abc import Iterator

import msgspec

from zq.model.errors import ZqError
from zq.model.job import NewJob
from zq.wire.bodies import JobBody, Limits, check_items, new_job
from zq.wire.codecs import BodyCodec, decode
from zq.wire.weight import LIGHT_BYTES

JOB_BYTES = 1024
"""Checking a job takes as long as checking so many bytes of its payload: about a microsecond."""

SLICE_BYTES = 1000 * JOB_BYTES + LIGHT_BYTES
"""So much is checked at a time. It is enough for a thousand jobs in a light body."""


class JobsBody(msgspec.Struct):
    """What a bulk enqueue brings."""

    jobs: list[JobBody]


_bulk = msgspec.json.Decoder(JobsBody)


def decode_jobs(body: bytes, codec: BodyCodec, limits: Limits) -> Iterator[list[NewJob]]:
    """The jobs of a bulk enqueue, in slices. The first one of a large body is empty.

    If a job is not valid, the error names the first such job. No job counts before the last slice.
    """
    items = decode(body, codec, _bulk).jobs
    check_items(len(items), limits, "jobs")
    names: set[str] = set()
    jobs: list[NewJob] = []
    # Decoding a large body has taken a slice already.
    left = SLICE_BYTES - max(0, len(body) - LIGHT_BYTES)
    for index, job in enumerate(items):
        if left <= 0:
            yield jobs
            jobs = []
            left = SLICE_BYTES
        try:
            new = new_job(job, codec, limits.payload, names)
        except ZqError as error:
            raise type(error)(f"jobs[{index}]: {error.message}") from None
        jobs.append(new)
        left -= JOB_BYTES + new.payload_size
    yield jobs
