"""The promises about tokens, deadlines, cancelled and expired jobs, and paused queues."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from .history import NEVER, Delivery, Extend, Listed, Listing, Outcome, Release, Setting
from .world import DEADLINE_MS, Life, Settlement, World


def stale_tokens_settle_nothing(world: World) -> Iterator[str]:
    """Each delivery has a token of its own, higher than the last, that works until the next."""
    for life in world.lives.values():
        named = [delivery for delivery in life.deliveries if delivery.lease]
        for first, second in pairwise(named):
            in_order = first.start < second.start and second.lease < first.lease
            if in_order or first.lease == second.lease:
                yield f"token: {life.name} was delivered as {first.lease}, then {second.lease}"
        for settlement in life.accepted:
            later = (d for d in named if d.start + 1 <= settlement.start)
            newest = max((delivery.lease for delivery in later), default=0)
            if settlement.lease and newest > settlement.lease:
                yield f"stale: {life.name} was settled as {settlement.lease}, after {newest} began"


def holders_are_heard(world: World) -> Iterator[str]:
    """Who surely holds a job is not refused: neither its end, nor more time for it."""
    for life in world.lives.values():
        settled: list[Settlement | Release | Extend] = [*life.successes, *life.failures]
        for request in (*settled, *life.releases, *life.extends):
            for delivery in life.deliveries if request.outcome is Outcome.REFUSED else ():
                begun = delivery.start + 1 <= request.start
                meant = request.lease in (0, delivery.lease)
                if meant and begun and request.end < world.over(life, delivery):
                    what = type(request).__name__.lower()
                    yield f"unheard: {what} of {life.name} was refused at {request.start:.0f}"


def extensions_are_as_long_as_asked(world: World) -> Iterator[str]:
    """The deadline that an extension answers lies as far ahead as was asked."""
    for life in world.lives.values():
        for extend in life.extends:
            if extend.outcome is not Outcome.OK or not extend.lease_ms:
                continue
            soonest, latest = extend.start + extend.lease_ms, extend.end + extend.lease_ms
            if not soonest - DEADLINE_MS <= extend.until <= latest + DEADLINE_MS:
                given = f"{extend.until - extend.start:.0f} ms"
                yield f"extended: {life.name} by {given} instead of {extend.lease_ms}"


def claims_survive(world: World) -> Iterator[str]:
    """A claimed job is in flight until something ends that, or its deadline has passed."""
    for life in world.lives.values():
        claims = [delivery for delivery in life.deliveries if world.is_claim(delivery)]
        for claim in claims:
            surely = world.over(life, claim)
            for listing, shown in _listings_after(world, life, claim.end):
                if listing.end < surely and shown.status != "in_flight":
                    yield f"claim broken: {life.name} is {shown.status} at {listing.start:.0f}"


def the_cancelled_stay_cancelled(world: World) -> Iterator[str]:
    """A cancelled job is shown as that ever after, and no other one is."""
    for life in world.lives.values():
        ends = [cancel.end for cancel in life.cancels if cancel.outcome is Outcome.OK]
        for listing, shown in _listings_after(world, life, min(ends, default=NEVER)):
            if shown.status != "cancelled":
                yield f"cancelled: {life.name} is {shown.status} at {listing.start:.0f}"
    for listing in world.listings:
        for name, shown in listing.jobs.items():
            cancels = world.lives[name].cancelled if name in world.lives else []
            asked = any(cancel.start <= listing.end for cancel in cancels)
            if shown.status == "cancelled" and not asked:
                yield f"cancelled by nobody: {name} at {listing.start:.0f}"


def results_are_kept(world: World) -> Iterator[str]:
    """The result that came with an accepted success is shown on the job, which is completed."""
    for life in world.lives.values():
        for success in life.successes:
            if success.outcome is not Outcome.OK or not success.result:
                continue
            for listing in world.listings:
                shown = listing.jobs.get(life.name)
                found = (shown.status, shown.result) if shown else ("gone", "")
                if listing.start > success.end and found != ("completed", success.result):
                    yield f"result: {life.name} is {found[0]} with {found[1]!r}"


def the_expired_are_not_delivered(world: World) -> Iterator[str]:
    """A job is not taken after its time, and expires neither before it nor without one.

    One that is back from the dead has no time of its own any more.
    """
    for life in world.lives.values():
        stored = life.stored
        for delivery in life.deliveries:
            back = life.may_be_revived(0, delivery.start + 1)
            if stored is not None and delivery.start > stored.expires_at and not back:
                yield f"overdue: {life.name} was taken at {delivery.start:.0f}"
        for listing, shown in _listings_after(world, life, 0):
            if shown.status != "expired":
                continue
            due = [e.start + e.ttl_ms for e in life.enqueues if e.ttl_ms]
            if listing.end < min(due, default=NEVER):
                yield f"expired: {life.name} at {listing.start:.0f}, before its time"
            if any(delivery.start > listing.end for delivery in life.deliveries):
                yield f"expired: {life.name} was taken afterwards"


def jobs_die_of_enough_stalls(world: World) -> Iterator[str]:
    """A job is dead for its stalls after more of them than its queue allows.

    Whatever may have been a stall is one, as is each delivery that nobody saw. A retry forgives
    those of before.
    """
    for life in world.lives.values():
        for listing, shown in _listings_after(world, life, 0):
            if shown.reason != "stalled" or not life.enqueues:
                continue
            later = (i for i in world.inspections if i.start > listing.end)
            inspection = next((i for i in later if life.name in i.deliveries), None)
            if inspection is None:
                continue
            since = life.anew_since(listing.start)
            seen = sum(delivery.start < inspection.start for delivery in life.deliveries)
            stalls = inspection.deliveries[life.name] - seen
            for delivery in life.deliveries:
                counts = since < delivery.start + 1 and delivery.start <= listing.end
                stalls += counts and _may_stall(world, life, delivery)
            limit = world.stall_limit(life.queue)
            if stalls <= limit:
                yield f"stalled: {life.name} is dead after {stalls} stalls of {limit:g}"


class _Pause(NamedTuple):
    queue: str
    start: float
    end: float


def paused_queues_deliver_nothing(world: World) -> Iterator[str]:
    """From the answer to a pause until somebody asks for its end no job of the queue is taken."""
    pauses = list(_pauses(world.settings))
    for life in world.lives.values():
        for pause in pauses:
            for delivery in life.deliveries:
                inside = pause.start < delivery.start and delivery.start + 1 <= pause.end
                if inside and pause.queue == life.queue_of(delivery):
                    yield f"paused: {life.name} was taken at {delivery.start:.0f}"


def _pauses(settings: list[Setting]) -> Iterator[_Pause]:
    for setting in settings:
        if setting.paused and setting.outcome is Outcome.OK:
            opened = [
                s.start
                for s in settings
                if s.queue == setting.queue and not s.paused and s.end >= setting.start
            ]
            yield _Pause(setting.queue, setting.end, min(opened, default=NEVER))


def _may_stall(world: World, life: Life, delivery: Delivery) -> bool:
    named = (s for s in life.accepted if s.lease and s.lease == delivery.lease)
    hung_up = world.hang_ups.get(delivery.stream, 0) >= delivery.start
    crashed = any(kill.end >= delivery.start for kill in world.kills)
    return not any(named) and (hung_up or crashed or delivery.until < NEVER)


def _listings_after(world: World, life: Life, time: float) -> Iterator[tuple[Listing, Listed]]:
    for listing in world.listings:
        if listing.start > time and life.name in listing.jobs:
            yield listing, listing.jobs[life.name]
