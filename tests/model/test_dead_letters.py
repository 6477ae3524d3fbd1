"""The queues that dying jobs move to, and failures that are a job's last."""

import pytest

from zq.model.job import JobSettings, Reason
from zq.model.settings import DeadLetter, QueueSettings, dead_letter_of, grave_of, is_last_failure

OWN = JobSettings(dead_letter="own", dead_letter_after=2)
QUEUES = QueueSettings(dead_letter="queues", dead_letter_after=3)


def test_what_a_job_says_counts_before_what_its_queue_says() -> None:
    assert dead_letter_of(OWN, QUEUES) == DeadLetter("own", 2)
    assert dead_letter_of(JobSettings(retry_limit=1), QUEUES) == DeadLetter("queues", 3)
    assert dead_letter_of(None, QueueSettings()) == DeadLetter()


@pytest.mark.parametrize(
    ("after", "failures", "is_last"), [(None, 9, False), (0, 9, False), (3, 2, False), (3, 3, True)]
)
def test_so_many_failures_are_enough(after: int | None, failures: int, is_last: bool) -> None:
    assert is_last_failure(DeadLetter("dead", after), "q", failures) == is_last
    assert not is_last_failure(DeadLetter(None, after), "q", failures)


def test_a_job_is_tried_once_where_it_came_to() -> None:
    assert is_last_failure(DeadLetter("q", 9), "q", 1)
    assert grave_of(DeadLetter("q", 1), "q", 1, Reason.EXHAUSTED) is None


@pytest.mark.parametrize(
    ("after", "reason", "grave"),
    [
        (None, Reason.EXHAUSTED, "dead"),
        (2, Reason.EXHAUSTED, "dead"),
        (3, Reason.EXHAUSTED, None),
        (3, Reason.KILLED, "dead"),
        (3, Reason.STALLED, "dead"),
        (0, Reason.KILLED, None),
    ],
)
def test_a_job_that_dies_before_its_time_is_dead_where_it_is(
    after: int | None, reason: Reason, grave: str | None
) -> None:
    assert grave_of(DeadLetter("dead", after), "q", 2, reason) == grave
