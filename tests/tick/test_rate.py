"""Token buckets: how much they let through in any stretch of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.tick.gates import LEAST_WAIT_S, Bucket


def test_a_bucket_begins_with_a_second_of_its_rate_and_never_holds_more() -> None:
    bucket = Bucket(3, 10.0)
    assert bucket.tokens(10.0) == bucket.tokens(1_000.0) == 3
    bucket.spend(3, 1_000.0)
    assert [bucket.tokens(1_000.0 + late) for late in (0, 0.3, 0.334, 0.7, 1, 9)] == [
        *(0, 0, 1),
        *(2, 3, 3),
    ]


def test_a_slow_bucket_holds_one() -> None:
    bucket = Bucket(0.1, 0.0)
    assert bucket.tokens(0.0) == 1
    bucket.spend(1, 0.0)
    assert bucket.opens(0.0) == pytest.approx(10)
    assert bucket.opens(4.0) == pytest.approx(10)
    assert (bucket.tokens(9.99), bucket.tokens(10.0)) == (0, 1)


def test_a_fast_bucket_opens_for_several_at_once() -> None:
    bucket = Bucket(1_000, 0.0)
    bucket.spend(1_000, 0.0)
    assert bucket.opens(0.0) == LEAST_WAIT_S
    assert bucket.tokens(LEAST_WAIT_S) == 10


def test_another_rate_fills_from_what_there_is() -> None:
    bucket = Bucket(10, 0.0)
    bucket.spend(8, 0.0)
    bucket.change(1, 0.0)
    assert bucket.tokens(0.0) == 1
    bucket.spend(1, 0.0)
    bucket.change(100, 0.0)
    assert bucket.tokens(0.0) == 0
    assert bucket.tokens(0.5) == 50


@given(
    st.floats(0.01, 1_000),
    st.lists(st.floats(0, 5), min_size=1, max_size=40),
)
def test_no_stretch_of_time_sees_more_than_its_rate_and_a_second_of_it(
    rate: float, waits: list[float]
) -> None:
    bucket, now, spent = Bucket(rate, 0.0), 0.0, 0
    for wait in waits:
        now += wait
        tokens = bucket.tokens(now)
        bucket.spend(tokens, now)
        spent += tokens
        assert bucket.tokens(bucket.opens(now)) >= 1
    assert spent <= now * rate + max(rate, 1) + 0.01
