"""The body of a bulk enqueue, which is checked in slices: many jobs would hold the event loop."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from zq.model.errors import ZqError
from zq.model.job import NewJob
from zq.wire.bodies import JobBody, Limits, check_items, new_job
from zq.wire.codecs import BodyCodec, decode
from zq.wire.weight import LIGHT_BYTES

JOB_BYTES = 1024
"""The bytes of a payload whose check takes as long as checking a job: about a microsecond."""

SLICE_BYTES = 1000 * JOB_BYTES + LIGHT_BYTES
"""The bytes that are checked at a time. It is enough for a thousand jobs in a light body."""


class JobsBody(msgspec.Struct):
    """The body of a bulk enqueue. `bulk_decoder` makes a shape with further fields."""

    jobs: list[JobBody]


BulkDecoder = msgspec.json.Decoder[JobsBody]


def bulk_decoder(fields: Iterable[tuple[str, type[msgspec.Struct]]] = ()) -> BulkDecoder:
    """A decoder of bulks, which may have these fields besides their jobs."""
    optional: list[tuple[str, Any, Any]] = [(name, shape | None, None) for name, shape in fields]
    shape = msgspec.defstruct("JobsBody", optional, bases=(JobsBody,), module=__name__)
    return msgspec.json.Decoder(shape)


def decode_bulk(body: bytes, codec: BodyCodec, decoder: BulkDecoder, limits: Limits) -> JobsBody:
    """The body of a bulk enqueue, whose jobs are not checked yet. Raises `InvalidRequest`."""
    bulk = decode(body, codec, decoder)
    check_items(len(bulk.jobs), limits, "jobs")
    return bulk


def new_jobs(bulk: JobsBody, size: int, codec: BodyCodec, limits: Limits) -> Iterator[list[NewJob]]:
    """The jobs of a bulk of `size` bytes, in slices. The first one of a large body is empty.

    If a job is not valid, the error names the first such job. No job counts before the last slice.
    """
    names: set[str] = set()
    jobs: list[NewJob] = []
    # Decoding a large body has taken a slice already.
    left = SLICE_BYTES - max(0, size - LIGHT_BYTES)
    for index, job in enumerate(bulk.jobs):
        if left <= 0:
            yield jobs
            jobs = []
            left = SLICE_BYTES
        try:
            new = new_job(job, codec, limits.payload, names)
        except ZqError as error:
            raise error.about(index) from None
        jobs.append(new)
        left -= JOB_BYTES + new.payload_size
    yield jobs
