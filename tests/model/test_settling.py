"""A job after success and failure: worked values, precedence, limits."""

import math
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.model.job import MAX_TIME, MAX_UINT32, BackoffRule, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settling import (
    Failure,
    Policy,
    Verdict,
    after_failure,
    backoff_delay,
    kept_until,
    purge_time,
)

NOW = 1_750_000_000_000
DAY_MS = 86_400_000
PLAIN = Failure("boom")
POLICY = Policy(retry_limit=2, backoff=BackoffRule(2.0, 100, 0), completed_ms=0, dead_ms=1_000)

uint32 = st.integers(0, MAX_UINT32)
finite = st.floats(allow_nan=False, allow_infinity=False)
backoffs = st.builds(BackoffRule, finite, uint32, uint32)
attempts_so_far = st.integers(1, 10) | st.integers(1, 2**63 - 1)


def delays(backoff: BackoffRule, count: int) -> list[int]:
    return [backoff_delay(attempts, backoff, Random(0)) for attempts in range(1, count + 1)]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (BackoffRule(2.0, 100, 0), [1100, 4100, 9100]),
        (BackoffRule(2.0, 500, 0), [1500, 4500, 9500]),
        (BackoffRule(0.0, 0, 0), [1000, 1000, 1000]),
        (BackoffRule(0.5, 0, 0), [1000, 1414, 1732]),
        (BackoffRule(-1.0, 7, 0), [1007, 507, 340]),
        (BackoffRule(4.0, 15_000, 0), [16_000, 31_000, 96_000, 271_000]),
    ],
)
def test_the_delay_is_seconds_to_the_power_plus_the_base(
    backoff: BackoffRule, expected: list[int]
) -> None:
    assert delays(backoff, len(expected)) == expected


def test_jitter_grows_with_the_attempts_and_is_random() -> None:
    class Half(Random):
        def random(self) -> float:
            return 0.5

    assert backoff_delay(3, BackoffRule(2.0, 100, 1000), Half()) == 9100 + 1500


@given(st.integers(1, 30), uint32, uint32, st.integers())
def test_the_jitter_stays_below_its_bound(attempts: int, base: int, jitter: int, seed: int) -> None:
    floor = attempts**2 * 1000 + base
    delay = backoff_delay(attempts, BackoffRule(2.0, base, jitter), Random(seed))
    assert floor <= delay <= floor + jitter * attempts


def test_the_defaults_spread_25_retries_over_24_to_26_days() -> None:
    policy = Policy()
    assert policy.retry_limit == 25
    days = [
        sum(backoff_delay(n, policy.backoff, Random(seed)) for n in range(1, 26)) / DAY_MS
        for seed in range(20)
    ]
    assert all(24 < total < 26 for total in days)
    assert policy.dead_ms == 7 * DAY_MS
    assert policy.completed_ms == 0


@given(attempts_so_far, backoffs, st.integers())
def test_no_exponent_and_no_number_of_attempts_overflows(
    attempts: int, backoff: BackoffRule, seed: int
) -> None:
    assert 0 <= backoff_delay(attempts, backoff, Random(seed)) <= MAX_TIME


@pytest.mark.parametrize("exponent", [1e3, 1e9, 1e308, sys.float_info.max])
def test_a_delay_beyond_all_time_is_the_end_of_time(exponent: float) -> None:
    assert backoff_delay(2, BackoffRule(exponent, 0, 0), Random(0)) == MAX_TIME
    verdict = after_failure(
        2, JobSettings(backoff=BackoffRule(exponent, 0, 0)), PLAIN, Policy(), Random(0)
    )
    assert verdict == Verdict(Status.SCHEDULED, None, MAX_TIME)


