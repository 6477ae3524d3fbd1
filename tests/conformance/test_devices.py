"""Devices over HTTP: what they report, who may report, and two that have one name."""

from pathlib import Path
from typing import Any

from zq.features.devices.model import MAX_DEVICES, MAX_LANES, MOST_COUNTED
from zq.model.keys import digest_of, make_key

from .client import Client, Doc, Reply, Wire, new_job
from .site import Site

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
YEARS_MS = 3 * 365 * 86_400_000


async def report(client: Client, name: str = "d1", **fields: Any) -> Reply:
    """A report of a device, whose clock is that of the server unless it is given."""
    body = {"instance": "i1", "version": "0.1.0", "now": client.site.now} | fields
    return await client.call("PUT", f"/devices/{name}", body)


async def shown(client: Client, name: str = "d1") -> Doc:
    reply = await client.get(f"/devices/{name}")
    assert reply.status == 200, reply.doc
    return dict(reply.doc)


async def names(client: Client, **params: Any) -> list[str]:
    return [each["name"] for each in (await client.get("/devices", **params)).doc["devices"]]


LANES = [
    {"name": "main", "jobs": 3, "bytes": 300, "oldest_ms": 5_000, "queues": {"a": 2, "b": 1}},
    {"name": "backlog", "jobs": 40, "bytes": 900, "oldest_ms": 70, "queues": {"a": 40}},
]


async def test_a_device_is_shown_as_it_reports(client: Client, site: Site) -> None:
    reply = await report(client, lanes=LANES, now=site.now + 5 * MINUTE_MS)
    assert reply.status == 200
    assert reply.doc["durability"] == "fsync" and reply.doc["now"] == site.now
    hub = reply.doc["hub"]

    await site.restart()
    device = await shown(client)
    assert (await report(client, "d2")).doc["hub"] == hub
    await client.delete("/devices/d2")
    assert (device["jobs"], device["bytes"], device["oldest_ms"]) == (43, 1200, 5_000)
    assert device["queues"] == {"a": 42, "b": 1}
    assert device["clock_ms"] == 5 * MINUTE_MS and device["faults"] == ["clock"]
    assert [each["name"] for each in device["lanes"]] == ["main", "backlog"]
    assert device["seen_at"] == device["reported_at"] == device["since"] == site.now
    listed = (await client.get("/devices")).doc
    assert listed["devices"] == [device]
    assert (listed["total"], listed["clock"], listed["silent"], listed["jobs"]) == (1, 1, 0, 43)


async def test_a_hub_that_is_buffered_says_so(client: Client, site: Site) -> None:
    await site.restart(enqueue_commit_mode="buffered")
    assert (await report(client)).doc["durability"] == "buffered"


async def test_a_device_is_heard_of_by_its_jobs_as_well(client: Client, site: Site) -> None:
    await report(client, "d1")
    await report(client, "d10")
    site.clock.advance(50 * MINUTE_MS)
    assert [(await shown(client, each))["faults"] for each in ("d1", "d10")] == [["silent"]] * 2

    producer = {"name": "d1/main", "epoch": "e", "seq": 1}
    await client.post("/jobs/bulk", {"producer": producer, "jobs": [new_job()]})
    assert [(await shown(client, each)).get("faults") for each in ("d1", "d10")] == [
        None,
        ["silent"],
    ]
    assert (await shown(client, "d1"))["seen_at"] == site.now


async def test_devices_are_listed_in_each_order_page_by_page(client: Client, site: Site) -> None:
    for name, oldest in (("c", 5), ("a", HOUR_MS), ("b", None)):
        lane = {"name": "main", "jobs": 1} | ({} if oldest is None else {"oldest_ms": oldest})
        await report(client, name, lanes=[lane])
        site.clock.advance(1)

    assert await names(client) == ["a", "b", "c"]
    assert await names(client, order="silence") == ["c", "a", "b"]
    assert await names(client, order="lag") == ["a", "c", "b"]
    first = (await client.get("/devices", limit=2)).doc
    assert first["next"] == 2 and first["behind"] == 1
    assert await names(client, limit=2, **{"from": 2}) == ["c"]
    assert (await client.get("/devices", order="age")).status == 400


async def test_a_start_that_follows_the_one_before_has_the_name_at_once(client: Client) -> None:
    await report(client, instance="i1")
    assert (await report(client, instance="i2", before="i1")).status == 200
    assert (await report(client, instance="i2", before="i1")).status == 200


