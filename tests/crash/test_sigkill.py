"""SIGKILL under mixed load: every promise is kept.

`CRASH_SEED` repeats a run's choices, `CRASH_CYCLES` sets the number of kills.
"""

from collections import Counter
from pathlib import Path
from random import Random

from tiers import sizes

from .actors import LIMITED, MOURNING, Notebook
from .history import (
    NEVER,
    Cancel,
    Delivery,
    Enqueue,
    Extend,
    Failure,
    History,
    Kill,
    Listing,
    Outcome,
    Redrive,
    Release,
    Retry,
    Setting,
    StreamStart,
    Success,
)
from .lives import judge, seed
from .sigkill import kill_again_and_again

SURE = 100
"""Crashes after which even what is rare has been seen. Of fewer, any kind may be missing."""


def assert_mixed(history: History, cycles: int) -> None:
    """The run has tried what it is for."""
    kinds = Counter(
        (type(event), event.outcome)
        for event in history
        if isinstance(event, Enqueue | Success | Failure)
    )
    for kind in (Enqueue, Success, Failure):
        assert kinds[kind, Outcome.OK] > cycles
    assert sum(isinstance(event, Kill) for event in history) == cycles
    if cycles < SURE:
        return
    assert kinds[Enqueue, Outcome.REFUSED] > 0, "no duplicates"
    assert kinds[Success, Outcome.REFUSED] > 0, "no acknowledgement came too late"
    assert kinds[Enqueue, Outcome.UNKNOWN] + kinds[Success, Outcome.UNKNOWN] > 0, "nothing was cut"
    assert_engine_tried(history, cycles)


def assert_engine_tried(history: History, cycles: int) -> None:
    """So were groups, claims, tokens, cancels, times to live, names, pauses, leases of streams,
    limits of queues, dead-letter queues, retries of the dead and requests about many jobs."""
    jobs = {event.job: event for event in history if isinstance(event, Enqueue)}
    leased = {e.stream for e in history if isinstance(e, StreamStart) and e.lease_ms}
    done = Counter(
        type(event).__name__
        for event in history
        if isinstance(event, Cancel | Extend | Release | Retry) and event.outcome is Outcome.OK
    )
    retried: set[str] = set()
    takers: dict[tuple[str, int], int] = {}
    buried: set[tuple[str, int]] = set()
    for event in history:
        match event:
            case Delivery():
                job = jobs[event.job]
                done["grouped"] += bool(job.group)
                done["claimed"] += event.until < NEVER and event.stream not in leased
                done["leased"] += event.stream in leased
                done["from a limited queue"] += event.queue == LIMITED
                done["in time"] += bool(job.ttl_ms)
                done["after a retry"] += event.job in retried
                done["where the dead go"] += event.queue == MOURNING
                takers[event.job, event.lease] = event.stream
                if event.queue == MOURNING:
                    buried.add((event.job, event.lease))
            case Extend(outcome=Outcome.OK):
                done["more time on a stream"] += takers.get((event.job, event.lease)) in leased
            case Success(outcome=Outcome.OK):
                done["with a token"] += event.lease > 0
                done["with a result"] += bool(event.result)
            case Success(outcome=Outcome.REFUSED):
                done["with a token that is stale"] += event.lease > 0
            case Enqueue(outcome=Outcome.REFUSED):
                done["copies"] += bool(event.dedupe)
                done["refused for depth"] += event.queue == LIMITED and not event.owner
            case Failure(outcome=Outcome.OK, final=True):
                done["dead where the dead go"] += (event.job, event.lease) in buried
                done["dead that moved"] += bool(jobs[event.job].dead_letter)
            case Redrive(outcome=Outcome.OK):
                done["redriven" if event.queue == MOURNING else "revived"] += event.count
            case Retry():
                done["retried in vain"] += event.outcome is Outcome.REFUSED
                retried.add(event.job)
            case Setting(outcome=Outcome.OK):
                done["pauses"] += event.paused
                done["rates"] += 0 < event.rate < NEVER
            case Listing():
                claims = [shown for shown in event.jobs.values() if shown.status == "in_flight"]
                done["claims that outlived a server"] += len(claims)
                done["expired"] += sum(s.status == "expired" for s in event.jobs.values())
                done["stalled"] += sum(s.reason == "stalled" for s in event.jobs.values())
    few = {
        "rates",
        "revived",
        "with a token that is stale",
        "retried in vain",
        "more time on a stream",
        "claims that outlived a server",
        "Release",
        "Release of many",
        "stalled",
        "dead where the dead go",
    }
    done |= together(history)
    for what, times in done.items():
        assert times > (0 if what in few else cycles // 4), f"{what}: {times}"
    assert {"Cancel", "Extend", "Release", "Retry", "grouped"} <= done.keys()
    assert {"Success of many", "Extend of many", "Release of many"} <= done.keys()


def together(history: History) -> Counter[str]:
    """How many requests about several jobs were answered with success."""
    requests = Counter(
        (type(event).__name__, event.start)
        for event in history
        if isinstance(event, Success | Release | Extend) and event.outcome is Outcome.OK
    )
    return Counter(f"{kind} of many" for (kind, _), jobs in requests.items() if jobs > 1)


@sizes("kills", 5, 1000)
async def test_nothing_acknowledged_is_lost_and_nothing_done_comes_back(
    kills: int, tmp_path: Path
) -> None:
    notebook = Notebook()
    try:
        most = 300 if kills < SURE else 1_000
        await kill_again_and_again(tmp_path / "data", notebook, Random(seed()), kills, most)
    finally:
        judge(notebook.history, tmp_path)  # also where the run itself could not go on
    assert_mixed(notebook.history, kills)
