"""The promises about a queue's limits, dead-letter queues and the way back."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .history import NEVER, Delivery, Listing, Operation, Outcome, Setting
from .rules_sharing import most_at_once
from .world import UNFINISHED, Life, World, any_between


class _Span(NamedTuple):
    """A time in which a setting of a queue was surely this and nothing else."""

    queue: str
    value: float
    start: float
    end: float


def concurrency_is_kept(world: World) -> Iterator[str]:
    """No more jobs of a queue are in flight than it permits; what was before that is not counted.

    Neither a crash nor a restart makes room: the claims of before are in flight still.
    """
    for span in _spans(world.settings, "concurrency"):
        held = [(d.start, world.over(life, d)) for life, d in _deliveries(world, span)]
        most, at = most_at_once(held)
        if most > span.value:
            yield f"concurrency: {most} of {span.value:g} in flight in {span.queue} at {at:.0f}"


def rate_is_kept(world: World) -> Iterator[str]:
    """A queue delivers no more than its rate, and one second's worth at once.

    A server that starts has forgotten what was delivered before. Claims are known to the
    millisecond: one more than there should be is not held against it.
    """
    for span in _spans(world.settings, "rate"):
        deaths = sorted(kill.start for kill in world.kills)
        most = max(span.value, 1.0) + 1
        left, before, life_number = most, span.start, 0
        for start in sorted(d.start for _, d in _deliveries(world, span)):
            if bisect_right(deaths, start) > life_number:
                left, life_number = most, bisect_right(deaths, start)
            left = min(left + (start - before) / 1000 * span.value, most) - 1
            before = start
            if left < 0:
                yield f"rate: {span.queue} gave more than {span.value:g} a second at {start:.0f}"
                break


def depth_is_kept(world: World) -> Iterator[str]:
    """A queue has no more unfinished jobs than the most that it was ever permitted to have.

    It is judged where it was told before it had any, and never that it may have as many as come.
    Jobs that are back from the dead need no permission.
    """
    for queue in {setting.queue for setting in world.settings if setting.max_depth >= 0}:
        told = [s for s in world.settings if s.queue == queue and s.max_depth >= 0]
        lives = [life for life in world.lives.values() if life.queue == queue]
        first = min((e.start for life in lives for e in life.enqueues), default=NEVER)
        if told[0].outcome is not Outcome.OK or told[0].end > first:
            continue
        for listing in world.listings:
            depth = sum(
                shown.queue == queue
                and shown.status in UNFINISHED
                and not _back(world, name, listing)
                for name, shown in listing.jobs.items()
            )
            most = max((s.max_depth for s in told if s.start <= listing.end), default=NEVER)
            if depth > most:
                yield f"depth: {queue} has {depth} jobs of {most:g} at {listing.start:.0f}"


def _back(world: World, name: str, listing: Listing) -> bool:
    return name in world.lives and world.lives[name].may_be_revived(0, listing.end)


class _Sighting(NamedTuple):
    start: float
    end: float
    queue: str


def moves_have_a_cause(world: World) -> Iterator[str]:
    """A job that dies goes to its queue's dead-letter queue, and back only by a redrive."""
    for life, found in _mourned(world, everybody=True):
        for before, after in pairwise(found):
            if after.start <= before.end or before.queue == after.queue:
                continue
            home = after.queue == life.queue
            causes: Sequence[Operation] = life.revivals if home else life.deaths
            known = after.queue in (life.queue, life.dead_letter)
            if not known or not any_between(causes, before.start, after.end):
                yield f"moved: {life.name} from {before.queue} to {after.queue} by nobody"


def the_dead_move(world: World) -> Iterator[str]:
    """A death that was answered has moved the job, which stays there until a redrive."""
    for life, found in _mourned(world):
        for listing in world.listings:
            shown = listing.jobs.get(life.name)
            if shown and shown.queue == life.queue and shown.status == "dead":
                yield f"unmoved: {life.name} is dead in {life.queue} at {listing.start:.0f}"
        for death in life.deaths:
            after = _first_after(found, death.end)
            if after is None or death.outcome is not Outcome.OK or after.queue != life.queue:
                continue
            if not life.may_be_revived(death.start, after.end):
                yield f"unmoved: {life.name} was killed and is in {after.queue} still"


def the_redriven_are_back(world: World) -> Iterator[str]:
    """A redrive that was answered has left nobody behind who was known to be there."""
    for life, found in _mourned(world):
        taken = any(life.queue_of(delivery) == life.dead_letter for delivery in life.deliveries)
        died = min((d.end for d in life.deaths if d.outcome is Outcome.OK), default=NEVER)
        if taken or life.last_words:
            continue
        for redrive in life.called_back:
            after = _first_after(found, redrive.end)
            if died >= redrive.start or after is None or after.queue != life.dead_letter:
                continue
            if not any_between(life.deaths, redrive.start, after.end):
                yield f"left behind: {life.name} is in {life.dead_letter} after a redrive"


def the_retried_are_back(world: World) -> Iterator[str]:
    """A retry, or a redrive of all, that was answered has left nobody dead who was so before.

    No retry of a dead job is refused, unless another job may have its unique key by now, or its
    queue has a limit. Whether one has died once more of stalls is not judged here.
    """
    limited = {setting.queue for setting in world.settings if setting.max_depth >= 0}
    for life in world.lives.values():
        if life.stored is not None and (life.stored.unique_key or life.stored.queue in limited):
            continue
        for retry in life.retries:
            if retry.outcome is Outcome.REFUSED and life.is_dead(retry.start, retry.end):
                yield f"not retried: {life.name} was dead at {retry.start:.0f}"
        for listing in life.found_dead:
            for call in life.called_back:
                again = any_between(life.deaths, call.start, listing.end)
                stalled = listing.jobs[life.name].reason == "stalled"
                if call.end < listing.start and not again and not stalled:
                    yield f"left dead: {life.name} at {listing.start:.0f}, after it was called back"
                    break


def _spans(settings: list[Setting], name: str) -> Iterator[_Span]:
    told = [setting for setting in settings if getattr(setting, name) >= 0]
    for setting in told:
        if setting.outcome is Outcome.OK and getattr(setting, name) < NEVER:
            others = (
                s.start
                for s in told
                if s is not setting and s.queue == setting.queue and s.end >= setting.start
            )
            end = min(others, default=NEVER)
            yield _Span(setting.queue, getattr(setting, name), setting.end, end)


def _deliveries(world: World, span: _Span) -> Iterator[tuple[Life, Delivery]]:
    for life in world.lives.values():
        for delivery in life.deliveries:
            inside = span.start < delivery.start and delivery.start + 1 <= span.end
            if inside and life.queue_of(delivery) == span.queue:
                yield life, delivery


def _mourned(world: World, *, everybody: bool = False) -> Iterator[tuple[Life, list[_Sighting]]]:
    """The jobs that have a dead-letter queue, and where each was seen."""
    for life in world.lives.values():
        if everybody or life.dead_letter:
            yield life, _sightings(world, life)


def _sightings(world: World, life: Life) -> list[_Sighting]:
    """Where a job was known to be, first of all where it was stored."""
    found = [_Sighting(e.start, e.end, e.queue) for e in life.enqueues]
    found += [_Sighting(d.start, d.start + 1, life.queue_of(d)) for d in life.deliveries]
    for listing in world.listings:
        shown = listing.jobs.get(life.name)
        if shown:
            found.append(_Sighting(listing.start, listing.end, shown.queue))
    return sorted(found)


def _first_after(found: list[_Sighting], time: float) -> _Sighting | None:
    return next((sighting for sighting in found if sighting.start > time), None)
