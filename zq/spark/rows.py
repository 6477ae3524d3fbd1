"""Rows of a DataFrame as jobs: columns are fields, whatever is none of them is refused."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from pyspark.sql.types import StructType

from zq.spark.options import Options, SourceError

FIELDS = (
    *("queue", "type", "payload", "priority", "ready_at", "retry_limit", "backoff", "retention"),
    *("unique_key", "unique_while", "on_conflict", "group"),
)

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class BadRow(Exception):
    """A row that is no job; the text says why."""


def check_columns(schema: StructType, options: Options) -> None:
    """Raise `SourceError` where columns are no fields of a job, or one is missing."""
    strangers = [name for name in schema.names if name not in FIELDS]
    if strangers:
        raise SourceError(
            f"{', '.join(strangers)}: no fields of a job, which are {', '.join(FIELDS)}. Put other"
            f" columns into the payload: struct({', '.join(strangers)}).alias('payload')"
        )
    for name in ("queue", "type"):
        if name not in schema.names and name not in options.filters:
            raise SourceError(f"there is no column {name}: add one, or set the option {name}")


def job_of(row: Mapping[str, Any], options: Options, identity: str) -> dict[str, Any]:
    """A row as the server takes it. `identity` names it among all that are ever written.

    Raises `BadRow`.
    """
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
    if "unique_key" not in job:
        job |= {"unique_key": identity, "unique_while": "exists"}
    # Found again, sent twice, even if its job has been done and is gone meanwhile.
    window = min(int(options.dedupe_for_s * 1000), 2**32 - 1)
    job["dedupe"] = {"id": identity, "window_ms": window}
    return job


def encoded(job: Mapping[str, Any]) -> bytes:
    """The job as JSON. Raises `BadRow` for what JSON does not have."""
    try:
        return msgspec.json.encode(job)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRow(str(error)) from None


def body_of(jobs: Iterable[bytes]) -> bytes:
    """A bulk enqueue of encoded jobs."""
    return b'{"jobs":[' + b",".join(jobs) + b"]}"


def _payload(value: Any) -> Any:
    """Text is JSON already; everything else becomes JSON as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.Raw(msgspec.json.format(value.encode(), indent=-1))
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadRow(f"the payload is no JSON text: {error}") from None


def _millis(value: Any) -> Any:
    if not isinstance(value, datetime.datetime):
        return value
    # Spark hands timestamps over without a zone, in that of the machine.
    return (value.astimezone(datetime.UTC) - _EPOCH) // datetime.timedelta(milliseconds=1)
