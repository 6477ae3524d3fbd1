"""A history, sorted for the rules: by job, by stream, and by what all clients saw."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .history import (
    NEVER,
    Cancel,
    Copied,
    Delivery,
    Enqueue,
    Extend,
    Failure,
    History,
    Inspection,
    JobEvent,
    Kill,
    Listing,
    LostClaim,
    Operation,
    Outcome,
    Redrive,
    Release,
    Retry,
    Setting,
    Start,
    StreamEnd,
    StreamStart,
    Success,
)

UNFINISHED = ("scheduled", "ready", "in_flight")
NOTICED_MS = 5_000.0
"""Time after which a server has surely given back what an ended stream held."""

DEADLINE_MS = 5.0
"""How far a deadline may seem to be off: two clocks are involved, and a restart between them."""

Settlement = Success | Failure
Ending = Settlement | Release | Cancel


@dataclass
class Life:
    """Everything that the history tells of one job."""

    name: str
    enqueues: list[Enqueue] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    successes: list[Success] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    cancels: list[Cancel] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    revivals: list[Retry | Redrive] = field(default_factory=list)
    """Whatever may have brought it back from the dead, or from its dead-letter queue."""
    found_dead: list[Listing] = field(default_factory=list)

    def add(self, event: JobEvent) -> None:
        match event:
            case Enqueue():
                self.enqueues.append(event)
            case Delivery():
                self.deliveries.append(event)
            case Success():
                self.successes.append(event)
            case Failure():
                self.failures.append(event)
            case Release():
                self.releases.append(event)
            case Extend():
                self.extends.append(event)
            case Cancel():
                self.cancels.append(event)
            case Retry():
                self.retries.append(event)

    @property
    def stored(self) -> Enqueue | None:
        """The enqueue that was answered with success."""
        return next((e for e in self.enqueues if e.outcome is Outcome.OK), None)

    @property
    def settlements(self) -> list[Settlement]:
        """Those that may have had an effect."""
        both: list[Settlement] = [*self.successes, *self.failures]
        return [settlement for settlement in both if settlement.outcome is not Outcome.REFUSED]

    @property
    def accepted(self) -> list[Settlement]:
        """Those that are known to have had an effect."""
        return [s for s in self.settlements if s.outcome is Outcome.OK]

    @property
    def cancelled(self) -> list[Cancel]:
        """Those that may have had an effect."""
        return [cancel for cancel in self.cancels if cancel.outcome is not Outcome.REFUSED]

    @property
    def queue(self) -> str:
        """Where it was stored."""
        return self.enqueues[0].queue if self.enqueues else ""

    @property
    def dead_letter(self) -> str:
        """Where it goes when it dies."""
        return self.enqueues[0].dead_letter if self.enqueues else ""

    def queue_of(self, delivery: Delivery) -> str:
        """Where it was taken."""
        return delivery.queue or self.queue

    @property
    def deaths(self) -> list[Failure]:
        """Failures that may have killed the job."""
        return [f for f in self.failures if f.final and f.outcome is not Outcome.REFUSED]

    @property
    def last_words(self) -> list[Success | Failure | Cancel]:
        """What may have ended the job: where it has a dead-letter queue, no death does."""
        successes = [s for s in self.settlements if isinstance(s, Success)]
        return [*successes, *([] if self.dead_letter else self.deaths), *self.cancelled]

    @property
    def retried(self) -> list[Retry]:
        """Retries that are known to have had an effect."""
        return [retry for retry in self.retries if retry.outcome is Outcome.OK]

    @property
    def retried_at_home(self) -> list[Retry]:
        """Those after which it waited in its own queue: one that died elsewhere stays there."""
        return [] if self.dead_letter else self.retried

    def anew_since(self, time: float) -> float:
        """When a retry last forgave attempts and stalls, seen from this time; 0 where none did."""
        return max((retry.start for retry in self.retried if retry.end < time), default=0)

    @property
    def called_back(self) -> list[Retry | Redrive]:
        """Those after which it was back, if it was dead or in its dead-letter queue before."""
        answered = (each for each in self.revivals if each.outcome is Outcome.OK)
        return [each for each in answered if isinstance(each, Retry) or each.limit == NEVER]

    def may_be_revived(self, start: float, end: float) -> bool:
        """Whether it may have been brought back in this time, if it was dead then."""
        return any_between(self.revivals, start, end)

    def is_dead(self, start: float, end: float) -> bool:
        """Whether it was known to be dead before `start`, and rightly is so until `end`."""
        answered = [d for d in self.deaths if d.outcome is Outcome.OK and not self._moved_by(d)]
        return any(
            known.end < start and not self.may_be_revived(known.start, end)
            for known in (*answered, *self.found_dead)
        )

    def _moved_by(self, death: Failure) -> bool:
        """Whether it may have gone to its dead-letter queue instead, where it can die for good."""
        named = (d for d in self.deliveries if d.lease and d.lease == death.lease)
        return bool(self.dead_letter) and all(d.queue != self.dead_letter for d in named)

    def is_over(self, start: float, end: float) -> bool:
        """Whether it was known to be done, cancelled or dead before `start`, until `end`."""
        words = (e for e in self.last_words if not isinstance(e, Failure))
        for_good = any(e.outcome is Outcome.OK and e.end < start for e in words)
        return for_good or self.is_dead(start, end)

    def endings(self, delivery: Delivery) -> list[Ending]:
        """What may have ended this delivery before its time, by whomever.

        One of an earlier delivery counts too: without a token it means the current one.
        """
        released = [r for r in self.releases if r.outcome is not Outcome.REFUSED]
        named = [e for e in (*self.settlements, *released) if _means(e, delivery)]
        return [e for e in (*named, *self.cancelled) if e.end >= delivery.start]

    def deadline(self, delivery: Delivery) -> float:
        """Until when the job is surely its holder's, if nothing else ends the delivery."""
        until = delivery.until
        extends = (e for e in self.extends if _means(e, delivery))
        for extend in sorted(extends, key=lambda extend: extend.start):
            if extend.outcome is Outcome.OK:
                until = extend.until
            elif extend.outcome is Outcome.UNKNOWN:
                until = min(until, extend.until)
        return until

    def released(self, delivery: Delivery) -> float:
        """The earliest time at which this delivery may have been over."""
        ends = [max(e.start, delivery.start) for e in self.endings(delivery)]
        return min([*ends, self.deadline(delivery) - DEADLINE_MS])


