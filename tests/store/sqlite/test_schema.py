"""The schema refuses impossible rows, one CHECK at a time."""

import re
import sqlite3
from typing import Any

import pytest

from zq.model.job import INLINE_PAYLOAD, MAX_PRIORITY
from zq.model.lifecycle import Status

from ..rig import Ticker

SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, *_ = Status

WAITING: dict[str, Any] = {
    "id": 16,
    "queue": "q",
    "type": "t",
    "priority": 1,
    "status": READY,
    "ready_at": 5,
    "payload_size": 2,
    "payload": "{}",
}
HELD = WAITING | {"status": IN_FLIGHT, "holder": 1, "deliveries": 1, "dequeued_at": 6}
FAILED = HELD | {"status": SCHEDULED, "holder": None, "attempts": 1, "failed_at": 7}
DONE = HELD | {"status": COMPLETED, "holder": None, "finished_at": 7, "purge_at": 8}
BURIED = FAILED | {"status": DEAD, "finished_at": 7, "purge_at": 8}
CANCELLED = WAITING | {"status": Status.CANCELLED, "finished_at": 7, "purge_at": 8}
RETURNED = DONE | {"result_size": 4, "result": "null"}
LARGELY_RETURNED = DONE | {"result_size": INLINE_PAYLOAD + 1}
EXPIRED = WAITING | {"status": Status.EXPIRED, "expires_at": 7, "finished_at": 7, "purge_at": 8}
CLAIMED = HELD | {"holder": 0, "claimant": "c", "lease_until": 9}
GROUPED = WAITING | {"group_id": "g", "held": 1}
UNIQUE = WAITING | {"unique_key": "k", "unique_while": 0, "owns_key": 1}
LARGE = WAITING | {"payload_size": INLINE_PAYLOAD + 1, "payload": None}

POSSIBLE = [
    WAITING,
    WAITING | {"status": SCHEDULED},
    HELD,
    FAILED,
    DONE,
    BURIED,
    CANCELLED,
    RETURNED,
    LARGELY_RETURNED,
    EXPIRED,
    CLAIMED,
    HELD | {"lease_until": 9},
    GROUPED,
    WAITING | {"options": "{}", "extras": '{"meta":"{}"}'},
    WAITING | {"held": 2, "stalls": 3},
    FAILED | {"forgiven": 1},
    UNIQUE,
    LARGE,
]

# The condition that refuses the row → rows that break this one and no other.
IMPOSSIBLE: dict[str, list[dict[str, Any]]] = {
    "queue <> ''": [WAITING | {"queue": ""}],
    "type <> ''": [WAITING | {"type": ""}],
    "priority BETWEEN 0 AND 65535": [
        WAITING | {"priority": -1},
        WAITING | {"priority": MAX_PRIORITY + 1},
    ],
    "status BETWEEN 0 AND 6": [
        WAITING | {"status": -1},
        WAITING | {"status": 7, "finished_at": 7, "purge_at": 8},
    ],
    "ready_at >= 0": [WAITING | {"ready_at": -1}],
    "unique_while BETWEEN 0 AND 2": [UNIQUE | {"unique_while": 3}, UNIQUE | {"unique_while": -1}],
    "owns_key IN (0, 1)": [UNIQUE | {"owns_key": 2}],
    "(status = 2) = (holder IS NOT NULL)": [
        HELD | {"holder": None},
        WAITING | {"holder": 1},
        FAILED | {"holder": 1},
        DONE | {"holder": 1},
        BURIED | {"holder": 1},
    ],
    "status <> 2 OR dequeued_at IS NOT NULL": [HELD | {"dequeued_at": None, "deliveries": 0}],
    "(deliveries > 0) = (dequeued_at IS NOT NULL)": [
        WAITING | {"deliveries": 1},
        WAITING | {"dequeued_at": 6},
        HELD | {"deliveries": 0},
    ],
    "(attempts > 0) = (failed_at IS NOT NULL)": [
        FAILED | {"failed_at": None},
        FAILED | {"attempts": 0},
        WAITING | {"attempts": -1, "failed_at": 7},
    ],
    "lease_until IS NULL OR status = 2": [WAITING | {"lease_until": 9}, DONE | {"lease_until": 9}],
    "(claimant IS NOT NULL) = (holder IS 0)": [
        CLAIMED | {"claimant": None},
        CLAIMED | {"holder": 1},
        WAITING | {"claimant": "c"},
    ],
    "claimant IS NULL OR lease_until IS NOT NULL": [CLAIMED | {"lease_until": None}],
    "forgiven BETWEEN 0 AND attempts": [FAILED | {"forgiven": 2}, FAILED | {"forgiven": -1}],
    "(status >= 3) = (finished_at IS NOT NULL)": [
        DONE | {"finished_at": None},
        BURIED | {"finished_at": None},
        EXPIRED | {"finished_at": None},
        WAITING | {"finished_at": 7},
        HELD | {"finished_at": 7},
    ],
    "held BETWEEN 0 AND 3": [GROUPED | {"held": -2}, GROUPED | {"held": 4}],
    "held & 1 = 0 OR group_id IS NOT NULL": [WAITING | {"held": 1}],
    "held = 0 OR status < 2": [HELD | {"held": 2}, DONE | {"held": 2}],
    "group_id <> ''": [WAITING | {"group_id": ""}],
    "stalls >= 0": [WAITING | {"stalls": -1}],
    "(status >= 3) = (purge_at IS NOT NULL)": [
        DONE | {"purge_at": None},
        BURIED | {"purge_at": None},
        CANCELLED | {"purge_at": None},
        WAITING | {"purge_at": 8},
        HELD | {"purge_at": 8},
    ],
    "(unique_key IS NULL) = (unique_while IS NULL)": [
        UNIQUE | {"unique_while": None},
        WAITING | {"unique_while": 1},
    ],
    "owns_key = 0 OR unique_key IS NOT NULL": [WAITING | {"owns_key": 1}],
    "owns_key = 0 OR status < 5": [
        CANCELLED | {"unique_key": "k", "unique_while": 2, "owns_key": 1}
    ],
    "iif(json_valid(options), json_type(options) = 'object', options IS NULL)": [
        WAITING | {"options": "{"},
        WAITING | {"options": "[]"},
        WAITING | {"options": "null"},
    ],
    "iif(json_valid(extras), json_type(extras) = 'object', extras IS NULL)": [
        WAITING | {"extras": ""},
        WAITING | {"extras": "1"},
    ],
    "swept IS NULL OR status = 5": [WAITING | {"swept": 1}, EXPIRED | {"swept": 1}],
    "result_size IS NULL OR status = 3": [
        BURIED | {"result_size": 4, "result": "null"},
        WAITING | {"result_size": INLINE_PAYLOAD + 1},
    ],
    "(result IS NOT NULL) = (ifnull(result_size, 513) <= 512)": [
        RETURNED | {"result": None},
        RETURNED | {"result_size": None},
        RETURNED | {"result_size": INLINE_PAYLOAD + 1},
        LARGELY_RETURNED | {"result": "null"},
    ],
    "(payload IS NULL) = (payload_size > 512)": [
        WAITING | {"payload": None},
        WAITING | {"payload_size": INLINE_PAYLOAD + 1},
        LARGE | {"payload_size": INLINE_PAYLOAD},
    ],
}
CASES = [(condition, row) for condition, rows in IMPOSSIBLE.items() for row in rows]


