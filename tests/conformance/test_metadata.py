"""Data besides the payload: metadata, a media type, a trace, and the time of creation."""

from typing import Any

import pytest

from .client import Client, Doc, new_job

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WITH: Doc = {
    "meta": {"user": "ann", "n": [1, 2.0, None], "deep": {"ž": "\U0001f642"}},
    "content_type": "application/vnd.mail+json; charset=utf-8",
    "traceparent": TRACE,
}


def metadata(job: Doc) -> Doc:
    return {name: job[name] for name in WITH if name in job}


async def test_metadata_is_echoed_by_the_enqueue_reads_and_the_stream(client: Client) -> None:
    job = await client.enqueue(**WITH)
    assert metadata(job) == WITH
    assert metadata(await client.job(job["id"])) == WITH
    assert [metadata(listed) for listed in await client.jobs()] == [WITH]
    stream = await client.take()
    assert metadata(await stream.job()) == WITH


async def test_metadata_survives_a_restart_and_a_failure(client: Client) -> None:
    taken = await client.in_flight(**WITH)
    assert metadata(await client.fail(taken["id"])) == WITH
    await client.site.restart()
    assert metadata(await client.job(taken["id"])) == WITH


async def test_each_job_of_a_bulk_has_its_own(client: Client) -> None:
    many = [new_job(meta={"n": n}) for n in range(2)] + [new_job()]
    reply = await client.post("/jobs/bulk", {"jobs": many})
    assert [metadata(job) for job in reply.doc["jobs"]] == [
        {"meta": {"n": 0}},
        {"meta": {"n": 1}},
        {},
    ]
    assert [metadata(job) for job in await client.jobs()] == [
        {"meta": {"n": 0}},
        {"meta": {"n": 1}},
        {},
    ]


async def test_null_is_as_good_as_nothing(client: Client) -> None:
    job = await client.enqueue(meta=None, content_type=None, traceparent=None)
    assert metadata(await client.job(job["id"])) == {}
    assert metadata(await client.job((await client.enqueue(meta={}))["id"])) == {"meta": {}}


async def test_the_time_of_creation_stays_when_the_job_is_rescheduled(client: Client) -> None:
    created = client.site.now
    job = await client.enqueue(ready_at=created + 60_000)
    client.site.clock.advance(1_000)
    await client.change(job["id"], ready_at=created + 90_000)
    assert (await client.job(job["id"]))["created_at"] == created
    assert (await client.jobs())[0]["created_at"] == created


@pytest.mark.parametrize("length", [8192, 8193])
async def test_metadata_has_a_bound(client: Client, length: int) -> None:
    meta = {"a": "x" * (length - len('{"a":""}'))}
    reply = await client.post("/jobs", new_job(meta=meta))
    assert reply.status == (201 if length == 8192 else 413)
    if reply.status == 413:
        assert "meta has 8193 bytes" in reply.error
        assert await client.count() == 0


NO_METADATA: dict[str, list[Any]] = {
    "meta": [[], 1, "text", True],
    "content_type": ["", "json", "a/b/c", "a/ b", "a/b; \n", 1, "a/" + "b" * 254],
    "traceparent": [
        "",
        TRACE.upper(),
        TRACE + "-00",
        TRACE[:-1],
        "ff" + TRACE[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        "01" + TRACE[2:] + "x",
        7,
    ],
}


async def test_what_is_no_metadata_is_refused(client: Client) -> None:
    cases = [(field, value) for field, values in NO_METADATA.items() for value in values]
    for field, value in cases:
        for path, doc in (
            ("/jobs", new_job(**{field: value})),
            ("/jobs/bulk", {"jobs": [new_job(), new_job(**{field: value})]}),
        ):
            reply = await client.post(path, doc)
            assert reply.status == 400, (field, value)
            assert field in reply.error
        assert await client.count() == 0, (field, value)


@pytest.mark.parametrize("value", [TRACE, "01" + TRACE[2:] + "-more", "cc" + TRACE[2:]])
async def test_later_versions_of_traces_pass(client: Client, value: str) -> None:
    assert (await client.enqueue(traceparent=value))["traceparent"] == value
