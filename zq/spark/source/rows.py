"""Rows of a DataFrame as jobs: each column is a field of the job, and other columns are refused.

A row that is not a job fails the write, or goes to a separate table (`BadRows`).
"""

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from pyarrow import fs
from pyspark.sql.types import StructType

from zq.client.values import Submission
from zq.spark.errors import SourceError
from zq.spark.source.options import SourceOptions

FIELDS = tuple(name for name in Submission.__struct_fields__ if name != "batch")
"""The fields of a job but the batch: rows are numbered, and jobs that fold cannot be."""

MOST_NAMED = 5
"""How many bad rows fail a task. The message names each of them."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class BadRow(Exception):
    """A row that is not a job. The text says why."""


def check_columns(schema: StructType, options: SourceOptions) -> None:
    """Raise `SourceError` if a column is not a field of a job, or a required one is missing."""
    strangers = [name for name in schema.names if name not in FIELDS]
    if strangers:
        raise SourceError(
            f"{', '.join(strangers)}: not fields of a job, which are {', '.join(FIELDS)}. Put other"
            f" columns into the payload: struct({', '.join(strangers)}).alias('payload')"
        )
    if options.order_by is not None and options.order_by.split(".")[0] not in schema.names:
        raise SourceError(f"orderBy: there is no column {options.order_by}")
    for name in ("queue", "type"):
        if name not in schema.names and name not in options.filters:
            raise SourceError(f"there is no column {name}: add one, or set the option {name}")


def job_of(row: Mapping[str, Any], options: SourceOptions) -> dict[str, Any]:
    """A row in the form that the server accepts, without a name. Raises `BadRow`."""
    job: dict[str, Any] = {name: options.filters.get(name) for name in ("queue", "type")}
    job["payload"] = None
    if options.priority is not None:
        job["priority"] = options.priority
    job |= {name: value for name, value in row.items() if value is not None}
    for name in ("queue", "type"):
        if not job[name]:
            raise BadRow(f"{name} is missing")
    job["payload"] = _payload(row.get("payload"))
    if "ready_at" in job:
        job["ready_at"] = _millis(job["ready_at"])
    return job


def text_of(job: Mapping[str, Any]) -> bytes:
    """A job as JSON, in one form for equal jobs. Raises `BadRow` for what JSON does not have."""
    try:
        return msgspec.json.encode(job, order="deterministic")
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRow(str(error)) from None


def key_of(row: Mapping[str, Any], path: str | None) -> Any:
    """The value of a column, or of a field within a struct: `payload.at`. None if it is absent."""
    found: Any = row if path is not None else None
    for name in () if path is None else path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def body_of(producer: Mapping[str, Any], jobs: Iterable[bytes]) -> bytes:
    """A bulk enqueue of encoded jobs, which a producer numbers."""
    return b'{"producer":%b,"jobs":[%b]}' % (msgspec.json.encode(producer), b",".join(jobs))


def _payload(value: Any) -> Any:
    """Text is JSON already. Every other value becomes JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.Raw(msgspec.json.format(value.encode(), indent=-1))
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadRow(f"the payload is not JSON text: {error}") from None


def _millis(value: Any) -> Any:
    if not isinstance(value, datetime.datetime):
        return value
    # Spark gives timestamps without a zone, in the machine's own.
    return (value.astimezone(datetime.UTC) - _EPOCH) // datetime.timedelta(milliseconds=1)


class BadRows:
    """The bad rows of one task.

    They go to `folder` as JSON lines of `row` (JSON text) and `error`, and `digest` for a row that
    the server has refused. A task that runs again finds these in the file, and does not send them:
    the rows after them then have the numbers that they had. Without a folder the first few fail the
    task, and its message names them.
    """

    def __init__(self, folder: str | None, task: str) -> None:
        self.count = 0
        self._folder = folder
        self._lines: list[bytes] = []
        self._named: list[str] = []
        self._refused: Counter[str] = Counter()
        """The rows that are in the file, and were not met by this run."""
        if folder is not None:
            self._system, path = fs.FileSystem.from_uri(folder)
            name = re.sub(r"[^A-Za-z0-9-]", "-", task)
            self._path, self._draft = f"{path}/bad-{name}.json", f"{path}/.{name}.tmp"
            self._load()

    @property
    def is_fatal(self) -> bool:
        """True if the task will fail for its bad rows."""
        return self._folder is None and self.count > 0

    def knows(self, digest: bytes) -> bool:
        """True if an earlier run of the task has set this row aside. Each such row is met once."""
        text = digest.hex()
        if not self._refused[text]:
            return False
        self._refused[text] -= 1
        self.count += 1
        return True

    def add(self, number: int, row: str, reason: str, digest: bytes | None = None) -> None:
        """Note a row. Without a folder, the last row that fits the message raises `SourceError`."""
        self.count += 1
        if self._folder is not None:
            line = {"row": row, "error": reason}
            if digest is not None:
                line["digest"] = digest.hex()
            self._lines.append(msgspec.json.encode(line) + b"\n")
            return
        self._named.append(f"row {number} {row[:200]}: {reason}")
        if self.count >= MOST_NAMED:
            self._fail()

    def write(self) -> None:
        """Write the rows to the folder. Raises `SourceError` for bad rows without a folder."""
        if self.is_fatal:
            self._fail()
        if not self._lines:
            return
        self._system.create_dir(self._path.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(self._draft) as file:
            file.write(b"".join(self._lines))
        self._system.move(self._draft, self._path)

    def _load(self) -> None:
        if self._system.get_file_info(self._path).type != fs.FileType.File:
            return
        with self._system.open_input_stream(self._path) as file:
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            digest = msgspec.json.decode(line).get("digest")
            if digest is not None:
                self._refused[digest] += 1
                self._lines.append(line)

    def _fail(self) -> None:
        raise SourceError(
            "rows are not jobs: " + "; ".join(self._named) + ". Rows before them may be stored"
            " already; set badRows=DIR to put such rows aside instead, and writeId=NAME to be able"
            " to run the write again without storing any row twice"
        )
