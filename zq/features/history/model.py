"""The history of jobs: the record of one finished attempt, and the form of exported segments.

The server writes these records, `zq history export` puts them into segments, and the pipeline reads
them. All three use this file.

An export directory has segments and one manifest. A segment is NDJSON compressed by gzip, with one
record a line in the order of `seq`. Its name says which records it has (`segment_name`). It is
written under another name and then renamed, so a file with its final name is complete. The manifest
lists the segments and is replaced after each. Copies of a directory may come late, twice and in
part.
"""

import re
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

Amount = Annotated[int, Meta(ge=0, le=2**53 - 1)]
PayloadBytes = Annotated[int, Meta(ge=0, le=2**32 - 1)]
"""Reports add them up over all attempts, in 64 bits."""
Moment = Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)]

FORMAT = 1
"""The version of records and manifests. It rises when a field changes its meaning."""

MANIFEST = "manifest.json"
SEGMENT_SUFFIX = ".ndjson.gz"
_SEGMENT = re.compile(r"(?P<epoch>.+)-(?P<first>\d{20})-(?P<last>\d{20})\.ndjson\.gz")


class AttemptOutcome(StrEnum):
    """How an attempt ended.

    After `failed` and `stalled` the job runs again. The other outcomes end the job.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    STALLED = "stalled"


OUTCOMES = tuple(outcome.value for outcome in AttemptOutcome)

FINAL_OUTCOMES = (
    AttemptOutcome.COMPLETED,
    AttemptOutcome.DEAD,
    AttemptOutcome.CANCELLED,
    AttemptOutcome.EXPIRED,
)
"""The outcomes that end a job."""


class HistoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One finished attempt. Times are milliseconds since 1970 by the clock of the device.

    `seq` counts without gaps within `epoch`, which names one database for ever. Together they name
    a record, and the same name always means the same record. `attempt` is 1 at the first run. A
    stall spends none, so two records of a job may have the same number. `dequeued_at` and `worker`
    are None if the job never ran, since it expired or was cancelled while it waited.
    """

    seq: int
    epoch: str
    device: str
    job_id: str
    queue: str
    type: str
    attempt: int
    outcome: AttemptOutcome
    enqueued_at: int
    ready_at: int
    finished_at: int
    payload_bytes: int
    priority: int
    dequeued_at: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    worker: str | None = None


class StoredAttempt(msgspec.Struct, array_like=True, gc=False):
    """A record as the store keeps it. `worker` is a name, or the number of a stream.

    Fields that the attempts of a batch share are stored elsewhere. The first fields, which have no
    defaults, are read from the job. The others say how the attempt ended, if they differ.
    """

    key: int
    queue: str
    type: str
    attempt: int
    ready_at: int
    dequeued_at: int | None
    worker: int | str | None
    payload_bytes: int
    priority: int
    outcome: AttemptOutcome | None = None
    error_type: str | None = None
    error_message: str | None = None
    finished_at: int | None = None
    """Not None for an attempt of a device that has sent its history here."""
    id_suffix: str | None = None
    """The end of its ids: that of the device's database."""


class ForwardedAttempt(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A `HistoryRecord` as a device sends it to its hub, without what the request says of all."""

    job_id: str
    queue: Annotated[str, Meta(min_length=1, max_length=512)]
    type: Annotated[str, Meta(min_length=1, max_length=512)]
    attempt: Amount
    outcome: AttemptOutcome
    ready_at: Moment
    finished_at: Moment
    payload_bytes: PayloadBytes
    priority: Amount
    dequeued_at: Moment | None = None
    error_type: Annotated[str, Meta(max_length=1024)] | None = None
    error_message: Annotated[str, Meta(max_length=1024)] | None = None
    worker: Annotated[str, Meta(max_length=1024)] | None = None


class Segment(msgspec.Struct, frozen=True):
    """One file of an export. `bytes` and `sha256` (in hex) are those of the compressed file."""

    file: str
    first_seq: int
    last_seq: int
    count: int
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """The contents of an export directory, in the order of `first_seq`."""

    epoch: str
    device: str
    segments: tuple[Segment, ...] = ()
    format: int = FORMAT


def segment_name(epoch: str, first_seq: int, last_seq: int) -> str:
    """`EPOCH-FIRSTSEQ-LASTSEQ.ndjson.gz`. Such names sort by sequence number."""
    return f"{epoch}-{first_seq:020}-{last_seq:020}{SEGMENT_SUFFIX}"


def parse_segment_name(name: str) -> tuple[str, int, int] | None:
    """The epoch and the first and last sequence number of a segment; None for other names."""
    found = _SEGMENT.fullmatch(name)
    return found and (found["epoch"], int(found["first"]), int(found["last"]))
