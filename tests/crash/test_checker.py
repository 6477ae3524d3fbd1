"""The checker finds each kind of breach, and calls nothing a breach that may be right."""

from typing import Any, NamedTuple

import pytest

from .checker import RULES, violations
from .history import (
    NEVER,
    Cancel,
    Delivery,
    Enqueue,
    Event,
    Extend,
    Failure,
    History,
    Inspection,
    Kill,
    Listed,
    Listing,
    LostClaim,
    Outcome,
    Release,
    Setting,
    Start,
    StreamEnd,
    StreamStart,
    Success,
)
from .rules_endings import (
    claims_survive,
    jobs_die_of_enough_stalls,
    paused_queues_deliver_nothing,
    results_are_kept,
    stale_tokens_settle_nothing,
    the_cancelled_stay_cancelled,
    the_expired_are_not_delivered,
)
from .rules_groups import a_name_makes_one_job, groups_are_in_order
from .rules_jobs import (
    attempts_rise_by_one,
    counts_are_kept,
    deliveries_never_fall,
    nothing_acknowledged_is_lost,
    nothing_done_comes_back,
    nothing_is_held_after_a_start,
    nothing_is_invented,
)
from .rules_sharing import (
    a_held_key_is_refused,
    first_in_first_out,
    one_holder_at_a_time,
    one_owner_of_a_key,
    the_limit_is_kept,
    windows_are_kept,
)
from .world import Rule

OK, REFUSED, UNKNOWN = Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN

# Each operation takes from its time to half a millisecond later, unless a test says otherwise.


def enqueue(at: float, job: str = "j", outcome: Outcome = OK, **fields: Any) -> Enqueue:
    fields = {"id": f"id-{job}"} | fields if outcome is OK else fields
    return Enqueue(start=at, end=at + 0.5, job=job, outcome=outcome, **fields)


def deliver(
    at: float,
    job: str = "j",
    *,
    stream: int = 1,
    attempts: int = 0,
    id: str = "",
    seen: float = 0,
    intact: bool = True,
    lease: int = 0,
    until: float = NEVER,
) -> Delivery:
    return Delivery(
        start=at,
        end=seen or at + 0.5,
        job=job,
        id=id or f"id-{job}",
        stream=stream,
        attempts=attempts,
        intact=intact,
        lease=lease,
        until=until,
    )


def succeed(at: float, job: str = "j", outcome: Outcome = OK, **fields: Any) -> Success:
    return Success(start=at, end=at + 0.5, job=job, outcome=outcome, **fields)


def fail(
    at: float, job: str = "j", outcome: Outcome = OK, *, attempts: int = 1, **fields: Any
) -> Failure:
    return Failure(start=at, end=at + 0.5, job=job, outcome=outcome, attempts=attempts, **fields)


def release(at: float, outcome: Outcome = OK, lease: int = 0) -> Release:
    return Release(start=at, end=at + 0.5, job="j", outcome=outcome, lease=lease)


def extend(at: float, until: float, outcome: Outcome = OK) -> Extend:
    return Extend(start=at, end=at + 0.5, job="j", outcome=outcome, until=until, lease=1)


def cancel(at: float, job: str = "j", outcome: Outcome = OK) -> Cancel:
    return Cancel(start=at, end=at + 0.5, job=job, outcome=outcome)


def configure(at: float, outcome: Outcome = OK, *, paused: bool = False, stalls: int = -1) -> Event:
    return Setting(
        start=at, end=at + 0.5, queue="a", outcome=outcome, paused=paused, stall_limit=stalls
    )


def kill(at: float) -> Kill:
    return Kill(start=at, end=at + 0.5)


def start(at: float, limit: int = 0) -> Start:
    return Start(start=at, end=at + 0.5, in_flight_limit=limit)


def open_stream(at: float, stream: int = 1, window: int = 1, *queues: str) -> StreamStart:
    return StreamStart(start=at, end=at + 0.5, stream=stream, window=window, queues=queues)


def inspect(at: float, **deliveries: int) -> Inspection:
    return Inspection(start=at, end=at + 0.5, deliveries=deliveries)


def hang_up(at: float, stream: int = 1) -> StreamEnd:
    return StreamEnd(start=at, end=at + 0.5, stream=stream)


