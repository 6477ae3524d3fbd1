"""The hosts of batches: when a batch closes, what leaves it open, and who may host."""

import json
from pathlib import Path

import pytest

from .batches import APPEND, batched, payload_of, put
from .client import Client
from .keyed import client_of, write_keys


@pytest.mark.parametrize("how", ["take", "delete", "schedule", "cancel", "sweep", "reset"])
async def test_a_batch_is_closed_when_its_host_leaves(client: Client, how: str) -> None:
    host = await put(client, [1])
    path = f"/jobs/{host['id']}"
    match how:
        case "take":
            await (await client.take()).job()
        case "delete":
            assert (await client.delete(path)).status == 204
        case "schedule":
            await client.change(host["id"], ready_at=client.site.now + 60_000)
        case "cancel":
            assert (await client.send("POST", f"{path}/cancel")).status == 200
        case "sweep":
            assert (await client.delete("/jobs", type=host["type"])).doc == {"deleted": 1}
        case "reset":
            assert (await client.send("POST", "/reset")).status == 204
    after = await put(client, [2], queue="other")
    assert (after["folded"], after["id"] != host["id"]) == (False, True)
    assert (await put(client, [3], queue="other"))["id"] == after["id"]
    assert await payload_of(client, after) == [2, 3]


async def test_a_batch_is_closed_when_its_host_expires(client: Client) -> None:
    host = await put(client, [1], ttl_ms=1_000)
    client.site.clock.advance(999)
    assert (await put(client, [2]))["id"] == host["id"]
    client.site.clock.advance(1)
    # Whether the server has seen to it by now or not.
    assert (await put(client, [3]))["id"] != host["id"]


@pytest.mark.parametrize("how", ["requeue", "retry", "release", "promote", "restart"])
async def test_a_host_that_comes_back_does_not_take_in_any_more(client: Client, how: str) -> None:
    host = await put(client, [1], queue="old")
    if how == "promote":
        await client.change(host["id"], ready_at=client.site.now + 60_000)
        await client.change(host["id"], ready_at=None)
    else:
        stream = await client.take(queue="old")
        await stream.job()
        match how:
            case "requeue":
                await stream.close()
            case "retry":
                await client.fail(host["id"], retry_at=client.site.now + 60_000)
            case "release":
                reply = await client.post(f"/jobs/{host['id']}/release", {"delay_ms": 60_000})
                assert reply.status < 300
            case "restart":
                await client.site.crash()
        await stream.close()
        if how in ("retry", "release"):
            await client.change(host["id"], ready_at=None)
    await client.until(host["id"], status="ready")
    assert (await put(client, [2]))["id"] != host["id"]
    assert await payload_of(client, host) == [1]


async def test_a_batch_stays_open_over_a_restart(client: Client) -> None:
    host = await put(client, [1])
    await client.site.restart()
    assert (await put(client, [2]))["id"] == host["id"]
    await client.site.crash()
    assert (await put(client, [3]))["id"] == host["id"]
    assert await payload_of(client, host) == [1, 2, 3]


async def test_a_host_that_is_moved_to_another_queue_takes_in_more(client: Client) -> None:
    host = await put(client, [1])
    await client.change(host["id"], queue="elsewhere", priority=1)
    folded = await put(client, [2])
    assert (folded["id"], folded["queue"], folded["priority"]) == (host["id"], "elsewhere", 1)


async def test_what_is_scheduled_neither_folds_nor_hosts(client: Client) -> None:
    later = client.site.now + 60_000
    scheduled = await put(client, [1], ready_at=later)
    assert scheduled["batch"] == {"key": "b", **APPEND}
    host = await put(client, [2])
    again = await put(client, [3], ready_at=later)
    assert len({scheduled["id"], host["id"], again["id"]}) == 3
    await client.change(scheduled["id"], ready_at=None)
    assert (await put(client, [4]))["id"] == host["id"]
    assert await payload_of(client, host) == [2, 4]
    assert await payload_of(client, scheduled) == [1]


