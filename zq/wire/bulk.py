"""The body of a bulk enqueue, which is checked in slices: many jobs would hold the event loop."""

from collections.abc import Iterator

import msgspec

from zq.model.errors import ZqError
from zq.model.job import NewJob
from zq.wire.bodies import JobBody, Limits, check_items, new_job
from zq.wire.codecs import BodyCodec, decode
from zq.wire.weight import LIGHT_BYTES

SLICE = 1_000
"""So many small jobs are checked at a time, which takes about a millisecond."""

BYTES_A_JOB = 1024
"""A job counts once more for so many bytes of its payload."""


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
    left = SLICE - max(0, len(body) - LIGHT_BYTES) // BYTES_A_JOB
    for index, job in enumerate(items):
        if left <= 0:
            yield jobs
            jobs = []
            left = SLICE
        try:
            new = new_job(job, codec, limits, names)
        except ZqError as error:
            raise type(error)(f"jobs[{index}]: {error.message}") from None
        jobs.append(new)
        left -= 1 + new.payload_size // BYTES_A_JOB
    yield jobs
