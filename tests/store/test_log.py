"""The log of the history: numbers without gaps, retention, and readers."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from zq.features.history.model import HistoryRecord
from zq.features.history.service import history_records
from zq.features.history.tick import MOST_MESSAGE
from zq.model.commands import DeleteJob, Due, Fail, Return, Succeed
from zq.model.errors import CursorAhead, Internal, RecordsGone
from zq.model.ids import IdCodec
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG, Bounds, HistoryOptions
from zq.model.settling import Failure
from zq.store import logs
from zq.store.logs import LogPage, read_log
from zq.store.sqlite import upkeep
from zq.tick.logs import TRIMMED

from .rig import FOREVER, NOW, Rig, Ticker

MINUTE_MS = 60_000
BOUNDS = Bounds(age_ms=10 * MINUTE_MS, records=1_000, bytes=2**20)
IDS = IdCodec("0" * 12)


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    """It keeps a history."""
    ticker = Ticker(tmp_path / "zq.db", history=HistoryOptions("lab", BOUNDS))
    yield ticker
    ticker.close()


def page(
    ticker: Ticker, after: int | None = None, upto: int = FOREVER, limit: int = FOREVER
) -> LogPage:
    return read_log(ticker.core, HISTORY_LOG, after, upto, limit)


def records(found: LogPage) -> list[HistoryRecord]:
    return [r for batch in found.batches for r in history_records(*batch, "epoch", IDS)]


def seqs(found: LogPage) -> list[int]:
    return [record.seq for record in records(found)]


def finish(ticker: Ticker, count: int = 1) -> None:
    """Let so many jobs come and go: one batch of records."""
    ticker.store(count)
    ticker.run(Succeed(ticker.take(count)))


def bound(ticker: Ticker, bounds: Bounds) -> None:
    """Go on as a server that was started again with other bounds."""
    upkeep.recover(ticker.connection, bounds)


def test_records_are_numbered_from_one_without_gaps_over_batches(ticker: Ticker) -> None:
    for count in (3, 1, 2):
        finish(ticker, count)
    assert seqs(page(ticker)) == [1, 2, 3, 4, 5, 6]
    assert page(ticker)[:2] == (1, 6)


@pytest.mark.parametrize(
    ("after", "upto", "limit", "expected"),
    [
        (0, FOREVER, 4, [1, 2, 3, 4]),
        (2, FOREVER, 3, [3, 4, 5]),
        (2, 4, 99, [3, 4]),
        (3, 3, 99, []),
        (5, FOREVER, 99, [6]),
        (6, FOREVER, 99, []),
    ],
)
def test_a_range_may_begin_and_end_anywhere(
    ticker: Ticker, after: int, upto: int, limit: int, expected: list[int]
) -> None:
    for count in (3, 1, 2):
        finish(ticker, count)
    assert seqs(page(ticker, after, upto, limit)) == expected


def test_an_empty_log_says_so(ticker: Ticker) -> None:
    assert page(ticker) == LogPage(1, 0, [])


def test_a_cursor_from_elsewhere_is_refused(ticker: Ticker) -> None:
    finish(ticker, 2)
    with pytest.raises(CursorAhead, match="record 3 has never existed, the last one is 2"):
        page(ticker, 3)


def test_a_record_has_the_attempt_as_it_was(ticker: Ticker) -> None:
    (key,) = ticker.store(1, queue="mail", type="t\\n'\"2", priority=7, payload='"é"')
    ticker.now += 5
    ticker.take(1, holder=2)
    ticker.now += 6
    ticker.run(Fail(key, Failure("no\0 such\n\"host'", error_type="E", retry_at=NOW + 50)))
    ticker.now = NOW + 60
    ticker.run(promote=True)
    ticker.take(1, holder=1)
    ticker.now += 1
    ticker.run(Succeed([key]))
    first, second = records(page(ticker))
    common = {
        "epoch": "epoch",
        "device": "lab",
        "job_id": IDS.text(key),
        "queue": "mail",
        "type": "t\\n'\"2",
        "enqueued_at": NOW,
        "payload_bytes": 4,
        "priority": 7,
    }
    assert first == HistoryRecord(
        seq=1,
        attempt=1,
        outcome="failed",  # type: ignore[arg-type]
        ready_at=NOW,
        dequeued_at=NOW + 5,
        finished_at=NOW + 11,
        error_type="E",
        error_message="no\0 such\n\"host'",
        worker="bob 'ü'",
        **common,  # type: ignore[arg-type]
    )
    assert second == HistoryRecord(
        seq=2,
        attempt=2,
        outcome="completed",  # type: ignore[arg-type]
        ready_at=NOW + 50,
        dequeued_at=NOW + 60,
        finished_at=NOW + 61,
        worker="ann",
        **common,  # type: ignore[arg-type]
    )


def test_a_long_message_is_cut_here_and_kept_with_the_job(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    ticker.take(1)
    ticker.run(Fail(key, Failure("é" * 5_000)))
    (record,) = records(page(ticker))
    assert record.error_message == "é" * MOST_MESSAGE
    assert ticker.value("SELECT length(message) FROM errors") == 5_000


def test_what_ends_no_attempt_leaves_no_record(ticker: Ticker) -> None:
    held, gone = ticker.store(2)
    ticker.take(2)
    ticker.run(Return(1, [held]), DeleteJob(gone), Succeed([12345]))
    assert ticker.jobs()[held].status is Status.READY
    assert page(ticker) == LogPage(1, 0, [])


def test_without_a_history_nothing_is_written(tmp_path: Path) -> None:
    ticker = Ticker(tmp_path / "zq.db")
    said: list[str] = []
    ticker.connection.set_trace_callback(said.append)
    finish(ticker, 3)
    (key,) = ticker.store(1)
    ticker.take(1)
    ticker.run(Fail(key, Failure("m", kill=True)))
    assert not [sql for sql in said if "log_batches" in sql]
    assert page(ticker) == LogPage(1, 0, [])
    ticker.close()


def test_a_tick_that_is_rolled_back_leaves_neither_record_nor_gap(ticker: Ticker) -> None:
    finish(ticker)
    ticker.connection.execute(
        "CREATE TRIGGER refuse BEFORE DELETE ON jobs WHEN old.queue = 'bad'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    ticker.store(1, queue="bad")
    ticker.store(1, queue="good")
    bad, good = ticker.take(2)
    result = ticker.run(Succeed([bad]), Succeed([good]))
    assert isinstance(result.replies[0], Internal)
    found = records(page(ticker))
    assert [(record.seq, record.queue) for record in found] == [(1, "q"), (2, "good")]
    assert result.logged == 2


def test_records_past_their_age_go_and_are_known_to_be_gone(ticker: Ticker) -> None:
    finish(ticker, 2)
    ticker.now += MINUTE_MS
    finish(ticker, 3)
    ticker.now = NOW + 10 * MINUTE_MS - 1
    ticker.run(trim=True)
    assert seqs(page(ticker)) == [1, 2, 3, 4, 5]
    ticker.now += 1
    result = ticker.run(trim=True)
    assert seqs(page(ticker)) == [3, 4, 5]
    assert result.deadlines == {Due.TRIM: NOW + 11 * MINUTE_MS}
    with pytest.raises(RecordsGone, match=r"record 2 .* the next one is 3") as refusal:
        page(ticker, 1)
    assert refusal.value.min_seq == 3
    assert seqs(page(ticker, 2)) == [3, 4, 5]


def test_numbers_go_on_after_all_records_are_gone(ticker: Ticker) -> None:
    finish(ticker, 2)
    ticker.now += 10 * MINUTE_MS
    assert ticker.run(trim=True).deadlines == {}
    assert page(ticker) == LogPage(3, 2, [])
    with pytest.raises(RecordsGone):
        page(ticker, 0)
    finish(ticker)
    assert seqs(page(ticker)) == [3]


def test_the_first_record_sets_a_deadline(ticker: Ticker) -> None:
    ticker.store(2)
    one, other = ticker.take(2)
    assert ticker.run(Succeed([one])).deadlines == {Due.TRIM: NOW + 10 * MINUTE_MS}
    # The second does not change it, so that a plain tick does not look.
    assert ticker.run(Succeed([other])).deadlines is None


def test_more_records_than_may_be_push_the_oldest_out(ticker: Ticker) -> None:
    bound(ticker, Bounds(records=5))
    for _ in range(4):
        finish(ticker, 2)
    assert seqs(page(ticker)) == [5, 6, 7, 8]


def test_more_bytes_than_may_be_push_the_oldest_out(ticker: Ticker) -> None:
    finish(ticker, 2)
    size = ticker.value("SELECT bytes FROM logs")
    assert size == ticker.value("SELECT sum(length(body) + length(shared)) FROM log_batches")
    bound(ticker, Bounds(bytes=3 * size))
    for _ in range(5):
        finish(ticker, 2)
    assert seqs(page(ticker)) == list(range(7, 13))
    assert ticker.value("SELECT bytes FROM logs") == 3 * size


def test_little_is_removed_at_a_time(ticker: Ticker) -> None:
    for _ in range(TRIMMED + 10):
        finish(ticker)
    ticker.now += 10 * MINUTE_MS
    result = ticker.run(trim=True)
    assert page(ticker)[:2] == (TRIMMED + 1, TRIMMED + 10)
    # Overdue, so that the next tick goes on.
    assert result.deadlines == {Due.TRIM: NOW + 10 * MINUTE_MS}
    ticker.run(trim=True)
    assert page(ticker) == LogPage(TRIMMED + 11, TRIMMED + 10, [])


def test_a_record_of_a_wrong_clock_does_not_take_older_ones_with_it(ticker: Ticker) -> None:
    finish(ticker)
    ticker.now = 1_000
    finish(ticker)
    ticker.now = NOW + MINUTE_MS
    ticker.run(trim=True)
    assert seqs(page(ticker)) == [1, 2]
    ticker.now = NOW + 10 * MINUTE_MS
    ticker.run(trim=True)
    assert page(ticker) == LogPage(3, 2, [])


def test_new_bounds_hold_for_what_is_there(ticker: Ticker) -> None:
    finish(ticker, 2)
    bound(ticker, Bounds(age_ms=MINUTE_MS))
    ticker.now += MINUTE_MS
    ticker.run(trim=True)
    assert page(ticker) == LogPage(3, 2, [])


def test_a_page_ends_early_where_records_are_large(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        finish(ticker, 2)
    monkeypatch.setattr(logs, "PAGE_BYTES", 100)
    assert seqs(page(ticker)) == [1, 2]


@pytest.mark.parametrize(
    "values",
    ["1, 1, 0, 0, '{}', x'00'"],
)
def test_a_batch_has_records(ticker: Ticker, values: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="count > 0"):
        ticker.connection.execute(f"INSERT INTO log_batches VALUES ({values}, NULL, NULL)")


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("name = ''", "name <> ''"),
        ("min_seq = 0", "min_seq > 0"),
        ("bytes = -1", "bytes >= 0"),
        ("min_seq = max_seq + 2", "min_seq <= max_seq \\+ 1"),
    ],
)
def test_an_impossible_log_is_refused(ticker: Ticker, change: str, check: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=check):
        ticker.connection.execute(f"UPDATE logs SET {change}")


async def test_a_store_that_is_opened_again_goes_on_where_it_was(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "data", history=HistoryOptions("lab", BOUNDS))
    await rig.open()
    assert rig.store.logged == 0
    await rig.keep(3)
    taken = [job.key for job in await rig.take(3)]
    await rig.run(Succeed(taken[:2]))
    before = await rig.read(read_log, HISTORY_LOG, None, FOREVER, FOREVER)
    await rig.reopen()
    assert rig.store.logged == 2
    assert await rig.read(read_log, HISTORY_LOG, None, FOREVER, FOREVER) == before
    (again,) = await rig.take(1)
    result = await rig.run(Succeed([again.key]))
    assert result.logged == 3
    await rig.close()
