"""Breaches of the rights of a holder, for one job or many, and harmless lookalikes."""

from .history import NEVER, Event
from .makers import (
    REFUSED,
    UNKNOWN,
    Planted,
    cancel,
    deliver,
    enqueue,
    extend,
    fail,
    hang_up,
    kill,
    listed,
    listing,
    open_stream,
    redrive,
    release,
    retry,
    start,
    succeed,
)
from .planted_queues import buried, die, mourned
from .rules_endings import extensions_are_as_long_as_asked, holders_are_heard
from .rules_jobs import nothing_done_comes_back, nothing_is_held_after_a_start
from .rules_sharing import one_holder_at_a_time, windows_are_kept

PLANTED = (
    Planted(
        holders_are_heard,
        "unheard: success of j was refused at 4",
        (enqueue(1), deliver(2), succeed(4, "j", REFUSED), hang_up(9)),
    ),
    Planted(
        holders_are_heard,  # one of several that were named together, beside a stale one
        "unheard: success of j was refused at 5",
        (
            *(enqueue(1, "i"), enqueue(1, "j"), enqueue(1, "k"), deliver(2, "i", lease=1)),
            *(deliver(2, "j", lease=1), deliver(2, "k", lease=2), hang_up(9)),
            *(succeed(5, "i", lease=1), succeed(5, "j", REFUSED, lease=1)),
            succeed(5, "k", REFUSED, lease=1),
        ),
    ),
    Planted(
        holders_are_heard,  # what was asked of another delivery, and refused, changes nothing
        "unheard: failure of j was refused at 5",
        (
            *(enqueue(1), deliver(2, lease=2), succeed(3, "j", REFUSED, lease=1)),
            *(fail(5, "j", REFUSED, lease=2), succeed(7, lease=2)),
        ),
    ),
    Planted(
        holders_are_heard,  # neither a crash nor a hang-up takes a claim
        "unheard: extend of j was refused at 20",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), hang_up(3), kill(4)),
            *(extend(20, NEVER, REFUSED), deliver(120, stream=2, lease=2)),
        ),
    ),
    Planted(
        holders_are_heard,  # not before the new deadline
        "unheard: release of j was refused at 150",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), extend(50, 200)),
            *(release(150, REFUSED, lease=1), deliver(220, stream=2, lease=2)),
        ),
    ),
    Planted(
        nothing_is_held_after_a_start,  # nor one whose claim has run out under this server
        "held by nobody: j is in flight at 9001",
        (
            *(enqueue(1), deliver(2, lease=1, until=100), kill(3), start(4)),
            listing(9_001, j=listed(status="in_flight", until=100)),
        ),
    ),
    Planted(
        extensions_are_as_long_as_asked,
        "extended: j by 100 ms instead of 600",
        (enqueue(1), deliver(2, lease=1, until=90), extend(50, 150, lease_ms=600)),
    ),
    Planted(
        extensions_are_as_long_as_asked,  # one of several that were named together
        "extended: i by 650 ms instead of 600",
        (
            *(enqueue(1, "i"), deliver(2, "i", lease=1, until=90)),
            *(enqueue(1, "j"), deliver(2, "j", lease=1, until=90)),
            extend(50, 700, job="i", lease_ms=600),
            extend(50, 650, job="j", lease_ms=600),
        ),
    ),
    Planted(
        one_holder_at_a_time,  # a stream's lease that was extended does not end it
        "two holders: j on stream 1 at 3 and on stream 2 at 60",
        (
            *(open_stream(0, 1, 9, lease_ms=50), enqueue(1), enqueue(1, "i")),
            *(deliver(2, "i", lease=1, until=52), deliver(3, lease=1, until=53)),
            *(extend(40, 200, job="i"), extend(40, 200)),
            # A job that was never read has its deadline after the last one that was.
            deliver(45, "k", lease=1, until=95),
            *(enqueue(44, "k"), succeed(46, "k"), deliver(60, stream=2, lease=2)),
        ),
    ),
    Planted(
        one_holder_at_a_time,  # nor does one of a job that was settled in its longer time
        "two holders: j on stream 1 at 450 and on stream 2 at 800",
        (
            *(open_stream(0, 1, 9, lease_ms=500), enqueue(1, "i"), enqueue(1)),
            *(deliver(2, "i", lease=1, until=502), extend(40, 700, job="i")),
            *(deliver(450, lease=1, until=950), succeed(600, "i", lease=1)),
            deliver(800, stream=2, lease=2),
        ),
    ),
    Planted(
        windows_are_kept,  # nor does one that is to run longer make room
        "window: stream 1 of 1 held 2 at 60",
        (
            *(open_stream(0, 1, 1, lease_ms=50), enqueue(1, "i"), enqueue(1, "j")),
            *(deliver(2, "i", lease=1, until=52), extend(40, 200, job="i")),
            *(deliver(60, "j", lease=1, until=110), succeed(70, "i"), succeed(70, "j")),
        ),
    ),
    Planted(
        nothing_done_comes_back,  # where the dead go, death is for good
        "came back: j was done and then delivered",
        (
            *(mourned(1), deliver(2, lease=1), die(3), deliver(5, queue="dead", lease=2)),
            *(fail(6, final=True, lease=2), deliver(8, queue="dead", lease=3)),
        ),
    ),
    Planted(
        nothing_done_comes_back,
        "came back: j was done and then listed as ready",
        (
            *(mourned(1), deliver(2, lease=1), die(3), deliver(5, queue="dead", lease=2)),
            *(fail(6, final=True, lease=2), kill(7), listing(8, j=buried(attempts=1))),
        ),
    ),
)

