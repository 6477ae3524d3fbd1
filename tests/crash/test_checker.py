"""The checker finds each kind of breach, and reports nothing that may be right."""

import pytest

from . import planted as engine
from . import planted_holders as holders
from . import planted_queues as queues
from . import planted_revivals as revivals
from .checker import RULES, violations
from .history import (
    Event,
    History,
    Kill,
    Success,
)
from .makers import (
    OK,
    REFUSED,
    UNKNOWN,
    Planted,
    deliver,
    enqueue,
    fail,
    hang_up,
    held,
    inspect,
    kill,
    listed,
    listing,
    open_stream,
    start,
    succeed,
)
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
        (enqueue(1), deliver(2), hang_up(2.6), succeed(3, outcome=REFUSED), kill(4), listing(5)),
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
            *(succeed(3, "i", REFUSED, lease=9), deliver(4, "j")),
            *(hang_up(5, 2), kill(6), start(7, 9)),
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
)


ALL_PLANTED = (
    *PLANTED,
    *engine.PLANTED,
    *queues.PLANTED,
    *revivals.PLANTED,
    *holders.PLANTED,
)


@pytest.mark.parametrize("planted", ALL_PLANTED, ids=lambda planted: planted.rule.__name__)
def test_a_breach_is_found_and_called_by_its_name(planted: Planted) -> None:
    assert violations(History(planted.events)) == [planted.words]


def test_each_rule_has_found_a_planted_breach() -> None:
    assert {each.rule for each in ALL_PLANTED} == set(RULES)


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
    "a key goes on to the next job": (
        *(enqueue(1, "i"), enqueue(2, "j", REFUSED, owner="id-i"), deliver(3, "i")),
        *(succeed(4, "i"), enqueue(5, "k"), listing(6, k=listed("k", key="active-1"))),
    ),
}

ALL_UNDECIDED = (
    UNDECIDED | engine.UNDECIDED | queues.UNDECIDED | revivals.UNDECIDED | holders.UNDECIDED
)


@pytest.mark.parametrize("case", ALL_UNDECIDED)
def test_what_may_be_right_is_no_breach(case: str) -> None:
    assert violations(History(ALL_UNDECIDED[case])) == []
