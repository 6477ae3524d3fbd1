"""A key with a queue prefix sees, counts and changes nothing else, on any route."""

import asyncio
from typing import Any

import pytest
from manual_clock import ManualClock

from .batches import batched
from .client import Client, Doc, Reply, new_job
from .crons import SECOND_MS, until_moved
from .crons import entry as every_second
from .crons import put as put_crons
from .keyed import OWNED, client_of, keys_in, request_to, walk
from .streams import PATIENCE_S, pause

UNKNOWN_ID = "01JD0000000000000000000000"
HUSH = "hush"
"""Stands in every text that belongs to the other queue."""

OTHER = f"mail-{HUSH}"
STREAMS = [("GET", "/jobs/take"), ("GET", "/events")]


pytestmark = pytest.mark.settings(keys=keys_in)


async def others(root: Client) -> list[Doc]:
    """Jobs of the other queue: ready, in flight by a stream, scheduled with a failure, dead."""
    fields: Doc = {"queue": OTHER, "type": HUSH, "payload": {"n": HUSH}}
    held, failed, dead = [await root.enqueue(**fields, priority=1) for _ in range(3)]
    stream = await root.take(prefetch=3)
    assert len(await stream.jobs(3)) == 3
    await root.fail(failed["id"], message=HUSH, retry_at=2**52)
    await root.fail(dead["id"], message=HUSH, kill=True)
    # Not taken by the stream, which may hold three: one slot is free, so fill it.
    unique = {"unique_key": OWNED, "unique_while": "exists"}
    ready = await root.enqueue(**fields, **unique, ready_at=2**52)
    return [held, failed, dead, ready]


async def state(root: Client) -> list[Doc]:
    return await root.jobs(queue=OTHER)


async def test_no_route_shows_or_changes_anything_beyond_the_prefix(
    root: Client, shop: Client
) -> None:
    jobs = await others(root)
    before = await state(root)
    for method, path in [route for route in walk() if route not in STREAMS]:
        unknown = request_to(shop.wire, method, path, queue=OTHER, id=UNKNOWN_ID)
        by_id = "{id}" in path or path in ("/jobs/success", "/jobs/extend", "/jobs/release")
        for job in jobs:
            request = request_to(shop.wire, method, path, queue=OTHER, id=job["id"])
            told = (await shop.send(*request)).body.replace(job["id"].encode(), b"")
            if by_id:
                expected = (await shop.send(*unknown)).body.replace(UNKNOWN_ID.encode(), b"")
                assert told == expected, (method, path)
            # A message quotes the queue of the request.
            told = told.replace(f"{OTHER}'".encode(), b"")
            assert HUSH.encode() not in told, (method, path, "more than the request's own words")
        assert await state(root) == before, (method, path)


NO_BACKLOG = {"ready": 0, "running": 0, "jobs": 0, "workers": 0, "held": {}}
NO_FAILURES = {
    "rule": 1,
    "range": "1h",
    "since": ManualClock().now_ms() // 60_000 * 60_000 - 59 * 60_000,
    "step_ms": 300_000,
    "open_ms": 240_000 + ManualClock().now_ms() % 60_000,
    "known": 0,
    "failed": 0,
    "failed_before": 0,
    "causes": [],
}

