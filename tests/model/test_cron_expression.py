"""Cron expressions: the dialect, clock changes both ways, and what is refused."""

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq.features.crons.model_expression import CronExpression, zone_named
from zq.model.errors import InvalidRequest

NOW = 1_700_000_000_000
"""2023-11-14T22:13:20Z, a Tuesday."""

BERLIN, MELBOURNE = ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Melbourne")


def utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def ms(text: str, zone: tzinfo = UTC) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def following(text: str, zone: tzinfo, start: int, count: int) -> list[str]:
    """The next times, as the clock on the wall shows them with its distance from UTC."""
    expression, found = CronExpression(text), []
    for _ in range(count):
        after = expression.after(start, zone)
        assert after is not None
        assert after > start
        start = after
        found.append(datetime.fromtimestamp(start / 1000, zone).strftime("%d %H:%M%z"))
    return found


FIRST = {
    "0 9 * * *": "2023-11-15T09:00:00",
    "*/10 * * * * *": "2023-11-14T22:13:30",
    "15,45 * * * * ?": "2023-11-14T22:13:45",
    "5-59/20 * * * *": "2023-11-14T22:25:00",
    "0 9 ? * MON": "2023-11-20T09:00:00",
    "0 0 * jan-MAR sun": "2024-01-07T00:00:00",
    "0 0 * * 0": "2023-11-19T00:00:00",
    "0 0 * * 7": "2023-11-19T00:00:00",
    "0 0 * * FRI-SUN": "2023-11-17T00:00:00",
    "0 0 1 * MON": "2023-11-20T00:00:00",
    "0 0 1 * +MON": "2024-01-01T00:00:00",
    "0 0 */2 * MON": "2023-11-15T00:00:00",
    "0 0 L * *": "2023-11-30T00:00:00",
    "0 0 L 2 *": "2024-02-29T00:00:00",
    "0 0 LW 12 *": "2023-12-29T00:00:00",
    "0 0 18W * *": "2023-11-17T00:00:00",
    "0 0 19W * *": "2023-11-20T00:00:00",
    "0 0 1W 6 *": "2024-06-03T00:00:00",
    "0 0 31W 12 *": "2023-12-29T00:00:00",
    "0 0 * * 5L": "2023-11-24T00:00:00",
    "0 0 * * FRI#L": "2023-11-24T00:00:00",
    "0 0 * * MON#2": "2023-12-11T00:00:00",
    "0 0 * * MON-FRI#1": "2023-12-01T00:00:00",
    "0 0 29 2 MON#5": "2024-02-29T00:00:00",
    "0 0 29 2 +MON": "2044-02-29T00:00:00",
    "@yearly": "2024-01-01T00:00:00",
    "@annually": "2024-01-01T00:00:00",
    "@monthly": "2023-12-01T00:00:00",
    "@weekly": "2023-11-19T00:00:00",
    "@Daily": "2023-11-15T00:00:00",
    "@midnight": "2023-11-15T00:00:00",
    "@hourly": "2023-11-14T23:00:00",
}


@pytest.mark.parametrize("text", FIRST)
def test_the_dialect(text: str) -> None:
    assert utc(CronExpression(text).first(NOW, UTC)) == FIRST[text]


WRONG = [
    *("", "* * * *", "0 0 0 1 1 ? 2030", "@reboot", "@every 5s"),
    *("60 * * * *", "* 24 * * *", "* * 32 * *", "* * 0 * *", "* * * 13 *", "* * * * 8"),
    *("*/0 * * * *", "10-5 * * * *", "0 0 * * SAT-MON", "a * * * *", "0 0 * * L", "0 0 W * *"),
    *("0 0 * * 1#6", "0 0 * * 1#0", "0 0 L-3 * *", "0 0 32W * *", "R * * * *", "H * * * *"),
    *("0 0 30 2 *", "0 0 31 4,6 *", "0 0 30W 2 *", "0 0 30 2 +MON"),
    *("é * * * *", "² * * * *", "* * * * *\0", "1, * * * *", "1--2 * * * *", "* " * 200),
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_expression_or_never_comes_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^invalid cron expression: "):
        CronExpression(text).first(NOW, UTC)


@given(st.text("0123456789*,-/#?LW+ @MONFRI", max_size=30))
def test_any_text_is_refused_or_comes_after_now(text: str) -> None:
    try:
        expression = CronExpression(text)
    except InvalidRequest:
        return
    after = expression.after(NOW, BERLIN)
    assert after is None or after > NOW


def test_times_of_day_that_a_gap_leaves_out_come_at_its_end() -> None:
    start = ms("2024-03-30T12:00:00", BERLIN)  # 2:00 becomes 3:00 on the 31st
    assert following("30 2 * * *", BERLIN, start, 2) == ["31 03:00+0200", "01 02:30+0200"]
    assert following("0 30 2 * * *", BERLIN, start, 2) == ["31 03:00+0200", "01 02:30+0200"]
    assert following("0 2,3 * * *", BERLIN, start, 2) == ["31 03:00+0200", "01 02:00+0200"]


def test_times_of_day_that_come_twice_fire_once() -> None:
    start = ms("2024-10-26T12:00:00", BERLIN)  # 3:00 becomes 2:00 on the 27th
    assert following("30 2 * * *", BERLIN, start, 2) == ["27 02:30+0200", "28 02:30+0100"]
    assert following("0 30 2 * * *", BERLIN, start, 2) == ["27 02:30+0200", "28 02:30+0100"]
    # A server that starts within the second of the two hours.
    second = ms("2024-10-27T01:10:00")
    assert following("30 2 * * *", BERLIN, second, 1) == ["28 02:30+0100"]
    assert following("0 2-4 * * *", BERLIN, start, 3) == [
        *("27 02:00+0200", "27 03:00+0100", "27 04:00+0100")
    ]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Melbourne", "America/New_York"])
@pytest.mark.parametrize("text", ["*/20 * * * *", "0 * * * *", "0 */20 * * * *", "*/30 * * * * *"])
def test_a_beat_goes_on_through_both_changes(zone: str, text: str) -> None:
    chosen, expression = ZoneInfo(zone), CronExpression(text)
    for month in (3, 4, 10, 11):
        for day in range(1, 32, 1):
            try:
                noon = datetime(2024, month, day, 12, tzinfo=chosen)
            except ValueError:
                continue
            if noon.utcoffset() == (noon + timedelta(days=1)).utcoffset():
                continue
            times, at = [], int(noon.timestamp() * 1000)
            while at < (noon + timedelta(days=1)).timestamp() * 1000:
                found = expression.after(at, chosen)
                assert found is not None
                at = found
                times.append(at)
            assert len({later - earlier for earlier, later in pairwise(times)}) == 1


def test_the_zone_decides_and_is_known_by_its_name() -> None:
    nine = CronExpression("0 9 * * *")
    assert nine.after(NOW, MELBOURNE) == ms("2023-11-15T22:00:00")
    assert zone_named("Australia/Melbourne") == MELBOURNE
    for name in ("", "Mars/Base", "../etc/passwd", "/etc/localtime", "America", "a\0b", "x" * 999):
        with pytest.raises(InvalidRequest, match=r"^invalid timezone: "):
            zone_named(name)


def test_the_end_of_time_is_no_error() -> None:
    assert CronExpression("0 0 1 1 *").after(ms("9999-06-01T00:00:00"), UTC) is None
    assert CronExpression("* * * * *").after(10**17, UTC) is None