def any_between(operations: Iterable[Operation], start: float, end: float) -> bool:
    """Whether one of them may have had its effect in this time."""
    return any(each.end >= start and each.start <= end for each in operations)


def _means(request: Settlement | Release | Extend, delivery: Delivery) -> bool:
    return 0 in (request.lease, delivery.lease) or request.lease == delivery.lease


@dataclass
class World:
    """All lives by name, all streams by number."""

    lives: dict[str, Life] = field(default_factory=dict)
    listings: list[Listing] = field(default_factory=list)
    inspections: list[Inspection] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    streams: dict[int, StreamStart] = field(default_factory=dict)
    hang_ups: dict[int, float] = field(default_factory=dict)
    """When each stream's worker began to hang up."""
    lost_claims: list[LostClaim] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    """Those that may have had an effect, as have the redrives."""
    redrives: list[Redrive] = field(default_factory=list)
    lapses: dict[int, float] = field(default_factory=dict)
    """The earliest time at which each stream with leases may have ended for one that ran out."""

    def stall_limit(self, queue: str) -> float:
        """The lowest number of stalls that a job of the queue may ever have had to survive."""
        limits = [s.stall_limit for s in self.settings if s.queue == queue and s.stall_limit >= 0]
        return min(limits, default=NEVER)

    def is_claim(self, delivery: Delivery) -> bool:
        """Whether a job is its holder's beyond any hang-up or crash, up to a deadline."""
        return delivery.until < NEVER and delivery.stream not in self.lapses

    def cuts(self, delivery: Delivery) -> list[float]:
        """When a delivery may have been over without anybody's word, unless before."""
        copies = (kill for kill in self.kills if isinstance(kill, Copied))
        if self.is_claim(delivery):
            return [time for copy in copies for time in (copy.start, copy.end)]
        # A server that is killed goes on until the signal reaches it.
        deaths = [time for kill in self.kills for time in (kill.start, kill.end)]
        ends = (self.hang_ups.get(delivery.stream, NEVER), self.lapses.get(delivery.stream, NEVER))
        # A lapse that is long over has not ended what came after it.
        return [*deaths, ends[0], max(ends[1], delivery.start)]

    def over(self, life: Life, delivery: Delivery) -> float:
        """The earliest time at which a delivery may have been over, by a word or without one."""
        cuts = [cut for cut in self.cuts(delivery) if cut >= delivery.start]
        return min([life.released(delivery), *cuts])

    def deliveries_by_stream(self) -> dict[int, list[tuple[Life, Delivery]]]:
        found: dict[int, list[tuple[Life, Delivery]]] = defaultdict(list)
        for life in self.lives.values():
            for delivery in life.deliveries:
                found[delivery.stream].append((life, delivery))
        return found

    def unseen(self, life: Life, start: float, until: float) -> bool:
        """Whether a job may have been claimed and come back before its delivery at `until`.

        Its token tells, if it is not the next: what a claim gets goes back unseen where the time
        to wait for it is over. Without a token, whatever may have had the job is suspected.
        """
        last = max((d.lease for d in life.deliveries if d.start < until), default=0)
        if until == NEVER or any(d.lease > last + 1 for d in life.deliveries if d.start == until):
            return True
        return not self.undisturbed(life.queue, start, until)

    def undisturbed(self, queue: str, start: float, end: float) -> bool:
        """Whether no job of a queue can have been claimed and come back unseen meanwhile.

        A job whose frame nobody has read is in flight until its stream ends or the server does.
        """
        if any(start <= kill.start < end + 1 for kill in self.kills):
            return False
        if any(c.queue == queue and c.start <= end and c.until >= start for c in self.lost_claims):
            return False
        for number, hung_up in self.hang_ups.items():
            stream = self.streams.get(number)
            covers = stream is None or not stream.queues or queue in stream.queues
            if covers and start <= hung_up < end + 1:
                return False
        return True

    def alone(self, stream: int, queue: str, start: float, end: float) -> bool:
        """Whether no other stream can have held a job of the queue in this time.

        One that ended shortly before may still: the server learns of a hang-up a moment later.
        """
        died = max((kill.end for kill in self.kills if kill.end < end), default=0.0)
        for number, other in self.streams.items():
            covers = not other.queues or queue in other.queues
            lived_on = (other.end >= died or not other.window) and other.start < end + 1
            held_on = self.hang_ups.get(number, NEVER) + NOTICED_MS > start
            if number != stream and covers and lived_on and held_on:
                return False
        return stream in self.streams