OUTSIDE: dict[tuple[str, str], tuple[int, Any]] = {
    ("POST", "/jobs"): (403, "queue_out_of_reach"),
    ("POST", "/jobs/bulk"): (403, "queue_out_of_reach"),
    ("GET", "/jobs/count"): (200, {"count": 0}),
    ("GET", "/queues"): (200, {"queues": []}),
    ("GET", "/stats"): (200, {"queues": []}),
    ("GET", "/stats/history"): (403, "scope_missing"),
    ("GET", "/stats/types"): (200, {"range": "1h", "known": 0, "types": []}),
    ("GET", "/queues/{queue}/stats"): (403, "queue_out_of_reach"),
    ("GET", "/queues/{queue}/why"): (403, "queue_out_of_reach"),
    ("GET", "/queues/{queue}/backlog"): (403, "queue_out_of_reach"),
    ("GET", "/backlog"): (200, NO_BACKLOG),
    ("GET", "/jobs/{id}"): (404, "job_not_found"),
    ("GET", "/jobs/{id}/why"): (404, "job_not_found"),
    ("PATCH", "/jobs"): (200, {"patched": 0}),
    ("PATCH", "/jobs/{id}"): (404, "job_not_found"),
    ("DELETE", "/jobs"): (200, {"deleted": 0}),
    ("DELETE", "/jobs/{id}"): (404, "job_not_found"),
    ("POST", "/jobs/{id}/success"): (404, "not_in_flight"),
    ("POST", "/jobs/{id}/failure"): (404, "not_in_flight"),
    ("POST", "/jobs/{id}/progress"): (404, "not_in_flight"),
    ("POST", "/queues/{queue}/claim"): (403, "queue_out_of_reach"),
    ("POST", "/jobs/{id}/extend"): (404, "not_in_flight"),
    ("POST", "/jobs/{id}/release"): (404, "not_in_flight"),
    ("GET", "/workers"): (200, {"workers": []}),
    ("GET", "/leases"): (200, {"leases": []}),
    ("GET", "/scheduled"): (200, {"jobs": []}),
    ("GET", "/stuck"): (200, {"jobs": []}),
    ("GET", "/failures"): (200, NO_FAILURES),
    ("POST", "/workers/{id}/drain"): (404, "worker_not_found"),
    ("DELETE", "/workers/{id}"): (404, "worker_not_found"),
    ("GET", "/jobs/{id}/result"): (404, "job_not_found"),
    ("GET", "/jobs/by-key"): (404, "job_not_found"),
    ("POST", "/jobs/{id}/cancel"): (404, "job_not_found"),
    ("POST", "/jobs/by-key/cancel"): (404, "job_not_found"),
    ("POST", "/jobs/cancel"): (200, {"cancelled": 0}),
    ("PATCH", "/jobs/{id}/retention"): (404, "job_not_found"),
    ("POST", "/jobs/{id}/requeue"): (404, "job_not_found"),
    ("POST", "/jobs/requeue"): (200, {"requeued": 0}),
    ("POST", "/jobs/{id}/retry"): (404, "job_not_found"),
    ("POST", "/jobs/redrive"): (200, {"redriven": 0}),
    ("GET", "/queues/{queue}/settings"): (403, "queue_out_of_reach"),
    ("PUT", "/queues/{queue}/settings"): (403, "queue_out_of_reach"),
    ("PATCH", "/queues/{queue}/settings"): (403, "queue_out_of_reach"),
    ("DELETE", "/queues/{queue}/settings"): (403, "queue_out_of_reach"),
    ("GET", "/sweeps"): (200, {"sweeps": []}),
    ("GET", "/sweeps/ended"): (200, {"sweeps": []}),
    ("GET", "/sweeps/{id}"): (404, "sweep_not_found"),
    ("POST", "/sweeps/{id}/undo"): (404, "sweep_not_found"),
    ("DELETE", "/sweeps/{id}"): (404, "sweep_not_found"),
    ("GET", "/jobs/{id}/errors"): (404, "job_not_found"),
    ("GET", "/jobs/{id}/errors/{attempt}"): (404, "job_not_found"),
    ("GET", "/queues/{queue}/groups"): (403, "queue_out_of_reach"),
    ("PUT", "/queues/{queue}/targets/{target}"): (403, "queue_out_of_reach"),
    ("DELETE", "/queues/{queue}/targets/{target}"): (403, "queue_out_of_reach"),
    ("POST", "/queues/{queue}/push"): (403, "queue_out_of_reach"),
    ("POST", "/queues/{queue}/push/{group}"): (404, "not_found"),
    ("POST", "/queues/{queue}/push/{group}/{dedupe}"): (404, "not_found"),
    ("POST", "/reset"): (403, "scope_missing"),
}


