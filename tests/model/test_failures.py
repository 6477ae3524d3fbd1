"""Which failures have the same cause: what is left of a message, what signatures tell apart."""

import pytest

from zq.features.failures.model import (
    MOST_SHOWN,
    RULE,
    Bars,
    FailureRow,
    by_cause,
    cause_of,
    common_message,
    grouped,
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", ""),
        ("timeout", "timeout"),
        ("SMTP 421 try again in 30 s", "SMTP <n> try again in <n> s"),
        ("took 1.5 s of 2,000 at 10:42:07", "took <n> s of <n> at <n>"),
        ('no user "ann" in "crm"', "no user <text> in <text>"),
        ("KeyError: 'user_17'", "KeyError: <text>"),
        ("can't find it, don't ask", "can't find it, don't ask"),
        ("no table `jobs_2026`", "no table <text>"),
        ("job 0190a7b2-1c2d-7e3f-8a9b-0c1d2e3f4a5b is gone", "job <id> is gone"),
        ("object at 0x7f3a2b", "object at <hex>"),
        ("commit 9f2c01ab4d77 is missing", "commit <hex> is missing"),
        ("order 1234567 and order 12345678", "order <n> and order <n>"),
        ("facade is a word and decade too", "facade is a word and decade too"),
        ("no such file: /var/lib/zq/a b", "no such file: <path> b"),
        ("cannot open C:\\Temp\\x.txt now", "cannot open <path> now"),
        ("GET https://example.org/a?b=1 gave 502", "GET <path> gave <n>"),
        ("either/or", "either/or"),
        ("first line\nsecond 1", "first line"),
        ("\n\n  indented   twice ", "indented twice"),
        ("worker7 failed", "worker<n> failed"),
    ],
)
def test_what_differs_between_failures_of_one_cause_is_left_out(
    message: str, expected: str
) -> None:
    assert common_message(message) == expected


def test_failures_of_one_cause_have_one_signature() -> None:
    one = cause_of("SmtpError", "421 for 'ann' after 3 s")
    other = cause_of("SmtpError", "450 for 'bob' after 17 s")
    assert one == other
    assert one.signature.startswith(f"{RULE}-")
    assert len(one.signature) == len(f"{RULE}-") + 16
    assert (one.error_type, one.message) == ("SmtpError", "<n> for <text> after <n> s")


def test_another_type_or_another_message_is_another_cause() -> None:
    causes = [("A", "x"), (None, "x"), ("A", "y"), ("Ax", ""), (None, "")]
    assert len({cause_of(*cause).signature for cause in causes}) == len(causes)


def test_the_rule_is_what_its_number_says() -> None:
    # A change of the rule needs another number: signatures are stored.
    assert cause_of("ValueError", "no such mailbox 7").signature == "1-beb2160e63d0f8d1"


def test_a_long_message_costs_no_more_than_its_beginning() -> None:
    assert len(common_message("word " * 100_000)) == MOST_SHOWN
    assert common_message('"' * 20_000) == common_message('"' * 1_000)
    assert common_message("/" * 16_384)


def test_a_group_has_the_sums_of_its_queues_and_compares_equal_parts_of_time() -> None:
    rows = [
        FailureRow("1-a", "mail", "E", "m", 9, 10, 720, 7, ["A", "B"], [(0, 3), (1, 1), (3, 2)]),
        FailureRow("1-b", "mail", None, "n", 1, 730, 730, 8, ["A"], [(3, 1)]),
        FailureRow("1-a", "sms", "E", "m", 5, 5, 740, 9, ["B", "C"], [(2, 4), (4, 100)]),
    ]
    # Two bars of 200 ms from 400 on, of which 350 ms have passed at 750; and 0 to 400 before them.
    ours, theirs = (grouped(those, Bars(2, 200, 100), 750) for those in by_cause(rows))
    assert (ours.signature, ours.bars, ours.before, ours.count) == ("1-a", [4, 2], 4, 6)
    assert (ours.queues, ours.types) == (["sms", "mail"], ["A", "B", "C"])
    assert (ours.total, ours.first_seen, ours.last_seen, ours.sample) == (14, 5, 740, 9)
    assert ours.times == pytest.approx((6 / 350) / (4 / 400))
    assert (ours.is_new, theirs.is_new, theirs.times) == (False, True, None)
