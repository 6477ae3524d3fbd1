"""Exports the history of jobs: a reader of a server's pages, and a directory of segments."""

import contextlib
import dataclasses
import fcntl
import gzip
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from zq.client.backend import run
from zq.client.errors import BackendError, ZqError
from zq.client.formats import JSON
from zq.client.http.address import Address, Tls
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Request, persist
from zq.features.history.model import (
    FORMAT,
    MANIFEST,
    Manifest,
    Segment,
    parse_segment_name,
    segment_name,
)

LINES = dataclasses.replace(JSON, content_type="application/x-ndjson")

TIMEOUT_S = 60.0
TRIES = 6

MOST_RECORDS = 10_000
"""The most records that one request asks for."""


class HistoryGone(BackendError):
    """The retention of the record has ended. `min_seq` is the first record that is kept."""

    def __init__(self, message: str, min_seq: int) -> None:
        super().__init__(message, 410)
        self.min_seq = min_seq

    def __reduce__(self) -> tuple[type["HistoryGone"], tuple[str, int]]:
        return HistoryGone, (self.message, self.min_seq)


class HistoryPage(NamedTuple):
    """Records as NDJSON, and the range of the server's history that can be read.

    If it is empty, `min_seq` is one more than `max_seq`.
    """

    epoch: str
    recording: bool
    min_seq: int
    max_seq: int
    lines: bytes

    @property
    def first(self) -> "Mark | None":
        """The first record of the page."""
        return _mark(self.lines[: self.lines.find(b"\n")])

    @property
    def last(self) -> "Mark | None":
        """The last record of the page."""
        end = len(self.lines) - 1
        return _mark(self.lines[self.lines.rfind(b"\n", 0, end) + 1 :])


class Mark(msgspec.Struct):
    """The position of a record: its number, its device, and its attempt's end (milliseconds)."""

    seq: int
    device: str
    finished_at: int


class HistoryReader:
    """The history of one server. `tries` limits how often a failing request is sent."""

    def __init__(
        self, url: str, token: str | None = None, tries: int = TRIES, tls: Tls | None = None
    ) -> None:
        """Without `tls`, the environment's is used. Raises `InvalidOption`."""
        self.url = url
        self._tries = tries
        self._address = Address(url.rstrip("/"), token, LINES, tls or Tls.of_environment())
        self._transport = BlockingTransport(self._address)

    def __reduce__(self) -> tuple[Any, ...]:
        return HistoryReader, (self.url, self._address.token, self._tries, self._address.tls)

    def page(
        self,
        after: int | None = None,
        *,
        until: int | None = None,
        limit: int = MOST_RECORDS,
    ) -> HistoryPage:
        """Up to `limit` records with ``after < seq <= until``; after None, from the oldest one on.

        It may hold fewer than there are: continue after its last one. Raises `HistoryGone`,
        `Unavailable` or another `BackendError`.
        """
        given = {"after": after, "until": until, "limit": limit}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        request = Request("GET", f"/history?{query}", timeout=TIMEOUT_S, safe=True)
        reply = run(persist(self._transport.send, self._transport.sleep, request, self._tries))
        if reply.status == 410:
            said = msgspec.json.decode(reply.body, type=_Gone)
            raise HistoryGone(said.error, said.min_seq)
        if reply.status != 200:
            raise reply.error()
        try:
            told = [reply.headers[f"zq-{name}"] for name in ("epoch", "recording")]
            least, most = (int(reply.headers[f"zq-{name}-seq"]) for name in ("min", "max"))
        except (KeyError, ValueError) as error:
            raise BackendError(
                f"{self.url} does not serve a history: is it a zq server?"
            ) from error
        return HistoryPage(told[0], told[1] == "yes", least, most, reply.body)

    def first_since(self, time: int) -> int:
        """The number of the first record that ended at `time` (milliseconds) or later.

        It is one more than the last number if there is no such record. The search halves the range,
        as if the device's clock had never been set back.
        """
        found = self.page(limit=1)
        low, high = found.min_seq, found.max_seq + 1
        while low < high:
            middle = (low + high) // 2
            record = self._first_from(middle)
            if record is not None and record.finished_at >= time:
                high = middle
            else:
                low = middle + 1
        return low

    def _first_from(self, seq: int) -> "Mark | None":
        """The first record with this number or a higher one. Some may be gone."""
        try:
            return self.page(seq - 1, limit=1).first
        except HistoryGone as gone:
            return self._first_from(gone.min_seq)

    def close(self) -> None:
        """Close the connection. The next page opens another."""
        run(self._transport.close())


class _Gone(msgspec.Struct):
    error: str
    min_seq: int


def _mark(line: bytes) -> Mark | None:
    return msgspec.json.decode(line, type=Mark) if line else None


DRAFT = ".segment.tmp"
LEVEL = 6
"""The level of gzip. Level 9 takes three times as long for two percent."""


class ExportError(ZqError):
    """The directory cannot take this history; the message says why."""

    code = "export"


class Exported(NamedTuple):
    """The result of one export: new records and segments, and the records that came too late.

    `lost` lists the ranges (first, last) that had passed their retention. `recording` tells whether
    the server still records.
    """

    records: int
    segments: tuple[Segment, ...]
    lost: tuple[tuple[int, int], ...]
    recording: bool