async def test_a_job_beyond_the_prefix_is_a_job_that_does_not_exist(
    root: Client, shop: Client
) -> None:
    (held, *_) = await others(root)
    for (method, path), answer in OUTSIDE.items():
        reply = await shop.send(*request_to(shop.wire, method, path, queue=OTHER, id=held["id"]))
        told = reply.doc if reply.status == 200 else reply.headers["zq-error"]
        assert (reply.status, told) == answer, (method, path)


async def test_what_lies_within_the_prefix_is_all_there_is(root: Client, shop: Client) -> None:
    await others(root)
    mine = [(await shop.enqueue(queue=f"shop-{n}", payload={"n": n}))["id"] for n in range(3)]

    assert [job["id"] for job in await shop.jobs()] == mine
    assert [job["id"] for job in await shop.jobs(filter=".n != 1")] == [mine[0], mine[2]]
    assert await shop.count() == 3
    assert (await shop.get("/sweeps/preview")).doc["count"] == 3
    assert await shop.count(type="test") == 3
    assert await shop.count(filter="true") == 3
    assert await shop.count(queue=f"{OTHER},shop-1") == 1
    assert (await shop.get("/queues")).doc == {"queues": ["shop-0", "shop-1", "shop-2"]}
    assert (await shop.patch("/jobs", {"priority": 7}, filter="true")).doc == {"patched": 3}
    assert (await shop.delete("/jobs", filter=".n == 0")).doc == {"deleted": 1}
    assert (await shop.delete("/jobs")).doc == {"deleted": 2}
    assert await root.count() == 4


async def test_causes_are_those_of_the_prefix_alone(root: Client, shop: Client) -> None:
    mine = await shop.enqueue(queue="shop-1")
    stream = await shop.take()
    await stream.job()
    await shop.fail(mine["id"], message=HUSH, kill=True)
    await others(root)
    (cause,) = (await root.get("/failures")).doc["causes"]
    assert (cause["count"], cause["queues"], cause["dead"]) == (3, [OTHER, "shop-1"], 2)
    (cause,) = (await shop.get("/failures")).doc["causes"]
    assert (cause["count"], cause["queues"], cause["dead"]) == (1, ["shop-1"], 1)
    assert (cause["types"], cause["sample"], cause["before"]) == (["test"], mine["id"], 0)


async def test_pages_lead_through_the_prefix_only(root: Client, shop: Client) -> None:
    mine = []
    for n in range(3):
        await root.enqueue(queue=OTHER)
        mine.append((await shop.enqueue(queue=f"shop-{n}"))["id"])
    await root.enqueue(queue=OTHER)

    seen, target = [], "/jobs?limit=1"
    while target:
        page = (await shop.get(target)).doc
        seen += [job["id"] for job in page["jobs"]]
        target = page["pages"]["next"]

    assert seen == mine


async def test_a_stream_takes_from_its_prefix_only_new_queues_included(
    root: Client, shop: Client
) -> None:
    await root.enqueue(queue=OTHER)
    stream = await shop.take(prefetch=10)
    await shop.heartbeat(stream)

    first = await root.enqueue(queue="shop-new")
    await root.enqueue(queue=OTHER)
    second = await root.enqueue(queue="shop-newer")

    assert [job["id"] for job in await stream.jobs(2)] == [first["id"], second["id"]]
    await shop.heartbeat(stream)
    assert await root.count(queue=OTHER, status="ready") == 2


async def test_a_stream_with_a_prefix_gets_back_what_it_has_settled_slots_for(
    root: Client, shop: Client
) -> None:
    ids = await shop.enqueue_many(6, queue="shop-a")
    stream = await shop.take(prefetch=2)
    for n in (0, 2, 4):
        pair = await stream.jobs(2)
        assert [job["id"] for job in pair] == ids[n : n + 2]
        await shop.succeed(*[job["id"] for job in pair])
    assert await root.count() == 0