Rule = Callable[[World], Iterator[str]]


def sort(history: History) -> World:
    world = World()
    for event in history:
        match event:
            case Listing():
                world.listings.append(event)
            case Inspection():
                world.inspections.append(event)
            case Start():
                world.starts.append(event)
            case Kill():
                world.kills.append(event)
            case StreamStart():
                world.streams[event.stream] = event
            case StreamEnd():
                world.hang_ups[event.stream] = event.start
            case LostClaim():
                world.lost_claims.append(event)
            case Setting():
                if event.outcome is not Outcome.REFUSED:
                    world.settings.append(event)
            case Redrive():
                if event.outcome is not Outcome.REFUSED:
                    world.redrives.append(event)
            case _:
                world.lives.setdefault(event.job, Life(event.job)).add(event)
    for life in world.lives.values():
        life.deliveries.sort(key=lambda delivery: (delivery.start, delivery.end))
        life.found_dead = [each for each in world.listings if _shows_dead(each, life.name)]
        life.revivals = [r for r in life.retries if r.outcome is not Outcome.REFUSED]
        if life.deaths or life.found_dead or world.stall_limit(life.queue) < NEVER:
            graveyard = life.dead_letter or life.queue
            life.revivals += [r for r in world.redrives if r.queue == graveyard]
    world.lapses = _lapses(world)
    return world


def _shows_dead(listing: Listing, name: str) -> bool:
    return name in listing.jobs and listing.jobs[name].status == "dead"


def _surely_ends(life: Life, settlement: Settlement, delivery: Delivery) -> bool:
    """Whether an accepted settlement came in time, and cannot have meant an earlier delivery."""
    in_time = delivery.start <= settlement.start and settlement.end < life.deadline(delivery)
    return in_time and _means(settlement, delivery)


def _lapses(world: World) -> dict[int, float]:
    """When each stream with leases may have ended: at the deadline of a job that was not settled
    by then, as far as is known, or of one that was never read, which has a later one than the last.
    """
    found = {number: NEVER for number, stream in world.streams.items() if stream.lease_ms}
    last: dict[int, float] = {}
    for number, deliveries in world.deliveries_by_stream().items():
        if number not in found:
            continue
        for life, delivery in deliveries:
            last[number] = max(delivery.until, last.get(number, 0))
            if not any(_surely_ends(life, s, delivery) for s in life.accepted):
                found[number] = min(life.deadline(delivery) - DEADLINE_MS, found[number])
    return {number: min(end, last.get(number, NEVER)) for number, end in found.items()}
