"""The promises about several jobs, streams or producers together."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import floor
from typing import NamedTuple

from .history import NEVER, Enqueue, Outcome, Retry
from .world import DEADLINE_MS, UNFINISHED, Life, World

HELD = {"queued": ("scheduled", "ready"), "active": UNFINISHED}
"""The statuses in which a job holds its key."""

KEYLESS = ("cancelled", "expired")
"""The statuses in which a job has lost even a key that is its own while it exists."""


def one_holder_at_a_time(world: World) -> Iterator[str]:
    """Between two claims of a job the first holder settled it, hung up, or the server died.

    Only an ending or its deadline takes a job from who claimed it with one.
    """
    for life in world.lives.values():
        for first, second in zip(life.deliveries, life.deliveries[1:], strict=False):
            # One that began before the claim may mean it all the same.
            ends = [max(ending.start, first.start) for ending in life.endings(first)]
            ends += [max(life.deadline(first) - DEADLINE_MS, first.start), *world.cuts(first)]
            # The claim's time is rounded down to its millisecond.
            if not any(first.start <= end < second.start + 1 for end in ends):
                yield (
                    f"two holders: {life.name} on stream {first.stream} at {first.start:.0f} and"
                    f" on stream {second.stream} at {second.start:.0f}"
                )


class _Wait(NamedTuple):
    """A job that became ready between `start` and `since`, and was next seen at `until`."""

    job: Enqueue
    start: float
    since: float
    until: float
    unseen: bool
    """Whether somebody may have had it meanwhile."""


def first_in_first_out(world: World) -> Iterator[str]:
    """While a job waits ready, none that comes after it in its queue is taken.

    Whether it waits is known of a worker that is alone, since it sees its jobs in their order; and
    where nothing came back unseen until somebody got the job. Not of one that a group shuts out.
    One that is retried has its old place.
    """
    taken: dict[str, list[tuple[float, int, Enqueue]]] = defaultdict(list)
    waits: list[_Wait] = []
    for life in world.lives.values():
        stored = life.stored
        if stored is None:
            continue
        for each in life.deliveries:
            taken[life.queue_of(each)].append((each.start, each.stream, stored))
        if not (stored.delayed or stored.group or stored.ttl_ms or life.cancelled):
            waits += _waits(world, life, stored)
    for claims in taken.values():
        claims.sort(key=lambda claim: claim[0])
    for wait in waits:
        claims = taken[wait.job.queue]
        first = bisect_right(claims, wait.since, key=lambda claim: claim[0])
        for at, stream, other in claims[first:]:
            if at >= wait.until:
                break
            if _place(other) > _place(wait.job) and (
                world.alone(stream, wait.job.queue, wait.start, at) or not wait.unseen
            ):
                yield f"out of order: {other.job} was taken at {at:.0f}, before {wait.job.job}"
                break


def _waits(world: World, life: Life, stored: Enqueue) -> Iterator[_Wait]:
    for begun in (stored, *life.retried_at_home):
        later = (d.start for d in life.deliveries if d.start + 1 > begun.start)
        until = min(later, default=NEVER)
        unseen = world.unseen(life, begun.start, until)
        yield _Wait(stored, begun.start, begun.end, until, unseen)


def windows_are_kept(world: World) -> Iterator[str]:
    """No stream holds more unsettled jobs than its window."""
    for number, deliveries in world.deliveries_by_stream().items():
        stream = world.streams.get(number)
        if stream is None or not stream.window:
            continue
        spans = [(delivery.start, life.released(delivery)) for life, delivery in deliveries]
        most, at = most_at_once(spans)
        if most > stream.window:
            yield f"window: stream {number} of {stream.window} held {most} at {at:.0f}"


def the_limit_is_kept(world: World) -> Iterator[str]:
    """All streams together hold no more than the server's limit."""
    for server in world.starts:
        died = min((k.end for k in world.kills if k.start > server.start), default=NEVER)
        spans = [
            (delivery.start, world.over(life, delivery))
            for life in world.lives.values()
            for delivery in life.deliveries
            if floor(server.start) <= delivery.start <= died
        ]
        most, at = most_at_once(spans)
        if server.in_flight_limit and most > server.in_flight_limit:
            yield f"limit: {most} of {server.in_flight_limit} were in flight at {at:.0f}"