async def test_a_past_time_folds(client: Client) -> None:
    host = await put(client, [1], ready_at=client.site.now - 5)
    folded = await put(client, [2], ready_at=1)
    assert (folded["id"], folded["ready_at"]) == (host["id"], host["ready_at"])


async def test_large_hosts_lie_beside_their_rows_and_come_back(client: Client) -> None:
    host = await put(client, ["a" * 100])
    sizes = []
    for _ in range(8):
        await put(client, ["b" * 100])
        sizes.append(len(json.dumps(await payload_of(client, host))))
    assert sizes[0] < 512 < sizes[-1]
    small = await put(client, "x", "last", fold="$new")
    for text in ("y" * 2_000, "z"):
        await put(client, text, "last", fold="$new")
        assert await payload_of(client, small) == text
    stream = await client.take(prefetch=2)
    taken = {job["id"]: job["payload"] for job in (await stream.job(), await stream.job())}
    assert taken == {host["id"]: ["a" * 100, *["b" * 100] * 8], small["id"]: "z"}


async def test_a_host_of_a_group_takes_in_what_comes_and_keeps_its_place(client: Client) -> None:
    head = await client.enqueue(queue="g", group="x")
    host = await put(client, [1], queue="g", group="x")
    await put(client, [2], queue="g", group="x")
    await put(client, [3], queue="h", group="y")
    stream = await client.take(prefetch=10)
    assert (await stream.job())["id"] == head["id"]
    assert not await stream.has_frame()
    # It waits behind its group's gate, and is ready.
    await put(client, [4])
    await client.succeed(head["id"])
    taken = await stream.job()
    assert (taken["id"], taken["payload"], taken["group"]) == (host["id"], [1, 2, 3, 4], "x")


async def test_a_full_queue_takes_folds_and_no_new_hosts(client: Client) -> None:
    rule = {"when": "($existing | length) < 2", "queue": "full"}
    host = await put(client, [1], **rule)
    await client.call("PUT", "/queues/full/settings", {"max_depth": 1})
    assert (await put(client, [2], **rule))["id"] == host["id"]
    reply = await client.post("/jobs", batched([3], **rule))
    assert (reply.status, await payload_of(client, host)) == (429, [1, 2])
    both = {"jobs": [batched([4], "other", queue="free"), batched([5], **rule)]}
    assert (await client.post("/jobs/bulk", both)).status == 429
    assert await client.count() == 1
    # What was refused has not become the host.
    await client.delete(f"/jobs/{host['id']}")
    assert (await put(client, [6], **rule))["folded"] is False


async def test_a_key_neither_folds_into_nor_learns_of_a_host_beyond_its_reach(
    client: Client, tmp_path: Path
) -> None:
    keys = write_keys(tmp_path / "keys")
    await client.site.restart(keys=keys)
    async with (
        client_of(client.site, client.wire, "root") as root,
        client_of(client.site, client.wire, "shop") as shop,
    ):
        fold = "if $existing == $new then $new else error($existing | tojson) end"
        host = await put(root, ["secret"], queue="bank", fold=fold)
        inside = batched([1], queue="shop-1")
        for request in (inside, batched([1], queue="shop-1", when="false")):
            reply = await shop.post("/jobs", request)
            assert reply.status == 409
            assert reply.error == "a job that this key may not see hosts the same batch"
        bulk = {"jobs": [batched([1], "own", queue="shop-1"), inside]}
        assert (await shop.post("/jobs/bulk", bulk)).status == 409
        assert await payload_of(root, host) == ["secret"]
        own = await put(shop, [1], "own", queue="shop-1")
        assert (await put(shop, [2], "own", queue="shop-2"))["id"] == own["id"]
        # Whoever sees all folds into both.
        assert (await put(root, [3], "own", queue="bank"))["id"] == own["id"]