UNDECIDED: dict[str, tuple[Event, ...]] = {
    "a claim ran out long before a server was there to notice": (
        *(enqueue(1), deliver(2, lease=1, until=100), kill(3), start(9_000)),
        listing(9_001, j=listed(status="in_flight", until=100)),
    ),
    "a holder is refused who may have lost the job": (
        *(enqueue(1, "i"), deliver(2, "i", stream=1), hang_up(2.6, 1), succeed(3, "i", REFUSED)),
        *(enqueue(1, "j"), deliver(2, "j", stream=2), cancel(3, "j", UNKNOWN)),
        *(fail(4, "j", REFUSED), enqueue(1, "k"), deliver(2, "k", stream=3)),
        *(fail(3, "k", UNKNOWN), succeed(4, "k", REFUSED), kill(5)),
    ),
    "a claim has run out, or did so while it was asked": (
        *(enqueue(1), deliver(2, lease=1, until=50), extend(46, NEVER, REFUSED)),
        *(release(51, REFUSED, lease=1), deliver(52, stream=2, lease=2)),
    ),
    "a holder is refused whose claim was cut short, or may have been": (
        *(enqueue(1), deliver(2, lease=1, until=500), extend(3, 50, UNKNOWN)),
        *(succeed(60, "j", REFUSED, lease=1), deliver(70, stream=2, lease=2)),
    ),
    "a request that begins before the job is taken": (
        *(enqueue(1), succeed(1.8, "j", REFUSED), deliver(2), succeed(4)),
    ),
    "a new deadline is reckoned anywhere between question and answer": (
        *(enqueue(1), deliver(2, lease=1, until=50), extend(40.9, 140, lease_ms=100)),
        *(enqueue(1, "i"), deliver(2, "i", lease=1, until=50)),
        extend(40.2, 140, job="i", lease_ms=100),
    ),
    "a stream's lease that was cut short ends it": (
        *(open_stream(0, 1, 9, lease_ms=500), enqueue(1, "i"), enqueue(1.1, "j")),
        *(deliver(2, "i", lease=1, until=502), deliver(3, "j", lease=1, until=503)),
        *(extend(10, 60, job="i"), deliver(62, "j", stream=2, lease=2)),
    ),
    "a job dies where the dead go, and is called back": (
        *(mourned(1), deliver(2, lease=1), die(3), deliver(5, queue="dead", lease=2)),
        *(fail(6, final=True, lease=2), redrive(8), deliver(10, stream=2, lease=3)),
    ),
    "a job dies where the dead go, and is found there": (
        *(mourned(1), deliver(2, lease=1), die(3), deliver(5, queue="dead", lease=2)),
        *(fail(6, final=True, lease=2), kill(7)),
        listing(8, j=listed(status="dead", attempts=1, queue="dead")),
    ),
    "a job that died where the dead go is retried there, and is ahead of nobody at home": (
        *(mourned(1, "i", group="g"), mourned(1.6, group="g"), deliver(2, "i", lease=1)),
        *(die(3, "i"), deliver(5, "i", queue="dead", lease=2), fail(6, "i", final=True, lease=2)),
        *(retry(8, "i"), deliver(10, stream=2), succeed(11)),
        deliver(13, "i", queue="dead", lease=3),
    ),
    "nor is it in a queue without groups": (
        *(mourned(1, "i"), mourned(1.6), deliver(2, "i", lease=1), die(3, "i")),
        *(deliver(5, "i", queue="dead", lease=2), fail(6, "i", final=True, lease=2)),
        *(retry(8, "i"), deliver(10, lease=1), deliver(13, "i", queue="dead", lease=3)),
    ),
}
