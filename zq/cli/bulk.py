"""Enqueues a file of jobs of any size: in bulk requests, in order, with bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, NamedTuple, Protocol

import msgspec
from msgspec import Raw

from zq.client.backend import Backend, run
from zq.client.errors import InvalidPayload, Unavailable, ZqError, cut_of
from zq.client.http.transport import UNDECIDED, Unreachable
from zq.client.values import StoredJob, Submission
from zq.model.errors import InvalidRequest
from zq.model.names import check_name
from zq.model.patching import StrictBackoff, StrictRetention

BATCH_JOBS = 1000
BATCH_BYTES = 2**20
LONGEST_LINE = 2**26
"""This many bytes are more than the largest body that a server accepts by default."""


class JobLine(
    Submission, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True
):
    """A job in the form of `POST /jobs`. The text of its payload is kept as it is."""

    queue: str = ""
    type: str = ""
    payload: Raw
    backoff: StrictBackoff | None = None
    retention: StrictRetention | None = None


class Numbered(NamedTuple):
    """A line, with its number from 1 and its end in the file."""

    number: int
    end: int
    job: JobLine


class Stopped(Exception):
    """Everything before `line` is stored or was skipped, and nothing after `doubtful` is stored.

    It is unknown whether the lines from `line` to `doubtful`, if there are any, are stored.
    """

    def __init__(self, line: int, reason: ZqError, doubtful: int = 0) -> None:
        super().__init__(reason.message)
        self.line = line
        self.reason = reason
        self.doubtful = doubtful


class Interrupted(ZqError):
    """Somebody has pressed Ctrl-C."""

    code = "interrupted"


class Numbering(Protocol):
    """Stores numbered jobs, and says which number the server expects."""

    async def expected(self) -> int:
        """The number of the first job that is not stored yet."""

    async def store(self, first: int, jobs: Sequence[Submission]) -> list[StoredJob]:
        """Store jobs whose first one has this number."""


@dataclass
class Load:
    """Enqueues a file. `defaults` are for fields that a line lacks."""

    backend: Backend
    defaults: JobLine
    payloads: bool = False
    """Each line is only a payload, not a whole job."""
    stored: int = 0
    duplicates: int = 0
    next_line: int = 1
    sent: int = 0
    """The last line that the server may have stored."""
    progress: Callable[[Numbered], None] = field(default=lambda _last: None)
    numbered: Numbering | None = None
    """Stores the jobs by their numbers: the first job of the file has 1. None: as usual."""

    def __post_init__(self) -> None:
        self._given = _set(self.defaults)
        self._seq = 1
        """The number of the next job to be stored."""

    def run(self, file: IO[bytes], from_line: int = 1) -> None:
        """Store the jobs of the file's lines. Empty lines are skipped. Raises `Stopped`.

        Numbered jobs that the server has stored before are passed over.
        """
        self.next_line = from_line
        try:
            lines = self._lines(file, from_line)
            if self.numbered is not None:
                self._seq = self._ask(self.numbered)
                self.duplicates += sum(1 for _ in islice(lines, self._seq - 1))
            self._run(lines)
        except KeyboardInterrupt:
            # An interruption comes anywhere, also between an answer and the count of its jobs.
            doubtful = self.sent if self.sent >= self.next_line else 0
            raise Stopped(self.next_line, Interrupted("interrupted"), doubtful) from None

    def _run(self, lines: Iterator[Numbered]) -> None:
        batch: list[Numbered] = []
        started = 0
        while True:
            try:
                line = next(lines, None)
            except Stopped:
                self._store(batch)
                raise
            full = line is None or len(batch) == BATCH_JOBS or line.end - started > BATCH_BYTES
            if batch and full:
                self._store(batch)
                started, batch = batch[-1].end, []
            if line is None:
                return
            batch.append(line)

    def _lines(self, file: IO[bytes], from_line: int) -> Iterator[Numbered]:
        number = end = 0
        while raw := file.readline(LONGEST_LINE):
            number, end = number + 1, end + len(raw)
            if number < from_line or raw.isspace():
                continue
            if len(raw) == LONGEST_LINE:
                raise Stopped(
                    number, InvalidPayload(f"the line has more than {LONGEST_LINE:,} bytes")
                )
            try:
                yield Numbered(number, end, self._job(raw))
            except InvalidRequest as error:
                raise Stopped(number, error) from error
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise Stopped(number, InvalidPayload(f"the line is not a job: {error}")) from error

    def _job(self, raw: bytes) -> JobLine:
        if self.payloads:
            job = JobLine(payload=msgspec.json.decode(raw, type=Raw))
        else:
            job = _decoder.decode(raw)
        given = {name: value for name, value in self._given if getattr(job, name) in (None, "")}
        job = msgspec.structs.replace(job, **given) if given else job
        if not job.queue:
            raise msgspec.ValidationError("neither the line nor the command names a `queue`")
        if job.type:
            return job
        return msgspec.structs.replace(job, type=check_name("queue", job.queue))

    def _store(self, lines: list[Numbered]) -> None:
        """Store the lines. A refused batch is cut until the bad line is found."""
        if not lines:
            return
        first, last = lines[0].number, lines[-1].number
        self.sent = last
        try:
            jobs = run(self._enqueue([line.job for line in lines]))
        except ZqError as error:
            if isinstance(error, Unavailable) or len(lines) == 1:
                raise Stopped(first, error, last if _is_doubtful(error) else 0) from error
            cut = cut_of(error, len(lines))
        else:
            self.duplicates += sum(job.duplicate for job in jobs)
            self.stored = self.stored + sum(not job.duplicate for job in jobs)
            self.next_line = last + 1
            self._seq += len(jobs)
            self.progress(lines[-1])
            return
        self.sent = first - 1
        self._store(lines[:cut])
        self._store(lines[cut:])

    async def _enqueue(self, jobs: list[JobLine]) -> list[StoredJob]:
        if self.numbered is None:
            return await self.backend.enqueue(jobs)
        return await self.numbered.store(self._seq, jobs)

    def _ask(self, numbered: Numbering) -> int:
        """The number that the server expects. Raises `Stopped`."""
        try:
            return run(numbered.expected())
        except ZqError as error:
            raise Stopped(self.next_line, error) from error


_decoder = msgspec.json.Decoder(JobLine)


def _set(defaults: JobLine) -> list[tuple[str, object]]:
    fields = ((name, getattr(defaults, name)) for name in JobLine.__struct_fields__)
    return [
        (name, value) for name, value in fields if name != "payload" and value not in (None, "")
    ]


def _is_doubtful(error: ZqError) -> bool:
    return error.code in UNDECIDED or (isinstance(error, Unreachable) and error.sent)
