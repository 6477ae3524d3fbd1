"""The length of leases, and stalls that kill."""

from itertools import product

import pytest

from zq.model.leasing import DEFAULT_LEASE_MS, Terms, lease_time, stalls_too_often


def test_the_first_who_says_how_long_a_lease_lasts_decides() -> None:
    for asked, job, queue, claimant in product((None, 1), (None, 2), (None, 3), (None, "c")):
        default = DEFAULT_LEASE_MS if claimant else None
        expected = next((ms for ms in (asked, job, queue) if ms is not None), default)
        assert lease_time(Terms(asked, claimant), job, queue) == expected


@pytest.mark.parametrize(
    ("stalls", "limit", "expected"),
    [(1, 0, True), (1, 1, False), (2, 1, True), (10**6, None, False)],
)
def test_a_job_may_stall_as_often_as_the_limit_says(
    stalls: int, limit: int | None, expected: bool
) -> None:
    assert stalls_too_often(stalls, limit) is expected
