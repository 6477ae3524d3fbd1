"""Breaches of limits of queues, stream leases, dead-letter queues, and harmless lookalikes.

Jobs of `mourned` go from the queue a to the queue dead when they die.
"""

from typing import Any

from .history import Enqueue, Event, Listed
from .makers import (
    REFUSED,
    UNKNOWN,
    Planted,
    cancel,
    configure,
    deliver,
    enqueue,
    fail,
    hang_up,
    kill,
    listed,
    listing,
    open_stream,
    redrive,
    start,
    succeed,
)
from .rules_jobs import nothing_is_invented
from .rules_queues import (
    concurrency_is_kept,
    depth_is_kept,
    moves_have_a_cause,
    rate_is_kept,
    the_dead_move,
    the_redriven_are_back,
)
from .rules_sharing import one_holder_at_a_time


def mourned(at: float, job: str = "j", **fields: Any) -> Enqueue:
    return enqueue(at, job, dead_letter="dead", **fields)


def die(at: float, job: str = "j", **fields: Any) -> Event:
    return fail(at, job, final=True, attempts=0, **fields)


def buried(job: str = "j", status: str = "ready", **fields: Any) -> Listed:
    return listed(job, status, queue="dead", **fields)


PLANTED = (
    Planted(
        concurrency_is_kept,
        "concurrency: 2 of 1 in flight in a at 4",
        (
            *(configure(0, concurrency=1), enqueue(1, "i"), enqueue(1, "j"), deliver(2, "i")),
            *(deliver(4, "j", stream=2), succeed(6, "i"), succeed(7, "j")),
        ),
    ),
    Planted(
        concurrency_is_kept,  # a claim is in flight across a crash, and the setting holds across it
        "concurrency: 2 of 1 in flight in a at 6",
        (
            *(configure(0, concurrency=1), enqueue(1, "i"), enqueue(1, "j")),
            *(deliver(2, "i", lease=1, until=90), kill(3), start(4), deliver(6, "j", stream=2)),
        ),
    ),
    Planted(
        concurrency_is_kept,  # what was told without success, or to another effect, changes nothing
        "concurrency: 2 of 1 in flight in a at 4",
        (
            *(configure(0, concurrency=1), enqueue(0.6, "i"), enqueue(0.6, "j"), deliver(2, "i")),
            *(configure(2.6, REFUSED, concurrency=5), configure(3.2, rate=9)),
            deliver(4, "j", stream=2),
        ),
    ),
    Planted(
        rate_is_kept,
        "rate: a gave more than 2 a second at 5",
        (
            *(configure(0, rate=2), *(enqueue(1, job) for job in "hijk")),
            *(deliver(2 + place, job, stream=place) for place, job in enumerate("hijk")),
        ),
    ),
    Planted(
        depth_is_kept,
        "depth: a has 2 jobs of 1 at 4",
        (
            *(configure(0, max_depth=1), enqueue(1, "i"), enqueue(2, "j"), kill(3)),
            listing(4, i=listed("i", "scheduled"), j=listed()),
        ),
    ),
    Planted(
        nothing_is_invented,  # a bulk request that is refused as a whole, and half of it is there
        "invented: j was never enqueued",
        (
            *(enqueue(1, "i", REFUSED), enqueue(1, "j", REFUSED), kill(2)),
            listing(3, j=listed()),
        ),
    ),
    Planted(
        moves_have_a_cause,
        "moved: j from a to dead by nobody",
        (mourned(1), deliver(2), fail(3), kill(4), listing(5, j=buried(attempts=1))),
    ),
    Planted(
        moves_have_a_cause,  # that of another time is none
        "moved: j from dead to a by nobody",
        (
            *(mourned(1), deliver(2), redrive(3), die(4), kill(6), listing(7, j=buried())),
            *(redrive(8, REFUSED), deliver(9, lease=2)),
        ),
    ),
    Planted(
        moves_have_a_cause,  # there is no other way
        "moved: j from a to dead by nobody",
        (enqueue(1), kill(2), listing(3, j=buried())),
    ),
    Planted(
        the_dead_move,
        "unmoved: j was killed and is in a still",
        (mourned(1), deliver(2), die(3), kill(4), deliver(5, stream=2)),
    ),
    Planted(
        the_dead_move,
        "unmoved: j is dead in a at 5",
        (mourned(1), deliver(2), die(3, outcome=UNKNOWN), listing(5, j=listed(status="dead"))),
    ),
    Planted(
        the_redriven_are_back,
        "left behind: j is in dead after a redrive",
        (mourned(1), deliver(2), die(3), redrive(4), kill(5), listing(6, j=buried())),
    ),
    Planted(
        one_holder_at_a_time,  # whoever asks for leases has them until then
        "two holders: j on stream 1 at 2 and on stream 2 at 50",
        (
            *(open_stream(0, 1, 9, lease_ms=100), enqueue(1), deliver(2, until=102)),
            deliver(50, stream=2),
        ),
    ),
)

