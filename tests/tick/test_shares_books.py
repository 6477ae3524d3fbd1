"""What is kept of fair keys, beside what the rows of jobs say, whatever happens to these."""

from collections import Counter
from random import Random

import pytest
from store.rig import Ticker

from zq.features.fair import tick_hold
from zq.features.fair.model import FairLimit
from zq.features.fair.model_jobs import DropFairLimit, PutFairLimit
from zq.features.sweeps.model import SweepMark, UndoSlice
from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    DeleteJob,
    Fail,
    PatchJob,
    Release,
    Revive,
    SetQueue,
    Succeed,
)
from zq.model.filters import EVERYTHING, Filter
from zq.model.job import JobSettings
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settings import FairRule, QueueSettings
from zq.model.settling import Failure

KEYS, QUEUES, GROUPS = "abc", ("q", "r"), (None, None, "g")


def check(ticker: Ticker) -> None:
    """Compare the counts of keys, and the lines, with the rows of jobs."""
    counts = Counter[tuple[str, str, int]]()
    heads: dict[int, int | None] = {}
    rows = ticker.connection.execute(
        "SELECT id, queue, status, held, line, options ->> '$.fair_key' FROM jobs WHERE status <= 2"
    )
    for id, queue, status, held, line, key in rows:
        if key is not None:
            counts[queue, key, status] += 1
            assert (line is None) == (status == Status.IN_FLIGHT)
        if line is not None:
            first = heads.setdefault(line, None)
            if (status, held) == (1, 2):
                heads[line] = id if first is None else min(first, id)

    shares = {
        (queue, key): (finish, unfinished, waiting, in_flight)
        for queue, key, finish, unfinished, waiting, in_flight in ticker.connection.execute(
            "SELECT queue, fair_key, finish, unfinished, waiting, in_flight FROM shares"
        )
    }
    assert {(queue, key) for queue, key, _ in counts} <= shares.keys()
    for (queue, key), (_, *kept) in shares.items():
        scheduled, ready, running = [counts[queue, key, status] for status in range(3)]
        assert kept == [scheduled + ready + running, ready, running], (queue, key)

    lines = ticker.connection.execute("SELECT id, queue, fair_key, head, place FROM lines")
    for id, queue, key, head, place in lines:
        assert head == heads.pop(id)
        if key and head is not None:
            # What SQLite reads as JSON has 15 digits.
            assert place == pytest.approx(shares[queue, key[1:]][0], rel=1e-14)
    assert not heads


def anything(ticker: Ticker, draw: Random) -> AnyCommand:
    """A command that some job, key or queue may get."""
    jobs = ticker.jobs()
    key = draw.choice(list(jobs)) if jobs else 0
    running = [key for key, job in jobs.items() if job.holder is not None] or [0]
    some = tuple(draw.sample(running, draw.randint(1, len(running))))
    rule = FairRule(max_in_flight=draw.choice((None, 1, 2)), rate=draw.choice((None, 3.0)))
    limit = FairLimit(weight=draw.choice((None, 0.5)), max_in_flight=draw.choice((None, 1)))
    place, name = draw.choice(QUEUES), draw.choice(KEYS)
    return draw.choice(
        (
            Succeed(list(some)),
            Fail(some[0], Failure("no", kill=draw.random() < 0.2)),
            Release(some, leases={}, delay_ms=draw.choice((0, 500))),
            PatchJob(key, "id", Patch(queue=place)),
            PatchJob(key, "id", Patch(priority=draw.choice((0, 9)))),
            PatchJob(key, "id", Patch(ready_at=ticker.now + draw.choice((0, 400)))),
            DeleteJob(key),
            CancelJob(key, force=draw.random() < 0.5),
            CancelSlice(list(jobs), EVERYTHING, draw.random() < 0.5, SweepMark(7, "{}", 1.0)),
            Revive(key),
            UndoSlice(list(jobs), Filter(swept=7)),
            SetQueue(place, QueueSettings(fair=rule, priority_aging_ms=draw.choice((None, 100)))),
            PutFairLimit(place, name, limit),
            DropFairLimit(place, name),
        )
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", [1, 20_000])
def test_keys_and_lines_say_what_the_rows_of_jobs_say(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, seed: int, known: int
) -> None:
    monkeypatch.setattr(tick_hold, "MOST_KNOWN", known)
    draw = Random(seed)
    for _ in range(120):
        if draw.random() < 0.3:
            for _ in range(draw.randint(1, 4)):
                key = draw.choice((None, *KEYS))
                options = None if key is None else JobSettings(fair_key=key)  # type: ignore[call-arg]
                ticker.store(
                    1,
                    queue=draw.choice(QUEUES),
                    priority=draw.choice((0, 9)),
                    group=draw.choice(GROUPS),
                    options=options,
                )
        elif draw.random() < 0.4:
            ticker.take(draw.randint(1, 4), queues=draw.choice((None, ("q",))))
        elif draw.random() < 0.05:
            ticker.restart()
        else:
            ticker.run(anything(ticker, draw))
        ticker.now += draw.choice((0, 1, 30))
        check(ticker)
