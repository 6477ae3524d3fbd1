"""GET /jobs/{id}/errors: one record for each failure."""

from typing import Any

import pytest

from .client import Client, Doc

RECORD = {"attempt", "message", "error_type", "backtrace", "dequeued_at", "failed_at", "signature"}


async def failing(client: Client, count: int) -> str:
    """The id of a job that failed `count` times and is dead."""
    job = await client.in_flight(queue="failing")
    for attempt in range(1, count):
        await client.fail(job["id"], message=f"m{attempt}", retry_at=0)
        await client.until(job["id"], status="in_flight", attempts=attempt)
    await client.fail(job["id"], message=f"m{count}", kill=True)
    job_id: str = job["id"]
    return job_id


async def page(client: Client, target: str, **params: Any) -> Doc:
    reply = await client.get(target, **params)
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


def attempts(doc: Doc) -> list[int]:
    return [record["attempt"] for record in doc["errors"]]


async def test_a_job_that_never_failed_has_an_empty_history(client: Client) -> None:
    job = await client.enqueue()
    links = {"self": f"/jobs/{job['id']}/errors?order=asc&limit=50", "next": None, "prev": None}
    assert await page(client, f"/jobs/{job['id']}/errors") == {"errors": [], "pages": links}


async def test_a_record_says_what_when_and_for_how_long(client: Client) -> None:
    job = await client.in_flight()
    client.site.clock.advance(250)
    await client.fail(job["id"], message="boom", error_type="E", backtrace="a\nb", kill=True)
    record = await page(client, f"/jobs/{job['id']}/errors/1")
    assert record == {
        "attempt": 1,
        "message": "boom",
        "error_type": "E",
        "backtrace": "a\nb",
        "dequeued_at": job["dequeued_at"],
        "failed_at": job["dequeued_at"] + 250,
        "signature": "1-343bf97b76d391f7",
    }
    assert (await page(client, f"/jobs/{job['id']}/errors"))["errors"] == [record]


async def test_a_record_says_who_had_the_job(client: Client) -> None:
    id = (await client.enqueue())["id"]
    stream = await client.take(headers={"worker-id": "ann"})
    await stream.job()
    await client.fail(id, retry_at=0)
    await stream.job()
    await client.fail(id, retry_at=0)
    await stream.close()
    claim = {"holder": "bob", "lease_ms": 60_000, "wait_ms": 10_000}
    reply = await client.post("/queues/default/claim", claim)
    assert [job["id"] for job in reply.doc["jobs"]] == [id]
    await client.fail(id, kill=True)

    records = (await page(client, f"/jobs/{id}/errors"))["errors"]
    assert [record["worker"] for record in records] == ["ann", "ann", "bob"]


async def test_optional_fields_are_left_out(client: Client) -> None:
    job = await client.in_flight()
    await client.fail(job["id"], message="", kill=True)
    record = await page(client, f"/jobs/{job['id']}/errors/1")
    assert set(record) == RECORD - {"error_type", "backtrace"}
    assert record["message"] == ""


async def test_attempts_count_from_1_and_each_failure_adds_a_record(client: Client) -> None:
    job_id = await failing(client, 4)
    doc = await page(client, f"/jobs/{job_id}/errors")
    assert attempts(doc) == [1, 2, 3, 4]
    assert [record["message"] for record in doc["errors"]] == ["m1", "m2", "m3", "m4"]
    for number in (1, 4):
        assert (await page(client, f"/jobs/{job_id}/errors/{number}"))["attempt"] == number


async def test_unknown_jobs_and_records_are_404(client: Client) -> None:
    job_id = await failing(client, 1)
    for target in ("/jobs/x/errors", "/jobs/x/errors/1", f"/jobs/{'0' * 26}/errors"):
        reply = await client.get(target)
        assert (reply.status, reply.error) == (404, "job not found")
    for number in (0, 2, 2**31):
        reply = await client.get(f"/jobs/{job_id}/errors/{number}")
        assert (reply.status, reply.error) == (404, "error record not found")


async def test_an_attempt_that_is_no_number_is_400(client: Client) -> None:
    job_id = await failing(client, 1)
    for text in ("x", "1.5", "1x"):
        reply = await client.get(f"/jobs/{job_id}/errors/{text}")
        assert reply.status == 400
        assert reply.body.startswith(b"Invalid URL: ")


@pytest.mark.parametrize("query", ["from=x", "from=-1", "order=up", "limit=x", "status=dead"])
async def test_bad_parameters_are_400(client: Client, query: str) -> None:
    job_id = await failing(client, 1)
    reply = await client.get(f"/jobs/{job_id}/errors?{query}")
    assert reply.status == 400
    assert reply.error.startswith("invalid query parameters: ")