async def test_a_foreign_acknowledgement_frees_no_slot(root: Client, shop: Client) -> None:
    ids = await root.enqueue_many(3, queue=OTHER)
    stream = await root.take(prefetch=1)
    assert (await stream.job())["id"] == ids[0]

    reply = await shop.post("/jobs/success", {"ids": ids})

    assert (reply.status, reply.doc) == (422, {"not_found": ids})
    await root.heartbeat(stream)


async def test_streams_name_queues_within_the_prefix_or_are_refused(
    root: Client, shop: Client
) -> None:
    inside = await shop.take(queue="shop-b", prefetch=5)
    await root.enqueue(queue="shop-a")
    job = await root.enqueue(queue="shop-b")
    assert (await inside.job())["id"] == job["id"]

    for method in ("GET", "HEAD"):
        reply = await shop.send(method, f"/jobs/take?queue=shop-b,{OTHER}")
        assert (reply.status, reply.headers["zq-error"]) == (403, "queue_out_of_reach")


async def test_events_are_told_of_the_prefix_only(root: Client, shop: Client) -> None:
    stream = await shop.listen()
    named = await shop.listen(queue="shop-a")
    held = (await others(root))[0]
    assert (await root.post(f"/jobs/{held['id']}/progress", {"data": HUSH})).status == 204
    mine = await root.enqueue(queue="shop-a")

    replayed = await shop.listen(last_id="unknown-1")
    assert (await replayed.event())["type"] == "gap"
    for listening in (stream, named, replayed):
        event = await listening.event()
        assert (event["type"], event["id"]) == ("enqueued", mine["id"])
    assert (await shop.get("/events", queue=OTHER)).headers["zq-error"] == "queue_out_of_reach"
    of_other = await shop.listen(job=held["id"])
    await root.delete(f"/jobs/{held['id']}")
    await root.post("/jobs/success", {"ids": [mine["id"]]})
    await shop.heartbeat(of_other)


async def test_a_job_cannot_be_moved_out_of_the_prefix(root: Client, shop: Client) -> None:
    job = await shop.enqueue(queue="shop-a")

    replies: list[Reply] = [
        await shop.patch(f"/jobs/{job['id']}", {"queue": OTHER}),
        await shop.patch("/jobs", {"queue": OTHER}),
    ]

    assert [(r.status, r.headers["zq-error"]) for r in replies] == [(403, "queue_out_of_reach")] * 2
    assert (await root.job(job["id"]))["queue"] == "shop-a"
    assert (await shop.patch("/jobs", {"queue": "shop-b"})).doc == {"patched": 1}


async def test_one_job_beyond_the_prefix_refuses_a_whole_bulk(root: Client, shop: Client) -> None:
    jobs = [new_job(queue="shop-a"), new_job(queue=OTHER)]

    reply = await shop.post("/jobs/bulk", {"jobs": jobs})

    assert (reply.status, reply.headers["zq-error"]) == (403, "queue_out_of_reach")
    assert OTHER in reply.error
    assert await root.count() == 0


async def test_a_unique_key_of_a_job_beyond_the_prefix_is_a_conflict_without_its_data(
    root: Client, shop: Client
) -> None:
    await root.enqueue(queue=OTHER, type=HUSH, unique_key="k")
    job = new_job(queue="shop-a", unique_key="k")

    for path, doc in (("/jobs", job), ("/jobs/bulk", {"jobs": [new_job(queue="shop-a"), job]})):
        reply = await shop.post(path, doc)
        assert (reply.status, reply.headers["zq-error"]) == (409, "key_conflict")
        assert HUSH not in reply.error
    assert await root.count() == 1


