"""A thousand events of a fleet, in two runs, against sums that are added one by one."""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from spark.conftest import Golden, files_of
from spark.expected import Key, facts, hour_of, is_skewed, percentile, run_of, wait_of
from zq.features.history.model import FINAL_OUTCOMES, HistoryRecord
from zq.spark.pipeline.estimates import ACCURACY
from zq.spark.pipeline.tables import (
    ATTEMPTS,
    BRONZE,
    ERRORS,
    FACT_SUMS,
    FACTS,
    HOURLY,
    JOBS,
    QUEUES,
    REJECTED,
    Table,
)
from zq.spark.source.reading import HISTORY


def millis(table: Table, rows: Golden, *names: str) -> list[Row]:
    """Rows with their times in Unix milliseconds."""
    return rows.read(table).withColumns({name: F.unix_millis(name) for name in names}).collect()


def test_bronze_has_each_record_once_as_it_came(golden: Golden) -> None:
    found = [row.asDict() for row in golden.read(BRONZE).select(*HISTORY.names).collect()]

    by_name = {(row["epoch"], row["seq"]): row for row in found}
    assert len(found) == len(by_name) == len(golden.records)
    assert by_name == {
        (record.epoch, record.seq): msgspec.to_builtins(record) for record in golden.records
    }


def test_bronze_lies_under_the_day_and_the_device(golden: Golden) -> None:
    days = {
        (datetime.fromtimestamp(record.finished_at / 1000, UTC).date().isoformat(), record.device)
        for record in golden.records
    }

    root = Path(golden.lake.path.removeprefix("file:"))
    parts = {file.rpartition("/")[0] for file in files_of(root)["bronze"]}

    assert parts == {f"date={day}/device={device}" for day, device in days}


def test_nothing_of_a_sound_history_is_rejected(golden: Golden) -> None:
    assert golden.read(REJECTED).count() == 0


def test_silver_has_a_row_an_attempt_with_its_wait_and_run(golden: Golden) -> None:
    found = {
        (row.epoch, row.seq): (row.wait_ms, row.run_ms, row.skewed, row.finished_at, row.worker)
        for row in millis(ATTEMPTS, golden, "finished_at")
    }

    assert found == {
        (record.epoch, record.seq): (
            *(wait_of(record), run_of(record), is_skewed(record)),
            *(record.finished_at, record.worker),
        )
        for record in golden.records
    }
    assert any(is_skewed(record) for record in golden.records)


def test_silver_has_a_row_a_job_although_its_attempts_came_apart(golden: Golden) -> None:
    jobs: dict[str, list[HistoryRecord]] = defaultdict(list)
    for record in golden.records:
        jobs[record.job_id].append(record)

    found = {row.job_id: row for row in millis(JOBS, golden, "enqueued_at", "finished_at")}

    assert found.keys() == jobs.keys()
    assert golden.read(JOBS).count() == len(jobs)
    for job, attempts in jobs.items():
        last, row = attempts[-1], found[job]
        waits = [wait for each in attempts if (wait := wait_of(each)) is not None]
        final = last.outcome in FINAL_OUTCOMES
        total = last.finished_at - last.enqueued_at
        assert (row.queue, row.type, row.outcome, row.is_final, row.attempts, row.last_seq) == (
            *(last.queue, last.type, last.outcome.value, final, len(attempts), last.seq),
        )
        assert row.failures == sum(each.outcome in ("failed", "dead") for each in attempts)
        assert row.stalls == sum(each.outcome == "stalled" for each in attempts)
        assert row.wait_ms == (sum(waits) if waits else None)
        assert row.total_ms == (total if final and total >= 0 else None)
        assert (row.enqueued_at, row.finished_at) == (last.enqueued_at, last.finished_at)


def sums_of(table: Table, golden: Golden) -> dict[Key, Counter[str]]:
    return {
        (row.hour, row.queue, row.type): +Counter({name: row[name] for name in FACT_SUMS})
        for row in millis(table, golden, "hour")
    }


