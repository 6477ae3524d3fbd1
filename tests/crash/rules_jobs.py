"""The promises about each job by itself."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from .history import NEVER, Outcome, Success
from .world import NOTICED_MS, UNFINISHED, Life, World, any_between


def nothing_acknowledged_is_lost(world: World) -> Iterator[str]:
    """From the answer to its enqueue until somebody reports success, a job is in every listing."""
    for life in world.lives.values():
        stored = life.stored
        if stored is None:
            continue
        gone = min((s.start for s in life.settlements if isinstance(s, Success)), default=None)
        for listing in world.listings:
            may_be_gone = gone is not None and gone <= listing.end
            if stored.end < listing.start and not may_be_gone and life.name not in listing.jobs:
                yield f"lost: {life.name} was stored and is not listed at {listing.start:.0f}"


def nothing_done_comes_back(world: World) -> Iterator[str]:
    """After an answered success or death a job is neither delivered nor settled nor unfinished.

    The dead, also those that were only listed, may be if somebody has brought them back meanwhile.
    """
    for life in world.lives.values():
        for delivery in life.deliveries:
            if life.is_over(delivery.start, delivery.start + 1):
                yield f"came back: {life.name} was done and then delivered"
        for settlement in life.settlements:
            accepted = settlement.outcome is Outcome.OK
            if accepted and life.is_over(settlement.start, settlement.end):
                yield f"came back: {life.name} was done and then settled once more"
        for listing in world.listings:
            shown = listing.jobs.get(life.name)
            if shown is None or shown.status not in UNFINISHED:
                continue
            if life.is_over(listing.start, listing.end):
                yield f"came back: {life.name} was done and then listed as {shown.status}"


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


def attempts_rise_by_one(world: World) -> Iterator[str]:
    """Attempts only grow, by one with each failure, and never beyond those that were reported.

    They begin anew where a job is brought back from the dead, or goes elsewhere instead of dying.
    The stall of which a job dies counts as a failure that nobody has reported.
    """
    sightings: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for life in world.lives.values():
        found = sightings[life.name]
        found += [(d.start, d.end, d.attempts) for d in life.deliveries]
        found += [(f.start, f.end, f.attempts) for f in life.failures if f.outcome is Outcome.OK]
    for listing in world.listings:
        for name, shown in listing.jobs.items():
            attempts = shown.attempts - (shown.reason == "stalled")
            sightings[name].append((listing.start, listing.end, attempts))
    for name, found in sightings.items():
        life = world.lives.get(name, Life(name))
        for start, end, attempts in found:
            before = max(
                (a for s, e, a in found if e < start and not _anew(life, s, end)), default=0
            )
            if attempts < before:
                yield f"attempts fell: {name} had {before} and then {attempts}"
        answers = [failure for failure in life.failures if failure.outcome is Outcome.OK]
        for first, second in combinations(answers, 2):
            anew = _anew(life, min(first.start, second.start), max(first.end, second.end))
            if first.attempts == second.attempts and not anew:
                both = [first.attempts, second.attempts]
                yield f"attempts stood still: failures of {name} were answered with {both}"
        for start, _, attempts in found:
            reported = _reported(life, start)
            if attempts > reported:
                yield f"attempts spent: {name} has {attempts} and {reported} failures were reported"
                break


def _anew(life: Life, start: float, end: float) -> bool:
    moves = life.deaths if life.dead_letter else []
    return any_between((*life.revivals, *moves), start, end)


def _reported(life: Life, time: float) -> int:
    """The failures that a job may be said to have, if that was seen at this time."""
    since = life.anew_since(time)
    return sum(f.end >= since and f.outcome is not Outcome.REFUSED for f in life.failures)


def deliveries_never_fall(world: World) -> Iterator[str]:
    """The file of a killed server counts at least the deliveries that were seen."""
    counted: dict[str, int] = {}
    for inspection in world.inspections:
        for name, deliveries in inspection.deliveries.items():
            seen = world.lives[name].deliveries if name in world.lives else []
            least = max(sum(d.end < inspection.start for d in seen), counted.get(name, 0))
            if deliveries < least:
                yield f"deliveries fell: {name} had {least} and then {deliveries}"
        counted |= inspection.deliveries


def nothing_is_held_after_a_start(world: World) -> Iterator[str]:
    """Before the first worker is let in, no job is in flight but for claims with a deadline.

    One that ran out while no server ran is noticed by the next.
    """
    for listing in world.listings:
        up = max((start.end for start in world.starts if start.end <= listing.start), default=0)
        for name, shown in listing.jobs.items():
            noticed = max(shown.until, up) + NOTICED_MS
            claimed = listing.start <= noticed and shown.until < NEVER
            if shown.status == "in_flight" and not claimed:
                yield f"held by nobody: {name} is in flight at {listing.start:.0f}"


def counts_are_kept(world: World) -> Iterator[str]:
    """The server's count of all jobs is the number of those that it lists."""
    for listing in world.listings:
        if listing.count != len(listing.jobs):
            yield f"miscounted: {len(listing.jobs)} jobs are listed, {listing.count} are counted"
