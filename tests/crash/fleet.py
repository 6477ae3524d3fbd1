"""A fleet of real processes: devices with their producers, a hub, and a cable from each to it.

Each server has a disk and a clock of its own. Needs root, for the disks.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import httpx
from conformance.client import Client, Doc, Reply
from process.cable import Cable
from process.server import WITH_ADMIN, ServerProcess

from zq.instance import restore

from .fleet_ledger import FleetLedger, LaneName, Sent
from .test_time import WallClock

PATIENCE_S = 180.0
MIB = 1024 * 1024
DISK_MIB = 128
LANES = ("a", "b")
BACK = "back"
"""What goes from the hub to a device, in a ledger of its own."""

COMMANDS = "commands"
FORWARDED = [f"{lane}{number}" for lane in LANES for number in range(2)]
"""The queues whose jobs go to the hub."""

BATCH = 20
PAUSE_S = 0.1
"""Between two requests of a producer."""

LOST = (httpx.HTTPError, OSError)
"""What a request ends with if nobody knows what has become of it."""

RULES = """
[lanes.{lane}]
queues = ["{lane}*"]
url = "http://127.0.0.1:{port}"
batch = {batch}
"""

WAITING = "SELECT payload FROM jobs WHERE status <= 2"


@contextmanager
def small_disk(mount: Path, mib: int = DISK_MIB) -> Iterator[Path]:
    """An empty file system of its own."""
    mount.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "zq-test", str(mount)]
    subprocess.run(words, check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", mount], check=True)


def leave_free(disk: Path, size: int) -> None:
    """Fill a disk up to so many bytes, in place of what filled it before."""
    with (disk / "filler").open("wb") as filler:
        space = os.statvfs(disk)
        os.posix_fallocate(filler.fileno(), 0, max(space.f_bavail * space.f_bsize - size, 1))


class Machine:
    """A server process with a disk and a clock, which can be started again and again."""

    def __init__(self, name: str, disk: Path, clock: WallClock, *flags: str) -> None:
        self.name = name
        self.clock = clock
        self.root = disk / "data"
        self.flags = flags
        self.tree: Path | None = None
        """The sources of another version of zq, if it runs one."""
        self.server: ServerProcess | None = None
        self.client: Client | None = None
        self._ballast = disk / "ballast"

    async def spawn(self, root: Path | None = None) -> ServerProcess:
        """Begin a start, of this directory or another one."""
        before = () if self.tree is None else ("env", "-C", str(self.tree))
        flags = (*WITH_ADMIN, "--root-dir", str(root or self.root), *self.flags)
        return await ServerProcess.spawn(None, *flags, env=self.clock.environment, before=before)

    async def start(self) -> None:
        """Start, and listen."""
        self.server = await self.spawn()
        await self.server.listening()
        self.client = self.server.client()

    async def kill(self) -> None:
        """SIGKILL."""
        server, client = self.server, self.client
        self.server = self.client = None
        if server is not None:
            await server.kill()
        if client is not None:
            await client.close()

    async def die_young(self, random: Random) -> None:
        """Be killed in the middle of a start."""
        server = await self.spawn()
        await asyncio.sleep(random.uniform(0.2, 1.0))
        await server.kill()

    async def ask(self, method: str, path: str, doc: Any = None) -> Reply:
        """A request that must be answered, since nobody disturbs this server now."""
        assert self.client is not None
        if doc is None:
            return await self.client.send(method, path)
        return await self.client.call(method, path, doc)

    async def jobs(self, *queues: str) -> list[Sent]:
        """The jobs of some queues, in the order in which they were stored."""
        assert self.client is not None
        found: list[Sent] = []
        given = {"queue": ",".join(queues), "limit": 2000}
        page = await self.client.jobs(**given)
        while page:
            found += [Sent(*job["payload"]) for job in page]
            page = await self.client.jobs(**given, **{"from": page[-1]["id"]})
        return found

    async def count(self, *queues: str) -> int:
        """How many jobs some queues have."""
        assert self.client is not None
        return await self.client.count(queue=",".join(queues))

    async def forget(self, *queues: str) -> None:
        """Delete the jobs of some queues."""
        for queue in queues:
            reply = await self.ask("DELETE", f"/jobs?queue={queue}")
            assert reply.status == 200, reply.body

    def fill_disk(self) -> None:
        """Leave no byte on the disk."""
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            for size in (MIB, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def clear_disk(self) -> None:
        """Give back what `fill_disk` has taken."""
        self._ballast.unlink(missing_ok=True)

    async def backup(self, file: Path) -> Path:
        """Write a backup of the running server."""
        assert self.server is not None
        url = await self.server.admin_url()
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
            answer = await http.post(f"{url}/backup")
        assert answer.status_code == 200, answer.content
        await asyncio.to_thread(file.write_bytes, answer.content)
        return file

    def restore(self, file: Path) -> None:
        """Put a backup in the place of the directory of a server that is dead."""
        shutil.rmtree(self.root)
        with file.open("rb") as archive:
            restore(archive, self.root, lambda done, size: None)


@dataclass
class Device:
    """A machine that forwards, and its cable to the hub."""

    machine: Machine
    cable: Cable

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def waiting_at_hub(self) -> str:
        """The queue of the hub whose jobs are for it."""
        return f"to/{self.name}/{COMMANDS}"

    async def lanes(self) -> list[Doc]:
        """How its lanes go."""
        found: list[Doc] = (await self.machine.ask("GET", "/forward")).doc["lanes"]
        return found

    async def hurry(self, *, take_over: bool = False) -> None:
        """End the pauses of its lanes after errors."""
        for lane in LANES:
            await self.machine.ask("POST", f"/forward/{lane}/resume", {"take_over": take_over})


def waiting(root: Path) -> Iterator[Sent]:
    """The jobs in the directory of a dead device."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*-shm"))
    with closing(sqlite3.connect(copy / "zq.db")) as file:
        for (payload,) in file.execute(WAITING):
            yield Sent(*json.loads(payload))
    shutil.rmtree(copy)


