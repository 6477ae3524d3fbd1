"""Silver: one row an attempt, and one row a job."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from zq.features.history.model import FINAL_OUTCOMES
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.ledger import LakeCommit
from zq.spark.pipeline.tables import ATTEMPTS, BRONZE, JOBS, day_of

ATTEMPTS_STEP = "attempts"
JOBS_STEP = "jobs"

LONGEST_MS = 366 * 86_400_000
"""A longer wait or run means that the clock was set: a device often starts in 1970."""

VARYING = [
    (r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`", "<text>"),
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
    (r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "<id>"),
    (r"(?i)\b(0x[0-9a-f]+|(?=[a-f]*[0-9])[0-9a-f]{8,})\b", "<id>"),
    (r"[0-9]+", "<n>"),
    (r"\s+", " "),
]
"""Errors of one cause may differ in these parts: quoted words, UUIDs, ULIDs, hexadecimal, numbers,
white space. Each has its replacement."""


def add_attempts(lake: Lake, commits: list[LakeCommit]) -> LakeCommit:
    """Turn the records that these commits brought into attempts."""
    transaction = lake.begin(ATTEMPTS_STEP)
    records = lake.added(BRONZE, commits)
    transaction.add(ATTEMPTS, transaction.write(ATTEMPTS, _attempts(records)))
    return transaction.commit(commits[-1].id)


def add_jobs(lake: Lake, commits: list[LakeCommit]) -> LakeCommit:
    """Bring the jobs up to date with the attempts that these commits brought.

    A job lies under the day on which it was enqueued, whenever its attempts were. So the step reads
    and writes only the days and devices that the new attempts name.
    """
    transaction = lake.begin(JOBS_STEP)
    attempts = lake.added(ATTEMPTS, commits)
    transaction.merge(
        JOBS,
        transaction.write(JOBS, _folded(_as_jobs(attempts))),
        lambda old, more: _folded(old.unionByName(more)),
        replace=True,
    )
    return transaction.commit(commits[-1].id)


def fingerprint(error_type: Column, message: Column) -> Column:
    """Sixteen hex digits that errors of one cause share; null if both are null."""
    text = F.coalesce(message, F.lit(""))
    for pattern, instead in VARYING:
        text = F.regexp_replace(text, pattern, instead)
    whole = F.concat_ws("\n", F.coalesce(error_type, F.lit("")), text)
    return F.when(
        error_type.isNotNull() | message.isNotNull(), F.substring(F.sha2(whole, 256), 1, 16)
    )


def _attempts(records: DataFrame) -> DataFrame:
    wait = F.col("dequeued_at") - F.col("ready_at")
    run = F.col("finished_at") - F.col("dequeued_at")
    ran = wait.between(0, LONGEST_MS) & run.between(0, LONGEST_MS)
    # A job may be cancelled long before it would become ready.
    idle = (F.col("finished_at") - F.col("enqueued_at")).between(0, LONGEST_MS) & (
        F.col("finished_at") - F.col("ready_at") <= LONGEST_MS
    )
    sane = F.when(F.col("dequeued_at").isNotNull(), ran).otherwise(idle)
    times = ("enqueued_at", "ready_at", "dequeued_at", "finished_at")
    return records.withColumns(
        {
            "skewed": ~sane,
            "wait_ms": F.when(sane, wait),
            "run_ms": F.when(sane, run),
            "fingerprint": fingerprint(F.col("error_type"), F.col("error_message")),
            **{name: F.timestamp_millis(F.col(name)) for name in times},
        }
    ).select(*ATTEMPTS.schema.names)


def _as_jobs(attempts: DataFrame) -> DataFrame:
    """Each attempt as a job with this one attempt."""
    return attempts.select(
        *("epoch", "job_id", "queue", "type", "outcome"),
        F.col("outcome").isin(*FINAL_OUTCOMES).alias("is_final"),
        F.lit(1).cast("bigint").alias("attempts"),
        F.col("outcome").isin("failed", "dead").cast("bigint").alias("failures"),
        (F.col("outcome") == "stalled").cast("bigint").alias("stalls"),
        *("enqueued_at", "finished_at", "wait_ms", "run_ms"),
        F.lit(None).cast("bigint").alias("total_ms"),
        F.col("seq").alias("last_seq"),
        day_of(F.unix_millis("enqueued_at")).alias("date"),
        "device",
    )


def _folded(jobs: DataFrame) -> DataFrame:
    """The rows of each job folded into one. To fold folded rows changes nothing.

    One shuffle serves both the folding and the files: each partition gets few files.
    """
    placed = jobs.repartition("date", "device")
    last = F.max_by(F.struct("queue", "type", "outcome", "is_final", "finished_at"), "last_seq")
    folded = placed.groupBy("date", "device", "epoch", "job_id").agg(
        last.alias("last"),
        *(F.sum(name).alias(name) for name in ("attempts", "failures", "stalls")),
        F.min("enqueued_at").alias("enqueued_at"),
        *(F.sum(name).alias(name) for name in ("wait_ms", "run_ms")),
        F.max("last_seq").alias("last_seq"),
    )
    total = F.unix_millis("last.finished_at") - F.unix_millis("enqueued_at")
    return folded.withColumns(
        {
            **{name: F.col(f"last.{name}") for name in ("queue", "type", "outcome", "is_final")},
            "finished_at": F.col("last.finished_at"),
            "total_ms": F.when(F.col("last.is_final") & (total >= 0), total),
        }
    ).select(*JOBS.schema.names)
