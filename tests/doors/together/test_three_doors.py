"""One queue, three doors: whatever random callers do by each of them, one small model judges."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from doors.queue_ti.messages import Messages
from doors.topics.queues import Queue
from doors.topics.records import Records, told
from zq.doors.queue_ti.http.documents import UuidIds
from zq.wire.ids import key_of

LEASE_S = 60
STEPS = 80
AS_JSON = {"content-type": "application/json"}


@dataclass
class Held:
    """What the holder of a job knows of it. Only records of `/v0` have a number and a token."""

    id: str
    lease: int
    seq: int | None = None
    token: str | None = None


@dataclass
class Model:
    """The jobs of the queue by the numbers in their payloads, in the order of their coming."""

    waiting: list[int] = field(default_factory=list)
    held: dict[int, Held] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    """Those that wait since a lease is over: their holder may still say that they are done."""

    def take(self, numbers: list[int]) -> None:
        """Jobs were handed out: they are the oldest ones that wait."""
        assert numbers == sorted(self.waiting)[: len(numbers)]
        self.waiting = sorted(self.waiting)[len(numbers) :]
        self.lost -= set(numbers)

    def give_back(self, number: int) -> None:
        self.waiting.append(number)
        del self.held[number]


class Doors:
    """The same deeds by each door."""

    def __init__(self, api: Messages) -> None:
        self.api, self.native, self.records = api, api.native, Records(api.native)
        self.model = Model()
        self.ids: dict[int, str] = {}
        """The native ids of jobs."""
        self._number = 0

    async def add(self, door: str) -> None:
        """A new job comes."""
        number = self._number = self._number + 1
        if door == "native":
            await self.native.enqueue(queue="q", payload=number)
        elif door == "/api":
            await self.api.enqueue("q", str(number))
        else:
            await self.records.append("q", number)
        (job,) = [job for job in await self.native.jobs(queue="q") if read(job) == number]
        self.ids[number] = job["id"]
        self.model.waiting.append(number)

    async def claim(self, door: str, most: int) -> None:
        """A worker takes jobs."""
        taken: dict[int, Held] = {}
        if door == "native":
            sent = {"holder": "n", "max": most, "lease_ms": LEASE_S * 1000}
            for job in (await self.native.post("/queues/q/claim", sent)).doc["jobs"]:
                taken[read(job)] = Held(job["id"], job["lease"])
        elif door == "/api":
            for message in await self.api.dequeue("q", most, visibility_timeout_seconds=LEASE_S):
                number = int(message["payload"])
                taken[number] = Held(self.ids[number], 0)
        else:
            sent = {"node": "v", "max": most, "lease_ms": LEASE_S * 1000}
            for record in (await self.records.post("q/claim", sent)).doc["claimed"]:
                number = int(record["data"])
                taken[number] = Held(self.ids[number], 0, record["$seq"], record["lease_id"])
        self.model.take(sorted(taken))
        self.model.held |= taken

    async def finish(self, number: int, door: str) -> None:
        """A job is done, by whichever door says so."""
        held = self.model.held[number]
        if door == "/v0" and held.seq is not None:
            sent = {"node": "v", "seqs": [held.seq], "lease_ids": [held.token]}
            assert (await self.records.post("q/ack", sent)).doc["acked"] == 1
        elif door == "/api":
            assert await self.api.ack(self._uuid(held.id)) == 204
        else:
            assert (await self.native.post(f"/jobs/{held.id}/success", {})).status == 204
        del self.model.held[number]

    async def give_back(self, number: int, door: str) -> None:
        """A job goes back to its place."""
        held = self.model.held[number]
        if door == "/v0" and held.seq is not None:
            sent = {"node": "v", "seqs": [held.seq]}
            assert (await self.records.post("q/nack", sent)).doc["nacked"] == 1
        else:
            assert (await self.native.post(f"/jobs/{held.id}/release", {})).status == 204
        self.model.give_back(number)

    async def lose(self) -> None:
        """All leases end."""
        self.native.site.clock.advance(LEASE_S * 1000 + 1)
        for number in list(self.model.held):
            self.model.give_back(number)
            self.model.lost.add(number)
        await self.native.get("/health")

    async def finish_late(self, number: int) -> None:
        """A job is done after all, says its former holder. Only `/api` takes its word."""
        id = self.ids[number]
        assert (await self.native.post(f"/jobs/{id}/success", {})).status == 404
        assert await self.api.ack(self._uuid(id)) == 204
        assert await self.api.ack(self._uuid(id)) == 404
        self.model.waiting.remove(number)
        self.model.lost.remove(number)

    async def check(self) -> None:
        """Every door shows what the model knows."""
        waiting, held = len(self.model.waiting), len(self.model.held)
        found = {read(job): job["status"] for job in await self.native.jobs(queue="q")}
        expected = dict.fromkeys(self.model.waiting, "ready")
        assert found == expected | dict.fromkeys(self.model.held, "in_flight")
        listed = [message["status"] for message in await self.api.list("q")]
        assert (listed.count("pending"), listed.count("processing")) == (waiting, held)
        state = (await self.records.get("/q")).doc
        assert (state["queue"]["ready"], state["queue"]["in_flight"]) == (waiting, held)
        assert state["count"] == waiting + held

    def _uuid(self, id: str) -> str:
        codec = self.native.site.server.services.ids
        return UuidIds(codec).text(key_of(id, codec))


def read(job: Any) -> int:
    """The number in a payload. One door sends texts, the others numbers."""
    return int(job["payload"])


@pytest.mark.parametrize("seed", [1, 2])
async def test_whatever_comes_by_three_doors_one_model_knows_it(api: Messages, seed: int) -> None:
    doors, random = Doors(api), Random(seed)
    await doors.records.put("q", type="queue")
    for step in range(STEPS):
        door = random.choice(("native", "/api", "/v0"))
        held = sorted(doors.model.held)
        deed = random.choice(("add", "add", "claim", "finish", "give back", "lose", "late"))
        if deed == "add":
            await doors.add(door)
        elif deed == "claim":
            await doors.claim(door, random.randint(1, 4))
        elif deed == "lose" and step % 4 == 0:
            await doors.lose()
        elif doors.model.lost and deed == "late":
            await doors.finish_late(random.choice(sorted(doors.model.lost)))
        elif held and deed == "finish":
            await doors.finish(random.choice(held), door)
        elif held and deed == "give back":
            await doors.give_back(random.choice(held), door)
        if step % 5 == 0:
            await doors.check()
    await doors.check()


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
async def test_a_record_with_line_breaks_is_one_line_for_native_workers(
    queue: Queue, accept: str
) -> None:
    native = queue.records.native
    await queue.records.put("log")
    router = {"source": "log", "dest": "q"}
    told(await native.call("PUT", "/v0/routers/r", router), (201,))
    stream = await native.take(accept=accept, prefetch=2)
    for topic in ("q", "log"):
        body = b'{"records":[{"data":{\n"a":\r\n1},"meta":{\n"b":2\r}}]}'
        told(await native.send("POST", f"/v0/topics/{topic}", body, AS_JSON))
        job = await stream.job()
        assert (job["payload"], job["meta"]) == ({"a": 1}, {"b": 2})
    await stream.close()
