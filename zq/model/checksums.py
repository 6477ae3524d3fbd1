"""Checksums of what is stored for others: a text that the disk has changed is never handed out.

A checksum is a CRC-32 of UTF-8. It finds every single changed bit, and every change within 32 bits
that follow each other; of other changes it misses one in four thousand million. Rows that an older
version of zq has stored have none (NULL), and are taken as they are.
"""

from collections.abc import Iterable
from operator import attrgetter
from zlib import crc32

import msgspec
from msgspec import Raw

from zq.model.job import BackoffRule, CarriedFields, ErrorRecord, Extras, JobRecord, JobSettings

_LATER = [
    name for name in CarriedFields.__struct_fields__ if name not in ("content_type", "traceparent")
]
"""Fields of jobs that are newer than checksums. A job without them keeps its old
checksum."""

_SETTINGS = sorted(JobSettings.__struct_fields__)
_BEGINNINGS = [name.encode() + b"\0" for name in _SETTINGS]
_values_of = attrgetter(*_SETTINGS)

_encode = msgspec.json.Encoder().encode

MOST_TYPES = 1024
"""The most types whose checksums are remembered."""


class ChecksumMismatch(Exception):
    """A row does not hold what was stored. The message names the part."""


class _Types(dict[str, int]):
    """The checksums of types of jobs, each with the zero byte that comes before the payload.

    A checksum can go on from another one, and there are few types as a rule. So the checksum of a
    job takes one step over the payload, and no text is put together for it.
    """

    def __missing__(self, type: str) -> int:
        if len(self) >= MOST_TYPES:
            self.clear()
        found = self[type] = crc32(f"{type}\0".encode())
        return found


_types = _Types()


def checksum(text: str | bytes) -> int:
    """The checksum of one text."""
    return crc32(text.encode() if isinstance(text, str) else text)


def checksum_of_all(*texts: str | None) -> int:
    """The checksum of several texts, each of which may be missing."""
    return crc32("\0".join([text or "" for text in texts]).encode())


def job_checksum(
    type: str, payload: str | None, extras: Extras | None, options: JobSettings | None = None
) -> int:
    """The checksum of what a job's row carries for its worker, and of its own settings.

    `payload` is None if it is stored apart: then it has a checksum of its own.
    """
    found = crc32(payload.encode(), _types[type]) if payload else _types[type]
    if options is not None:
        return _of_carried(found, extras) ^ _of_options(options)
    return found if extras is None else _of_carried(found, extras)


def with_options(job: JobRecord, options: JobSettings | None) -> int | None:
    """The checksum of a job's row that gets other settings."""
    if job.checksum is None or options == job.options:
        return job.checksum
    return job.checksum ^ _of_options(job.options) ^ _of_options(options)


def _of_carried(found: int, extras: Extras | None) -> int:
    if extras is None:
        return found
    if extras.meta or extras.content_type or extras.traceparent:
        for text in (extras.meta, extras.content_type, extras.traceparent):
            found = crc32(f"\0{text or ''}".encode(), found)
    for name in _LATER:
        if (value := getattr(extras, name)) is not None:
            found = crc32(f"\0{name}\0{value}".encode(), found)
    return found


def _of_options(options: JobSettings | None) -> int:
    """The checksum of a job's own settings; 0 if it has none.

    It is joined to that of the rest by XOR, so that a change of settings need not read a payload.
    """
    found = 0
    if options is not None:
        for beginning, value in zip(_BEGINNINGS, _values_of(options), strict=True):
            if value is not None:
                if isinstance(value, BackoffRule):
                    # An exponent that was given as 2 is 2.0 once it is read.
                    value = (float(value.exponent), value.base_ms, value.jitter_ms)
                found = crc32(beginning + _encode(value), found)
    return found


def error_checksum(record: ErrorRecord) -> int:
    """The checksum of the texts of a failure."""
    return checksum_of_all(record.message, record.error_type, record.backtrace)


def record_checksum(data: str | bytes | Raw, meta: str | bytes | Raw | None) -> int:
    """The checksum of a topic's record, or of a batch of a log and what its records share."""
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
            found = crc32((job.payload or "").encode(), _types[job.type])
            if job.extras is not None or job.options is not None:
                found = job_checksum(job.type, job.payload, job.extras, job.options)
            if found != stored:
                raise ChecksumMismatch("its type, payload, meta or options")
        if job.result is not None:
            check_text("its result", job.result, job.result_checksum)


def check_text(part: str, text: str | bytes, stored: int | None) -> None:
    """Check one text. Raises `ChecksumMismatch` that names the part."""
    if stored is not None and checksum(text) != stored:
        raise ChecksumMismatch(part)


def fits(text: str | bytes, stored: int | None) -> bool:
    """True if a text is the one that was stored with this checksum, if there is one."""
    return stored is None or checksum(text) == stored