@dataclass
class Fleet:
    """Devices and their hub. Producers store jobs in the devices all the time."""

    folder: Path
    random: Random
    hub: Machine
    devices: list[Device]
    ledger: FleetLedger = field(default_factory=FleetLedger)
    disturbed: int = 0

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        folder: Path,
        clock_library: Path,
        random: Random,
        *,
        devices: int = 2,
        tree: Path | None = None,
    ) -> AsyncIterator["Fleet"]:
        """A fleet at work, of this version or of that in a tree."""
        async with AsyncExitStack() as stack:

            def machine(name: str, *flags: str) -> Machine:
                disk = stack.enter_context(small_disk(folder / name))
                clock = WallClock(clock_library, folder / f"{name}.clock")
                made = Machine(name, disk, clock, "--disk-reserve", "8MiB", *flags)
                made.tree = tree
                stack.push_async_callback(made.kill)
                return made

            hub = machine("hub")
            fleet = cls(folder, random, hub, [])
            for number in range(devices):
                cable = Cable()
                await cable.lay()
                stack.push_async_callback(cable.close)
                rules = folder / f"rules-{number}.toml"
                parts = (RULES.format(lane=lane, port=cable.port, batch=BATCH) for lane in LANES)
                rules.write_text("".join(parts))
                name = f"d{number}"
                flags = ("--device", name, "--forward-rules", str(rules))
                fleet.devices.append(Device(machine(name, *flags), cable))
            await fleet.start(*fleet.machines)
            fleet._may_store.set()
            producers = [
                asyncio.create_task(fleet._produce(device, lane))
                for device, lane in product(fleet.devices, (*LANES, BACK))
            ]
            stack.callback(lambda: [task.cancel() for task in producers])
            fleet._producers = producers
            yield fleet

    def __post_init__(self) -> None:
        self._may_store = asyncio.Event()
        self._producers: list[asyncio.Task[None]] = []
        self._storing = 0
        self.stored = 0

    @property
    def machines(self) -> list[Machine]:
        """The hub and the devices."""
        return [self.hub, *(device.machine for device in self.devices)]

    @property
    def versions(self) -> dict[str, str]:
        """Which servers run which version."""
        return {each.name: "this" if each.tree is None else "earlier" for each in self.machines}

    async def start(self, *machines: Machine) -> None:
        """Start servers, and lead the cables to the hub."""
        await asyncio.gather(*(machine.start() for machine in machines))
        if self.hub.server is not None:
            for device in self.devices:
                device.cable.target = self.hub.server.port

    async def restart(self, *machines: Machine) -> None:
        """Kill servers amid their work, and start them again."""
        await asyncio.gather(*(machine.kill() for machine in machines))
        await self.start(*machines)

    def connect(self) -> None:
        """Repair all cables."""
        assert self.hub.server is not None
        for device in self.devices:
            device.cable.be_usual()
            device.cable.target = self.hub.server.port

    # Producers

    async def _produce(self, device: Device, lane: str) -> None:
        random = Random(self.random.random())
        ledger = self.ledger.lanes[LaneName(device.name, lane)]
        machine = self.hub if lane == BACK else device.machine
        while True:
            await self._may_store.wait()
            client = machine.client
            if client is not None:
                self._storing += 1
                numbers = ledger.next(random.randint(1, 15))
                jobs = [self._job(random, device, lane, number) for number in numbers]
                try:
                    reply = await client.post("/jobs/bulk", {"jobs": jobs})
                except LOST:
                    pass
                else:
                    unknown = reply.headers.get("zq-error") == "device_unknown"
                    assert reply.status in (201, 503, 507) or unknown, reply.body
                    (ledger.stored if reply.status == 201 else ledger.refused).update(numbers)
                    self.stored += len(numbers) if reply.status == 201 else 0
                finally:
                    self._storing -= 1
            await asyncio.sleep(random.uniform(0, 2 * PAUSE_S))

    def _job(self, random: Random, device: Device, lane: str, number: int) -> dict[str, Any]:
        job: dict[str, Any] = {"type": "t", "payload": [device.name, lane, number]}
        if lane == BACK:
            return job | {"queue": COMMANDS, "to": device.name}
        return job | {"queue": f"{lane}{random.randrange(2)}"}

    # Waiting

    async def some_jobs(self, most: int = 100) -> None:
        """Wait until producers have stored some more jobs."""
        enough = self.stored + self.random.randint(most // 4, most)
        await self.until(lambda: self.stored >= enough)

    async def until(self, condition: Any) -> None:
        """Wait until a condition holds. It may be a coroutine function."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for task in self._producers:
                    if task.done():
                        task.result()
                found = condition()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await asyncio.sleep(0.05)

    async def recovered(self) -> bool:
        """True if each lane of each device has sent jobs since its last error."""
        well = True
        for device in self.devices:
            if not all(is_well(lane) for lane in await device.lanes()):
                well = False
                await device.hurry()
        return well

    async def settle(self) -> None:
        """Let the fleet come to itself after a disruption: all lanes send again."""
        self.connect()
        self.disturbed += 1
        await self.until(self.recovered)

    # Judging

    async def drained(self) -> bool:
        """True if no device has a job for the hub, and the hub none for a device."""
        for device in self.devices:
            left = await device.machine.count(*FORWARDED)
            if left or await self.hub.count(device.waiting_at_hub):
                await self.recovered()
                return False
        return True

    async def arrived(self) -> list[Sent]:
        """The jobs of devices that the hub has, in their order."""
        return await self.hub.jobs(*FORWARDED)

    async def judge(self) -> None:
        """Let everything arrive, and judge what either side has got. It is thrown away then."""
        self._may_store.clear()
        await self.until(lambda: not self._storing)
        await self.until(self.drained)
        got = await self.arrived()
        for device in self.devices:
            got += await device.machine.jobs(COMMANDS)
        breaches = [*self.ledger.judge(got)]
        assert not breaches, "\n".join(breaches)
        await self.hub.forget(*FORWARDED)
        for device in self.devices:
            await device.machine.forget(COMMANDS)
        self._may_store.set()


def is_well(lane: Doc) -> bool:
    """True if a lane sends, and nothing has been wrong since."""
    return lane["state"] in ("idle", "sending") and "error" not in lane
