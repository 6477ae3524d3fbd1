"""Judges a history: each rule is a promise of the queue, and yields a sentence for each breach.

The rules never cry wolf: where times leave two orders possible, the harmless one is assumed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .history import (
    Delivery,
    Enqueue,
    Failure,
    History,
    JobEvent,
    Kill,
    Listing,
    Outcome,
    StreamEnd,
    Success,
)

UNFINISHED = ("scheduled", "ready", "in_flight")


@dataclass
class Life:
    """Everything that the history tells of one job."""

    name: str
    enqueues: list[Enqueue] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    successes: list[Success] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

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

    @property
    def settlements(self) -> list[Success | Failure]:
        """Those that may have had an effect."""
        both: list[Success | Failure] = [*self.successes, *self.failures]
        return [settlement for settlement in both if settlement.outcome is not Outcome.REFUSED]

    @property
    def done(self) -> float:
        """When it was answered that the job is over for good; infinity if that never was."""
        ends = [s.end for s in self.successes if s.outcome is Outcome.OK]
        ends += [f.end for f in self.failures if f.final and f.outcome is Outcome.OK]
        return min(ends, default=float("inf"))


@dataclass
class World:
    """A history, sorted for the rules."""

    lives: dict[str, Life]
    listings: list[Listing]
    kills: list[Kill]
    hang_ups: dict[int, float]
    """When each stream's worker began to hang up."""


Rule = Callable[[World], Iterator[str]]


def violations(history: History) -> list[str]:
    """What the queue has broken, in words."""
    world = _sort(history)
    return [breach for rule in RULES for breach in rule(world)]


def _sort(history: History) -> World:
    world = World({}, [], [], {})
    for event in history:
        match event:
            case Listing():
                world.listings.append(event)
            case Kill():
                world.kills.append(event)
            case StreamEnd():
                world.hang_ups[event.stream] = event.start
            case _:
                world.lives.setdefault(event.job, Life(event.job)).add(event)
    for life in world.lives.values():
        life.deliveries.sort(key=lambda delivery: (delivery.start, delivery.end))
    return world


def nothing_acknowledged_is_lost(world: World) -> Iterator[str]:
    """From the answer to its enqueue until somebody reports success, a job is in every listing."""
    for life in world.lives.values():
        stored = min((e.end for e in life.enqueues if e.outcome is Outcome.OK), default=None)
        if stored is None:
            continue
        gone = min((s.start for s in life.settlements if isinstance(s, Success)), default=None)
        for listing in world.listings:
            may_be_gone = gone is not None and gone <= listing.end
            if stored < listing.start and not may_be_gone and life.name not in listing.jobs:
                yield f"lost: {life.name} was stored and is not listed at {listing.start:.0f}"


def nothing_done_comes_back(world: World) -> Iterator[str]:
    """After an answered success or death a job is neither delivered nor settled nor unfinished."""
    for life in world.lives.values():
        for delivery in life.deliveries:
            if delivery.start > life.done:
                yield f"came back: {life.name} was done and then delivered"
        for settlement in life.settlements:
            if settlement.outcome is Outcome.OK and settlement.start > life.done:
                yield f"came back: {life.name} was done and then settled once more"
        for listing in world.listings:
            shown = listing.jobs.get(life.name)
            if shown and listing.start > life.done and shown.status in UNFINISHED:
                yield f"came back: {life.name} was done and then listed as {shown.status}"


def one_holder_at_a_time(world: World) -> Iterator[str]:
    """Between two claims of a job the first holder settled it, hung up, or the server died."""
    for life in world.lives.values():
        releases = [settlement.start for settlement in life.settlements]
        for first, second in zip(life.deliveries, life.deliveries[1:], strict=False):
            ends = [*releases, *(kill.start for kill in world.kills)]
            if first.stream in world.hang_ups:
                ends.append(world.hang_ups[first.stream])
            # The claim's time is rounded down to its millisecond.
            if not any(first.start <= end < second.start + 1 for end in ends):
                yield (
                    f"two holders: {life.name} on stream {first.stream} at {first.start:.0f} and"
                    f" on stream {second.stream} at {second.start:.0f}"
                )


