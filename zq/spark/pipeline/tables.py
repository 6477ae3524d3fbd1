"""The tables of the lake. All times are those of the devices' own clocks, in UTC.

`date` is the UTC day by which a table is partitioned: of `finished_at` in bronze and attempts, of
`enqueued_at` in jobs, and of the hour in gold.
"""

from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from zq.spark.source.reading import HISTORY

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def day_of(millis: Column) -> Column:
    """The DATE of a time in Unix milliseconds, in UTC whatever time zone the session has."""
    return F.date_from_unix_date(F.floor(millis / DAY_MS).cast("int"))


def floor_to(millis: Column, size: int) -> Column:
    """The beginning of the hour, minute or other time of `size` milliseconds."""
    return millis - F.pmod(millis, F.lit(size))


@dataclass(frozen=True)
class Table:
    """A table of the lake: its place, its columns (DDL), and the columns that partition it."""

    name: str
    columns: str
    partition_by: tuple[str, ...] = ()

    @property
    def schema(self) -> StructType:
        return cast(StructType, StructType.fromDDL(self.columns))


BRONZE = Table(
    "bronze",
    ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in HISTORY)
    + ", source string, date date",
    ("date", "device"),
)
"""Every record once, as it came. `source` is the segment of the record, null for a server."""

REJECTED = Table("rejected", "source string, line string")
"""Lines that are not records, kept for inspection."""

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
"""One row for each attempt. `wait_ms` is from ready to the worker, `run_ms` from there to the end.

`skewed`: the device's clock was set during the attempt, so its times contradict each other, and its
durations are null. `fingerprint` is the same for errors that differ only in numbers, ids and quoted
words."""

JOBS = Table(
    "silver/jobs",
    """
    epoch string, job_id string, queue string, type string, outcome string, is_final boolean,
    attempts bigint, failures bigint, stalls bigint, enqueued_at timestamp, finished_at timestamp,
    wait_ms bigint, run_ms bigint, total_ms bigint, last_seq bigint, date date, device string
    """,
    ("date", "device"),
)
"""One row for each job. `outcome`, queue and type are those of its last attempt. `wait_ms` and
`run_ms` are sums over its attempts. `total_ms` is from the enqueueing to the end, null before
it."""

FACT_SUMS = (
    *("attempts", "completed", "failed", "dead", "cancelled", "expired", "stalled", "skewed"),
    *("arrivals", "payload_bytes", "waits", "wait_ms", "runs", "run_ms", "run_ms_squared"),
    *("waiting_ms", "busy_ms", "waiting_at_end"),
)
"""The counts of gold: sums over attempts, which can be added up further.

- attempts … skewed, payload_bytes, waits, wait_ms, runs, run_ms, run_ms_squared: of the attempts
  that finished in the hour (`waits` and `runs` have a known wait and run).
- arrivals: attempts that became ready in it.
- waiting_ms, busy_ms: the time of the hour that attempts spent waiting and running, added up.
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
bucket of `zq.spark.pipeline.estimates`."""

ERRORS = Table(
    "gold/errors",
    f"{_KEY}, error_type string, fingerprint string, message string, count bigint, date date",
    ("date",),
)
"""Failures of the hour by fingerprint; `message` is an example."""

_SUMMARY = f"""
    {_SUMS}, failure_rate double, wait_p50_ms double, wait_p95_ms double, wait_p99_ms double,
    run_p50_ms double, run_p95_ms double, run_p99_ms double, backlog double,
    arrivals_per_s double, served_per_s double, service_rate double, busy_workers double,
    workers_needed int, target_ms bigint, date date
"""

HOURLY = Table("gold/hourly", f"{_KEY}, {_SUMMARY}", ("date",))
"""The facts of a queue, type and hour, with their summary (`zq.spark.pipeline.summary`)."""

QUEUES = Table("gold/queues", f"hour timestamp, queue string, {_SUMMARY}", ("date",))
"""The facts of a queue and hour, all types of the queue together, with their summary."""

TABLES = {
    table.name: table
    for table in (
        *(BRONZE, REJECTED, ATTEMPTS, JOBS),
        *(FACTS, HISTOGRAMS, ERRORS, HOURLY, QUEUES),
    )
}
"""All tables of the lake, by name."""