def one_owner_of_a_key(world: World) -> Iterator[str]:
    """At most one job has a unique key for as long as it covers, and a finished one lets it go.

    A "queued" key may be found twice: a job that comes back finds that another has it by now. So
    does one that comes back from the dead. A dead letter shows its key, and has given it up.
    """
    for listing in world.listings:
        owners: dict[str, list[str]] = defaultdict(list)
        for name, shown in listing.jobs.items():
            scope = shown.unique_key.partition("-")[0]
            life = world.lives.get(name)
            back = life is not None and life.may_be_revived(0, listing.end)
            is_letter = life is not None and bool(shown.queue) and shown.queue == life.dead_letter
            keyless = is_letter or (back and scope == "active")
            if scope in ("active", "exists") and _holds_key(scope, shown.status) and not keyless:
                owners[shown.unique_key].append(name)
        for key, names in owners.items():
            if len(names) > 1:
                yield f"two owners: {names} have the unique key {key}"
    lives_by_id = {e.id: life for life in world.lives.values() for e in life.enqueues if e.id}
    for life in world.lives.values():
        for enqueue in life.enqueues:
            owner = lives_by_id.get(enqueue.owner)
            lasts = enqueue.unique_key.startswith("exists-") or enqueue.dedupe
            if owner is not None and owner.is_over(enqueue.start, enqueue.end) and not lasts:
                yield f"dead owner: {life.name} was refused for {owner.name}, which was done"


def a_held_key_is_refused(world: World) -> Iterator[str]:
    """No job is stored with a key while another one is known to hold it."""
    by_key: dict[str, list[tuple[Enqueue, Life]]] = defaultdict(list)
    for life in world.lives.values():
        for enqueue in life.enqueues:
            if enqueue.unique_key and enqueue.outcome is not Outcome.REFUSED:
                by_key[enqueue.unique_key].append((enqueue, life))
    for key, owners in by_key.items():
        stored = [each for each in owners if each[0].outcome is Outcome.OK]
        for first, life in stored:
            rivals = [other for _, other in owners if other is not life]
            for since, until in _times_held(world, life, first, rivals):
                for second, _ in stored:
                    if since < second.start and second.end < until:
                        yield f"key: {second.job} was stored while {first.job} held {key}"


def _times_held(
    world: World, life: Life, stored: Enqueue, rivals: list[Life]
) -> Iterator[tuple[float, float]]:
    """When a job is known to have had its key all the time."""
    scope = stored.unique_key.partition("-")[0]
    if scope == "queued":
        first = life.deliveries[0].start if life.deliveries else stored.end
        yield stored.end, stored.end if world.unseen(life, stored.start, first) else first
        return
    sightings = [delivery.start for delivery in life.deliveries]
    sightings += [settlement.start for settlement in life.accepted]
    buried = [d.start for d in life.deliveries if life.queue_of(d) == life.dead_letter]
    for listing in world.listings:
        shown = listing.jobs.get(life.name)
        if shown and _holds_key(scope, shown.status):
            sightings.append(listing.start)
            if shown.queue == life.dead_letter:
                buried.append(listing.start)
    if life.dead_letter:  # where the job has given up its key
        buried += [death.start for death in life.deaths]
        sightings = [each for each in sightings if each < min(buried, default=NEVER)]
    # Death takes an "active" key, and whoever is back has it again if nobody else has it by then.
    losable = scope == "active"
    back = [r for r in life.retried if losable and all(_lets_go(rival, r) for rival in rivals)]
    for begun in (stored, *back):
        again = (r.start for r in life.revivals if losable and r.start > begun.end)
        until = min(again, default=NEVER)
        yield begun.end, max((s for s in sightings if s + 1 < until), default=begun.end)


def _lets_go(rival: Life, retry: Retry) -> bool:
    """Whether another job surely had no key at the time of a retry."""
    begun = rival.enqueues[0].start
    return begun > retry.end or rival.is_over(retry.start, retry.end)


def _holds_key(scope: str, status: str) -> bool:
    return status not in KEYLESS if scope == "exists" else status in HELD[scope]


def _place(enqueue: Enqueue) -> tuple[int, str]:
    return enqueue.priority, enqueue.id


def most_at_once(spans: Iterable[tuple[float, float]]) -> tuple[int, float]:
    """How many spans overlap at most, and since when. Claims are known to the millisecond."""
    steps = [(start, 1) for start, _ in spans]
    steps += [(float(floor(end)), -1) for _, end in spans if end < NEVER]
    steps.sort()  # what ends in a millisecond makes room for what begins in it
    now = most = 0
    since = 0.0
    for at, step in steps:
        now += step
        if now > most:
            most, since = now, at
    return most, since
