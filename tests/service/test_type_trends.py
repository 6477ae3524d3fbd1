"""Trends of types: what one tick does to many jobs, and how exact percentiles are."""

import asyncio
from collections.abc import Callable
from random import Random
from statistics import quantiles as exact

from manual_clock import ManualClock

from zq.features.trends.model import PARTS, TypeRange, TypeSort, part_of, quantiles
from zq.features.trends.service import TypeTrends
from zq.model.job import NewJob
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE
from zq.model.settling import Failure
from zq.service.services import Services
from zq.tick.slices import SLICE_ROWS


async def test_failures_of_a_tick_count_once_however_many_slices_it_has(
    services: Services, clock: ManualClock
) -> None:
    jobs = [NewJob("q", "t", "{}", 2) for _ in range(SLICE_ROWS // 2)]
    keys = (await services.jobs.enqueue(jobs, EVERYWHERE)).keys
    terms = Terms(lease_ms=60_000, claimant="c")
    with services.work.claimer("q", EVERYWHERE, len(keys), terms, 0) as claimer:
        assert len(await claimer.take()) == len(keys)
    clock.advance(100)
    told = [services.work.fail(key, Failure("no"), EVERYWHERE) for key in keys[1:]]
    await asyncio.gather(services.work.succeed([keys[0]], EVERYWHERE), *told)
    look = await services[TypeTrends].read(None, None, TypeRange.HOUR, TypeSort.SLOWEST, EVERYWHERE)
    (only,) = look.first
    assert (only.type, only.trend.done, only.trend.failed) == ("t", 1, len(keys) - 1)
    assert sum(only.trend.run.values()) == len(keys)


def test_percentiles_of_parts_are_off_by_a_quarter_at_most() -> None:
    random = Random(1)
    draws: list[Callable[[], float]] = [
        lambda: random.expovariate(1 / 900),
        lambda: random.paretovariate(1.2) * 40,
    ]
    for draw in draws:
        times = [int(draw()) for _ in range(5000)]
        parts: dict[int, int] = {}
        for each in times:
            parts[part_of(each)] = parts.get(part_of(each), 0) + 1
        naive = exact(times, n=100)
        shares = (50, 95, 99)
        found = quantiles(parts, [share / 100 for share in shares], PARTS)
        for share, ms in zip(shares, found, strict=True):
            assert naive[share - 1] * 0.8 <= ms <= naive[share - 1] * 1.25
    assert [part_of(ms) for ms in (0, 1, 2, 3, 4, 5, 7, 8, 9, 10)] == [
        *(0, 4, 8, 10, 12, 13, 15, 16, 16, 17)
    ]
    assert part_of(10**12) // PARTS == (10**12).bit_length()
