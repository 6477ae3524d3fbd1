"""Producers: what one repeats is stored once, what it skips is refused, in whatever order."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store.rig import Ticker, make_ticker, new_job

from zq.features.producers.model import (
    MAX_ENDS,
    EnqueueInOrder,
    EpochEnd,
    ForgetProducer,
    ProducerFenced,
    ProducerMark,
    ProducerNotFound,
    SequenceGap,
    TooManyProducers,
)
from zq.model.commands import EnqueueResult, SetQueue
from zq.model.errors import QueueFull
from zq.model.job import NewJob
from zq.model.settings import QueueSettings


def numbered(
    ticker: Ticker,
    seq: int,
    *jobs: NewJob,
    name: str = "device-17",
    epoch: str = "e1",
    after: EpochEnd | None = None,
) -> EnqueueInOrder:
    plain = ticker.enqueue(jobs)
    mark = ProducerMark(name, epoch, seq, after)
    return EnqueueInOrder(
        keys=plain.keys, jobs=plain.jobs, now=plain.now, size=plain.size, mark=mark
    )


def jobs_of(seqs: range) -> list[NewJob]:
    return [new_job(payload=str(seq)) for seq in seqs]


def payloads(ticker: Ticker) -> list[str | None]:
    return [job.payload for job in ticker.jobs().values()]


def refused(reply: object) -> dict[str, object]:
    assert isinstance(reply, SequenceGap | ProducerFenced), reply
    return dict(reply.details)


def test_what_is_repeated_is_stored_once_and_named_by_the_ids_of_the_first_time(
    ticker: Ticker,
) -> None:
    first = numbered(ticker, 1, *jobs_of(range(1, 4)))
    ticker.run(first)

    again = numbered(ticker, 1, *jobs_of(range(1, 6)))
    (reply,) = ticker.run(again).replies

    assert payloads(ticker) == ["1", "2", "3", "4", "5"]
    assert isinstance(reply, EnqueueResult)
    assert reply.gone == dict(enumerate(first.keys)) and reply.unnamed == set()
    assert list(ticker.jobs()) == [*first.keys, *again.keys[3:]]


def test_ids_of_earlier_requests_are_no_longer_known(ticker: Ticker) -> None:
    ticker.run(numbered(ticker, 1, *jobs_of(range(1, 4))))
    later = numbered(ticker, 4, *jobs_of(range(4, 6)))
    ticker.run(later)

    (reply,) = ticker.run(numbered(ticker, 2, *jobs_of(range(2, 6)))).replies

    assert isinstance(reply, EnqueueResult)
    assert reply.unnamed == {0, 1} and reply.gone == {2: later.keys[0], 3: later.keys[1]}


def test_a_gap_is_refused_with_the_number_that_is_expected(ticker: Ticker) -> None:
    (early,) = ticker.run(numbered(ticker, 2, new_job())).replies
    assert refused(early) == {"expected": 1}

    ticker.run(numbered(ticker, 1, *jobs_of(range(1, 4))))
    (gap,) = ticker.run(numbered(ticker, 5, new_job())).replies

    assert refused(gap) == {"expected": 4}
    assert payloads(ticker) == ["1", "2", "3"]


def test_requests_of_one_producer_in_one_tick_are_ordered_or_refused(ticker: Ticker) -> None:
    second = numbered(ticker, 3, *jobs_of(range(3, 5)))
    first = numbered(ticker, 1, *jobs_of(range(1, 3)))
    other = numbered(ticker, 1, new_job(payload="x"), name="device-18")
    same = numbered(ticker, 1, *jobs_of(range(1, 3)))

    replies = ticker.run(second, first, other, same).replies

    assert refused(replies[0]) == {"expected": 1}
    assert payloads(ticker) == ["1", "2", "x"]
    assert isinstance(replies[3], EnqueueResult) and list(replies[3].gone) == [0, 1]


def test_a_refused_request_does_not_move_the_number(ticker: Ticker) -> None:
    ticker.run(SetQueue("full", QueueSettings(max_depth=1)))
    full = numbered(ticker, 1, new_job(queue="full"), new_job(queue="full"))

    reply, gap = ticker.run(full, numbered(ticker, 3, new_job())).replies

    assert isinstance(reply, QueueFull) and refused(gap) == {"expected": 1}


def test_another_epoch_takes_over_by_the_last_number_of_the_old_one(ticker: Ticker) -> None:
    ticker.run(numbered(ticker, 1, *jobs_of(range(1, 4))))

    (bare,) = ticker.run(numbered(ticker, 1, new_job(), epoch="e2")).replies
    wrong = EpochEnd("e1", 2)
    (late,) = ticker.run(numbered(ticker, 1, new_job(), epoch="e2", after=wrong)).replies
    assert refused(bare) == refused(late) == {"epoch": "e1", "last": 3}

    right = EpochEnd("e1", 3)
    (taken,) = ticker.run(
        numbered(ticker, 1, new_job(payload="new"), epoch="e2", after=right)
    ).replies
    (again,) = ticker.run(
        numbered(ticker, 1, new_job(payload="new"), epoch="e2", after=right)
    ).replies
    (old,) = ticker.run(numbered(ticker, 4, new_job())).replies

    assert isinstance(taken, EnqueueResult) and isinstance(again, EnqueueResult) and again.gone
    assert refused(old) == {"epoch": "e2", "last": 1, "ended": 3}
    assert payloads(ticker) == ["1", "2", "3", "new"]


def test_the_ends_of_earlier_epochs_are_remembered(ticker: Ticker) -> None:
    ticker.run(numbered(ticker, 1, *jobs_of(range(3)), epoch="e0"))
    for number in range(1, MAX_ENDS + 3):
        after = EpochEnd(f"e{number - 1}", 3 if number == 1 else 1)
        ticker.run(numbered(ticker, 1, new_job(), epoch=f"e{number}", after=after))

    def ended(epoch: str) -> object:
        (reply,) = ticker.run(numbered(ticker, 1, epoch=epoch)).replies
        return refused(reply).get("ended")

    assert [ended(f"e{number}") for number in range(4)] == [None, None, 1, 1]
    assert ended("never") is None
    ticker.run(ForgetProducer("device-17"), numbered(ticker, 1, new_job(), epoch="e9"))
    (reply,) = ticker.run(numbered(ticker, 1, new_job(), epoch="e5")).replies
    assert refused(reply).get("ended") is None


def test_a_deleted_producer_begins_anew(ticker: Ticker) -> None:
    ticker.run(numbered(ticker, 1, *jobs_of(range(1, 4))))

    gone, strange = ticker.run(ForgetProducer("device-17"), ForgetProducer("nobody")).replies
    (reply,) = ticker.run(numbered(ticker, 4, new_job())).replies

    assert gone is None and isinstance(strange, ProducerNotFound)
    assert refused(reply) == {"expected": 1}


def test_the_number_of_producers_has_a_limit(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.features.producers.tick.MAX_PRODUCERS", 2)
    names = ["a", "b", "c"]

    replies = ticker.run(*(numbered(ticker, 1, new_job(), name=name) for name in names)).replies

    assert [isinstance(reply, TooManyProducers) for reply in replies] == [False, False, True]
    (old,) = ticker.run(numbered(ticker, 2, new_job(), name="a")).replies
    assert isinstance(old, EnqueueResult)


class Request(msgspec.Struct, frozen=True):
    """One request of a simulated producer, which may send anything at any time."""

    name: str
    epoch: str
    seq: int
    jobs: int
    takes_over: bool


requests = st.builds(
    Request,
    name=st.sampled_from(["a", "b"]),
    epoch=st.sampled_from(["x", "y"]),
    seq=st.integers(1, 9),
    jobs=st.integers(1, 4),
    takes_over=st.booleans(),
)


class Log:
    """An exact producer log: all jobs of a name by (epoch, number), as they must be stored."""

    def __init__(self) -> None:
        self.epochs: dict[str, tuple[str, int]] = {}
        self.stored: list[str] = []

    def end(self, name: str) -> EpochEnd | None:
        return EpochEnd(*self.epochs[name]) if name in self.epochs else None

    def send(self, request: Request) -> bool:
        epoch, last = self.epochs.get(request.name, (request.epoch, 0))
        if epoch != request.epoch:
            if not request.takes_over:
                return False
            last = 0
        if request.seq > last + 1:
            return False
        for seq in range(max(request.seq, last + 1), request.seq + request.jobs):
            self.stored.append(text_of(request, seq))
            last = seq
        self.epochs[request.name] = request.epoch, last
        return True


def text_of(request: Request, seq: int) -> str:
    return f'"{request.name} {request.epoch} {seq}"'


@contextmanager
def new_ticker() -> Iterator[Ticker]:
    with TemporaryDirectory() as directory:
        ticker = make_ticker(Path(directory) / "zq.db")
        try:
            yield ticker
        finally:
            ticker.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(requests, min_size=1, max_size=4), max_size=12))
def test_what_is_stored_is_what_an_exact_log_has(ticks: list[list[Request]]) -> None:
    log = Log()
    with new_ticker() as ticker:
        for tick in ticks:
            # All requests of a tick were sent before the first of them was answered.
            ends = {request.name: log.end(request.name) for request in tick}
            expected, commands = [], []
            for request in tick:
                after = ends[request.name] if request.takes_over else None
                honest = msgspec.structs.replace(
                    request, takes_over=after is not None and after == log.end(request.name)
                )
                expected.append(log.send(honest))
                seqs = range(request.seq, request.seq + request.jobs)
                jobs = [new_job(payload=text_of(request, seq)) for seq in seqs]
                commands.append(
                    numbered(
                        ticker,
                        request.seq,
                        *jobs,
                        name=request.name,
                        epoch=request.epoch,
                        after=after,
                    )
                )
            replies = ticker.run(*commands).replies
            ticker.restart()
            assert [isinstance(reply, EnqueueResult) for reply in replies] == expected
        assert payloads(ticker) == log.stored
        ticker.check_counts()