async def test_the_second_of_two_live_devices_of_one_name_is_refused_with_a_reason(
    client: Client, site: Site
) -> None:
    await report(client, instance="mine")
    site.clock.advance(MINUTE_MS)
    for before in ({}, {"before": "other"}):
        refused = await report(client, instance="theirs", **before)
        assert (refused.status, refused.headers["zq-error"]) == (409, "device_taken")
        assert refused.doc["seen_at"] == site.now - MINUTE_MS
        assert "give one of them another --device, or" in refused.doc["error"]
    assert (await report(client, instance="mine")).status == 200

    # A disk that was copied looks like a start of the device. Then the original learns of it.
    assert (await report(client, instance="copy", before="mine")).status == 200
    assert (await report(client, instance="mine")).headers["zq-error"] == "device_taken"


async def test_a_name_is_free_after_a_long_silence_or_when_it_is_forgotten(
    client: Client, site: Site
) -> None:
    await report(client, instance="old", every_ms=1_000)
    site.clock.advance(3_000)
    assert (await report(client, instance="new")).status == 200
    assert (await report(client, instance="third")).status == 409
    assert (await client.delete("/devices/d1")).status == 204
    assert (await report(client, instance="third")).status == 200
    assert (await client.delete("/devices/d2")).headers["zq-error"] == "device_not_found"
    assert (await client.get("/devices/d2")).headers["zq-error"] == "device_not_found"


async def test_a_name_is_free_of_a_device_that_was_seen_when_the_clock_was_years_ahead(
    client: Client, site: Site
) -> None:
    site.clock.step(YEARS_MS)
    await report(client, instance="old")
    site.clock.step(-YEARS_MS)

    assert (await report(client, instance="new")).status == 200


async def test_what_no_device_says_is_refused(client: Client) -> None:
    cases: list[tuple[str, Doc, str]] = [
        ("a%2Fb", {}, "cannot name a device"),
        ("d1", {"instance": ""}, "instance"),
        ("d1", {"lanes": [{"name": "main", "jobs": -1}]}, "jobs"),
        ("d1", {"lanes": [{"name": str(n)} for n in range(33)]}, "lanes"),
        ("d1", {"lane": []}, "lane"),
        ("d1", {"every_ms": 10}, "every_ms"),
    ]
    for name, fields, named in cases:
        refused = await report(client, name, **fields)
        assert refused.status == 400 and named in refused.error, (name, fields, named)


async def test_the_largest_numbers_of_devices_can_be_added_up(client: Client) -> None:
    beyond = [{"name": f"n{n}", "jobs": 2**63 - 1, "queues": {"q": 2**63 - 1}} for n in range(3)]
    assert (await report(client, lanes=beyond)).status == 400
    most = {"jobs": MOST_COUNTED, "bytes": MOST_COUNTED, "queues": {"q": MOST_COUNTED}}
    lanes = [{"name": f"n{n}", "oldest_ms": 2**63 - 1} | most for n in range(MAX_LANES)]
    for name in ("d1", "d2"):
        assert (await report(client, name, lanes=lanes)).status == 200
    listed = (await client.get("/devices")).doc
    whole = MAX_LANES * MOST_COUNTED
    assert [each["queues"] for each in listed["devices"]] == [{"q": whole}] * 2
    assert listed["jobs"] == listed["bytes"] == 2 * whole
    assert MAX_DEVICES * whole < 2**63


async def test_a_key_reports_for_the_device_that_its_producers_name(
    tmp_path: Path, wire: Wire
) -> None:
    keys = [
        make_key(name, digest_of(name.encode()), scopes, [])
        for name, scopes in (("bound", "enqueue,producers=d1/*"), ("any", "enqueue"))
    ]
    file = tmp_path / "keys"
    file.write_text("".join(f"{key.line}\n" for key in keys))
    site = Site(tmp_path / "data", {"keys": file})
    await site.start()
    try:
        for secret, allowed in (("bound", {"d1"}), ("any", {"d1", "d10", "d2"})):
            async with Client(site, wire, secret) as client:
                for name in ("d1", "d10", "d2"):
                    reply = await report(client, name)
                    assert reply.status == (200 if name in allowed else 403)
                    if name not in allowed:
                        assert reply.headers["zq-error"] == "device_out_of_reach"
                        assert f"producers={name}/*" in reply.error
    finally:
        await site.stop()


async def test_metrics_count_devices_and_name_the_worst(client: Client, site: Site) -> None:
    await report(client, "d1", lanes=LANES)
    site.clock.advance(HOUR_MS)
    await report(client, "d2")

    text = (await client.send("GET", "/metrics", headers={"accept": "text/plain"})).body.decode()
    assert "\nzq_devices 2.0\n" in text
    assert 'zq_devices_at_fault{fault="silent"} 1.0' in text
    assert 'zq_device_silence_seconds{device="d1"} 3600.0' in text
    assert 'zq_device_unsent_jobs{device="d1"} 43.0' in text
