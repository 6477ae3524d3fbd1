"""Schedules of chores: five fields, macros, intervals and zones."""

from datetime import UTC, datetime

import pytest

from zq.features.archive.model import ChoreSchedule
from zq.features.crons.model import InvalidSchedule

NOON = 1_750_075_200_000
"""2025-06-16 12:00 UTC, a Monday."""

MINUTE, HOUR = 60_000, 3_600_000


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("30 12 * * *", 30 * MINUTE),
        ("@daily", 12 * HOUR),
        ("@hourly", HOUR),
        ("@every 1s", 1_000),
        ("@every 1h30m", 90 * MINUTE),
        ("@every 1.5s", 1_000),
        ("@every 10ms", 1_000),
        ("CRON_TZ=Asia/Tokyo 0 22 * * *", HOUR),
        ("TZ=Asia/Tokyo @daily", 3 * HOUR),
    ],
)
def test_the_next_time(text: str, after: int) -> None:
    assert datetime.fromtimestamp(NOON / 1000, UTC).hour == 12
    assert ChoreSchedule(text).after(NOON, UTC) == NOON + after


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "0 0 * * * *", "61 * * * *", "@every", "@every 3", "@every 1x", "@often"),
        *("CRON_TZ=Nowhere/Land @daily", "CRON_TZ=UTC", "@every -1s", "0 0 30 2 *" * 99),
    ],
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="invalid cron schedule: "):
        ChoreSchedule(text)