class Directory:
    """The target of segments, for one export at a time. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = -1
        self.manifest: Manifest | None = None

    def __enter__(self) -> "Directory":
        self._path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self._path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.manifest = self._read()
        except BlockingIOError:
            os.close(self._lock)
            raise ExportError(f"another export is writing into {self._path}") from None
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    def open_for(self, epoch: str) -> int | None:
        """The last number of this database in the directory; None if it holds none.

        An export that was cut off may have left whole segments that it did not list. They are
        listed now.
        """
        if self.manifest is not None and self.manifest.epoch != epoch:
            raise ExportError(
                f"{self._path} holds the history of another database (epoch {self.manifest.epoch},"
                f" not {epoch}): name another directory"
            )
        (self._path / DRAFT).unlink(missing_ok=True)
        while (left := self._unlisted(epoch)) is not None:
            self._list(left, _device(left))
        return self._last()

    @contextlib.contextmanager
    def draft(self, epoch: str) -> Iterator["Draft"]:
        """A new segment. It is complete and listed once the block ends without an error."""
        draft = Draft(self._path / DRAFT)
        try:
            yield draft
        except BaseException:
            draft.abandon()
            raise
        draft.finish()
        name = self._path / segment_name(epoch, draft.first_seq, draft.last_seq)
        (self._path / DRAFT).rename(name)
        os.fsync(self._lock)
        self._list(name, draft.device)

    def _list(self, path: Path, device: str) -> None:
        parsed = parse_segment_name(path.name)
        assert parsed is not None
        epoch, first, last = parsed
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        segment = Segment(path.name, first, last, last - first + 1, len(data), digest)
        before = self.manifest or Manifest(epoch, device)
        manifest = Manifest(epoch, device, (*before.segments, segment))
        draft = self._path / f".{MANIFEST}.tmp"
        with draft.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self._path / MANIFEST)
        os.fsync(self._lock)
        self.manifest = manifest

    def _unlisted(self, epoch: str) -> Path | None:
        """The next segment that is in the directory but in no manifest."""
        last = self._last() or 0
        found = []
        for path in self._path.iterdir():
            parsed = parse_segment_name(path.name)
            if parsed is not None and parsed[0] == epoch and parsed[1] > last:
                found.append((parsed[1], path))
        return min(found)[1] if found else None

    def _last(self) -> int | None:
        if self.manifest is None or not self.manifest.segments:
            return None
        return self.manifest.segments[-1].last_seq

    def _read(self) -> Manifest | None:
        file = self._path / MANIFEST
        if not file.exists():
            return None
        try:
            manifest = msgspec.json.decode(file.read_bytes(), type=Manifest)
        except msgspec.DecodeError as error:
            raise ExportError(f"{file} is not a manifest: {error}") from None
        if manifest.format != FORMAT:
            raise ExportError(
                f"{file} has format {manifest.format}, but this version of zq writes {FORMAT}"
            )
        return manifest


class Draft:
    """A segment that is being written."""

    def __init__(self, path: Path) -> None:
        self.first_seq = self.last_seq = 0
        self.device = ""
        self._file = path.open("wb")
        # The header has no time, so equal records make equal bytes.
        self._packer = gzip.GzipFile("", "wb", LEVEL, self._file, mtime=0)

    @property
    def count(self) -> int:
        return self.last_seq - self.first_seq + 1 if self.last_seq else 0

    def add(self, page: HistoryPage) -> None:
        """Add the records of a page."""
        first, last = page.first, page.last
        assert first is not None
        assert last is not None
        self.first_seq = self.first_seq or first.seq
        self.last_seq = last.seq
        self.device = last.device
        self._packer.write(page.lines)

    def finish(self) -> None:
        """Write everything to the disk."""
        self._packer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Drop the segment."""
        self._packer.close()
        self._file.close()


def export(
    reader: HistoryReader,
    directory: Directory,
    *,
    since: int | None,
    most_records: int,
    progress: Callable[[int, int], None],
) -> Exported:
    """Write new records into segments of about `most_records` at most.

    `since` (milliseconds) is the start for a directory that has nothing yet. `progress` gets the
    number of records done and the number of all.
    """
    there = reader.page(limit=1)
    after = directory.open_for(there.epoch)
    if after is None:
        after = (there.min_seq if since is None else reader.first_since(since)) - 1
    began, end = after, there.max_seq
    segments: list[Segment] = []
    lost: list[tuple[int, int]] = []
    while after < end:
        try:
            page = reader.page(after, until=end, limit=_limit(most_records))
        except HistoryGone as gone:
            lost.append((after + 1, gone.min_seq - 1))
            after = gone.min_seq - 1
            continue
        _same(there, page)
        with directory.draft(there.epoch) as draft:
            draft.add(page)
            while draft.last_seq < end and draft.count < most_records:
                progress(draft.last_seq - began, end - began)
                left = most_records - draft.count
                try:
                    page = reader.page(draft.last_seq, until=end, limit=_limit(left))
                except HistoryGone:
                    break
                _same(there, page)
                draft.add(page)
        after = draft.last_seq
        assert directory.manifest is not None
        segments.append(directory.manifest.segments[-1])
    progress(end - began, end - began)
    records = sum(segment.count for segment in segments)
    return Exported(records, tuple(segments), tuple(lost), there.recording)


def _limit(records: int) -> int:
    return min(records, MOST_RECORDS)


def _same(there: HistoryPage, page: HistoryPage) -> None:
    if page.epoch != there.epoch:
        raise ExportError("the database of the server has been replaced: run the export again")


def _device(segment: Path) -> str:
    with gzip.open(segment) as lines:
        return msgspec.json.decode(next(iter(lines)), type=Mark).device
