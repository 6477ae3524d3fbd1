"""Breaches of revived jobs, and harmless lookalikes."""

from .history import NEVER, Event
from .makers import (
    REFUSED,
    UNKNOWN,
    Planted,
    configure,
    deliver,
    enqueue,
    fail,
    grouped,
    hang_up,
    held,
    inspect,
    kill,
    listed,
    listing,
    redrive,
    retry,
    succeed,
)
from .planted_queues import buried, die, mourned
from .rules_endings import jobs_die_of_enough_stalls
from .rules_groups import groups_are_in_order, groups_have_one_at_a_time
from .rules_jobs import attempts_rise_by_one, nothing_done_comes_back
from .rules_queues import (
    depth_is_kept,
    moves_have_a_cause,
    the_redriven_are_back,
    the_retried_are_back,
)
from .rules_sharing import a_held_key_is_refused, first_in_first_out, one_owner_of_a_key

STALLED = listed(status="dead", attempts=1, reason="stalled")

PLANTED = (
    Planted(
        nothing_done_comes_back,  # what was done before the death, was refused, or meant others
        "came back: j was done and then delivered",
        (
            *(enqueue(1), retry(1.6), redrive(1.6, queue="a"), deliver(3), fail(4, final=True)),
            *(retry(5, "i"), redrive(6, queue="b"), redrive(7, REFUSED, queue="a")),
            *(deliver(9, attempts=1), retry(11)),
        ),
    ),
    Planted(
        nothing_done_comes_back,  # nobody need have reported its death
        "came back: j was done and then delivered",
        (
            *(configure(0, stalls=0), enqueue(1), deliver(2), kill(3), listing(4, j=STALLED)),
            deliver(5, stream=2),
        ),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then listed as ready",
        (
            *(enqueue(1), deliver(2), fail(3, "j", UNKNOWN, final=True), kill(3.2)),
            *(listing(4, j=listed(status="dead", attempts=1)), kill(5)),
            listing(6, j=listed(attempts=1)),
        ),
    ),
    Planted(
        nothing_done_comes_back,  # only the dead may come back
        "came back: j was done and then delivered",
        (enqueue(1), deliver(2), succeed(3), retry(4), deliver(6)),
    ),
    Planted(
        the_retried_are_back,
        "left dead: j at 6, after it was called back",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), retry(4), kill(5)),
            listing(6, j=listed(status="dead")),
        ),
    ),
    Planted(
        the_retried_are_back,
        "left dead: j at 6, after it was called back",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), redrive(4, queue="a"), kill(5)),
            listing(6, j=listed(status="dead", attempts=1)),
        ),
    ),
    Planted(
        the_retried_are_back,
        "not retried: j was dead at 9",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), retry(4), deliver(6)),
            *(fail(7, final=True), retry(9, "j", REFUSED)),
        ),
    ),
    Planted(
        attempts_rise_by_one,  # a retry lets them begin anew
        "attempts spent: j has 1 and 0 failures were reported",
        (enqueue(1), deliver(2), fail(3, final=True), retry(4), deliver(6, attempts=1)),
    ),
    Planted(
        attempts_rise_by_one,  # nothing but a retry or redrive of it does, and that once
        "attempts fell: j had 1 and then 0",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), retry(4), deliver(6), fail(7)),
            *(redrive(8, queue="b"), deliver(9)),
        ),
    ),
    Planted(
        attempts_rise_by_one,  # nor does it for who has not died
        "attempts fell: j had 1 and then 0",
        (enqueue(1), deliver(2), fail(3), redrive(4, queue="a"), deliver(6)),
    ),
    Planted(
        attempts_rise_by_one,
        "attempts stood still: failures of j were answered with [1, 1]",
        (
            *(enqueue(1), deliver(2), fail(3, final=True), retry(4)),
            *(deliver(6), fail(7), deliver(9, attempts=1), fail(10)),
        ),
    ),
    Planted(
        one_owner_of_a_key,  # the one that is back has none; but two others
        "two owners: ['j', 'k'] have the unique key active-1",
        (
            *(enqueue(1, "i"), deliver(2, "i"), fail(3, "i", final=True), enqueue(4, "j")),
            *(enqueue(4, "k"), retry(5, "i"), kill(6)),
            listing(7, count=3, **{job: listed(job, key="active-1") for job in "ijk"}),
        ),
    ),
    Planted(
        one_owner_of_a_key,  # death takes no key that lasts as long as its job
        "two owners: ['i', 'j'] have the unique key exists-1",
        (
            *(enqueue(1, "i"), deliver(2, "i"), fail(3, "i", final=True), enqueue(4, "j")),
            *(retry(5, "i"), kill(6)),
            listing(7, i=listed("i", key="exists-1"), j=listed(key="exists-1")),
        ),
    ),
    Planted(
        a_held_key_is_refused,  # taken back, since whoever had it is done
        "key: k was stored while i held active-1",
        (
            *(held("i", 1, "active-1"), deliver(2, "i"), fail(3, "i", final=True)),
            *(held("j", 4, "active-1"), deliver(5, "j"), succeed(6, "j"), retry(7, "i")),
            *(held("k", 8, "active-1"), deliver(9, "i")),
        ),
    ),
    Planted(
        a_held_key_is_refused,  # the dead have theirs if it is for as long as they exist
        "key: j was stored while i held exists-1",
        (
            *(held("i", 1, "exists-1"), deliver(2, "i"), fail(3, "i", final=True)),
            *(held("j", 4, "exists-1"), retry(5, "i"), deliver(7, "i")),
        ),
    ),
    Planted(
        first_in_first_out,
        "out of order: j was taken at 6, before i",
        (
            *(enqueue(1, "i"), enqueue(2, "j"), deliver(3, "i", lease=1)),
            *(fail(4, "i", final=True), retry(5, "i"), deliver(6, "j", lease=1)),
            deliver(7, "i", lease=2),
        ),
    ),
    Planted(
        groups_are_in_order,
        "group a/g: j was taken at 6, before i was over",
        (
            *(grouped(1, "i"), grouped(2, "j"), deliver(3, "i"), fail(4, "i", final=True)),
            *(retry(5, "i"), deliver(6, "j"), succeed(7, "j")),
        ),
    ),
    Planted(
        groups_have_one_at_a_time,
        "group a/g: i was taken at 8, while j was in flight",
        (
            *(grouped(1, "i"), grouped(2, "j"), deliver(3, "i"), fail(4, "i", final=True)),
            *(deliver(5, "j"), retry(6, "i"), deliver(8, "i", stream=2), succeed(10, "j")),
        ),
    ),
    Planted(
        jobs_die_of_enough_stalls,
        "stalled: j is dead after 1 stalls of 1",
        (
            *(configure(0, stalls=1), enqueue(1), deliver(2), hang_up(3)),
            *(deliver(4, stream=2), hang_up(5, 2)),
            *(kill(5.6), listing(7, j=STALLED), retry(8), deliver(10, stream=3), kill(11)),
            *(listing(13, j=STALLED), inspect(14, j=3), retry(15), deliver(17, stream=4), kill(18)),
        ),
    ),
    Planted(
        moves_have_a_cause,  # a redrive of another queue is none
        "moved: j from dead to a by nobody",
        (
            *(mourned(1), deliver(2), die(3), kill(4), listing(5, j=buried())),
            *(redrive(6, queue="a"), deliver(8, lease=2)),
        ),
    ),
    Planted(
        the_redriven_are_back,
        "left behind: j is in dead after a redrive",
        (
            *(mourned(1), deliver(2), die(3), redrive(4), redrive(5, queue="a"), kill(6)),
            listing(7, j=buried()),
        ),
    ),
    Planted(
        depth_is_kept,  # only what is back from the dead needs no permission
        "depth: a has 2 jobs of 1 at 7",
        (
            *(configure(0, max_depth=1), enqueue(1, "i"), deliver(2, "i")),
            *(fail(3, "i", final=True), enqueue(4, "j"), retry(5, "i"), enqueue(6, "k")),
            listing(7, i=listed("i"), j=listed("j"), k=listed("k")),
        ),
    ),
)

