"""PATCH: one job by id, many by filter."""

from typing import Any

import pytest

from .client import Client, Doc, ids, new_job, without_body

BACKOFF = {"exponent": 2.0, "base_ms": 100, "jitter_ms": 7}
ALIVE = ["scheduled", "ready", "in_flight"]


async def refused(client: Client, job_id: str, doc: object, status: int) -> str:
    """The message with which a patch is refused; the job must not have changed."""
    before = await client.job(job_id)
    reply = await client.patch(f"/jobs/{job_id}", doc)
    assert reply.status == status, (doc, reply.doc)
    assert await client.job(job_id) == before, doc
    return reply.error


async def test_an_empty_patch_changes_nothing(client: Client) -> None:
    job = await client.enqueue(retry_limit=3, backoff=BACKOFF, retention={"dead_ms": 5})
    before = await client.job(job["id"])
    changed = await client.change(job["id"])
    assert await client.job(job["id"]) == before
    assert changed == without_body(before)


@pytest.mark.parametrize("status", ALIVE)
async def test_every_living_job_takes_new_data(client: Client, status: str) -> None:
    job_id = await client.make(status)
    wanted: Doc = {"queue": "b", "priority": 1, "retry_limit": 0, "backoff": BACKOFF}
    changed = await client.change(job_id, **wanted)
    assert {name: changed[name] for name in wanted} == wanted
    stored = await client.job(job_id)
    assert {name: stored[name] for name in wanted} == wanted
    assert stored["status"] == status


async def test_an_unknown_job_is_404(client: Client) -> None:
    for job_id in ("0" * 26, "x", "a%2Fb"):
        reply = await client.patch(f"/jobs/{job_id}", {"priority": 1})
        assert (reply.status, reply.error) == (404, "job not found")


@pytest.mark.parametrize("status", ["completed", "dead"])
async def test_a_finished_job_cannot_be_patched(client: Client, status: str) -> None:
    job_id = await client.make(status)
    for doc in ({"priority": 1}, {"ready_at": None}, {}):
        message = await refused(client, job_id, doc, 422)
        assert message == f"cannot patch job {job_id} in {status} status"


async def test_queue_and_priority_cannot_be_null(client: Client) -> None:
    job_id = (await client.enqueue())["id"]
    for field in ("queue", "priority"):
        message = await refused(client, job_id, {field: None, "retry_limit": 9}, 422)
        assert message == f"{field} cannot be null"


async def test_a_bad_queue_name_is_422(client: Client) -> None:
    job_id = (await client.enqueue())["id"]
    for name, rule in [
        ("", "must not be empty"),
        ("a,b", "must not contain ','"),
        ("*", "must not contain '*' (reserved)"),
    ]:
        assert await refused(client, job_id, {"queue": name}, 422) == f"queue {rule}"


async def test_wrong_types_and_ranges_are_400(client: Client) -> None:
    cases: list[object] = [
        {"queue": 5},
        {"priority": "1"},
        {"priority": 65_536},
        {"priority": -1},
        {"ready_at": "now"},
        {"ready_at": -1},
        {"retry_limit": 2**32},
        {"retry_limit": 1.5},
        {"backoff": {"exponent": 2, "base_ms": 1}},
        {"backoff": BACKOFF | {"base_ms": None}},
        {"backoff": 5},
        {"retention": 5},
        {"retention": {"dead_ms": "x"}},
        [],
        None,
        "x",
    ]
    job_id = (await client.enqueue())["id"]
    for doc in cases:
        await refused(client, job_id, doc, 400)


async def test_ready_at_null_means_now_only_for_a_scheduled_job(client: Client) -> None:
    for status in ALIVE:
        job_id = await client.make(status, queue=status)
        before = await client.job(job_id)
        client.site.clock.advance(100)
        changed = await client.change(job_id, ready_at=None)
        if status == "scheduled":
            assert (changed["status"], changed["ready_at"]) == ("ready", client.site.now)
        else:
            kept = (before["status"], before["ready_at"])
            assert (changed["status"], changed["ready_at"]) == kept


