"""Percentiles from histograms, workers from Erlang's formula, and fingerprints of errors."""

import math
import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.expected import percentile
from zq.spark.pipeline.estimates import (
    ACCURACY,
    LATE,
    PERCENTILES,
    bucket,
    percentiles,
    workers_needed,
)
from zq.spark.pipeline.silver import fingerprint
from zq.spark.report.scale import count, duration, percent

BOUND = ACCURACY + 1e-9
"""The stated error, and what floats round."""


def test_percentiles_of_added_histograms_are_within_the_stated_error(spark: SparkSession) -> None:
    chance = random.Random(7)
    shapes = {
        "one": [5],
        "zeros": [0] * 30 + [1, 2],
        "equal": [1_000] * 99,
        "edges": [1, 2, 3, 10, 1_000, 10**6, 366 * 86_400_000],
        "uniform": [chance.randrange(10_000) for _ in range(500)],
        "lognormal": [int(chance.lognormvariate(8, 3)) for _ in range(700)],
        "two humps": [chance.choice([3, 90_000]) + chance.randrange(3) for _ in range(333)],
    }
    # Every value is put into one of three histograms, which are added up.
    rows = [(name, each, n % 3) for name, values in shapes.items() for n, each in enumerate(values)]
    durations = spark.createDataFrame(rows, "shape string, value bigint, part int")
    counted = durations.groupBy(
        "shape", "part", F.lit("wait").alias("measure"), bucket(F.col("value")).alias("bucket")
    ).agg(F.count("*").alias("count"))

    found = {row["shape"]: row for row in percentiles(counted, ["shape"]).collect()}

    for name, values in shapes.items():
        for p in PERCENTILES:
            exact = percentile(values, p)
            assert found[name][f"wait_p{p}_ms"] == pytest.approx(exact, rel=BOUND), (name, p)
            assert found[name][f"run_p{p}_ms"] is None


def erlang(load: float, run_s: float, variation: float, target_s: float) -> int:
    """The smallest number of workers, by Erlang's sums as they stand in books."""
    workers = max(1, math.floor(load) + 1)
    while True:
        log_terms = [k * math.log(load) - math.lgamma(k + 1) for k in range(workers + 1)]
        last = math.exp(log_terms[-1]) * workers / (workers - load)
        waits = last / (sum(map(math.exp, log_terms[:-1])) + last)
        slack = (workers - load) * target_s / (run_s * (1 + variation) / 2)
        if waits * math.exp(-slack) <= LATE:
            return workers
        workers += 1


def test_workers_needed_are_those_of_erlangs_formula(spark: SparkSession) -> None:
    chance = random.Random(3)
    cases = [
        (chance.uniform(0.001, 40), chance.uniform(0.001, 3), chance.uniform(0, 4))
        for _ in range(150)
    ]
    rows = spark.createDataFrame(cases, "arrivals double, run double, variation double")
    for target in (0.0, 0.5, 10.0):
        needed = workers_needed(F.col("arrivals"), F.col("run"), F.col("variation"), target)
        found = [row[0] for row in rows.select(needed).collect()]
        assert found == [erlang(rate * run, run, v, target) for rate, run, v in cases]


def test_an_example_of_the_books(spark: SparkSession) -> None:
    # 200 calls an hour of 3 minutes are 10 erlangs. With 14 agents 17.4 % wait at all, and
    # 17.4 % · exp(-4 · 20 / 180) = 11.2 % longer than 20 s; with 15 it is 5.9 %, with 16 2.9 %.
    rows = spark.createDataFrame([(200 / 3600, 180.0)], "arrivals double, run double")

    needed = workers_needed(F.col("arrivals"), F.col("run"), F.lit(1.0), 20.0)

    assert rows.select(needed).collect()[0][0] == 16


def test_without_work_one_worker_is_enough_and_unknown_run_times_tell_nothing(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame([(0.0, 1.0), (5.0, None)], "arrivals double, run double")

    needed = workers_needed(F.col("arrivals"), F.col("run"), F.lit(1.0), 1.0)

    assert [row[0] for row in rows.select(needed).collect()] == [1, None]


ALIKE = [
    ["no answer from 10.0.0.7 after 30 s", "no answer from 10.1.0.19 after 5 s"],
    ["no user 'ann' in \"shop\"", "no user 'bob' in \"mall\""],
    [
        "job 01ARZ3NDEKTSV4RRFFQ69G5FAV is gone",
        "job 01BX5ZZKBKACTAV9WEVGEMMVS0 is gone",
    ],
    [
        "request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 failed\n at 0x7f3a",
        "request 9b2504e0-4f89-41d3-9a0c-0305e82c33ff failed   at 0x91bc",
    ],
    ["can't open it, don't know why"],
    ["can't close it, don't know why"],
]


def test_errors_that_differ_in_numbers_ids_and_quoted_words_have_one_fingerprint(
    spark: SparkSession,
) -> None:
    rows: list[tuple[str | None, str | None]] = [("E", text) for texts in ALIKE for text in texts]
    rows += [("F", ALIKE[0][0]), ("E", None), (None, None)]
    errors = spark.createDataFrame(rows, "kind string, message string")
    marked = errors.withColumn("mark", fingerprint(F.col("kind"), F.col("message"))).collect()

    groups = defaultdict(list)
    for row in marked:
        groups[row["mark"]].append((row["kind"], row["message"]))

    assert groups.pop(None) == [(None, None)]
    wanted = [[("E", text) for text in texts] for texts in ALIKE]
    assert sorted(groups.values(), key=str) == sorted(
        [*wanted, [("F", ALIKE[0][0])], [("E", None)]], key=str
    )


@given(st.floats(min_value=0, max_value=1e12))
def test_a_duration_is_told_in_few_characters(millis: float) -> None:
    assert len(duration(millis)) <= 10


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (duration(0), "0 ms"),
        (duration(999), "999 ms"),
        (duration(4_230), "4.2 s"),
        (duration(90_000), "1.5 min"),
        (duration(7_200_000), "2 h"),
        (duration(None), "\N{EN DASH}"),
        (count(0.25), "0.25"),
        (count(12_400), "12,400"),
        (count(1_340_000), "1.3 M"),
        (percent(0.004), "0.4 %"),
        (percent(0.5), "50 %"),
        (percent(None), "\N{EN DASH}"),
    ],
)
def test_figures_are_written_as_people_read_them(text: str, wanted: str) -> None:
    assert text == wanted
