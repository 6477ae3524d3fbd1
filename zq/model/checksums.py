"""Checksums of what is stored for others: a text that the disk has changed is never handed out.

A checksum is a CRC-32 of UTF-8. It finds every single changed bit, and every change within 32 bits
that follow each other; of other changes it misses one in four thousand million. Rows that an older
version of zq has stored have none (NULL), and are taken as they are.
"""

from collections.abc import Iterable
from zlib import crc32

from msgspec import Raw

from zq.model.job import ErrorRecord, Extras, JobRecord


class ChecksumMismatch(Exception):
    """A row does not hold what was stored. The message names the part."""


def checksum(text: str | bytes) -> int:
    """The checksum of one text."""
    return crc32(text.encode() if isinstance(text, str) else text)


def checksum_of_all(*texts: str | None) -> int:
    """The checksum of several texts, each of which may be missing."""
    return crc32("\0".join([text or "" for text in texts]).encode())


def job_checksum(type: str, payload: str | None, extras: Extras | None) -> int:
    """The checksum of what a job's row carries for its worker.

    `payload` is None if it is stored apart: then it has a checksum of its own.
    """
    carried = f"{type}\0{payload or ''}"
    if extras is not None and (extras.meta or extras.content_type or extras.traceparent):
        rest = (extras.meta, extras.content_type, extras.traceparent)
        carried = "\0".join([carried, *[text or "" for text in rest]])
    return crc32(carried.encode())


def error_checksum(record: ErrorRecord) -> int:
    """The checksum of the texts of a failure."""
    return checksum_of_all(record.message, record.error_type, record.backtrace)


def record_checksum(data: str | bytes | Raw, meta: str | bytes | Raw | None) -> int:
    """The checksum of the texts of a topic's record."""
    texts = [text.encode() if isinstance(text, str) else text for text in (meta or "", data)]
    return crc32(texts[1], crc32(texts[0]))


def check_jobs(jobs: Iterable[JobRecord]) -> None:
    """Check jobs as they were read, without what is stored apart.

    Raises `ChecksumMismatch` if one of them does not hold what was stored.
    """
    for job in jobs:
        # Every claim comes here, so the usual job takes the shortest way.
        stored = job.checksum
        if stored is not None:
            if job.extras is None:
                found = crc32(f"{job.type}\0{job.payload or ''}".encode())
            else:
                found = job_checksum(job.type, job.payload, job.extras)
            if found != stored:
                raise ChecksumMismatch("its type, payload or meta")
        if job.result is not None:
            check_text("its result", job.result, job.result_checksum)


def check_text(part: str, text: str | bytes, stored: int | None) -> None:
    """Check one text. Raises `ChecksumMismatch` that names the part."""
    if stored is not None and checksum(text) != stored:
        raise ChecksumMismatch(part)


def fits(text: str | bytes, stored: int | None) -> bool:
    """Whether a text is the one that was stored with this checksum, if there is one."""
    return stored is None or checksum(text) == stored