async def test_pages_go_forward_and_back(client: Client) -> None:
    job_id = await failing(client, 5)
    url = f"/jobs/{job_id}/errors"
    first = await page(client, url, limit=2)
    assert attempts(first) == [1, 2]
    assert first["pages"] == {
        "self": f"{url}?order=asc&limit=2",
        "next": f"{url}?from=2&order=asc&limit=2",
        "prev": None,
    }
    second = await page(client, first["pages"]["next"])
    assert attempts(second) == [3, 4]
    assert second["pages"] == {
        "self": f"{url}?from=2&order=asc&limit=2",
        "next": f"{url}?from=4&order=asc&limit=2",
        "prev": f"{url}?from=3&order=desc&limit=2",
    }
    assert attempts(await page(client, second["pages"]["prev"])) == [2, 1]
    last = await page(client, second["pages"]["next"])
    assert attempts(last) == [5]
    assert last["pages"]["next"] is None


async def test_descending_pages_go_forward_and_back_too(client: Client) -> None:
    job_id = await failing(client, 5)
    first = await page(client, f"/jobs/{job_id}/errors", order="desc", limit=2)
    assert attempts(first) == [5, 4]
    second = await page(client, first["pages"]["next"])
    assert attempts(second) == [3, 2]
    last = await page(client, second["pages"]["next"])
    assert attempts(last) == [1]
    assert last["pages"]["next"] is None
    assert attempts(await page(client, second["pages"]["prev"])) == [4, 5]


async def test_an_empty_page_beyond_the_end_has_no_links(client: Client) -> None:
    job_id = await failing(client, 2)
    for cursor in (2, 99, 2**31):
        doc = await page(client, f"/jobs/{job_id}/errors", **{"from": cursor})
        assert (doc["errors"], doc["pages"]["next"], doc["pages"]["prev"]) == ([], None, None)


async def test_long_and_odd_texts_come_back_whole(client: Client) -> None:
    job = await client.in_flight()
    texts = {"message": "é🐝\x00\n" * 1_000, "error_type": "", "backtrace": "x" * 100_000}
    await client.fail(job["id"], kill=True, **texts)
    record = await page(client, f"/jobs/{job['id']}/errors/1")
    assert {name: record[name] for name in texts} == texts


async def test_the_history_survives_retries_and_restarts(client: Client) -> None:
    job = await client.in_flight(retention={"completed_ms": 60_000})
    await client.fail(job["id"], retry_at=0)
    await client.until(job["id"], status="in_flight")
    await client.succeed(job["id"])
    await client.site.restart()
    assert attempts(await page(client, f"/jobs/{job['id']}/errors")) == [1]


MIB = 1024 * 1024
KEPT = {"message": 16 * 1024, "error_type": 512, "backtrace": 128 * 1024}
"""Bytes that are kept of each text."""


async def test_texts_of_a_failure_are_kept_up_to_a_bound(client: Client) -> None:
    job = await client.in_flight()
    texts = {name: "é" * (size // 2) for name, size in KEPT.items()}
    await client.fail(job["id"], kill=True, **texts)
    record = await page(client, f"/jobs/{job['id']}/errors/1")
    assert {name: record[name] for name in KEPT} == texts


async def test_longer_texts_of_a_failure_lose_their_middle_and_say_so(client: Client) -> None:
    # Not refused: a worker that cannot report a failure would hold its job for ever.
    job = await client.in_flight()
    text = f"begin{'🐝' * MIB}end"
    await client.fail(job["id"], kill=True, **dict.fromkeys(KEPT, text))
    record = await page(client, f"/jobs/{job['id']}/errors/1")
    for name, most in KEPT.items():
        assert most - 10 <= len(record[name].encode()) <= most
        assert record[name].startswith("begin🐝")
        assert record[name].endswith("🐝end")
        assert f"it had {len(text.encode())} bytes" in record[name]


async def test_a_page_of_large_records_ends_early_and_has_a_next(client: Client) -> None:
    job = await client.enqueue(retry_limit=500)
    stream = await client.take(prefetch=1)
    count = 130  # of 128 KiB each: more than the 16 MiB of a page
    for _ in range(count):
        (held,) = await stream.jobs(1)
        await client.fail(held["id"], backtrace="x" * KEPT["backtrace"], retry_at=0)
    for order in ("asc", "desc"):
        first = await page(client, f"/jobs/{job['id']}/errors", limit=2_000, order=order)
        assert 100 < len(first["errors"]) < count
        second = await page(client, first["pages"]["next"])
        seen = attempts(first) + attempts(second)
        assert seen == sorted(range(1, count + 1), reverse=order == "desc")
        assert second["pages"]["next"] is None