async def test_a_duplicate_within_the_prefix_is_answered_as_ever(shop: Client) -> None:
    first = await shop.enqueue(queue="shop-a", unique_key="k")

    reply = await shop.post("/jobs", new_job(queue="shop-b", unique_key="k"))

    assert (reply.status, reply.doc["id"], reply.doc["duplicate"]) == (200, first["id"], True)


async def test_a_foreign_lease_is_neither_extended_nor_released_in_bulk(
    root: Client, shop: Client
) -> None:
    mine = await shop.enqueue(queue="shop-a")
    claimed = await shop.post("/queues/shop-a/claim", {"holder": "h"})
    assert [job["id"] for job in claimed.doc["jobs"]] == [mine["id"]]
    (foreign, *_) = await others(root)
    before = await state(root)
    for verb, lease in [("extend", None), ("extend", 7), ("release", None), ("release", 7)]:
        # A delivery that never was would be stale, if the job were there.
        items = [{"id": foreign["id"], "lease": lease}, {"id": mine["id"]}]
        more = {"lease_ms": 9} if verb == "extend" else {}
        reply = await shop.post(f"/jobs/{verb}", {"items": items, **more})
        assert (reply.status, reply.doc["stale"]) == (422, [])
        assert foreign["id"] in reply.doc["not_found"]
    assert await state(root) == before


async def test_workers_are_seen_and_drained_only_where_all_they_take_lies_within(
    root: Client, shop: Client
) -> None:
    for client, queue in [(root, ""), (root, f"shop-a,{OTHER}"), (root, "shop-a"), (shop, "")]:
        await client.take(queue=queue, headers={"worker-id": "w"})
    assert len((await root.get("/workers")).doc["workers"]) == 4
    seen = (await shop.get("/workers")).doc["workers"]
    assert [worker["queues"] for worker in seen] == [["shop-a"], []]
    assert len((await shop.send("POST", "/workers/w/drain")).doc["workers"]) == 2
    draining = [worker["draining"] for worker in (await root.get("/workers")).doc["workers"]]
    assert draining == [False, False, True, True]


async def test_a_copy_is_shown_nothing_of_a_first_that_was_moved_out_of_reach(
    root: Client, shop: Client
) -> None:
    named = new_job(queue="shop-a", dedupe={"id": "n"})
    first = (await shop.post("/jobs", named)).doc["id"]
    await root.change(first, queue=OTHER)
    copy = await shop.post("/jobs", named)
    assert (copy.status, copy.doc) == (200, {"id": first, "duplicate": True, "folded": False})


async def test_a_replay_leaves_out_a_copy_whose_key_belongs_to_a_hidden_job(
    root: Client, shop: Client
) -> None:
    kept = {"retention": {"completed_ms": 60_000}}
    assert (await shop.call("PUT", "/queues/shop-a/settings", kept)).status == 200
    for unique in ({"unique_key": OWNED}, {}):
        await shop.make("completed", queue="shop-a", **unique)
    await root.enqueue(queue=OTHER, unique_key=OWNED)
    reply = await shop.post("/queues/shop-a/replay", {})
    assert (reply.status, reply.doc) == (200, {"replayed": 1, "kept": {"key_taken": 1}})


async def test_a_dead_letter_queue_lies_within_the_prefix_too(root: Client, shop: Client) -> None:
    for method in ("PUT", "PATCH"):
        reply = await shop.call(method, "/queues/shop-a/settings", {"dead_letter": OTHER})
        assert (reply.status, reply.headers["zq-error"]) == (403, "queue_out_of_reach")
    assert (await shop.get("/queues/shop-a/settings")).doc == {}
    assert (
        await shop.call("PUT", "/queues/shop-a/settings", {"dead_letter": "shop-dead"})
    ).status == 200
    assert (await root.get("/queues/shop-a/settings")).doc == {"dead_letter": "shop-dead"}


