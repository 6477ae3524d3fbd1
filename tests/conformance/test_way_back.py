"""Jobs for a device: which the device fetches by numbers, and no worker of the hub gets."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from zq.features.devices.engine import DeviceBell, WaitingFetch
from zq.model.keys import digest_of, make_key

from .claims import claim
from .client import Client, Doc, Reply, Wire, new_job
from .site import Site
from .streams import PATIENCE_S


class Device:
    """A device that stores what it fetches, and tells it at its next fetch, as zq does."""

    def __init__(self, client: Client, name: str = "d1", instance: str = "i1") -> None:
        self.client = client
        self.name = name
        self.instance = instance
        self.epoch: str | None = None
        self.last = 0
        self.stored: list[Doc] = []

    async def report(self, **fields: Any) -> Reply:
        body = {"instance": self.instance, "version": "0.1.0", "now": self.client.site.now}
        return await self.client.call("PUT", f"/devices/{self.name}", body | fields)

    async def ask(self, **fields: Any) -> Reply:
        """One fetch, whose answer is lost unless `take` gets it."""
        body = {"instance": self.instance, "last": self.last}
        if self.epoch is not None:
            body["epoch"] = self.epoch
        return await self.client.post(f"/devices/{self.name}/fetch", body | fields)

    def take(self, reply: Reply) -> int:
        """Store the jobs of an answer, as a producer of these numbers. Return how many are new."""
        assert reply.status == 200, reply.doc
        found = reply.doc
        if found["epoch"] != self.epoch:
            assert not found["jobs"] or found["seq"] == 1
            self.epoch, self.last = found["epoch"], 0
        assert found["seq"] <= self.last + 1, "there is a gap"
        new = found["jobs"][self.last + 1 - found["seq"] :]
        self.stored += new
        self.last += len(new)
        return len(new)

    async def fetch(self, **fields: Any) -> int:
        return self.take(await self.ask(**fields))

    @property
    def payloads(self) -> list[Any]:
        return [job["payload"] for job in self.stored]


async def device_of(client: Client, name: str = "d1") -> Device:
    device = Device(client, name)
    assert (await device.report()).status == 200
    return device


async def held(client: Client, behind: WaitingFetch | None = None) -> WaitingFetch:
    """Wait until the device waits for its jobs, by a fetch `behind` the one before."""
    listens = client.site.server.engine[DeviceBell].listens
    async with asyncio.timeout(PATIENCE_S):
        while (found := listens.get("d1")) is None or found is behind:
            await client.count()
    return found


async def send(client: Client, *payloads: Any, to: str = "d1", **fields: Any) -> list[str]:
    jobs = [new_job(queue="commands", payload=each, to=to, **fields) for each in payloads]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201, reply.doc
    return [job["id"] for job in reply.doc["jobs"]]


async def test_a_job_for_a_device_is_fetched_by_it_and_given_to_no_worker(client: Client) -> None:
    device = await device_of(client)
    worker = await client.take(prefetch=10)
    await send(client, 1, 2, priority=7, meta={"a": 1})
    await client.post("/jobs", new_job(payload="here"))

    assert (await worker.job())["payload"] == "here"
    assert await claim(client, "commands", max=10) == []
    assert await claim(client, "to%2Fd1%2Fcommands", max=10) == []
    assert await device.fetch() == 2
    first = device.stored[0]
    assert (first["queue"], first["type"], first["payload"]) == ("commands", "test", 1)
    assert (first["priority"], first["meta"], "to" in first) == (7, {"a": 1}, False)
    assert await device.fetch() == 0
    assert await client.count(queue="to/d1/commands") == 0
    await worker.close()


async def test_a_lost_answer_is_given_again_and_each_job_is_stored_once(
    client: Client, site: Site
) -> None:
    device = await device_of(client)
    await send(client, *range(5))
    lost = await device.ask(limit=3)
    await site.crash()
    again = await device.ask()
    assert again.doc["jobs"] == lost.doc["jobs"] and again.doc["seq"] == lost.doc["seq"] == 1

    assert device.take(again) == 3
    assert device.take(lost) == 0
    await send(client, 5)
    while await device.fetch():
        pass
    assert device.payloads == list(range(6))


async def test_a_fetch_waits_for_the_first_job_ever_and_for_the_next(client: Client) -> None:
    device = await device_of(client)
    for payload in ("first", "second"):
        waiting = asyncio.create_task(device.fetch(wait_ms=30_000))
        await held(client)
        await send(client, payload)
        assert await waiting == 1
    assert device.payloads == ["first", "second"]


@pytest.mark.parametrize("kept_ms", [0, 60_000])
async def test_who_waits_for_a_job_hears_that_the_device_has_it(
    client: Client, kept_ms: int
) -> None:
    device = await device_of(client)
    job = new_job(queue="commands", to="d1", retention={"completed_ms": kept_ms})
    waiting = asyncio.create_task(client.post("/jobs?wait_ms=30000", job))
    assert await device.fetch(wait_ms=30_000) == 1
    await device.fetch()
    reply = await waiting
    assert (reply.status, reply.doc["status"]) == (200, "completed"), reply.doc


async def test_a_device_gets_what_comes_to_its_queue_by_name(client: Client) -> None:
    """Nobody has sent it a job with `to` before. No worker gets more once it has asked."""
    device = await device_of(client)
    waiting = asyncio.create_task(device.fetch(wait_ms=30_000))
    await held(client)
    await client.post("/jobs", new_job(queue="to/d1/commands", payload="first"))
    assert await waiting == 1

    await client.post("/jobs", new_job(queue="to/d1/commands", payload="second"))
    assert await claim(client, "to%2Fd1%2Fcommands", max=10) == []
    assert await device.fetch() == 1
    assert device.payloads == ["first", "second"]
    assert device.stored[0]["queue"] == "commands"


async def test_a_job_that_is_taken_out_gives_the_others_new_numbers(client: Client) -> None:
    device = await device_of(client)
    _, second, _ = await send(client, 1, 2, 3)
    await device.ask()
    epoch = (await device.ask()).doc["epoch"]
    assert (await client.post(f"/jobs/{second}/cancel", {"force": True})).status == 200

    assert await device.fetch() == 2
    assert device.epoch != epoch and device.payloads == [1, 3]
    await send(client, 4)
    assert await device.fetch() == 1
    assert device.payloads == [1, 3, 4] and device.last == 3


async def test_a_job_that_is_deleted_while_it_is_read_gives_the_others_new_numbers(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = await device_of(client)
    first, _, third = texts = [letter * 1_000 for letter in "abc"]
    _, second, _ = await send(client, *texts)
    reads = site.server.services.store.reads
    payloads = reads.payloads

    async def deleted_before(keys: Sequence[int]) -> dict[int, str]:
        """They have their numbers by now, and their payloads are stored apart."""
        await client.delete(f"/jobs/{second}")
        return await payloads(keys)

    monkeypatch.setattr(reads, "payloads", deleted_before)
    assert await device.fetch() == 2
    assert await device.fetch() == 0
    assert device.payloads == [first, third]


async def test_a_device_that_was_restored_gets_what_it_has_not_told_of(client: Client) -> None:
    device = await device_of(client)
    await send(client, 1, 2)
    await device.fetch(limit=1)
    backup = (device.epoch, device.last)
    await device.fetch()
    await device.fetch()

    # What it has told of is complete here, and goes with the age of the backup.
    device.epoch, device.last = backup
    await send(client, 3)
    assert await device.fetch() == 1
    assert device.payloads == [1, 2, 3] and device.epoch != backup[0]


async def test_a_hub_that_was_restored_begins_where_the_device_is(
    client: Client, site: Site, tmp_path: Path
) -> None:
    device = await device_of(client)
    await send(client, 1)
    await device.fetch()
    # The device has more numbers than this server has given: those of a later state.
    device.last = 7
    await send(client, 2)
    assert await device.fetch() == 1
    assert device.payloads == [1, 2] and device.last == 1


async def test_jobs_of_a_group_and_by_priority_come_in_their_order(client: Client) -> None:
    device = await device_of(client)
    await send(client, 1, 2, 3, group="g")
    await send(client, "urgent", priority=0)
    await device.fetch()
    assert device.payloads == ["urgent", 1, 2, 3]
    assert [job.get("group") for job in device.stored[1:]] == ["g"] * 3


async def test_large_payloads_travel_in_answers_of_bounded_size(client: Client) -> None:
    device = await device_of(client)
    texts = [letter * 900_000 for letter in "abcdef"]
    for text in texts:
        await send(client, text)
    assert await device.fetch() == 4
    assert await device.fetch() == 2
    assert device.payloads == texts


async def test_a_device_that_nobody_knows_gets_no_job(client: Client) -> None:
    await device_of(client, "d1")
    body = {"jobs": [new_job(to="d1"), new_job(to="d2")]}
    refused = await client.post("/jobs/bulk", body)
    assert (refused.status, refused.headers["zq-error"]) == (422, "device_unknown")
    assert "'d2'" in refused.error and await client.count() == 0
    refused = await client.post("/jobs", new_job(to="d*"))
    assert refused.status == 400 and "POST /devices/jobs" in refused.error
    unknown = await client.post("/devices/d2/fetch", {"instance": "i1"})
    assert unknown.headers["zq-error"] == "device_not_found"


async def test_a_job_of_a_forgotten_device_may_go_to_all_targets_of_a_queue(
    client: Client,
) -> None:
    """It is no new job, so it goes there as it goes to any other queue."""
    await device_of(client)
    first, second = await send(client, 1, 2)
    assert (await client.delete("/devices/d1")).status == 204
    assert (await client.patch(f"/jobs/{first}", {"queue": "plain"})).status == 200
    await client.patch("/queues/q/settings", {"fan_out": ["a", "b"]})
    moved = await client.patch(f"/jobs/{second}", {"queue": "q"})
    assert (moved.status, moved.doc["queue"]) == (200, "a"), moved.doc
    assert [job["payload"] for job in await client.jobs(queue="b")] == [2]
    added = await client.send("PUT", "/queues/q/targets/c")
    assert (added.status, added.doc) == (201, {"added": 1})


async def test_the_latest_start_of_a_device_ends_the_wait_of_the_one_before(client: Client) -> None:
    device = await device_of(client)
    other = Device(client, instance="other")
    assert (await other.ask()).headers["zq-error"] == "device_taken"
    assert (await other.report()).headers["zq-error"] == "device_taken"

    # The connection of a device whose power was cut waits on. What follows it is served.
    waiting = asyncio.create_task(device.ask(wait_ms=30_000))
    await held(client)
    assert (await other.report(before="i1")).status == 200
    assert (await waiting).headers["zq-error"] == "device_taken"
    await send(client, 1)
    assert await other.fetch() == 1
    assert (await device.ask()).headers["zq-error"] == "device_taken"


async def test_a_fetch_whose_connection_was_lost_numbers_no_job_anew(
    client: Client, site: Site
) -> None:
    """It still waits here when the device has asked again, and knows an older last number."""
    device = await device_of(client)
    await send(client, 1)
    await device.fetch()
    lost = asyncio.create_task(device.ask(wait_ms=5_000))
    before = await held(client)
    again = asyncio.create_task(device.fetch(wait_ms=60_000))
    await held(client, before)
    await send(client, 2)
    assert await again == 1
    await send(client, 3)
    under_way = await device.ask()

    site.clock.advance(5_000)
    async with asyncio.timeout(PATIENCE_S):
        assert (await lost).doc["jobs"] == []
    assert device.take(under_way) == 1
    assert await device.fetch() == 0
    assert device.payloads == [1, 2, 3]


async def test_who_is_not_the_device_does_not_end_its_wait(client: Client) -> None:
    device = await device_of(client)
    waiting = asyncio.create_task(device.fetch(wait_ms=30_000))
    mine = await held(client)
    assert (await Device(client, instance="copy").ask()).headers["zq-error"] == "device_taken"
    assert await held(client) is mine
    await send(client, 1)
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting == 1


async def test_a_job_that_the_device_refuses_is_dead_and_the_others_go_on(client: Client) -> None:
    device = await device_of(client)
    _, refused, _ = await send(client, 1, 2, 3)
    first = await device.ask()
    device.take(first)
    device.stored, device.last = device.stored[:1], 1
    said = {"message": "payload: it is no object", "code": "schema_mismatch"}
    told = await device.ask(refused=said)
    # The answer is lost. What is told again is about an epoch that has ended.
    again = await device.ask(refused=said)
    assert again.doc["jobs"] == told.doc["jobs"]
    assert device.take(again) == 1 and device.payloads == [1, 3]

    job = (await client.get(f"/jobs/{refused}")).doc
    assert job["status"] == "dead"
    (error,) = (await client.get(f"/jobs/{refused}/errors")).doc["errors"]
    assert error["message"] == said["message"] and "schema_mismatch" in error["error_type"]


async def test_a_fetch_may_bring_the_report(client: Client) -> None:
    device = await device_of(client)
    report = {"instance": "i1", "version": "9", "now": client.site.now}
    assert (await device.ask(report=report)).status == 200
    assert (await client.get("/devices/d1")).doc["version"] == "9"
    refused = await device.ask(report=report | {"instance": "other"})
    assert refused.headers["zq-error"] == "device_taken"


async def test_a_fetch_ends_with_its_time_and_with_the_server(client: Client, site: Site) -> None:
    device = await device_of(client)
    ends: tuple[Callable[[], object], ...] = (
        lambda: site.clock.advance(5_000),
        site.server.engine.let_go,
    )
    for end in ends:
        waiting = asyncio.create_task(device.fetch(wait_ms=5_000))
        async with asyncio.timeout(PATIENCE_S):
            await held(client)
            site.clock.step(-3_600_000)  # It lasts 5 s all the same.
            end()
            assert await waiting == 0


async def test_an_entry_of_cron_sends_to_a_device(client: Client, site: Site) -> None:
    device = await device_of(client)
    job = new_job(queue="commands", payload="nightly", to="d1")
    entries = [{"name": "e", "expression": "* * * * *", "job": job}]
    put = await client.call("PUT", "/crons/g", {"entries": entries})
    again = await client.call("PUT", "/crons/g", put.doc)
    assert again.doc["entries"][0]["job"]["queue"] == "to/d1/commands", again.doc
    waiting = asyncio.create_task(device.fetch(wait_ms=30_000))
    await held(client)
    site.clock.advance(60_000)
    if not await waiting:  # Its time was over before the job came.
        while not await device.fetch():
            await client.count()
    assert device.payloads == ["nightly"]


async def test_what_is_for_a_device_goes_to_a_key_that_is_bound_to_it(
    tmp_path: Path, wire: Wire
) -> None:
    keys = [
        make_key(name, digest_of(name.encode()), scopes, prefixes)
        for name, scopes, prefixes in (
            ("bound", "enqueue,producers=d1/*", []),
            ("any", "enqueue,take", []),
            ("sender", "enqueue", ["to/d1/"]),
            ("shop", "enqueue", ["commands"]),
        )
    ]
    file = tmp_path / "keys"
    file.write_text("".join(f"{key.line}\n" for key in keys))
    site = Site(tmp_path / "data", {"keys": file})
    await site.start()
    try:
        async with Client(site, wire, "bound") as client:
            device = await device_of(client)
        async with Client(site, wire, "shop") as client:
            refused = await client.post("/jobs", new_job(queue="commands", to="d1"))
            assert refused.headers["zq-error"] == "queue_out_of_reach"
        async with Client(site, wire, "sender") as client:
            await send(client, 1)
        async with Client(site, wire, "any") as client:
            device.client = client
            assert (await device.ask()).headers["zq-error"] == "device_key_needed"
        async with Client(site, wire, "bound") as client:
            device.client = client
            assert await device.fetch() == 1
    finally:
        await site.stop()


async def test_a_command_for_a_fleet_waits_until_each_device_has_it(client: Client) -> None:
    devices = [await device_of(client, name) for name in ("edge-1", "edge-2", "lab-1")]
    job = {"queue": "commands", "type": "reboot", "payload": {"at": 3}}
    reply = await client.post("/devices/jobs", {"to": "edge-*", "job": job})
    assert (reply.status, reply.doc["devices"]) == (201, 2)
    group = reply.doc["group"]

    async def lacking() -> list[str]:
        found = (await client.get(f"/devices/jobs/{group}")).doc
        assert found["waiting"] == len(found["devices"])
        return list(found["devices"])

    assert await lacking() == ["edge-1", "edge-2"]
    assert [await device.fetch() for device in devices] == [1, 1, 0]
    # They have it once they say so.
    assert await lacking() == ["edge-1", "edge-2"]
    await devices[1].fetch()
    assert await lacking() == ["edge-1"]
    await devices[0].fetch()
    assert await lacking() == []
    assert devices[0].stored[0]["queue"] == "commands" and devices[2].stored == []

    named = await client.post("/devices/jobs", {"to": "*", "job": job | {"group": "release-9"}})
    assert named.doc == {"group": "release-9", "devices": 3}
    await devices[2].ask()
    said = {"message": "no", "code": "queue_not_registered"}
    epoch = (await devices[2].ask()).doc["epoch"]
    await devices[2].ask(epoch=epoch, refused=said)
    found = (await client.get("/devices/jobs/release-9")).doc
    assert (found["devices"], found["missed"]) == (["edge-1", "edge-2"], ["lab-1"])
    nobody = await client.post("/devices/jobs", {"to": "car-*", "job": job})
    assert nobody.headers["zq-error"] == "device_unknown"
    inside = await client.post("/devices/jobs", {"to": "*", "job": job | {"to": "lab-1"}})
    assert (inside.status, "beside the job" in inside.error) == (400, True)
    wrong = await client.post("/devices/jobs", {"to": "a*b", "job": job})
    assert wrong.status == 400 and "star at its end" in wrong.error


async def test_a_unique_key_counts_for_each_device_by_itself(client: Client) -> None:
    devices = [await device_of(client, name) for name in ("d1", "d2", "d3")]
    await client.post("/jobs", new_job(queue="commands", unique_key="cfg"))
    alone = await client.post("/jobs", new_job(queue="commands", to="d3", unique_key="cfg"))
    assert alone.status == 201
    job = {"queue": "commands", "type": "configure", "payload": 2, "unique_key": "cfg"}

    # The first job keeps the key for its device, and belongs to no group.
    sent = await client.post("/devices/jobs", {"to": "d*", "job": job | {"group": "cfg-2"}})
    assert (sent.status, sent.doc) == (201, {"group": "cfg-2", "devices": 2})
    lacking = (await client.get("/devices/jobs/cfg-2")).doc
    assert (lacking["waiting"], lacking["devices"]) == (2, ["d1", "d2"])
    again = await client.post("/devices/jobs", {"to": "d*", "job": job | {"group": "cfg-2"}})
    assert again.doc["devices"] == 2

    assert [await device.fetch() for device in devices] == [1, 1, 1]
    assert {(job["unique_key"], job["unique_in"]) for d in devices for job in d.stored} == {
        ("cfg", "queue")
    }
    assert await client.count(queue="to/d1/commands,to/d2/commands,to/d3/commands") == 3
    await devices[0].fetch()
    assert (await client.get("/devices/jobs/cfg-2")).doc["devices"] == ["d2"]


async def test_a_job_for_a_device_has_no_batch(client: Client) -> None:
    await device_of(client)
    batch = {"key": "all", "when": "true", "fold": "$existing + $new"}
    job = new_job(queue="commands", payload=[1], batch=batch)
    for reply in (
        await client.post("/devices/jobs", {"to": "d*", "job": job}),
        await client.post("/jobs", job | {"to": "d1"}),
    ):
        assert (reply.status, reply.error) == (400, "to and batch cannot be combined"), reply.doc
    assert await client.count() == 0
