"""Rows of a DataFrame as jobs: each column is a field of the job, and other columns are refused.

A row that is not a job fails the write, or goes to a separate table (`BadRows`).
"""

import datetime
import hashlib
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

FIELDS = tuple(name for name in Submission.__struct_fields__ if name != "dedupe")
"""The fields of a job but the name, which each row gets."""

MOST_WINDOW_MS = 2**32 - 1
"""The longest time for which the server recognises a name: 49 days."""

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


class RowNames:
    """Names the rows of one task by what they hold, and counts among equal ones.

    So a row has the same name whenever its task runs, in whatever order its rows come: after a
    shuffle Spark may compute them in another one. A task needs about 70 bytes of memory a row.
    """

    def __init__(self, task: str, window_s: int) -> None:
        """The server recognises a name for `window_s` seconds."""
        self._task = task
        self._window_ms = min(window_s * 1000, MOST_WINDOW_MS)
        self._seen: set[int] = set()
        self._repeated: Counter[int] = Counter()

    def named(self, job: Mapping[str, Any]) -> bytes:
        """The job as JSON, with a name. Raises `BadRow` for values that JSON does not have."""
        try:
            content = msgspec.json.encode(job, order="deterministic")
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRow(str(error)) from None
        digest = hashlib.blake2b(content, digest_size=16).digest()
        name = f"spark,{self._task},{digest.hex()},{self._count(digest)}"
        # The server recognises the name also when the job is done and deleted.
        fields: dict[str, Any] = {"dedupe": {"id": name, "window_ms": self._window_ms}}
        if "unique_key" not in job:
            fields |= {"unique_key": name, "unique_while": "exists"}
        return content[:-1] + b"," + msgspec.json.encode(fields)[1:]

    def _count(self, digest: bytes) -> int:
        """How many equal rows came before."""
        short = int.from_bytes(digest[:8])
        if short not in self._seen:
            self._seen.add(short)
            return 0
        self._repeated[short] += 1
        return self._repeated[short]


def body_of(jobs: Iterable[bytes]) -> bytes:
    """A bulk enqueue of encoded jobs."""
    return b'{"jobs":[' + b",".join(jobs) + b"]}"


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

    They go to `folder` as JSON lines of `row` (JSON text) and `error`. A task that runs again
    writes the same file again. Without a folder the first few fail the task, and its message names
    them.
    """

    def __init__(self, folder: str | None, task: str) -> None:
        self.count = 0
        self._folder = folder
        self._task = task
        self._lines: list[bytes] = []
        self._named: list[str] = []

    def add(self, number: int, row: Mapping[str, Any], reason: str) -> None:
        """Note a row. Without a folder, the last row that fits the message raises `SourceError`."""
        self.count += 1
        text = msgspec.json.encode(row, enc_hook=str).decode()
        if self._folder is not None:
            self._lines.append(msgspec.json.encode({"row": text, "error": reason}) + b"\n")
            return
        self._named.append(f"row {number} {text[:200]}: {reason}")
        if self.count >= MOST_NAMED:
            self._fail()

    def close(self) -> None:
        """Write the rows to the folder. Raises `SourceError` for bad rows without a folder."""
        if self._folder is None:
            if self.count:
                self._fail()
            return
        if not self._lines:
            return
        system, path = fs.FileSystem.from_uri(self._folder)
        system.create_dir(path, recursive=True)
        name = re.sub(r"[^A-Za-z0-9-]", "-", self._task)
        draft, final = f"{path}/.{name}.tmp", f"{path}/bad-{name}.json"
        with system.open_output_stream(draft) as file:
            file.write(b"".join(self._lines))
        system.move(draft, final)

    def _fail(self) -> None:
        raise SourceError(
            "rows are not jobs: " + "; ".join(self._named) + ". Rows before them may be stored"
            " already; set badRows=DIR to put such rows aside instead, and writeId=NAME to be able"
            " to run the write again without storing any row twice"
        )