async def test_a_redrive_puts_no_job_beyond_the_prefix(root: Client, shop: Client) -> None:
    await root.call("PUT", f"/queues/{OTHER}/settings", {"dead_letter": "shop-dead"})
    job = await root.in_flight(queue=OTHER)
    assert (await root.fail(job["id"], kill=True))["queue"] == "shop-dead"

    assert (await shop.post("/jobs/redrive?queue=shop-dead", {})).doc == {"redriven": 0}
    assert (await root.post("/jobs/redrive?queue=shop-dead", {})).doc == {"redriven": 1}
    assert (await root.job(job["id"]))["queue"] == OTHER


async def test_schedules_beyond_the_prefix_are_neither_seen_nor_changed(
    root: Client, shop: Client
) -> None:
    def entry(queue: str) -> Doc:
        return {"name": queue, "expression": "0 0 1 1 *", "job": new_job(queue=queue)}

    def group(*queues: str) -> Doc:
        return {"entries": [entry(queue) for queue in queues]}

    groups = {"mine": ("shop-a",), "mixed": ("shop-a", OTHER), "theirs": (OTHER,), "empty": ()}
    for name, queues in groups.items():
        assert (await root.call("PUT", f"/crons/{name}", group(*queues))).status == 200
    before = [(await root.get(f"/crons/{name}")).doc for name in groups]

    assert (await shop.get("/crons")).doc == {"crons": ["empty", "mine", "mixed"]}
    seen = (await shop.get("/crons/mixed")).doc["entries"]
    assert [e["name"] for e in seen] == ["shop-a"]
    assert (await shop.get("/crons/theirs")).headers["zq-error"] == "cron_group_not_found"
    for name in ("mixed", "theirs"):
        there = f"/crons/{name}/entries/{OTHER}"
        for method, path, doc, code in (
            ("PUT", f"/crons/{name}", group("shop-a"), "cron_out_of_reach"),
            ("PATCH", f"/crons/{name}", {"paused": True}, "cron_out_of_reach"),
            ("DELETE", f"/crons/{name}", None, "cron_out_of_reach"),
            ("PUT", f"/crons/{name}", group(OTHER), "queue_out_of_reach"),
            ("POST", f"/crons/{name}/entries", entry(OTHER), "queue_out_of_reach"),
            ("PUT", there, entry(OTHER), "queue_out_of_reach"),
            ("PUT", there, entry("shop-a"), "cron_out_of_reach"),
            ("GET", there, None, "cron_entry_not_found"),
            ("PATCH", there, {"paused": True}, "cron_entry_not_found"),
            ("DELETE", there, None, "cron_entry_not_found"),
        ):
            reply = await (shop.call(method, path, doc) if doc else shop.send(method, path))
            assert reply.headers["zq-error"] == code, (method, path)
    added = (
        ("POST", "/crons/{}/entries", entry("shop-b")),
        ("PUT", "/crons/{}/entries/shop-b", entry("shop-b")),
    )
    for name in ("mixed", "theirs"):
        for method, path, doc in added:
            # It would keep the others from their own group.
            reply = await shop.call(method, path.format(name), doc)
            assert reply.headers["zq-error"] == "cron_out_of_reach", (method, name)
    assert [(await root.get(f"/crons/{name}")).doc for name in groups] == before
    for method, path, doc in added:
        for name in ("mine", "empty"):
            assert (await shop.call(method, path.format(name), doc)).status < 300
            assert (await shop.send("DELETE", f"/crons/{name}/entries/shop-b")).status == 204
    assert (await shop.call("PUT", "/crons/mixed/entries/shop-a", entry("shop-a"))).status == 200
    assert (await shop.send("DELETE", "/crons")).doc == {"deleted": 2}
    assert (await root.get("/crons")).doc == {"crons": ["mixed", "theirs"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"unique_key": "order-7", "on_conflict": "replace_payload"},
        {"unique_key": "order-7", "on_conflict": "replace_content", "meta": {"to": "shop"}},
        {"batch": batched(None)["batch"]},
    ],
    ids=["payload", "content", "batch"],
)
async def test_a_schedule_changes_no_job_beyond_the_prefix_of_its_maker(
    root: Client, shop: Client, fields: Doc
) -> None:
    own = {"queue": OTHER, "payload": ["theirs"], **fields, "meta": {"to": HUSH}}
    theirs = await root.job((await root.enqueue(**own))["id"])
    mine = {"queue": "shop-a", "payload": ["mine"], **fields}
    assert (await shop.post("/jobs", new_job(**mine))).status == 409
    (before,) = (await put_crons(shop, "g", every_second(job=mine)))["entries"]
    for _ in range(3):
        # Whoever pauses it does not make it his own.
        for paused in (True, False):
            there = "/crons/g/entries/e"
            assert (await root.call("PATCH", there, {"paused": paused})).status == 200
        root.site.clock.advance(SECOND_MS)
        before = await until_moved(shop, "g", "e", before)
        assert "last_enqueue_at" not in before
    assert await root.job(theirs["id"]) == theirs

    await root.send("DELETE", f"/jobs/{theirs['id']}")
    root.site.clock.advance(SECOND_MS)
    assert (await until_moved(shop, "g", "e", before))["last_enqueue_at"] == root.site.now
    (job,) = await shop.jobs()
    assert (job["queue"], job["payload"]) == ("shop-a", ["mine"])