@given(
    attempts_so_far,
    st.none()
    | st.builds(JobSettings, retry_limit=uint32, backoff=backoffs, retention=st.builds(Retention)),
    st.builds(
        Failure,
        st.just("m"),
        retry_at=st.none() | st.integers(0, MAX_TIME),
        kill=st.none() | st.booleans(),
    ),
)
def test_a_verdict_always_fits_the_store(
    attempts: int, options: JobSettings | None, failure: Failure
) -> None:
    verdict = after_failure(attempts, options, failure, Policy(), Random(1))
    if verdict.status is Status.DEAD:
        assert verdict.ready_at is None
    else:
        assert verdict.status is Status.SCHEDULED
        assert 0 <= (verdict.ready_at or 0) <= MAX_TIME
        assert 0 <= verdict.delay_ms <= MAX_TIME


@pytest.mark.parametrize(
    ("attempts", "limit", "dies"),
    [(1, 0, True), (1, 1, False), (2, 1, True), (2, None, False), (3, None, True)],
)
def test_a_job_dies_when_its_attempts_exceed_the_limit(
    attempts: int, limit: int | None, dies: bool
) -> None:
    options = None if limit is None else JobSettings(retry_limit=limit)
    verdict = after_failure(attempts, options, PLAIN, POLICY, Random(0))
    assert (verdict.status is Status.DEAD) == dies
    if not dies:
        assert verdict == Verdict(Status.SCHEDULED, None, attempts**2 * 1000 + 100)


def test_kill_beats_retry_at_and_retry_at_beats_the_limit() -> None:
    both = Failure("boom", retry_at=NOW + 5, kill=True)
    assert after_failure(1, None, both, POLICY, Random(0)).status is Status.DEAD
    # A kill of false is the same as none.
    late = Failure("boom", retry_at=NOW + 5, kill=False)
    assert after_failure(99, None, late, POLICY, Random(0)).ready_at == NOW + 5


def test_retry_at_is_taken_as_it_is_even_in_the_past() -> None:
    for retry_at in (0, NOW - 1, MAX_TIME):
        verdict = after_failure(1, None, Failure("m", retry_at=retry_at), POLICY, Random(0))
        assert verdict == Verdict(Status.SCHEDULED, retry_at)


def test_the_jobs_own_backoff_replaces_the_servers() -> None:
    options = JobSettings(backoff=BackoffRule(0.0, 7, 0))
    assert after_failure(1, options, PLAIN, POLICY, Random(0)).delay_ms == 1007


@pytest.mark.parametrize(
    ("retention", "completed", "dead"),
    [
        (None, None, NOW + 1_000),
        (Retention(), None, NOW + 1_000),
        (Retention(completed_ms=5), NOW + 5, NOW + 1_000),
        (Retention(dead_ms=7), None, NOW + 7),
        (Retention(completed_ms=5, dead_ms=0), NOW + 5, None),
        (Retention(completed_ms=0, dead_ms=MAX_TIME), None, MAX_TIME),
    ],
)
def test_retention_falls_back_to_the_servers_field_by_field(
    retention: Retention | None, completed: int | None, dead: int | None
) -> None:
    options = JobSettings(retention=retention)
    assert kept_until(Status.COMPLETED, options, NOW, POLICY) == completed
    for status in (Status.DEAD, Status.CANCELLED, Status.EXPIRED):
        assert kept_until(status, options, NOW, POLICY) == dead


def test_a_job_without_options_follows_the_servers_retention() -> None:
    assert kept_until(Status.COMPLETED, None, NOW, POLICY) is None
    assert kept_until(Status.COMPLETED, None, NOW, Policy(completed_ms=9)) == NOW + 9
    assert kept_until(Status.DEAD, None, NOW, Policy(dead_ms=0)) is None


@given(st.integers(0, MAX_TIME), st.integers(0, MAX_TIME))
def test_a_purge_time_is_later_than_now_or_none(now: int, retention: int) -> None:
    purge_at = purge_time(now, retention)
    if retention == 0:
        assert purge_at is None
    else:
        assert purge_at == min(now + retention, MAX_TIME)


def test_the_worked_values_follow_from_the_formula_itself() -> None:
    for attempts in range(1, 20):
        power = math.trunc(attempts**1.7 * 1000 + 33)
        assert backoff_delay(attempts, BackoffRule(1.7, 33, 0), Random(0)) == power
