"""Devices and a hub under disruptions: each job is at the hub once, in order, and on no device.

`CRASH_SEED` repeats a run's choices.
"""

import asyncio
from collections.abc import Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random

import pytest
from tiers import sizes

from .fleet import Fleet
from .fleet_disruptions import DISRUPTIONS, disturb
from .fleet_ledger import FleetLedger, LaneName, Sent
from .fleet_versions import EARLIER, another_version_runs, checkout
from .lives import seed
from .test_time import clock_library

__all__ = ["clock_library"]

JUDGED_AFTER = 6
"""So many disruptions lie between two looks at all jobs."""


@sizes("disruptions", 6, 300)
async def test_each_job_is_at_the_hub_once_whatever_happens_to_a_fleet(
    disruptions: int, tmp_path: Path, clock_library: Path
) -> None:
    random = Random(seed())
    rounds = chain.from_iterable(random.sample(part, len(part)) for part in repeat(DISRUPTIONS))
    async with Fleet.running(tmp_path, clock_library, random) as fleet:
        for number, disruption in enumerate(islice(rounds, disruptions), 1):
            print(f"{number}: {disruption.__name__}", flush=True)
            await disturb(fleet, disruption)
            if number % JUDGED_AFTER == 0:
                await fleet.judge()
        await fleet.judge()
        print(f"{fleet.ledger.judged} jobs judged after {disruptions} disruptions")


@pytest.mark.long
async def test_versions_may_differ_on_either_side(tmp_path: Path, clock_library: Path) -> None:
    """All begin with the earlier one. Every other disruption changes that of a server."""
    random = Random(seed())
    earlier = await asyncio.to_thread(checkout, EARLIER, tmp_path / "earlier")
    async with Fleet.running(tmp_path, clock_library, random, tree=earlier) as fleet:
        for number in range(20):
            disruption = random.choice(DISRUPTIONS)
            print(f"{number}: {disruption.__name__}, {fleet.versions}", flush=True)
            await disturb(fleet, disruption)
            await another_version_runs(fleet, earlier)
            await fleet.settle()
            if number % 2:
                await fleet.judge()
        await fleet.judge()
        print(f"{fleet.ledger.judged} jobs judged")


def judged(*numbers: int, twice: int = -1) -> Sequence[str]:
    """What is wrong with a lane that has stored 0 to 3, was refused 4 and may have stored 5."""
    ledger = FleetLedger()
    lane = ledger.lanes[LaneName("d", "a")]
    lane.stored.update(lane.next(4))
    lane.refused.update(lane.next(1))
    lane.next(1)
    lane.twice[twice] = 1
    return [*ledger.judge(Sent("d", "a", number) for number in numbers)]


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3), (0, 1, 2, 3, 5)])
def test_the_ledger_finds_nothing_where_nothing_is_wrong(numbers: tuple[int, ...]) -> None:
    assert judged(*numbers) == []


def test_the_ledger_lets_an_older_store_send_again() -> None:
    assert judged(0, 1, 2, 1, 3, twice=1) == []


@pytest.mark.parametrize(
    ("numbers", "breach"),
    [
        ((0, 1, 3), "1 jobs are lost: [2]"),
        ((0, 1, 2, 3, 1), "1 jobs came more than once: [(1, 2)]"),
        ((0, 2, 1, 3), "1 came after 2"),
        ((0, 1, 2, 3, 4), "1 jobs that nobody has stored: [4]"),
        ((0, 1, 2, 3, 9), "1 jobs that nobody has stored: [9]"),
    ],
)
def test_the_ledger_finds_what_is_wrong(numbers: tuple[int, ...], breach: str) -> None:
    assert judged(*numbers) == [f"d/a: {breach}"]