def nothing_is_invented(world: World) -> Iterator[str]:
    """What is delivered or listed was enqueued before, once, like that, and was not refused."""
    ids: dict[str, set[str]] = defaultdict(set)
    seen: dict[str, float] = {}

    def saw(name: str, id: str, end: float) -> None:
        ids[name].add(id)
        seen[name] = min(end, seen.get(name, end))

    for life in world.lives.values():
        for delivery in life.deliveries:
            saw(life.name, delivery.id, delivery.end)
            if not delivery.intact:
                yield f"damaged: {life.name} was delivered with another payload"
        ids[life.name] |= {enqueue.id for enqueue in life.enqueues if enqueue.id}
    for listing in world.listings:
        for name, shown in listing.jobs.items():
            saw(name, shown.id, listing.end)
    for name, end in seen.items():
        enqueues = world.lives[name].enqueues if name in world.lives else []
        if not any(e.outcome is not Outcome.REFUSED and e.start <= end for e in enqueues):
            yield f"invented: {name} was never enqueued"
        if len(ids[name]) > 1:
            yield f"invented: {name} is stored more than once: {sorted(ids[name])}"


def attempts_never_fall(world: World) -> Iterator[str]:
    """Attempts only grow, and never beyond the failures that were reported."""
    sightings: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for life in world.lives.values():
        found = sightings[life.name]
        found += [(d.start, d.end, d.attempts) for d in life.deliveries]
        found += [(f.start, f.end, f.attempts) for f in life.failures if f.outcome is Outcome.OK]
    for listing in world.listings:
        for name, shown in listing.jobs.items():
            sightings[name].append((listing.start, listing.end, shown.attempts))
    for name, found in sightings.items():
        for start, _, attempts in found:
            before = max((a for _, end, a in found if end < start), default=0)
            if attempts < before:
                yield f"attempts fell: {name} had {before} and then {attempts}"
        failures = world.lives[name].failures if name in world.lives else []
        reported = sum(failure.outcome is not Outcome.REFUSED for failure in failures)
        most = max((attempts for _, _, attempts in found), default=0)
        if most > reported:
            yield f"attempts spent: {name} has {most} and {reported} failures were reported"


def nothing_is_held_after_a_start(world: World) -> Iterator[str]:
    """Before the first worker is let in, no job is in flight."""
    for listing in world.listings:
        for name, shown in listing.jobs.items():
            if shown.status == "in_flight":
                yield f"held by nobody: {name} is in flight at {listing.start:.0f}"


def one_owner_of_a_key(world: World) -> Iterator[str]:
    """At most one unfinished job has a unique key, and no finished one keeps it.

    The load uses keys for as long as a job is unfinished.
    """
    for listing in world.listings:
        owners: dict[str, list[str]] = defaultdict(list)
        for name, shown in listing.jobs.items():
            if shown.unique_key and shown.status in UNFINISHED:
                owners[shown.unique_key].append(name)
        for key, names in owners.items():
            if len(names) > 1:
                yield f"two owners: {names} have the unique key {key}"
    lives_by_id = {e.id: life for life in world.lives.values() for e in life.enqueues if e.id}
    for life in world.lives.values():
        for enqueue in life.enqueues:
            owner = lives_by_id.get(enqueue.owner)
            if owner is not None and owner.done < enqueue.start:
                yield f"dead owner: {life.name} was refused for {owner.name}, which was done"


def counts_are_kept(world: World) -> Iterator[str]:
    """The server's count of all jobs is the number of those that it lists."""
    for listing in world.listings:
        if listing.count != len(listing.jobs):
            yield f"miscounted: {len(listing.jobs)} jobs are listed, {listing.count} are counted"


RULES: tuple[Rule, ...] = (
    nothing_acknowledged_is_lost,
    nothing_done_comes_back,
    one_holder_at_a_time,
    nothing_is_invented,
    attempts_never_fall,
    nothing_is_held_after_a_start,
    one_owner_of_a_key,
    counts_are_kept,
)