def listed(
    job: str = "j", status: str = "ready", attempts: int = 0, key: str = "", **fields: Any
) -> Listed:
    return Listed(id=f"id-{job}", status=status, attempts=attempts, unique_key=key, **fields)


def held(job: str, at: float, key: str) -> Enqueue:
    return enqueue(at, job, unique_key=key)


def grouped(at: float, job: str, **fields: Any) -> Enqueue:
    return enqueue(at, job, group="g", **fields)


def named(at: float, job: str, group: str = "") -> Enqueue:
    return enqueue(at, job, group=group, dedupe="n", window_ms=10)


def listing(at: float, *, count: int | None = None, **jobs: Listed) -> Listing:
    count = len(jobs) if count is None else count
    return Listing(start=at, end=at + 0.5, jobs=jobs, count=count)


class Planted(NamedTuple):
    """A history with one breach, the rule that is to find it, and its words."""

    rule: Rule
    words: str
    events: tuple[Event, ...]


PLANTED = (
    Planted(
        nothing_acknowledged_is_lost,
        "lost: j was stored and is not listed at 3",
        (enqueue(1), kill(2), listing(3)),
    ),
    Planted(
        nothing_acknowledged_is_lost,  # a delivery alone is no reason to be gone
        "lost: j was stored and is not listed at 4",
        (enqueue(1), deliver(2), kill(3), listing(4)),
    ),
    Planted(
        nothing_acknowledged_is_lost,  # nor is a success that was refused
        "lost: j was stored and is not listed at 5",
        (enqueue(1), deliver(2), succeed(3, outcome=REFUSED), kill(4), listing(5)),
    ),
    Planted(
        nothing_acknowledged_is_lost,  # nor a death: the dead are kept
        "lost: j was stored and is not listed at 5",
        (enqueue(1), deliver(2), fail(3, final=True), kill(4), listing(5)),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then delivered",
        (enqueue(1), deliver(2), succeed(3), kill(4), deliver(5, stream=2)),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then settled once more",
        (enqueue(1), deliver(2), succeed(3), kill(4), succeed(5)),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then listed as ready",
        (enqueue(1), deliver(2), succeed(3), kill(4), listing(5, j=listed())),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then listed as scheduled",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), kill(4)),
            listing(5, j=listed(status="scheduled", attempts=1)),
        ),
    ),
    Planted(
        one_holder_at_a_time,
        "two holders: j on stream 1 at 2 and on stream 2 at 4",
        (enqueue(1), deliver(2, stream=1), deliver(4, stream=2)),
    ),
    Planted(
        one_holder_at_a_time,  # the same stream counts too
        "two holders: j on stream 1 at 2 and on stream 1 at 2",
        (enqueue(1), deliver(2), deliver(2)),
    ),
    Planted(
        one_holder_at_a_time,  # what ended before, after, or elsewhere
        "two holders: j on stream 1 at 3 and on stream 2 at 4",
        (
            *(enqueue(1), kill(2), hang_up(2.5, stream=3)),
            *(deliver(3, stream=1), hang_up(3.5, stream=2), deliver(4, stream=2)),
            *(succeed(5.1, outcome=UNKNOWN), hang_up(5.2, stream=1), kill(5.3)),
        ),
    ),
    Planted(
        nothing_is_invented,
        "damaged: j was delivered with another payload",
        (enqueue(1), deliver(2, intact=False)),
    ),
    Planted(nothing_is_invented, "invented: j was never enqueued", (deliver(2),)),
    Planted(nothing_is_invented, "invented: j was never enqueued", (listing(2, j=listed()),)),
    Planted(nothing_is_invented, "invented: j was never enqueued", (deliver(2), enqueue(3))),
    Planted(
        nothing_is_invented,
        "invented: j was never enqueued",
        (enqueue(1, outcome=REFUSED), deliver(2)),
    ),
    Planted(
        nothing_is_invented,
        "invented: j is stored more than once: ['another', 'id-j']",
        (enqueue(1), listing(2, j=listed()), deliver(3, id="another")),
    ),
    Planted(
        attempts_rise_by_one,
        "attempts fell: j had 1 and then 0",
        (enqueue(1), deliver(2), fail(3, attempts=1), deliver(5, attempts=0)),
    ),
    Planted(
        attempts_rise_by_one,
        "attempts fell: j had 1 and then 0",
        (enqueue(1), deliver(2), fail(3, attempts=1), kill(4), listing(5, j=listed())),
    ),
    Planted(
        attempts_rise_by_one,
        "attempts spent: j has 1 and 0 failures were reported",
        (enqueue(1), deliver(2), kill(3), listing(4, j=listed(attempts=1))),
    ),
    Planted(
        nothing_is_held_after_a_start,
        "held by nobody: j is in flight at 4",
        (enqueue(1), deliver(2), kill(3), listing(4, j=listed(status="in_flight"))),
    ),
    Planted(
        one_owner_of_a_key,
        "two owners: ['i', 'j'] have the unique key active-1",
        (
            *(enqueue(1, "i"), enqueue(2, "j")),
            listing(3, i=listed("i", key="active-1"), j=listed(status="scheduled", key="active-1")),
        ),
    ),
    Planted(
        one_owner_of_a_key,
        "dead owner: j was refused for i, which was done",
        (
            *(enqueue(1, "i"), deliver(2, "i"), succeed(3, "i")),
            enqueue(4, "j", REFUSED, owner="id-i"),
        ),
    ),
    Planted(
        one_owner_of_a_key,
        "two owners: ['i', 'j'] have the unique key exists-1",
        (
            *(enqueue(1, "i"), enqueue(2, "j")),
            listing(3, i=listed("i", "dead", key="exists-1"), j=listed(key="exists-1")),
        ),
    ),
    Planted(
        a_held_key_is_refused,
        "key: j was stored while i held active-1",
        (*(held("i", 1, "active-1"), held("j", 2, "active-1")), deliver(3, "i")),
    ),
    Planted(
        a_held_key_is_refused,
        "key: j was stored while i held exists-1",
        (
            *(held("i", 1, "exists-1"), deliver(2, "i"), succeed(3, "i")),
            *(held("j", 4, "exists-1"), listing(5, i=listed("i", "completed"), j=listed())),
        ),
    ),
    Planted(
        a_held_key_is_refused,
        "key: j was stored while i held queued-1",
        (*(held("i", 1, "queued-1"), held("j", 2, "queued-1")), deliver(3, "i")),
    ),
    Planted(
        first_in_first_out,
        "out of order: j was taken at 3, before i",
        (*(enqueue(1, "i"), enqueue(2, "j")), *(deliver(3, "j"), deliver(4, "i"))),
    ),
    Planted(
        first_in_first_out,  # a lower number goes first; what happens elsewhere does not matter
        "out of order: i was taken at 3, before j",
        (
            *(enqueue(1, "i", priority=5), enqueue(2, "j", priority=4)),
            *(open_stream(1, 9, 1, "b"), deliver(3, "i"), hang_up(3.5, 9), deliver(4, "j")),
        ),
    ),
    Planted(
        first_in_first_out,  # nobody else can have had i, which nobody has got to this day
        "out of order: j was taken at 9000, before i",
        (
            *(open_stream(1, 2), hang_up(2, 2), enqueue(7_500, "i"), enqueue(7_501, "j")),
            *(open_stream(8_000, 1), deliver(9_000, "j"), kill(9_001)),
        ),
    ),
    Planted(
        windows_are_kept,
        "window: stream 1 of 1 held 2 at 3",
        (
            *(open_stream(0, 1, 1), enqueue(1, "i"), enqueue(1, "j")),
            *(deliver(2, "i"), deliver(3, "j"), succeed(4.5, "i")),
        ),
    ),
    Planted(
        the_limit_is_kept,
        "limit: 2 of 1 were in flight at 4",
        (
            *(start(0, 1), enqueue(1, "i"), enqueue(1, "j"), deliver(2, "i", stream=2)),
            *(succeed(3, "i", REFUSED), deliver(4, "j"), hang_up(5, 2), kill(6), start(7, 9)),
        ),
    ),
    Planted(
        attempts_rise_by_one,
        "attempts stood still: failures of j were answered with [1, 1]",
        (
            *(enqueue(1), deliver(2), fail(3, attempts=1)),
            *(deliver(4, attempts=1), fail(5, attempts=1)),
        ),
    ),
    Planted(
        deliveries_never_fall,
        "deliveries fell: j had 2 and then 1",
        (enqueue(1), deliver(2), hang_up(3), deliver(4, stream=2), kill(5), inspect(6, j=1)),
    ),
    Planted(
        deliveries_never_fall,
        "deliveries fell: j had 3 and then 2",
        (enqueue(1), kill(2), inspect(3, j=3), kill(4), inspect(5, j=2)),
    ),
    Planted(
        counts_are_kept,
        "miscounted: 1 jobs are listed, 2 are counted",
        (enqueue(1), listing(2, j=listed(), count=2)),
    ),
    Planted(
        groups_are_in_order,
        "group a/g: j was taken at 3, before i was over",
        (*(grouped(1, "i"), grouped(2, "j")), *(deliver(3, "j"), deliver(5, "i"))),
    ),
    Planted(
        groups_are_in_order,  # two in flight at once
        "group a/g: j was taken at 5, before i was over",
        (
            *(grouped(1, "i"), grouped(2, "j"), deliver(3, "i")),
            *(deliver(5, "j", stream=2), succeed(7, "i"), succeed(8, "j")),
        ),
    ),
    Planted(
        groups_are_in_order,  # a head that is to be tried again, also after a crash
        "group a/g: j was taken at 7, before i was over",
        (
            *(grouped(1, "i"), grouped(2, "j"), deliver(3, "i"), fail(4, "i"), kill(5)),
            *(deliver(7, "j"), deliver(9, "i", attempts=1), cancel(11, "i", REFUSED)),
        ),
    ),
    Planted(
        groups_are_in_order,  # one without an answer is there once it has been seen
        "group a/g: j was taken at 6, before i was over",
        (
            *(grouped(1, "i", outcome=UNKNOWN), deliver(2, "i"), grouped(3, "j")),
            deliver(6, "j", stream=2),
        ),
    ),
    Planted(
        stale_tokens_settle_nothing,
        "stale: j was settled as 1, after 2 began",
        (
            *(enqueue(1), deliver(2, lease=1), hang_up(3)),
            *(deliver(4, stream=2, lease=2), fail(6, lease=1)),
        ),
    ),
    Planted(
        stale_tokens_settle_nothing,
        "token: j was delivered as 1, then 1",
        (enqueue(1), deliver(2, lease=1), kill(3), deliver(4, stream=2, lease=1)),
    ),
    Planted(
        stale_tokens_settle_nothing,
        "token: j was delivered as 3, then 2",
        (enqueue(1), deliver(2, lease=3), kill(3), deliver(4, stream=2, lease=2)),
    ),
    Planted(
        one_holder_at_a_time,  # a claim goes on where a stream ends: at a crash; and its deadline
        "two holders: j on stream 1 at 2 and on stream 2 at 50",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), extend(3, 90, REFUSED)),
            *(kill(4), hang_up(5), deliver(50, stream=2, lease=2)),
        ),
    ),
    Planted(
        one_holder_at_a_time,  # may be extended
        "two holders: j on stream 1 at 2 and on stream 2 at 150",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), extend(50, 200)),
            deliver(150, stream=2, lease=2),
        ),
    ),
    Planted(
        one_holder_at_a_time,  # what means another delivery, or was refused, ends nothing
        "two holders: j on stream 1 at 2 and on stream 2 at 50",
        (
            *(enqueue(1), deliver(2, lease=2, until=100), fail(3, "j", UNKNOWN, lease=1)),
            *(release(4, REFUSED), release(5, lease=1), deliver(50, stream=2, lease=3)),
        ),
    ),
    Planted(
        claims_survive,
        "claim broken: j is ready at 5",
        (enqueue(1), deliver(2, lease=1, until=100), kill(3), listing(5, j=listed())),
    ),
    Planted(
        nothing_is_held_after_a_start,  # an old claim is no reason to be held
        "held by nobody: j is in flight at 9000",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), kill(3)),
            listing(9_000, j=listed(status="in_flight", until=100)),
        ),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then delivered",
        (enqueue(1), cancel(2), deliver(4)),
    ),
    Planted(
        the_cancelled_stay_cancelled,
        "cancelled: j is dead at 4",
        (enqueue(1), cancel(2), kill(3), listing(4, j=listed(status="dead"))),
    ),
    Planted(
        the_cancelled_stay_cancelled,
        "cancelled by nobody: j at 4",
        (enqueue(1), cancel(2, outcome=REFUSED), listing(4, j=listed(status="cancelled"))),
    ),
    Planted(
        results_are_kept,
        "result: j is completed with ''",
        (
            *(enqueue(1), deliver(2), succeed(3, result="r"), kill(4)),
            listing(5, j=listed(status="completed")),
        ),
    ),
    Planted(
        results_are_kept,
        "result: j is gone with ''",
        (enqueue(1), deliver(2), succeed(3, result="r"), kill(4), listing(5)),
    ),
    Planted(
        the_expired_are_not_delivered,
        "overdue: j was taken at 12",
        (enqueue(1, ttl_ms=10, expires_at=11), deliver(12)),
    ),
    Planted(
        the_expired_are_not_delivered,
        "expired: j at 5, before its time",
        (enqueue(1, ttl_ms=10, expires_at=11), listing(5, j=listed(status="expired"))),
    ),
    Planted(
        the_expired_are_not_delivered,
        "expired: j was taken afterwards",
        (
            *(enqueue(1, outcome=UNKNOWN, ttl_ms=10), listing(20, j=listed(status="expired"))),
            deliver(30),
        ),
    ),
    Planted(
        jobs_die_of_enough_stalls,
        "stalled: j is dead after 1 stalls of 1",
        (
            *(configure(0, stalls=1), enqueue(1), deliver(2, lease=1), fail(3, lease=1)),
            *(deliver(4, attempts=1, lease=2), hang_up(5), configure(6, stalls=2)),
            *(listing(7, j=listed(status="dead", attempts=1, reason="stalled")), inspect(8, j=2)),
        ),
    ),
    Planted(
        jobs_die_of_enough_stalls,  # where there is no limit
        "stalled: j is dead after 1 stalls of inf",
        (
            *(enqueue(1), deliver(2), hang_up(5)),
            *(listing(7, j=listed(status="dead", reason="stalled")), inspect(8, j=1)),
        ),
    ),
    Planted(
        paused_queues_deliver_nothing,
        "paused: j was taken at 6",
        (
            *(configure(0), enqueue(1), configure(2, paused=True), kill(3)),
            *(configure(4, REFUSED), deliver(6), configure(8)),
        ),
    ),
    Planted(
        a_name_makes_one_job,
        "twice: i and j were stored in one window of n",
        (*(named(1, "i"), named(9, "j"), named(20, "k")), named(9, "l", "g")),
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.rule.__name__)
def test_a_breach_is_found_and_called_by_its_name(planted: Planted) -> None:
    assert violations(History(planted.events)) == [planted.words]