UNDECIDED: dict[str, tuple[Event, ...]] = {
    "as many are in flight as before there was a limit": (
        *(enqueue(1, "i"), enqueue(1, "j"), enqueue(1, "k"), deliver(2, "i"), deliver(2, "j")),
        *(configure(3, concurrency=1), succeed(4, "i"), succeed(5, "j"), deliver(6, "k")),
    ),
    "a limit on those in flight is raised, or may be": (
        *(configure(0, concurrency=1), enqueue(1, "i"), enqueue(1, "j"), deliver(2, "i")),
        *(configure(3, UNKNOWN, concurrency=2), deliver(4, "j"), configure(5, concurrency=1)),
    ),
    "what a stream held makes room when the server or the stream is gone": (
        *(configure(0, concurrency=1), enqueue(1, "i"), enqueue(1, "j"), enqueue(1, "k")),
        *(deliver(2, "i"), kill(3), deliver(5, "j", stream=2), hang_up(6, 2)),
        *(deliver(8, "k", stream=3), succeed(9, "k"), deliver(11, "i", stream=4)),
    ),
    "a second's worth comes at once, and again after a second, or a restart": (
        *(configure(0, rate=2), *(enqueue(1, job) for job in "fghijk")),
        *(deliver(2, "f"), deliver(2, "g"), deliver(1_002, "h"), deliver(1_002, "i"), kill(1_003)),
        *(deliver(1_004, "j", stream=2), deliver(1_004, "k", stream=2)),
    ),
    "a queue is as deep as it was once permitted to be, or as it was before": (
        *(configure(0, max_depth=2), enqueue(1, "i"), enqueue(2, "j")),
        *(configure(3, max_depth=1), listing(4, i=listed("i"), j=listed())),
    ),
    "what is finished, or elsewhere, makes a queue no deeper": (
        *(configure(0, max_depth=1), enqueue(1, "i"), deliver(2, "i"), die(3, "i")),
        *(enqueue(4, "j"), enqueue(4, "k", queue="b")),
        listing(5, i=listed("i", "dead"), j=listed(), k=listed("k", queue="b")),
    ),
    "a dead letter shows the key that another job has by now": (
        *(mourned(1, "i"), deliver(2, "i"), die(3, "i"), enqueue(4, "j")),
        listing(5, i=buried("i", key="exists-1"), j=listed(key="exists-1")),
    ),
    "a job dies, waits elsewhere, comes back and is done": (
        *(mourned(1), deliver(2), fail(3, attempts=1), deliver(5, attempts=1), die(6), kill(7)),
        *(listing(8, j=buried()), redrive(9), deliver(11, stream=2), succeed(12)),
    ),
    "a death or a redrive without an answer counts, or does not": (
        *(mourned(1, "i"), deliver(2, "i"), die(3, "i", outcome=UNKNOWN)),
        *(mourned(1, "j"), deliver(2, "j", stream=2), die(3, "j", outcome=UNKNOWN), kill(3.2)),
        *(listing(5, i=buried("i"), j=listed()), redrive(6, UNKNOWN), kill(6.2)),
        listing(8, i=listed("i"), j=listed()),
    ),
    "a redrive of some leaves others behind": (
        *(mourned(1), deliver(2), die(3), redrive(4, limit=1), kill(5), listing(6, j=buried())),
    ),
    "a redriven job has died again": (
        *(mourned(1), deliver(2), die(3), redrive(4), deliver(6), die(7), kill(8)),
        listing(9, j=buried()),
    ),
    "a job is taken or cancelled where the dead go": (
        *(mourned(1, "i"), deliver(2, "i"), die(3, "i"), deliver(5, "i", queue="dead")),
        *(mourned(1, "j"), deliver(2, "j", stream=2), die(3, "j"), cancel(4, "j")),
        *(
            redrive(6),
            listing(8, i=buried("i", "in_flight", until=50), j=buried(status="cancelled")),
        ),
    ),
    "the dead go to a queue that has an order of its own": (
        *(mourned(1, "i"), mourned(1.1, "j"), deliver(2, "i"), hang_up(2.6)),
        *(deliver(3, "i", stream=2), die(4, "i"), deliver(6, "i", stream=3, queue="dead")),
        deliver(7, "j"),
    ),
    "a queue is paused that a job has left": (
        *(mourned(1), deliver(2), die(3), configure(4, paused=True)),
        deliver(6, stream=2, queue="dead"),
    ),
    "the first lease of a stream that runs out ends it, and what else it held is free": (
        *(open_stream(0, 1, 9, lease_ms=50), enqueue(1, "i"), enqueue(1.1, "j")),
        *(deliver(2, "i", until=52), deliver(30, "j", until=80), deliver(53, "i", stream=2)),
        deliver(53, "j", stream=2),
    ),
    "a settlement of an earlier delivery leaves the lease to run out": (
        *(open_stream(0, 1, 9, lease_ms=50), enqueue(1, "i"), enqueue(1.1, "j")),
        *(deliver(2, "i", stream=3), fail(3, "i"), deliver(5, "i", attempts=1, until=55)),
        *(deliver(30, "j", until=80), deliver(56, "j", stream=2)),
    ),
    "a lease of a frame that nobody has read has run out": (
        *(open_stream(0, 1, 9, lease_ms=50), enqueue(1), enqueue(1, "k")),
        *(deliver(2, until=52), succeed(3), deliver(4, "k", until=54), succeed(5, "k", UNKNOWN)),
        *(listing(60, k=listed("k")), deliver(61, "k", stream=2)),
    ),
}