@pytest.mark.parametrize("table", [FACTS, HOURLY], ids=lambda table: table.name)
def test_gold_has_the_sums_of_every_hour(golden: Golden, table: Table) -> None:
    assert sums_of(table, golden) == facts(golden.records)


def grouped(
    records: list[HistoryRecord], value: Callable[[HistoryRecord], int | None]
) -> dict[tuple[int, str], list[int]]:
    found = defaultdict(list)
    for record in records:
        if (known := value(record)) is not None:
            found[hour_of(record.finished_at), record.queue].append(known)
    return found


@pytest.mark.parametrize(("measure", "value"), [("wait", wait_of), ("run", run_of)])
@pytest.mark.parametrize("p", [50, 95, 99])
def test_percentiles_of_a_queue_are_close_to_the_exact_ones_of_its_attempts(
    golden: Golden, measure: str, value: Callable[[HistoryRecord], int | None], p: int
) -> None:
    found = {
        (row.hour, row.queue): row[f"{measure}_p{p}_ms"]
        for row in millis(QUEUES, golden, "hour")
        if row[f"{measure}_p{p}_ms"] is not None
    }

    exact = {key: percentile(each, p) for key, each in grouped(golden.records, value).items()}
    assert found == {key: pytest.approx(each, rel=ACCURACY + 1e-9) for key, each in exact.items()}


def test_rates_follow_from_the_sums(golden: Golden) -> None:
    rows = millis(QUEUES, golden, "hour")

    busy = next(row for row in rows if row.failed and row.busy_ms and row.waiting_ms)
    ended = busy.completed + busy.failed + busy.dead
    assert busy.failure_rate == pytest.approx((busy.failed + busy.dead) / ended)
    assert busy.backlog == pytest.approx(busy.waiting_ms / 3_600_000)
    assert busy.busy_workers == pytest.approx(busy.busy_ms / 3_600_000)
    assert busy.arrivals_per_s == pytest.approx(busy.arrivals / 3600)
    assert busy.served_per_s == pytest.approx(busy.runs / 3600)
    assert busy.service_rate == pytest.approx(1000 * busy.runs / busy.run_ms)
    assert (busy.workers_needed, busy.target_ms) == (1, 10_000)


def test_errors_of_one_cause_are_one(golden: Golden) -> None:
    failed = Counter(record.error_type for record in golden.records if record.error_type)

    rows = golden.read(ERRORS).groupBy("error_type", "fingerprint").agg(F.sum("count").alias("n"))

    assert {row.error_type: row.n for row in rows.collect()} == failed
    assert rows.count() == len(failed)


def test_the_second_run_leaves_days_alone_on_which_nothing_new_falls(golden: Golden) -> None:
    now = files_of(Path(golden.lake.path.removeprefix("file:")))

    for table in ("bronze", "silver/attempts"):
        assert golden.first[table] < now[table]
    # The device that is three days behind has sent nothing new; all others meet on two days.
    alone = {file for file in golden.first["gold/facts"] if file.startswith("date=2026-01-02/")}
    assert alone <= now["gold/facts"]
    assert {file for file in golden.first["gold/hourly"] if "date=2026-01-02/" in file} <= now[
        "gold/hourly"
    ]
    assert alone and not golden.first["gold/facts"] <= now["gold/facts"]


def test_a_run_without_anything_new_changes_nothing(golden: Golden) -> None:
    from zq.spark.pipeline import run
    from zq.spark.pipeline.progress import RunProgress

    said: list[str] = []
    head = golden.lake.state.head
    run(golden.lake.spark, [str(golden.sources)], golden.lake.path, RunProgress(said.append))

    assert said == ["no new segments; 25 are in the lake already"]
    assert type(golden.lake)(golden.lake.spark, golden.lake.path, {}).state.head == head


def test_progress_tells_each_step_and_its_rows(golden: Golden) -> None:
    names = [line.split()[0] for line in golden.said]

    assert names == ["bronze", "attempts", "jobs", "gold", "summary"] * 2
    assert "500 new records of 7 segments" in golden.said[0]
    assert "501 new records of 18 segments" in golden.said[5]