def test_each_rule_has_found_a_planted_breach() -> None:
    assert {planted.rule for planted in PLANTED} == set(RULES)


UNDECIDED: dict[str, tuple[Event, ...]] = {
    "an enqueue without an answer is stored": (
        enqueue(1, outcome=UNKNOWN),
        kill(2),
        listing(3, j=listed()),
        deliver(4),
    ),
    "an enqueue without an answer is not stored": (
        enqueue(1, outcome=UNKNOWN),
        kill(2),
        listing(3),
    ),
    "a job is stored while the listing is read": (enqueue(1), listing(1.2)),
    "a success without an answer counts": (
        enqueue(1),
        deliver(2),
        succeed(3, outcome=UNKNOWN),
        kill(3.2),
        listing(4),
    ),
    "a success without an answer is lost": (
        *(enqueue(1), deliver(2), succeed(3, outcome=UNKNOWN), kill(3.2)),
        *(listing(4, j=listed()), deliver(5, stream=2), succeed(6)),
    ),
    "a claim from before the success is read after it": (
        *(enqueue(1), deliver(2), hang_up(3)),
        *(deliver(4, stream=2, seen=9), succeed(6)),
    ),
    "a claim while the signal is on its way to the server": (
        *(enqueue(1), Kill(start=2, end=9), deliver(3), deliver(12, stream=2)),
    ),
    "a claim in the millisecond of the release": (
        *(enqueue(1), deliver(2), hang_up(3.7), deliver(3, stream=2, seen=5)),
    ),
    "a failure brings a job back, with one attempt more": (
        *(enqueue(1), deliver(2), fail(3, attempts=1), deliver(5, attempts=1)),
        *(fail(6, outcome=UNKNOWN), kill(6.2), listing(8, j=listed(attempts=2))),
    ),
    "a failure without an answer is lost": (
        *(enqueue(1), deliver(2), fail(3, outcome=UNKNOWN, attempts=0), kill(3.2)),
        *(listing(4, j=listed()), deliver(5, stream=2)),
    ),
    "a kept job is listed when it is done": (
        *(enqueue(1), deliver(2), succeed(3), kill(4)),
        listing(5, j=listed(status="completed")),
    ),
    "a job whose frame nobody has read comes late": (
        *(enqueue(1, "i"), enqueue(2, "j"), deliver(3, "j"), kill(4), deliver(6, "i", stream=2)),
    ),
    "a token tells that the job was claimed before": (
        *(enqueue(1, "i"), enqueue(2, "j"), deliver(3, "j"), deliver(4, "i", lease=2)),
        *(held("k", 5, "queued-1"), held("l", 7, "queued-1"), deliver(9, "k", lease=2)),
    ),
    "another worker may have had the job": (
        *(open_stream(1, 2), enqueue(7_500, "i"), enqueue(7_501, "j"), hang_up(7_502, 2)),
        *(open_stream(8_000, 1), deliver(9_000, "j"), kill(9_001)),
    ),
    "a job is taken before one that is stored meanwhile, or is not due yet": (
        *(enqueue(1, "i", delayed=True), enqueue(2, "j"), deliver(2, "j"), deliver(4, "i")),
        *(enqueue(5, "k", priority=-1), deliver(5, "l", attempts=0), deliver(7, "k")),
        enqueue(1, "l"),
    ),
    "a window is filled again in the millisecond of the success": (
        *(open_stream(0, 1, 1), start(0, 1), enqueue(1, "i"), enqueue(1, "j")),
        *(deliver(2, "i"), succeed(3.7, "i"), deliver(3, "j", seen=5)),
    ),
    "a settlement from before the delivery comes through after it": (
        *(open_stream(0, 1, 1), enqueue(1, "i"), enqueue(1, "j"), deliver(2, "i", stream=2)),
        *(Success(start=3, end=9, job="i", outcome=OK), hang_up(3.1, 2)),
        *(deliver(4, "i"), deliver(5, "j")),
    ),
    "a queued key is free once its job is in flight, even if that comes back": (
        *(held("i", 1, "queued-1"), deliver(2, "i"), held("j", 3, "queued-1"), hang_up(4)),
        listing(5, i=listed("i", key="queued-1"), j=listed(key="queued-1")),
    ),
    "the next of a group comes when its head is over, or may be": (
        *(grouped(1, "i"), grouped(1.5, "j"), deliver(2, "i"), succeed(3.7, "i")),
        *(deliver(3, "j", seen=5), grouped(6, "k"), grouped(6.5, "l"), deliver(7, "l")),
        *(fail(4, "j", UNKNOWN, final=True), cancel(6.8, "k", UNKNOWN)),
    ),
    "a job of a group overtakes one that is stored meanwhile, or expires, or stalls": (
        *(configure(0, stalls=1), grouped(1, "i"), grouped(2, "j"), deliver(5, "j")),
        *(grouped(1, "m", queue="b", ttl_ms=3), grouped(2, "n", queue="b"), deliver(5, "n")),
        *(grouped(7, "o", queue="c"), grouped(7, "p", queue="c"), deliver(7, "p")),
    ),
    "groups do not wait for each other, nor do those without": (
        *(grouped(1, "i"), enqueue(1, "j", group="h"), enqueue(1.5, "k")),
        *(deliver(3, "k"), deliver(4, "j"), deliver(5, "i")),
    ),
    "a grouped job waits behind its head while later ones are taken": (
        *(grouped(1, "h"), deliver(1, "h"), grouped(1, "i"), enqueue(2, "j")),
        *(deliver(3, "j"), succeed(4, "h"), deliver(5, "i")),
    ),
    "a claim ends at its deadline, after an extension or without": (
        *(enqueue(1), deliver(2, lease=1, until=50), extend(3, 100)),
        *(deliver(100, stream=2, lease=2, until=150), kill(110)),
        *(listing(120, j=listed(status="in_flight", until=150)), deliver(150, stream=3, lease=3)),
    ),
    "an extension without an answer may have been a shorter one": (
        *(enqueue(1), deliver(2, lease=1, until=500), extend(3, 50, UNKNOWN)),
        *(kill(3.2), listing(60, j=listed()), deliver(70, stream=2, lease=2)),
    ),
    "a claim ends by its release, or by whoever settles without a token": (
        *(enqueue(1), deliver(2, lease=1, until=500), release(3, lease=1)),
        *(deliver(5, stream=2, lease=2, until=500), fail(6), deliver(8, attempts=1, lease=3)),
    ),
    "a release from before the claim comes through after it": (
        *(enqueue(1), deliver(2, lease=1, until=20), deliver(30, stream=2, lease=2)),
        *(Release(start=15, end=50, job="j", outcome=OK), deliver(40, stream=2, lease=3)),
    ),
    "a late token is refused, one in time is not": (
        *(enqueue(1), deliver(2, lease=1), hang_up(3), deliver(4, stream=2, lease=2)),
        *(succeed(5, outcome=REFUSED, lease=1), succeed(6, lease=2)),
    ),
    "an answer that nobody got had claimed a job": (
        LostClaim(start=1.6, end=3, queue="a", until=50),
        *(enqueue(1, "i"), enqueue(2, "j"), deliver(3, "j"), deliver(51, "i")),
    ),
    "a cancelled job is listed, and its key free": (
        *(held("i", 1, "exists-1"), deliver(2, "i"), cancel(3, "i"), held("j", 4, "exists-1")),
        succeed(5, "i", REFUSED),
        listing(6, i=listed("i", "cancelled", key="exists-1"), j=listed(key="exists-1")),
    ),
    "a cancel without an answer counts, or does not": (
        *(enqueue(1, "i"), cancel(2, "i", UNKNOWN), enqueue(1, "j"), cancel(2, "j", UNKNOWN)),
        *(kill(2.2), listing(4, i=listed("i", "cancelled"), j=listed()), deliver(5, "j")),
    ),
    "a window is free when a job is cancelled by force": (
        *(open_stream(0, 1, 1), enqueue(1, "i"), enqueue(1, "j")),
        *(deliver(2, "i"), cancel(3, "i"), deliver(4, "j")),
    ),
    "a result without an answer is there, or is not": (
        *(enqueue(1, "i"), deliver(2, "i"), succeed(3, "i", UNKNOWN, result="r")),
        *(enqueue(1, "j"), deliver(2, "j"), succeed(3, "j", result="s"), kill(4)),
        listing(5, i=listed("i"), j=listed("j", "completed", result="s")),
    ),
    "a job is taken in its last moment, or expires": (
        *(enqueue(1, "i", ttl_ms=10, expires_at=11), deliver(11, "i"), succeed(11.2, "i")),
        *(enqueue(1, "j", ttl_ms=10, expires_at=11), listing(11, j=listed("j", "expired"))),
        *(enqueue(12, "k"), deliver(12, "k")),
    ),
    "a job dies of stalls that nobody saw": (
        *(configure(0, stalls=1), enqueue(1), deliver(2), hang_up(3), kill(4)),
        *(listing(5, j=listed(status="dead", reason="stalled")), inspect(8, j=2)),
    ),
    "a queue may be open again before the answer, or not be closed yet": (
        *(enqueue(1, "i"), enqueue(1, "j"), configure(2, paused=True), deliver(2, "i")),
        *(configure(4, UNKNOWN), deliver(4, "j"), configure(9, UNKNOWN, paused=True)),
        *(enqueue(10, "k"), deliver(12, "k")),
    ),
    "a name is given again when its window is over": (
        *(named(1, "i"), enqueue(2, "j", REFUSED, owner="id-i", dedupe="n", window_ms=10)),
        *(deliver(3, "i"), succeed(4, "i"), named(11, "k")),
        enqueue(12, "l", REFUSED, owner="id-i", dedupe="n", window_ms=10),
    ),
    "a key goes on to the next job": (
        *(enqueue(1, "i"), enqueue(2, "j", REFUSED, owner="id-i"), deliver(3, "i")),
        *(succeed(4, "i"), enqueue(5, "k"), listing(6, k=listed("k", key="active-1"))),
    ),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_may_be_right_is_no_breach(case: str) -> None:
    assert violations(History(UNDECIDED[case])) == []
