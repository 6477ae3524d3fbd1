"""The tables of the lake. All times are those of the devices' own clocks, in UTC.

`date` is the UTC day by which a table is partitioned: of `finished_at` in bronze and attempts, of
`enqueued_at` in jobs, and of the hour in gold.
"""

import msgspec
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from zq.model.history import HistoryRecord
from zq.spark.formats import Table


def history_schema() -> StructType:
    """The record of the server as a row: columns named as its fields, integers as BIGINT."""
    return StructType([_column(field) for field in msgspec.structs.fields(HistoryRecord)])


def _column(field: msgspec.structs.FieldInfo) -> StructField:
    kind: DataType = LongType() if field.type in (int, int | None) else StringType()
    return StructField(field.name, kind, nullable=not field.required)


HISTORY = history_schema()

BRONZE = Table(
    "bronze",
    ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in HISTORY)
    + ", source string, date date",
    ("date", "device"),
)
"""Every record once, as it came. `source` is the segment that it came from, null for a server."""

REJECTED = Table("rejected", "source string, line string")
"""Lines that are no record, kept to be looked at."""

ATTEMPTS = Table(
    "silver/attempts",
    """
    epoch string, seq bigint, job_id string, queue string, type string, attempt bigint,
    outcome string, enqueued_at timestamp, ready_at timestamp, dequeued_at timestamp,
    finished_at timestamp, wait_ms bigint, run_ms bigint, skewed boolean, error_type string,
    error_message string, fingerprint string, worker string, payload_bytes bigint,
    priority bigint, date date, device string
    """,
    ("date", "device"),
)
"""One row an attempt. `wait_ms` is from ready to the worker, `run_ms` from there to the end.

`skewed`: the device's clock was set during the attempt, so that its times make no sense together;
its durations are null then. `fingerprint` is the same for errors that differ in numbers, ids and
quoted words only."""

JOBS = Table(
    "silver/jobs",
    """
    epoch string, job_id string, queue string, type string, outcome string, is_final boolean,
    attempts bigint, failures bigint, stalls bigint, enqueued_at timestamp, finished_at timestamp,
    wait_ms bigint, run_ms bigint, total_ms bigint, last_seq bigint, date date, device string
    """,
    ("date", "device"),
)
"""One row a job. `outcome`, queue and type are those of its last attempt; `wait_ms` and `run_ms`
are sums over its attempts, `total_ms` is from being enqueued to its end (null before that)."""

FACT_SUMS = (
    *("attempts", "completed", "failed", "dead", "cancelled", "expired", "stalled", "skewed"),
    *("arrivals", "payload_bytes", "waits", "wait_ms", "runs", "run_ms", "run_ms_squared"),
    *("waiting_ms", "busy_ms", "waiting_at_end"),
)
"""What gold counts: sums over attempts, so that any of them can be added up further.

- attempts … skewed, payload_bytes, waits, wait_ms, runs, run_ms, run_ms_squared: of the attempts
  that finished in the hour (`waits` and `runs` have a known wait and run).
- arrivals: attempts that became ready in it.
- waiting_ms, busy_ms: how much of the hour attempts spent waiting and running, added up.
- waiting_at_end: attempts that waited when the hour ended."""

_KEY = "hour timestamp, queue string, type string"
_SUMS = ", ".join(
    f"{name} {'double' if name == 'run_ms_squared' else 'bigint'}" for name in FACT_SUMS
)

FACTS = Table("gold/facts", f"{_KEY}, {_SUMS}, date date", ("date",))

HISTOGRAMS = Table(
    "gold/histograms", f"{_KEY}, measure string, bucket int, count bigint, date date", ("date",)
)
"""How many waits (`measure` wait) and runs (run) of attempts that finished in the hour fall in each
bucket of `zq.spark.histogram`."""

ERRORS = Table(
    "gold/errors",
    f"{_KEY}, error_type string, fingerprint string, message string, count bigint, date date",
    ("date",),
)
"""Failures of the hour by fingerprint; `message` is one of theirs."""

_SUMMARY = f"""
    {_SUMS}, failure_rate double, wait_p50_ms double, wait_p95_ms double, wait_p99_ms double,
    run_p50_ms double, run_p95_ms double, run_p99_ms double, backlog double,
    arrivals_per_s double, served_per_s double, service_rate double, busy_workers double,
    workers_needed int, target_ms bigint, date date
"""

HOURLY = Table("gold/hourly", f"{_KEY}, {_SUMMARY}", ("date",))
"""Per queue, type and hour: the facts and what follows from them (`zq.spark.summary`)."""

QUEUES = Table("gold/queues", f"hour timestamp, queue string, {_SUMMARY}", ("date",))
"""The same per queue and hour, all types of a queue together."""

TABLES = {
    table.name: table
    for table in (
        *(BRONZE, REJECTED, ATTEMPTS, JOBS),
        *(FACTS, HISTOGRAMS, ERRORS, HOURLY, QUEUES),
    )
}
"""All tables of the lake, by name."""
