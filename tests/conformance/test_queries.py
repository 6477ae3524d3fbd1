"""Reading: get, list, count, queues, and every filter that they share."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from .client import Client, ids, new_job
from .streams import PATIENCE_S, pause


async def both(client: Client, **params: Any) -> list[str]:
    """Ids that the list finds; the count must find as many."""
    found = ids(await client.jobs(**params))
    assert await client.count(**params) == len(found), params
    return found


async def test_an_unknown_job_is_404(client: Client) -> None:
    for job_id in ("0" * 26, "x"):
        reply = await client.get(f"/jobs/{job_id}")
        assert (reply.status, reply.error) == (404, "job not found")


async def test_an_empty_server_lists_and_counts_nothing(client: Client) -> None:
    page = (await client.get("/jobs")).doc
    assert page["jobs"] == []
    assert set(page["pages"]) == {"self", "next", "prev"}
    assert (await client.get("/jobs/count")).doc == {"count": 0}
    assert (await client.get("/queues")).doc == {"queues": []}


async def test_the_list_holds_whole_jobs_in_order_of_ids(client: Client) -> None:
    jobs = [await client.enqueue(priority=9 - n, payload={"n": n}) for n in range(5)]
    listed = await client.jobs()
    assert ids(listed) == ids(jobs)
    assert listed == [await client.job(job["id"]) for job in jobs]
    assert ids(await client.jobs(order="asc")) == ids(jobs)
    assert ids(await client.jobs(order="desc")) == ids(jobs)[::-1]


async def test_the_default_limit_is_50(client: Client) -> None:
    issued = await client.enqueue_many(60)
    assert ids(await client.jobs()) == issued[:50]
    assert ids(await client.jobs(limit=7)) == issued[:7]
    assert ids(await client.jobs(limit=2_000)) == issued
    assert await client.count() == 60


async def test_status_filters(client: Client) -> None:
    states = ("scheduled", "ready", "in_flight", "completed", "dead")
    made = {state: await client.make(state, queue=state) for state in states}
    for state, job_id in made.items():
        assert await both(client, status=state) == [job_id]
    assert await both(client, status="dead,ready") == sorted([made["dead"], made["ready"]])
    assert await both(client, status=",".join(states)) == sorted(made.values())


@pytest.mark.parametrize("field", ["queue", "type", "group"])
async def test_filters_by_names_are_lists(client: Client, field: str) -> None:
    names = ["a", "b", "a/b", "x&y", "жук", "a b", "a+b", "100%"]
    made = {name: (await client.enqueue(**{field: name}))["id"] for name in names}
    for name, job_id in made.items():
        assert await both(client, **{field: name}) == [job_id]
    assert await both(client, **{field: "b,a"}) == [made["a"], made["b"]]
    assert await both(client, **{field: "a,,b,"}) == [made["a"], made["b"]]
    assert await both(client, **{field: "nobody"}) == []
    assert await both(client, **{field: "nobody,жук"}) == [made["жук"]]
    # Names are compared as they are: no patterns, no case folding.
    assert await both(client, **{field: "A"}) == []
    assert await both(client, **{field: "_"}) == []


async def test_id_filters_are_lists_that_skip_unknown_ids(client: Client) -> None:
    issued = await client.enqueue_many(3)
    assert await both(client, id=issued[1]) == [issued[1]]
    assert await both(client, id=f"{issued[2]},{issued[0]}") == [issued[0], issued[2]]
    unknown = "0" * 26
    assert await both(client, id=f"{unknown},{issued[0]}") == [issued[0]]
    assert await both(client, id=unknown) == []


RANGES = [
    ("5", [5]),
    ("3..5", [3, 4, 5]),
    ("5..5", [5]),
    ("..4", [0, 3, 4]),
    ("5..", [5, 9, 65535]),
    ("..", [0, 3, 4, 5, 9, 65535]),
    ("", [0, 3, 4, 5, 9, 65535]),
    ("6..8", []),
]


async def test_priority_ranges(client: Client) -> None:
    jobs = [await client.enqueue(priority=number) for number in (0, 3, 4, 5, 9, 65535)]
    for text, expected in RANGES:
        found = await both(client, priority=text)
        assert [job["priority"] for job in jobs if job["id"] in found] == expected
        assert len(found) == len(expected)


async def test_ready_at_ranges(client: Client) -> None:
    now = client.site.now
    early = await client.enqueue(ready_at=5)
    middle = await client.enqueue()
    late = await client.enqueue(ready_at=now + 100)
    assert await both(client, ready_at="5") == ids([early])
    assert await both(client, ready_at=f"..{now}") == ids([early, middle])
    assert await both(client, ready_at=f"{now}..{now + 100}") == ids([middle, late])
    assert await both(client, ready_at=f"{now + 1}..") == ids([late])


async def test_attempts_ranges(client: Client) -> None:
    fresh = await client.enqueue(queue="other")
    failed = await client.in_flight()
    for attempts in (1, 2):
        await client.fail(failed["id"], retry_at=0)
        await client.until(failed["id"], status="in_flight", attempts=attempts)
    assert await both(client, attempts="0") == [fresh["id"]]
    assert await both(client, attempts="1..") == [failed["id"]]
    assert await both(client, attempts="2..3") == [failed["id"]]
    assert await both(client, attempts="3..") == []


async def test_different_filters_are_anded(client: Client) -> None:
    made = {
        (queue, kind, priority): (
            await client.enqueue(queue=queue, type=kind, priority=priority, payload=priority)
        )["id"]
        for queue in "ab"
        for kind in "st"
        for priority in (1, 2)
    }
    assert await both(client, queue="a", type="t", priority="2") == [made["a", "t", 2]]
    assert await both(client, queue="a,b", type="s", priority="..1") == [
        made["a", "s", 1],
        made["b", "s", 1],
    ]
    assert await both(client, queue="b", filter=". == 2", status="ready", type="s") == [
        made["b", "s", 2]
    ]
    assert await both(client, id=made["a", "s", 1], queue="b") == []


async def test_an_empty_value_is_no_filter(client: Client) -> None:
    issued = await client.enqueue_many(2)
    for name in ("status", "queue", "type", "id", "priority", "ready_at", "attempts"):
        assert await both(client, **{name: ""}) == issued
    for name in ("status", "queue", "type", "id"):
        assert await both(client, **{name: ",,"}) == issued


async def test_commas_may_be_escaped(client: Client) -> None:
    issued = await client.enqueue_many(2, queue="a")
    assert await client.count(queue="b") == 0
    reply = await client.get(f"/jobs/count?queue=a%2Cb&id={'%2C'.join(issued)}")
    assert reply.doc == {"count": 2}


@pytest.mark.parametrize("parameter", ["from=x", "order=asc", "limit=5"])
async def test_the_count_takes_no_paging_parameters(client: Client, parameter: str) -> None:
    reply = await client.get(f"/jobs/count?{parameter}")
    assert reply.status == 400
    assert reply.error.startswith("invalid query parameters: ")


async def test_an_empty_query_string_is_no_query(client: Client) -> None:
    await client.enqueue()
    assert (await client.get("/jobs/count?")).doc == {"count": 1}
    assert len((await client.get("/jobs?")).doc["jobs"]) == 1


async def test_queues_are_distinct_and_sorted_by_their_bytes(client: Client) -> None:
    for queue in ("b", "a", "B", "é", "a/b", "b", "🐝", "z", "\ufffd"):
        await client.enqueue(queue=queue)
    names = (await client.get("/queues")).doc["queues"]
    assert names == ["B", "a", "a/b", "b", "z", "é", "\ufffd", "🐝"]


async def test_queues_count_jobs_in_any_state(client: Client) -> None:
    states = ("completed", "dead", "in_flight", "ready", "scheduled")
    made = {state: await client.make(state, queue=state) for state in states}
    assert (await client.get("/queues")).doc == {"queues": list(states)}
    for job_id in made.values():
        await client.delete(f"/jobs/{job_id}")
    assert (await client.get("/queues")).doc == {"queues": []}


async def test_a_read_after_an_answer_sees_the_change(client: Client) -> None:
    for number in range(20):
        job = await client.enqueue(queue=f"q{number}")
        assert await client.count() == number + 1
        assert (await client.jobs(order="desc", limit=1))[0]["id"] == job["id"]


# Filters in jq


async def matching(client: Client, program: str) -> list[Any]:
    """The payloads that a program selects; the count must agree."""
    reply = await client.get(f"/jobs?limit=2000&filter={quote(program)}")
    assert reply.status == 200, reply.doc
    payloads = [job["payload"] for job in reply.doc["jobs"]]
    assert await client.count(filter=program) == len(payloads)
    return payloads


PROGRAMS = [
    (".", [{"n": 1, "s": "ab"}, {"n": 2}, [1], "text", 7, True]),
    (".n == 1", [{"n": 1, "s": "ab"}]),
    (".n?", [{"n": 1, "s": "ab"}, {"n": 2}]),
    ('.s | test("^a.$")', [{"n": 1, "s": "ab"}]),
    ('contains("ex")', ["text"]),
    ("(false, null, .n > 1)?", [{"n": 2}]),
    ("empty", []),
    ("false, null", []),
    ("select(. == 7)", [7]),
    ("error", []),
    ("0", [{"n": 1, "s": "ab"}, {"n": 2}, [1], "text", 7, None, True, False]),
    ("not", [None, False]),
]


async def test_a_filter_matches_if_any_output_is_truthy(client: Client) -> None:
    payloads = [{"n": 1, "s": "ab"}, {"n": 2}, [1], "text", 7, None, True, False]
    await client.post("/jobs/bulk", {"jobs": [new_job(payload=item) for item in payloads]})
    for program, expected in PROGRAMS:
        assert await matching(client, program) == expected


async def test_a_filter_sees_whole_payloads_and_exact_integers(client: Client) -> None:
    await client.enqueue(payload={"id": 2**53 + 1, "pad": "x" * 5_000})
    assert len(await matching(client, f".id == {2**53 + 1} and (.pad | length) == 5000")) == 1


async def test_a_filter_works_on_thousands_of_jobs_and_over_pages(client: Client) -> None:
    jobs = [new_job(payload=number) for number in range(2_500)]
    assert (await client.post("/jobs/bulk", {"jobs": jobs})).status == 201
    assert await matching(client, ". % 500 == 499") == [499, 999, 1499, 1999, 2499]
    page = (await client.get("/jobs", filter=". % 500 == 499", limit=2)).doc
    seen = [job["payload"] for job in page["jobs"]]
    while page["pages"]["next"]:
        page = (await client.get(page["pages"]["next"])).doc
        seen += [job["payload"] for job in page["jobs"]]
    assert seen == [499, 999, 1499, 1999, 2499]


@pytest.mark.parametrize("program", ['import "a" as a; .', 'include "a"; .', 'import "a" as $a; .'])
async def test_a_filter_cannot_read_files(client: Client, program: str) -> None:
    reply = await client.get("/jobs", filter=program)
    assert reply.status == 400
    assert reply.error.startswith("invalid filter: ")


async def test_a_filter_sees_no_environment(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    await client.enqueue(payload=1)
    assert await matching(client, "env.SECRET") == []
    assert await matching(client, "$ENV.PATH") == []


@pytest.mark.settings(filter_timeout=600)
@pytest.mark.parametrize("program", ["def f: f; f", "[range(1e9)] | length", "last(repeat(1))"])
async def test_a_filter_that_never_ends_is_503_and_harms_nobody(
    client: Client, program: str
) -> None:
    await client.enqueue(payload=1)
    reply = await client.get("/jobs", filter=program)
    assert reply.status == 503
    assert reply.error
    assert int(reply.headers["retry-after"]) >= 1
    # A busy machine may be too slow for any program in so short a time, but not each time.
    async with asyncio.timeout(PATIENCE_S):
        while (reply := await client.get("/jobs", filter=". == 1")).status == 503:
            await pause()
    assert [job["payload"] for job in reply.doc["jobs"]] == [1]


@pytest.mark.parametrize("program", ["halt", '"x" | halt_error', "debug", "stderr"])
async def test_a_filter_with_side_effects_does_not_end_the_service(
    client: Client, program: str
) -> None:
    await client.enqueue(payload=1)
    reply = await client.get("/jobs", filter=program)
    assert reply.status in (200, 400)
    assert await matching(client, ". == 1") == [1]


@pytest.mark.parametrize("hours", [3, -3])
async def test_a_time_is_found_where_it_is_shown_after_the_clock_was_set(
    client: Client, hours: int
) -> None:
    # A wait goes on by elapsed time, so the date at which it ends moves with the clock.
    backoff = {"base_ms": 40_000, "exponent": 1.0, "jitter_ms": 0}
    waiting = (await client.in_flight(queue="q", backoff=backoff))["id"]
    await client.fail(waiting)
    dated = await client.enqueue(queue="q", ready_at=client.site.now + 60_000)
    client.site.clock.step(hours * 3_600_000)
    shown = {job["id"]: job["ready_at"] for job in await client.jobs(queue="q")}
    for id in (waiting, dated["id"]):
        at = shown[id]
        for span, words in ((f"{at}", {}), (f"{at}..{at + 1}", {"search": "t"})):
            found = await client.jobs(queue="q", ready_at=span, **words)
            assert [job["id"] for job in found] == [id], (span, words)
    at = shown[waiting]
    reply = await client.patch("/jobs", {"priority": 7}, queue="q", ready_at=f"{at}")
    assert reply.doc == {"patched": 1}
    assert (await client.job(waiting))["priority"] == 7
