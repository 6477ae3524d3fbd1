"""Folds under SIGKILL: numbers that join hosts, and the hosts in which each number was seen."""

import asyncio
import itertools
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import httpx
from conformance.client import Client, new_job
from conformance.streams import PATIENCE_S, StreamEnded
from process.server import ServerProcess

PRODUCERS = 12
KEYS = ("a", "b", "c")
PROGRAMS = {"when": "($existing | length) < 40", "fold": "$existing + $new"}


class Ledger:
    """What producers were told of their numbers, and what was in the hosts that were delivered."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.told: dict[int, str] = {}
        """The host of each number that was acknowledged."""
        self.untold: set[int] = set()
        """Numbers whose requests were cut off."""
        self.folds = 0
        self.hosts: dict[str, list[int]] = {}
        """What each host held when it was delivered."""

    def deliver(self, id: str, payload: list[int]) -> None:
        """Note a delivery. A host takes in nothing more after its first one."""
        assert self.hosts.setdefault(id, payload) == payload, f"{id} has changed after a delivery"

    def judge(self) -> None:
        """Every number that was acknowledged is in the host that was named, and none is twice."""
        times = Counter(number for payload in self.hosts.values() for number in payload)
        assert [number for number, n in times.items() if n > 1] == []
        where = {number: id for id, payload in self.hosts.items() for number in payload}
        assert {n: where.get(n) for n in self.told} == self.told
        assert where.keys() <= self.told.keys() | self.untold


class _Folder:
    """One who enqueues numbers, by themselves or several together."""

    def __init__(self, client: Client, ledger: Ledger, random: Random) -> None:
        self._client, self._ledger, self._random = client, ledger, random

    async def run(self) -> None:
        while True:
            many = self._random.choice((1, 1, 1, 5))
            numbers = list(itertools.islice(self._ledger.numbers, many))
            self._ledger.untold.update(numbers)
            jobs = [self._job(number) for number in numbers]
            if many == 1:
                reply = await self._client.post("/jobs", jobs[0])
                assert reply.status in (200, 201), reply.doc
                documents = [reply.doc]
            else:
                reply = await self._client.post("/jobs/bulk", {"jobs": jobs})
                assert reply.status in (200, 201), reply.doc
                documents = reply.doc["jobs"]
            self._ledger.untold.difference_update(numbers)
            for number, document in zip(numbers, documents, strict=True):
                self._ledger.told[number] = document["id"]
                self._ledger.folds += document["folded"]

    def _job(self, number: int) -> dict[str, object]:
        rule = {"key": self._random.choice(KEYS), **PROGRAMS}
        return new_job(payload=[number], batch=rule)


async def _work(client: Client, ledger: Ledger, random: Random, pause_s: float) -> None:
    """Take hosts and acknowledge most of them; the others come back when the stream ends."""
    stream = await client.take(prefetch=3)
    while True:
        job = await stream.job()
        ledger.deliver(job["id"], job["payload"])
        await asyncio.sleep(random.uniform(0, pause_s))
        if random.random() < 0.8:
            await client.send("POST", f"/jobs/{job['id']}/success")


async def until_death(work: "asyncio.Future[object]") -> None:
    """Await the work of a client. The end of its server ends it without an error."""
    with suppress(httpx.HTTPError, StreamEnded, OSError):
        await work


async def kill_while_folding(root: Path, ledger: Ledger, random: Random, kills: int) -> None:
    """Some lives of a server on one directory, each of which ends in the middle of folds."""
    for _ in range(kills):
        server = await (await ServerProcess.spawn(root)).listening()
        async with server.client() as client:
            workers = [_Folder(client, ledger, random).run() for _ in range(PRODUCERS)]
            workers.append(_work(client, ledger, random, 0.02))
            tasks = [asyncio.ensure_future(until_death(asyncio.ensure_future(w))) for w in workers]
            enough = ledger.folds + random.randrange(20, 150)
            async with asyncio.timeout(PATIENCE_S):
                while ledger.folds < enough:
                    await asyncio.sleep(0.002)
                    assert not any(task.done() for task in tasks), [t for t in tasks if t.done()]
            await server.kill()
            await asyncio.gather(*tasks)
    server = await (await ServerProcess.spawn(root)).listening()
    async with server.client() as client:
        await _take_all(client, ledger)
    await server.kill()


async def _take_all(client: Client, ledger: Ledger) -> None:
    stream = await client.take(prefetch=1_000)
    while await client.count():
        job = await stream.job()
        ledger.deliver(job["id"], job["payload"])
        await client.succeed(job["id"])
