"""Breaches of groups, leases, cancels, times to live and pauses, and harmless lookalikes."""

from .history import (
    Event,
    LostClaim,
    Release,
)
from .makers import (
    OK,
    REFUSED,
    UNKNOWN,
    Planted,
    cancel,
    configure,
    deliver,
    enqueue,
    extend,
    fail,
    grouped,
    hang_up,
    held,
    inspect,
    kill,
    listed,
    listing,
    named,
    open_stream,
    release,
    succeed,
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
    nothing_done_comes_back,
    nothing_is_held_after_a_start,
)
from .rules_sharing import (
    one_holder_at_a_time,
)

PLANTED = (
    Planted(
        groups_are_in_order,
        "group a/g: j was taken at 3, before i was over",
        (*(grouped(1, "i"), grouped(2, "j")), deliver(3, "j"), succeed(4, "j"), deliver(5, "i")),
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
            *(deliver(7, "j"), succeed(8, "j"), deliver(9, "i", attempts=1)),
            cancel(11, "i", REFUSED),
        ),
    ),
    Planted(
        groups_are_in_order,  # also behind one that is over already
        "group a/g: k was taken at 8, before i was over",
        (
            *(grouped(1, "i"), deliver(2, "i"), grouped(6.9, "j"), grouped(7.1, "k")),
            *(cancel(7.6, "j"), deliver(8, "k", stream=2), succeed(9.1, "i")),
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
            *(enqueue(1), deliver(2, lease=1, until=100), extend(1.6, 90, REFUSED)),
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
            *(release(1.6, REFUSED), release(5, lease=1), deliver(50, stream=2, lease=3)),
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
            *(listing(7, j=listed(status="dead", attempts=2, reason="stalled")), inspect(8, j=2)),
        ),
    ),
    Planted(
        jobs_die_of_enough_stalls,  # where there is no limit
        "stalled: j is dead after 1 stalls of inf",
        (
            *(enqueue(1), deliver(2), hang_up(5)),
            *(listing(7, j=listed(status="dead", attempts=1, reason="stalled")), inspect(8, j=1)),
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

UNDECIDED: dict[str, tuple[Event, ...]] = {
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
    "a claim has no window, and may outlive the server that nobody had its answer from": (
        *(enqueue(1, "h"), enqueue(1.1, "i"), open_stream(1, 2, 0), deliver(1, "h", stream=2)),
        *(kill(2), enqueue(3, "j"), open_stream(3, 1), deliver(4, "j")),
    ),
    "what has expired or been cancelled is no longer taken": (
        *(enqueue(7_500, "g", ttl_ms=100), enqueue(7_500, "h"), cancel(7_501, "h")),
        *(enqueue(7_502, "j"), open_stream(8_000, 1), deliver(9_000, "j")),
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
        *(listing(5, j=listed(status="dead", attempts=1, reason="stalled")), inspect(8, j=2)),
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
}
