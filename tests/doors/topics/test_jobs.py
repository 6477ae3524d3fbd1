"""Shares of few jobs among many claims, and what tokens settle."""

import pytest

from zq.doors.topics.model_jobs import HeldRecord, Selection, chosen, dealt, token


@pytest.mark.parametrize(
    ("jobs", "wanted", "shares"),
    [
        (20, [10, 10, 10, 10], [5, 5, 5, 5]),
        (3, [10, 10, 10, 10], [1, 1, 1, 0]),
        (7, [1, 10, 2], [1, 4, 2]),
        (100, [5, 6], [5, 6]),
        (0, [5], [0]),
        (5, [], []),
    ],
    ids=["even", "few", "small", "many", "none", "nobody"],
)
def test_jobs_are_dealt_in_rounds(jobs: int, wanted: list[int], shares: list[int]) -> None:
    assert dealt(jobs, wanted) == shares


def test_a_token_chooses_its_delivery_only_and_the_first_of_two_places_counts() -> None:
    held = [HeldRecord(1, 10, 2), HeldRecord(2, 20, 1)]
    assert chosen(Selection("w", [1, 2]), held).keys() == {1, 2}
    tokens = [token(10, 1), None, token(10, 2)]
    assert chosen(Selection("w", [1, 2, 1], tokens), held).keys() == {2}