UNDECIDED: dict[str, tuple[Event, ...]] = {
    "a dead job is retried, begins anew, and dies once more": (
        *(enqueue(1), deliver(2), fail(3), deliver(5, attempts=1)),
        *(fail(6, attempts=2, final=True), listing(6.6, j=listed(status="dead", attempts=2))),
        *(retry(7), kill(8), listing(9, j=listed())),
        *(deliver(10), fail(11, attempts=1, final=True), kill(12)),
        listing(13, j=listed(status="dead", attempts=1)),
    ),
    "all dead jobs of a queue are called back": (
        *(enqueue(1), deliver(2), fail(3, final=True), redrive(4, queue="a"), deliver(6)),
        *(fail(7), deliver(9, attempts=1), succeed(10)),
    ),
    "a retry without an answer counts, or does not": (
        *(enqueue(1, "i"), deliver(2, "i"), fail(3, "i", final=True), retry(4, "i", UNKNOWN)),
        *(enqueue(1, "j"), deliver(2, "j", stream=2), fail(3, "j", final=True)),
        *(retry(4, "j", UNKNOWN), kill(4.2), deliver(6, "i", stream=3)),
        listing(8, i=listed("i"), j=listed("j", "dead", attempts=1)),
    ),
    "a retry of some leaves others dead": (
        *(enqueue(1), deliver(2), fail(3, final=True), redrive(4, limit=1, queue="a"), kill(5)),
        listing(6, j=listed(status="dead", attempts=1)),
    ),
    "a second retry is refused, until the job has died again": (
        *(enqueue(1), deliver(2), fail(3, final=True), retry(4), retry(5, "j", REFUSED)),
        *(deliver(6), fail(7, final=True), retry(9), succeed(11, "j", REFUSED)),
    ),
    "a claim in the millisecond of the retry, and a settlement that begins before it": (
        *(enqueue(1), deliver(2), fail(3, final=True), retry(4.7), deliver(4, seen=6)),
        *(succeed(4.6, "j", REFUSED), succeed(5)),
    ),
    "another job has the key of the dead": (
        *(held("i", 1, "active-1"), deliver(2, "i"), fail(3, "i", final=True)),
        *(held("j", 4, "active-1"), retry(5, "i"), deliver(6, "i"), kill(7)),
        listing(8, i=listed("i", key="active-1"), j=listed(key="active-1")),
        *(deliver(9, "j", stream=2), succeed(10, "j"), held("k", 11, "active-1")),
        deliver(12, "i", stream=3),
    ),
    "a key is given away after the death of the one that took it back": (
        *(held("i", 1, "active-1"), deliver(2, "i"), fail(3, "i", final=True), retry(4, "i")),
        *(deliver(6, "i"), fail(7, "i", final=True), held("j", 8, "active-1"), retry(9, "i")),
        deliver(11, "i"),
    ),
    "a dead job is overtaken, and one that is back comes before all others": (
        *(enqueue(1, "i"), enqueue(2, "j"), enqueue(3, "k"), deliver(4, "i", lease=1)),
        *(fail(5, "i", final=True), deliver(6, "j", lease=1), retry(7, "i")),
        *(deliver(8, "i", lease=2), deliver(9, "k", lease=1)),
    ),
    "somebody may have had the retried job, and not read of it": (
        *(enqueue(1, "i"), enqueue(2, "j"), deliver(3, "i", lease=1)),
        *(fail(4, "i", final=True), retry(5, "i"), deliver(6, "j", lease=1)),
        deliver(7, "i", lease=3),
    ),
    "a group goes on while its head is dead, and waits for it once it is back": (
        *(grouped(1, "i"), grouped(2, "j"), grouped(3, "k"), deliver(4, "i")),
        *(fail(5, "i", final=True), deliver(6, "j"), retry(7, "i"), succeed(8, "j")),
        *(deliver(9, "i"), fail(10, "i", final=True), deliver(12, "k")),
    ),
    "stalls of before are forgiven": (
        *(configure(0, stalls=1), enqueue(1), deliver(2), hang_up(3)),
        *(deliver(4, stream=2), hang_up(5, 2)),
        *(kill(5.6), listing(7, j=STALLED), inspect(8, j=2), retry(9), deliver(11, stream=3)),
        *(succeed(12), kill(13), inspect(14, j=3)),
    ),
    "a job dies of stalls, is retried, and does so again unseen": (
        *(configure(0, stalls=1), enqueue(1), deliver(2), hang_up(3), kill(4)),
        *(listing(5, j=STALLED), retry(6), kill(7), listing(8, j=STALLED), inspect(9, j=4)),
    ),
    "what is back from the dead has no time to live, and makes its queue deeper": (
        *(configure(0, max_depth=1), enqueue(1, "i", ttl_ms=10, expires_at=11)),
        *(deliver(2, "i"), fail(3, "i", final=True), enqueue(4, "j"), retry(5, "i"), kill(6)),
        *(listing(7, i=listed("i"), j=listed()), deliver(20, "i")),
    ),
    "a redrive of the queue where a job died leaves it with its like": (
        *(mourned(1), deliver(2), die(3), redrive(4), redrive(6, queue="a"), kill(7)),
        *(listing(8, j=listed()), deliver(9, until=NEVER)),
    ),
}
