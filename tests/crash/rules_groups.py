"""The promises about the order within a group, and about names of copies."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from .history import NEVER, Enqueue
from .world import Life, World


def groups_are_in_order(world: World) -> Iterator[str]:
    """No job of a group is taken while an older one is waiting, in flight or to be tried again.

    One that is dead lets the others pass; once it is retried, it does not.
    """
    for group, members in _by_group(world).items():
        ahead: list[tuple[Life, float, float]] = []
        for enqueue, life in members:
            for delivery in life.deliveries:
                if life.queue_of(delivery) != group[0]:
                    continue  # a dead-letter queue has groups of its own
                for other, since, over in ahead:
                    if since < delivery.start and over >= delivery.start + 1:
                        yield (
                            f"group {'/'.join(group)}: {life.name} was taken at"
                            f" {delivery.start:.0f}, before {other.name} was over"
                        )
            # What was over before this one came is over for all that come after it.
            ahead = [older for older in ahead if older[2] > enqueue.start]
            ahead += [(life, since, over) for since, over in _unfinished(world, enqueue, life)]


def groups_have_one_at_a_time(world: World) -> Iterator[str]:
    """No job of a group is taken while a younger one is in flight, as may be if it was dead."""
    for group, members in _by_group(world).items():
        younger: list[tuple[float, float, str]] = []
        for _, life in reversed(members):
            for delivery in life.deliveries:
                if life.queue_of(delivery) != group[0]:
                    continue
                for start, over, name in younger:
                    if start < delivery.start and over >= delivery.start + 1:
                        yield (
                            f"group {'/'.join(group)}: {life.name} was taken at"
                            f" {delivery.start:.0f}, while {name} was in flight"
                        )
            younger += [
                (delivery.start, world.over(life, delivery), life.name)
                for delivery in life.deliveries
                if life.queue_of(delivery) == group[0]
            ]


def _by_group(world: World) -> dict[tuple[str, str], list[tuple[Enqueue, Life]]]:
    """The jobs of each queue and group whose id is known, in the order of their ids."""
    found: dict[tuple[str, str], list[tuple[str, Enqueue, Life]]] = defaultdict(list)
    for life in world.lives.values():
        ids = [e.id for e in life.enqueues if e.id] + [d.id for d in life.deliveries]
        for enqueue in life.enqueues[:1]:
            if enqueue.group and ids:
                found[enqueue.queue, enqueue.group].append((ids[0], enqueue, life))
    return {
        group: [member[1:] for member in sorted(members, key=lambda member: member[0])]
        for group, members in found.items()
    }


def _unfinished(world: World, enqueue: Enqueue, life: Life) -> Iterator[tuple[float, float]]:
    """Times in which a job was surely in its group, and not over."""
    yield _since(life), _over(world, enqueue, life)
    if enqueue.ttl_ms or world.stall_limit(enqueue.queue) < NEVER:
        return
    for retry in life.retried_at_home:
        ends = (e.start for e in (*life.last_words, *life.deaths) if e.end >= retry.start)
        yield retry.end, min(ends, default=NEVER)


def _since(life: Life) -> float:
    """When it is known that the job is stored."""
    first = life.deliveries[0].end if life.deliveries else NEVER
    return min(life.stored.end, first) if life.stored else first


def _over(world: World, enqueue: Enqueue, life: Life) -> float:
    """The earliest time at which the job may have ended for good."""
    ends = [ending.start for ending in (*life.last_words, *life.deaths)]
    if enqueue.ttl_ms:
        ends.append(enqueue.start + enqueue.ttl_ms)
    if world.stall_limit(enqueue.queue) < NEVER:
        ends.append(enqueue.start)  # it may have been taken unseen, and died of stalls
    return min(ends, default=NEVER)


def a_name_makes_one_job(world: World) -> Iterator[str]:
    """Within its window a name is given to one job of a queue and group."""
    named: dict[tuple[str, str, str], list[Enqueue]] = defaultdict(list)
    for life in world.lives.values():
        stored = life.stored
        if stored is not None and stored.dedupe:
            named[stored.queue, stored.group, stored.dedupe].append(stored)
    for (_, _, name), owners in named.items():
        owners.sort(key=lambda enqueue: enqueue.end)
        for first, second in pairwise(owners):
            if second.end < min(first.start, second.start) + min(first.window_ms, second.window_ms):
                yield f"twice: {first.job} and {second.job} were stored in one window of {name}"