async def test_ready_at_moves_between_scheduled_and_ready(client: Client) -> None:
    now = client.site.now
    job_id = (await client.enqueue())["id"]
    for ready_at, status in [
        (now + 50, "scheduled"),
        (now + 90, "scheduled"),
        (now, "ready"),
        (5, "ready"),
    ]:
        changed = await client.change(job_id, ready_at=ready_at)
        assert (changed["status"], changed["ready_at"]) == (status, ready_at)


async def test_ready_at_of_a_job_in_flight_is_only_stored(client: Client) -> None:
    job = await client.in_flight()
    later = client.site.now + 60_000
    changed = await client.change(job["id"], ready_at=later)
    assert (changed["status"], changed["ready_at"]) == ("in_flight", later)
    await client.succeed(job["id"])


async def test_retry_limit_and_backoff_return_to_the_defaults_with_null(client: Client) -> None:
    job = await client.enqueue(retry_limit=0, backoff=BACKOFF)
    changed = await client.change(job["id"], retry_limit=None, backoff=None)
    assert not {"retry_limit", "backoff"} & set(changed)
    stream = await client.take()
    await stream.job()
    failed = await client.fail(job["id"])
    assert failed["status"] == "scheduled"
    assert failed["ready_at"] >= client.site.now + 16_000


MERGED = [
    ({"completed_ms": 1}, {"dead_ms": 2}, {"completed_ms": 1, "dead_ms": 2}),
    ({"completed_ms": 1, "dead_ms": 2}, {"completed_ms": 9}, {"completed_ms": 9, "dead_ms": 2}),
    ({"completed_ms": 1, "dead_ms": 2}, {"completed_ms": None}, {"dead_ms": 2}),
    ({"completed_ms": 1}, {"completed_ms": None}, None),
    ({"completed_ms": 1, "dead_ms": 2}, {"completed_ms": None, "dead_ms": None}, None),
    ({"completed_ms": 1, "dead_ms": 2}, None, None),
    ({"completed_ms": 1}, {}, {"completed_ms": 1}),
    (None, {"dead_ms": 3}, {"dead_ms": 3}),
    (None, None, None),
]


async def test_retention_is_merged_field_by_field(client: Client) -> None:
    for old, patch, new in MERGED:
        job = await client.enqueue(retention=... if old is None else old)
        assert (await client.change(job["id"], retention=patch)).get("retention") == new
        assert (await client.job(job["id"])).get("retention") == new


async def test_what_cannot_be_patched_is_ignored(client: Client) -> None:
    job = await client.enqueue(payload=1, unique_key="k")
    before = await client.job(job["id"])
    await client.change(
        job["id"],
        type="other",
        payload=2,
        status="dead",
        attempts=7,
        id="x",
        unique_key="other",
        unique_while="exists",
    )
    assert await client.job(job["id"]) == before


async def test_a_job_in_flight_returns_to_where_it_was_patched(client: Client) -> None:
    job = await client.enqueue(queue="a")
    stream = await client.take(queue="a")
    await stream.job()
    other = await client.enqueue(queue="b")
    changed = await client.change(job["id"], queue="b", priority=1)
    assert changed["status"] == "in_flight"
    await stream.close()
    await client.until(job["id"], status="ready")
    worker = await client.take(queue="b", prefetch=2)
    assert ids(await worker.jobs(2)) == [job["id"], other["id"]]


# By filter


async def patched(client: Client, doc: Doc, **filters: Any) -> int:
    reply = await client.patch("/jobs", doc, **filters)
    assert reply.status == 200, reply.doc
    assert list(reply.doc) == ["patched"]
    count: int = reply.doc["patched"]
    return count


async def test_a_patch_without_filters_changes_every_living_job(client: Client) -> None:
    states = [*ALIVE, "completed", "dead"]
    made = {state: await client.make(state, queue=state) for state in states}
    assert await patched(client, {"priority": 1}) == 3
    priorities = {state: (await client.job(made[state]))["priority"] for state in states}
    assert priorities == {state: 1 if state in ALIVE else 32_768 for state in states}