async def test_a_schedule_of_an_unbounded_key_finds_the_owners_in_all_queues(
    root: Client, shop: Client
) -> None:
    unique = {"unique_key": "order-7", "on_conflict": "replace_payload"}
    theirs = await root.enqueue(queue=OTHER, payload=[1], **unique)
    sent = every_second(job={"queue": "shop-a", "payload": [2], **unique})
    (before,) = (await put_crons(root, "g", sent))["entries"]
    root.site.clock.advance(SECOND_MS)
    await until_moved(root, "g", "e", before)
    assert (await root.job(theirs["id"]))["payload"] == [2]


async def test_health_names_lanes_schedules_and_rows_to_whoever_may_read_all_alone(
    root: Client, shop: Client
) -> None:
    lane = {"queues": [f"{HUSH}*"], "url": "http://127.0.0.1:9"}
    assert (await root.call("PUT", f"/forward/{HUSH}", lane)).status in (200, 201)
    await put_crons(root, HUSH, every_second(job={"queue": OTHER}))
    root.site.run_sql(f"UPDATE cron_entries SET expression = '* * * * {HUSH}'")
    root.site.clock.advance(SECOND_MS)
    async with asyncio.timeout(PATIENCE_S):
        while "faulty_crons" not in (whole := (await root.get("/health")).doc):
            await pause()
    assert [each["name"] for each in whole["lanes"]] == [HUSH]
    assert [each["group"] for each in whole["faulty_crons"]["named"]] == [HUSH]
    async with (
        Client(root.site, root.wire) as stranger,
        Client(root.site, root.wire, "wrong") as mistaken,
        client_of(root.site, root.wire, "only-enqueue") as producer,
    ):
        for client in (stranger, mistaken, producer, shop):
            for path in ("/health", "/healthz"):
                reply = await client.get(path)
                assert (reply.status, reply.doc["status"]) == (200, "ok")
                assert reply.doc["faulty_crons"] == {"entries": 1, "named": []}
                assert HUSH.encode() not in reply.body and "lanes" not in reply.doc


async def test_a_new_target_gets_no_jobs_of_targets_beyond_the_prefix(
    root: Client, shop: Client
) -> None:
    fanned = {"fan_out": [OTHER]}
    assert (await root.call("PUT", "/queues/shop-a/settings", fanned)).status == 200
    await others(root)
    reply = await shop.send("PUT", "/queues/shop-a/targets/shop-b")
    assert await shop.jobs() == []
    assert (reply.status, reply.headers["zq-error"]) == (403, "queue_out_of_reach")
    assert (await root.send("PUT", "/queues/shop-a/targets/shop-b")).status == 201
