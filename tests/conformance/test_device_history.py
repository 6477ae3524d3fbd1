"""The history of devices, as they send it to a server that keeps one."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from zq.model.keys import digest_of, make_key

from .client import JSON, Client, Doc, Reply
from .keyed import ALL, client_of, secret
from .site import Site

ID = "01KB0000000000000000000000"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Client]:
    site = Site(tmp_path / "hub", {"history": 7 * 86_400_000, "device": "hub"})
    await site.start()
    async with Client(site, JSON) as client:
        report = {"instance": "i1", "version": "1", "now": site.now}
        assert (await client.call("PUT", "/devices/d1", report)).status == 200
        yield client
    await site.stop()


def attempts(*numbers: int, **fields: Any) -> list[Doc]:
    usual = {"job_id": ID, "queue": "q", "type": "t", "attempt": 1, "outcome": "completed"}
    rest = {"ready_at": 5, "dequeued_at": 6, "payload_bytes": 2, "priority": 3}
    return [usual | rest | {"finished_at": number} | fields for number in numbers]


async def append(hub: Client, seq: int, records: list[Doc], **fields: Any) -> Reply:
    body = {"instance": "i1", "epoch": "E", "seq": seq, "records": records}
    return await hub.post("/devices/d1/history", body | fields)


async def finished(hub: Client) -> list[int]:
    return [each["finished_at"] for each in (await hub.get("/history")).doc["records"]]


async def test_records_are_stored_once_by_their_numbers(hub: Client) -> None:
    asked = await hub.post("/devices/d1/history", {"instance": "i1"})
    assert asked.doc == {"epoch": None, "last": 0}

    assert (await append(hub, 1, attempts(1, 2))).doc == {"epoch": "E", "last": 2}
    assert (await append(hub, 1, attempts(1, 2, 3))).doc["last"] == 3
    assert (await append(hub, 2, attempts(2))).doc["last"] == 3
    # The device has forgotten what was in between.
    assert (await append(hub, 10, attempts(10))).doc["last"] == 10
    assert await finished(hub) == [1, 2, 3, 10]
    asked = await hub.post("/devices/d1/history", {"instance": "i1"})
    assert asked.doc == {"epoch": "E", "last": 10}

    (first, *_), page = (await hub.get("/history")).doc["records"], await hub.get("/history")
    assert (first["device"], first["job_id"], first["seq"]) == ("d1", ID, 1)
    assert first["epoch"] == page.doc["epoch"] != "E"
    assert (await hub.get("/producers/d1%2Fhistory")).doc["last"] == 10


async def test_another_epoch_knows_the_end_of_the_one_before(hub: Client) -> None:
    await append(hub, 1, attempts(1, 2))
    refused = await append(hub, 3, attempts(3), epoch="F")
    assert refused.headers["zq-error"] == "producer_fenced" and refused.doc["last"] == 2
    assert (await append(hub, 3, attempts(3), epoch="F", after="E:2")).doc["last"] == 3
    assert await finished(hub) == [1, 2, 3]


async def test_a_body_may_be_compressed(hub: Client) -> None:
    body = {"instance": "i1", "epoch": "E", "seq": 1, "records": attempts(*range(1000))}
    packed = gzip.compress(msgspec.json.encode(body))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    reply = await hub.send("POST", "/devices/d1/history", packed, headers)
    assert reply.doc["last"] == 1000, reply.doc
    broken = await hub.send("POST", "/devices/d1/history", packed[:-9], headers)
    assert broken.status == 400


async def test_what_is_no_record_of_this_device_is_refused(hub: Client) -> None:
    for wrong in (
        {"job_id": "x"},
        {"attempt": -1},
        {"outcome": "odd"},
        {"finished_at": 2**60},
        {"payload_bytes": 2**32},
    ):
        assert (await append(hub, 1, attempts(1, **wrong))).status == 400, wrong
    other = await append(hub, 1, attempts(1), instance="i2")
    assert other.headers["zq-error"] == "device_taken"
    unknown = await hub.post("/devices/d2/history", {"instance": "i1"})
    assert unknown.headers["zq-error"] == "device_not_found"
    assert await finished(hub) == []


async def test_a_key_with_prefixes_brings_no_records_of_other_queues(tmp_path: Path) -> None:
    keys = [
        make_key(name, digest_of(secret(name).encode()), scopes, prefixes)
        for name, scopes, prefixes in (
            ("root", ALL, []),
            ("bound", "enqueue,producers=d1/*", ["mail"]),
        )
    ]
    (tmp_path / "keys").write_text("".join(f"{key.line}\n" for key in keys))
    site = Site(tmp_path / "hub", {"history": 7 * 86_400_000, "keys": tmp_path / "keys"})
    await site.start()
    async with client_of(site, JSON, "root") as root, client_of(site, JSON, "bound") as bound:
        report = {"instance": "i1", "version": "1", "now": site.now}
        assert (await bound.call("PUT", "/devices/d1", report)).status == 200
        records = [
            *attempts(1, queue="mail"),
            *attempts(2, queue="other"),
            *attempts(3, queue="mail.in"),
        ]
        # All have arrived, for the device has nothing else to do with them.
        assert (await append(bound, 1, records)).doc["last"] == 3
        assert (await append(bound, 4, attempts(4, queue="other"))).doc["last"] == 4
        assert await finished(root) == [1, 3]
    await site.stop()


async def test_a_server_without_a_history_takes_none(tmp_path: Path) -> None:
    site = Site(tmp_path / "hub", {})
    await site.start()
    async with Client(site, JSON) as client:
        report = {"instance": "i1", "version": "1", "now": site.now}
        await client.call("PUT", "/devices/d1", report)
        refused = await append(client, 1, attempts(1))
        assert refused.headers["zq-error"] == "no_history" and "--history" in refused.error
    await site.stop()