@pytest.mark.parametrize(
    "filters",
    [
        {"queue": "a"},
        {"type": "wanted"},
        {"priority": "7"},
        {"filter": '. == "wanted"'},
        {"ready_at": "..5"},
        {"queue": "a,z", "type": "wanted", "status": "ready,scheduled"},
    ],
    ids=str,
)
async def test_a_patch_by_filter_changes_what_matches(client: Client, filters: Doc) -> None:
    wanted = [
        await client.enqueue(queue="a", type="wanted", priority=7, payload="wanted", ready_at=5)
        for _ in range(2)
    ]
    other = await client.enqueue(queue="b")
    assert await patched(client, {"retry_limit": 9}, **filters) == 2
    assert [(await client.job(job["id"]))["retry_limit"] for job in wanted] == [9, 9]
    assert "retry_limit" not in await client.job(other["id"])
    assert await patched(client, {"retry_limit": 9}, queue="nobody") == 0


async def test_a_patch_by_ids_skips_unknown_ones(client: Client) -> None:
    issued = await client.enqueue_many(3)
    chosen = f"{issued[0]},{issued[2]},{'0' * 26}"
    assert await patched(client, {"priority": 1}, id=chosen) == 2
    assert [job["priority"] for job in await client.jobs()] == [1, 32_768, 1]


@pytest.mark.parametrize("status", ["completed", "dead"])
async def test_asking_for_finished_jobs_by_name_is_422(client: Client, status: str) -> None:
    reply = await client.patch("/jobs", {"priority": 1}, status=status)
    expected = f"cannot patch jobs in {status.capitalize()} status"
    assert (reply.status, reply.error) == (422, expected)


async def test_thousands_are_patched_and_the_count_is_exact(client: Client) -> None:
    await client.enqueue_many(2_500, queue="a")
    await client.enqueue_many(10, queue="b")
    # A patch that makes its own filter false still reaches every job once.
    assert await patched(client, {"queue": "c"}, queue="a") == 2_500
    assert await client.count(queue="c") == 2_500
    assert await client.count(queue="b") == 10


async def test_a_patch_by_filter_reschedules_and_wakes_streams(client: Client) -> None:
    stream = await client.take(prefetch=0)
    later = client.site.now + 60_000
    issued = await client.enqueue_many(3, ready_at=later)
    assert await patched(client, {"ready_at": None}, status="scheduled") == 3
    assert ids(await stream.jobs(3)) == issued


async def test_a_bad_body_is_reported_before_a_bad_query(client: Client) -> None:
    for target in ("/jobs?colour=red", "/jobs?priority=9..1", "/jobs?status=dead"):
        reply = await client.patch(target, [])
        assert reply.status == 400
        assert reply.error.startswith(("invalid JSON", "invalid MessagePack"))
        unknown = await client.send("PATCH", target, b"x", {"content-type": "text/plain"})
        assert unknown.status == 415
    reply = await client.patch("/jobs?colour=red", {})
    assert reply.error.startswith("invalid query parameters: ")


@pytest.mark.parametrize("target", ["/jobs/cancel", "/jobs/requeue"])
async def test_a_bad_query_is_reported_where_a_body_may_be_missing(
    client: Client, target: str
) -> None:
    missing = await client.send("POST", f"{target}?colour=red")
    assert missing.error.startswith("invalid query parameters: ")
    faulty = await client.post(f"{target}?colour=red", [])
    assert faulty.error.startswith(("invalid JSON", "invalid MessagePack"))


async def test_the_rules_for_fields_hold_for_many_jobs_too(client: Client) -> None:
    await client.post("/jobs", new_job())
    for doc, status in [
        ({"queue": None}, 422),
        ({"priority": None}, 422),
        ({"queue": "a,b"}, 422),
        ({"priority": 65_536}, 400),
        ({"backoff": {"exponent": 1}}, 400),
    ]:
        assert (await client.patch("/jobs", doc)).status == status


@pytest.mark.parametrize("parameter", ["from=x", "order=asc", "limit=5", "colour=red"])
async def test_a_patch_takes_no_paging_parameters(client: Client, parameter: str) -> None:
    assert (await client.patch(f"/jobs?{parameter}", {})).status == 400