def insert(ticker: Ticker, row: dict[str, Any], table: str = "jobs") -> None:
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(':' + c for c in row)})"
    ticker.connection.execute(sql, row)


def _without_added(line: str) -> str:
    """A line without the plain columns that a later version has added to it."""
    return re.sub(r"(, \w+ INTEGER)+,?$", "", line)


def checks(ticker: Ticker, table: str) -> set[str]:
    """The conditions that the table's schema states."""
    sql: str = ticker.value("SELECT sql FROM sqlite_master WHERE name = ?", table)
    return {
        condition
        for line in sql.splitlines()
        for condition in re.findall(r"CHECK \((.*)\),?$", _without_added(line.strip()))
    }


@pytest.mark.parametrize("row", POSSIBLE)
def test_a_possible_row_is_taken(ticker: Ticker, row: dict[str, Any]) -> None:
    insert(ticker, row)


@pytest.mark.parametrize(("condition", "row"), CASES)
def test_an_impossible_row_is_refused(ticker: Ticker, condition: str, row: dict[str, Any]) -> None:
    with pytest.raises(sqlite3.IntegrityError) as refusal:
        insert(ticker, row)
    assert str(refusal.value) == f"CHECK constraint failed: {condition}"


def test_every_check_of_the_jobs_is_tested(ticker: Ticker) -> None:
    assert checks(ticker, "jobs") == IMPOSSIBLE.keys()


@pytest.mark.parametrize(
    "column", ["queue", "type", "priority", "status", "ready_at", "payload_size"]
)
def test_what_every_job_has_cannot_be_missing(ticker: Ticker, column: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=f"NOT NULL .* jobs.{column}"):
        insert(ticker, WAITING | {column: None})


@pytest.mark.parametrize("column", ["priority", "ready_at", "attempts", "holder", "purge_at"])
def test_a_number_is_not_a_text(ticker: Ticker, column: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT value in INTEGER column"):
        insert(ticker, WAITING | {column: "soon"})


def test_a_unique_key_has_one_owner_and_any_number_of_former_ones(ticker: Ticker) -> None:
    insert(ticker, UNIQUE)
    insert(ticker, UNIQUE | {"id": 32, "owns_key": 0})
    insert(ticker, UNIQUE | {"id": 48, "owns_key": 0})
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE .* jobs\.key_lock"):
        insert(ticker, UNIQUE | {"id": 64})


def test_a_queue_never_has_fewer_than_no_jobs(ticker: Ticker) -> None:
    assert checks(ticker, "queue_counts") == {"n >= 0", "status BETWEEN 0 AND 6"}
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed: n >= 0"):
        insert(ticker, {"queue": "q", "status": 1, "n": -1}, "queue_counts")


def test_an_error_record_has_a_number_from_one_and_only_one_of_each(ticker: Ticker) -> None:
    record = {"job_id": 16, "attempt": 1, "message": "m", "dequeued_at": 6, "failed_at": 7}
    assert checks(ticker, "errors") == {"attempt > 0"}
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed: attempt > 0"):
        insert(ticker, record | {"attempt": 0}, "errors")
    insert(ticker, record, "errors")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
        insert(ticker, record, "errors")
