"""The numbers of jobs in queue topics: they go with their jobs, whoever ends these."""

from store.rig import Ticker

from zq.doors.topics.commands import (
    Append,
    Appended,
    DeleteTopic,
    ForgetNumbers,
    PutTopic,
    TopicDeleted,
)
from zq.doors.topics.errors import TopicNotEmpty
from zq.doors.topics.model import DEFAULT_CONFIG, NewRecord, TopicPatch
from zq.doors.topics.tick_numbers import LOOKED_AT
from zq.model.commands import Fail, SetQueue, Succeed
from zq.model.job import Retention
from zq.model.settings import QueueSettings
from zq.model.settling import Failure


def append(ticker: Ticker, count: int) -> list[int]:
    """Append records to the topic `q`. Their keys."""
    keys = ticker.mint.take(count, ticker.now)
    records = [NewRecord("1", size=1)] * count
    (reply,) = ticker.run(Append("q", records, count, DEFAULT_CONFIG, keys=keys)).replies
    assert isinstance(reply, Appended), reply
    return list(keys)


def numbers(ticker: Ticker) -> int:
    found: int = ticker.value("SELECT count(*) FROM topic_jobs")
    return found


def make(ticker: Ticker, settings: QueueSettings) -> None:
    ticker.run(PutTopic("q", TopicPatch(type="queue")), SetQueue("q", settings))


def test_numbers_of_jobs_that_have_ended_elsewhere_do_not_gather(ticker: Ticker) -> None:
    """They go though the jobs are kept for a while: completed jobs never come back."""
    make(ticker, QueueSettings(retention=Retention(completed_ms=60_000)))
    count = 4 * LOOKED_AT
    append(ticker, count)
    ticker.run(Succeed(ticker.take(count)))
    while numbers(ticker) > 2:
        before = numbers(ticker)
        append(ticker, 1)
        ticker.run(Succeed(ticker.take(1)))
        assert numbers(ticker) < before


def test_numbers_go_though_others_stand_before_them(ticker: Ticker) -> None:
    make(ticker, QueueSettings())
    held = append(ticker, 4 * LOOKED_AT)
    ticker.take(len(held))
    for _ in range(40):
        append(ticker, LOOKED_AT)
        ticker.run(Succeed(ticker.take(LOOKED_AT)))
    assert numbers(ticker) - len(held) < 10 * LOOKED_AT


def test_a_queue_does_not_go_before_its_jobs(ticker: Ticker) -> None:
    """RACE: somebody appends while the records of a topic are being deleted."""
    make(ticker, QueueSettings())
    append(ticker, 2)
    held = ticker.take(1)
    (refusal,) = ticker.run(DeleteTopic("q")).replies
    assert isinstance(refusal, TopicNotEmpty)
    ticker.run(Succeed(held))
    ticker.run(Succeed(ticker.take(1)))
    (reply,) = ticker.run(DeleteTopic("q")).replies
    assert isinstance(reply, TopicDeleted) and reply.deleted


def test_a_job_that_may_come_back_keeps_its_number(ticker: Ticker) -> None:
    """RACE: one worker reports a failure, another one that the record is done."""
    make(ticker, QueueSettings())
    append(ticker, 2)
    dead, done = ticker.take(2)
    ticker.run(Fail(dead, Failure("boom", kill=True)), Succeed([done]), ForgetNumbers([dead, done]))
    assert ticker.value("SELECT job FROM topic_jobs") == dead
