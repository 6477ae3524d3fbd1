"""What can happen to a fleet. Each disruption leaves all servers running, and cables to repair.

A disruption that puts an older store in the place of a newer one says what may be missing since,
and what may come twice: what that store has promised cannot be told from it.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from .fleet import BACK, LANES, Device, Fleet, Machine, waiting
from .fleet_ledger import LaneName, Sent

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS

Disruption = Callable[[Fleet], Awaitable[None]]


def any_device(fleet: Fleet) -> Device:
    return fleet.random.choice(fleet.devices)


async def a_device_dies(fleet: Fleet) -> None:
    await fleet.some_jobs()
    await fleet.restart(any_device(fleet).machine)


async def the_hub_dies(fleet: Fleet) -> None:
    await fleet.some_jobs()
    await fleet.restart(fleet.hub)


async def all_die(fleet: Fleet) -> None:
    await fleet.some_jobs()
    await fleet.restart(*fleet.machines)


async def one_dies_amid_its_start(fleet: Fleet) -> None:
    machine = fleet.random.choice(fleet.machines)
    await machine.kill()
    await machine.die_young(fleet.random)
    await fleet.start(machine)


async def the_line_is_cut(fleet: Fleet) -> None:
    device = any_device(fleet)
    await fleet.some_jobs()
    device.cable.cut()
    await fleet.some_jobs()


async def the_line_falls_silent(fleet: Fleet) -> None:
    device = any_device(fleet)
    device.cable.fall_silent()
    await fleet.some_jobs()
    device.cable.cut()


async def the_line_is_slow(fleet: Fleet) -> None:
    device = any_device(fleet)
    device.cable.delay_s = fleet.random.uniform(0.01, 0.2)
    device.cable.bytes_a_second = fleet.random.uniform(2_000, 50_000)
    await fleet.some_jobs(400)


async def swallow(fleet: Fleet, device: Device) -> None:
    """Lose an answer of the hub after its commit."""
    before = device.cable.swallowed
    device.cable.swallows = fleet.random.randint(1, 2)
    await fleet.until(lambda: device.cable.swallowed > before)


async def answers_are_lost(fleet: Fleet) -> None:
    device = any_device(fleet)
    for _ in range(3):
        await swallow(fleet, device)
        await device.hurry()


async def a_device_dies_before_the_answer(fleet: Fleet) -> None:
    device = any_device(fleet)
    await swallow(fleet, device)
    await fleet.restart(device.machine)


async def both_die_before_the_answer(fleet: Fleet) -> None:
    device = any_device(fleet)
    await swallow(fleet, device)
    await fleet.restart(device.machine, fleet.hub)


async def a_device_dies_amid_its_handover(fleet: Fleet) -> None:
    """It loses the answer to the request that begins its new epoch, and dies."""
    device = any_device(fleet)
    device.cable.cut()
    await device.machine.kill()
    await fleet.start(device.machine)
    await swallow(fleet, device)
    await fleet.restart(device.machine)


async def jobs_are_repeated_after_60_days(fleet: Fleet) -> None:
    device = any_device(fleet)
    await swallow(fleet, device)
    device.cable.cut()
    await asyncio.gather(device.machine.kill(), fleet.hub.kill())
    for machine in fleet.machines:
        machine.clock.step(60 * DAY_MS)
    await fleet.start(device.machine, fleet.hub)


async def a_clock_is_years_off(fleet: Fleet) -> None:
    machine = fleet.random.choice(fleet.machines)
    wanted = int(fleet.random.uniform(-3, 3) * YEAR_MS)
    now = machine.clock.now_ms()
    machine.clock.set_ahead(wanted)
    await fleet.some_jobs()
    if fleet.random.random() < 0.5:
        await fleet.restart(machine)
    if fleet.random.random() < 0.5:
        machine.clock.step(now - machine.clock.now_ms())


async def a_disk_is_full(fleet: Fleet, machine: Machine) -> None:
    machine.fill_disk()
    await asyncio.sleep(fleet.random.uniform(0.5, 1.5))
    if fleet.random.random() < 0.3:
        await machine.kill()
        machine.clear_disk()
        await fleet.start(machine)
    machine.clear_disk()


async def the_disk_of_a_device_is_full(fleet: Fleet) -> None:
    await a_disk_is_full(fleet, any_device(fleet).machine)


async def the_disk_of_the_hub_is_full(fleet: Fleet) -> None:
    await a_disk_is_full(fleet, fleet.hub)


def may_come_twice(fleet: Fleet, root: Path, arrived: Collection[Sent]) -> None:
    """Note the jobs of a device's older store that it sends although its later self may have.

    They had not arrived when it was made. Nothing was left of an even older store by then.
    """
    for job in waiting(root):
        if job.lane in LANES and job not in arrived:
            fleet.ledger.lanes[job.of].twice[job.number] += 1


def tried_by(fleet: Fleet, device: Device) -> dict[LaneName, int]:
    """How many numbers the producers of a device have given away, by lane."""
    lanes = fleet.ledger.lanes
    names = (LaneName(device.name, lane) for lane in LANES)
    return {name: lanes[name].tried for name in names}


def commands_in(root: Path) -> set[Sent]:
    """What a dead device has got from the hub."""
    return {job for job in waiting(root) if job.lane == BACK}


def may_be_missing(fleet: Fleet, jobs: Collection[Sent]) -> None:
    """Note jobs that somebody has had who is gone."""
    for job in jobs:
        fleet.ledger.lanes[job.of].lost.add(job.number)


async def a_device_is_restored(fleet: Fleet) -> None:
    """It gets an older backup, which has jobs that have arrived since."""
    await fleet.judge()
    device = any_device(fleet)
    machine = device.machine
    await swallow(fleet, device)
    device.cable.cut()
    before = tried_by(fleet, device)
    arrived = set(await fleet.arrived())
    file = await machine.backup(fleet.folder / "backup.tar.gz")
    fleet.connect()
    if fleet.random.random() < 0.7:
        await fleet.restart(machine)
    await fleet.until(fleet.recovered)
    await fleet.some_jobs()
    await machine.kill()
    had = commands_in(machine.root)
    machine.restore(file)
    may_be_missing(fleet, had - commands_in(machine.root))
    may_come_twice(fleet, machine.root, arrived)
    for name, tried in before.items():
        lane = fleet.ledger.lanes[name]
        lane.lost.update(range(tried, lane.tried))
    # The hub cannot know that the device it has heard of is gone.
    await fleet.hub.ask("DELETE", f"/devices/{device.name}")
    await fleet.start(machine)


async def the_hub_is_restored(fleet: Fleet) -> None:
    """It gets an older backup. What it has acknowledged since is gone from the devices.

    What they have told to have of the hub's own jobs since then, the backup does not know.
    """
    back = [LaneName(device.name, BACK) for device in fleet.devices]
    before = {name: fleet.ledger.lanes[name].tried for name in back}
    file = await fleet.hub.backup(fleet.folder / "backup.tar.gz")
    await fleet.some_jobs()
    if fleet.random.random() < 0.5:
        await fleet.restart(any_device(fleet).machine)
        await fleet.some_jobs()
    for device in fleet.devices:
        device.cable.cut()
    had = set(await fleet.arrived())
    await fleet.hub.kill()
    fleet.hub.restore(file)
    await fleet.hub.start()
    may_be_missing(fleet, had - set(await fleet.arrived()))
    for name, tried in before.items():
        lane = fleet.ledger.lanes[name]
        lane.lost.update(range(tried, lane.tried))
    for job in await fleet.hub.jobs(*(device.waiting_at_hub for device in fleet.devices)):
        fleet.ledger.lanes[job.of].twice[job.number] += 1


async def a_device_is_cloned(fleet: Fleet) -> None:
    """A copy of it runs for a while. One of the two stops, and the original takes over again."""
    await fleet.judge()
    device = any_device(fleet)
    machine = device.machine
    await fleet.some_jobs()
    await machine.kill()
    root = machine.root.with_name("clone")
    shutil.copytree(machine.root, root)
    may_come_twice(fleet, root, set(await fleet.arrived()))
    copy = await machine.spawn(root)
    if fleet.random.random() < 0.5:
        await copy.listening()
    await fleet.start(machine)
    await copy.listening()
    async with copy.client() as client:

        async def one_has_stopped() -> bool:
            theirs = (await client.get("/forward")).doc["lanes"]
            both = zip(theirs, await device.lanes(), strict=True)
            return all(refused(one) or refused(other) for one, other in both)

        await fleet.until(one_has_stopped)
    await copy.kill()
    may_be_missing(fleet, commands_in(root))
    shutil.rmtree(root)
    await fleet.hub.ask("DELETE", f"/devices/{device.name}")
    await device.hurry(take_over=True)


def refused(lane: dict[str, object]) -> bool:
    """True if the hub knows another device of this name."""
    return lane.get("error_code") in ("lane_fenced", "producer_fenced", "device_taken")


DISRUPTIONS: tuple[Disruption, ...] = (
    a_device_dies,
    the_hub_dies,
    all_die,
    one_dies_amid_its_start,
    the_line_is_cut,
    the_line_falls_silent,
    the_line_is_slow,
    answers_are_lost,
    a_device_dies_before_the_answer,
    both_die_before_the_answer,
    a_device_dies_amid_its_handover,
    jobs_are_repeated_after_60_days,
    a_clock_is_years_off,
    the_disk_of_a_device_is_full,
    the_disk_of_the_hub_is_full,
    a_device_is_restored,
    the_hub_is_restored,
    a_device_is_cloned,
)


async def disturb(fleet: Fleet, disruption: Disruption) -> None:
    """Let something happen, and wait until the fleet is well again."""
    await disruption(fleet)
    await fleet.settle()
