"""Searching for words: in types, messages of latest failures and payloads, slice by slice."""

from typing import Any

import pytest

from zq.features.search.store import LOOK_ROWS, SearchReads, WordsFound
from zq.model.filters import Filter

from .client import JSON, Client, Doc, ids, new_job

FOUND = {
    "letter": ["letter"],
    "SMTP": ["failed"],
    "smtp TimeOut": ["failed"],
    '"timed out"': ["failed"],
    '"out timed"': [],
    "smtp letter": [],
    "4711": ["letter", "large"],
    "straße": ["letter"],
    "STRASSE": [],
    'say="so"': [],
    "quo\\ted": ["letter"],
    "ärger": ["large"],
    "mail": [],
}
"""What each search finds, by the jobs' types: queues are no part of the text."""


@pytest.fixture
async def jobs(client: Client) -> dict[str, str]:
    """Jobs by their types."""
    letter = await client.enqueue(
        type="letter", queue="mail", payload={"to": "Straße 4711", "q": "quo\\ted"}
    )
    large = await client.enqueue(
        type="large", queue="mail", payload={"text": "x" * 2_000, "n": 4711, "s": "Ärger"}
    )
    failed = await client.in_flight(type="failed", queue="other")
    await client.fail(failed["id"], message="SMTP: timeout, timed out")
    return {"letter": letter["id"], "large": large["id"], "failed": failed["id"]}


@pytest.mark.parametrize("text", FOUND)
async def test_a_search_finds_its_words_wherever_jobs_are_chosen(
    client: Client, jobs: dict[str, str], text: str
) -> None:
    wanted = sorted(jobs[type] for type in FOUND[text])
    assert sorted(ids(await client.jobs(search=text))) == wanted
    assert await client.count(search=text) == len(wanted)
    seen = (await client.get("/sweeps/preview", search=text)).doc
    assert (seen["count"], seen["exact"]) == (len(wanted), True)
    assert (await client.delete("/jobs", search=text)).doc == {"deleted": len(wanted)}
    assert sorted(ids(await client.jobs())) == sorted({*jobs.values()} - {*wanted})


async def test_a_search_is_narrowed_by_other_filters_and_by_a_program(
    client: Client, jobs: dict[str, str]
) -> None:
    assert ids(await client.jobs(search="4711", type="letter")) == [jobs["letter"]]
    assert ids(await client.jobs(search="4711", filter=".n == 4711")) == [jobs["large"]]
    assert await client.count(search="4711", filter=".n == 4711") == 1
    seen = (await client.get("/sweeps/preview", search="4711", filter=".n == 4711")).doc
    assert (seen["count"], seen["by"]) == (1, [{"queue": "mail", "status": "ready", "n": 1}])
    changed = await client.patch("/jobs", {"queue": "moved"}, search="4711", filter=".n == 4711")
    assert changed.doc == {"patched": 1}
    assert [job["type"] for job in await client.jobs(queue="moved")] == ["large"]


async def test_a_failure_before_the_latest_one_is_not_found(client: Client) -> None:
    await client.enqueue(queue="a", retention={"dead_ms": 60_000})
    stream = await client.take(queue="a")
    job = await stream.job()
    await client.fail(job["id"], message="first reason", kill=True)
    await client.post(f"/jobs/{job['id']}/requeue", {})
    assert (await stream.job())["id"] == job["id"]
    await client.fail(job["id"], message="second reason")
    assert await client.count(search="first") == 0
    assert await client.count(search="second") == 1


async def test_a_search_that_breaks_off_says_where_and_goes_on_there(client: Client) -> None:
    many = LOOK_ROWS + 5
    found = await client.enqueue_many(many, type="needle")
    page: Doc = (await client.get("/jobs", search="NEEDLE", search_ms=0, limit=2000)).doc
    assert ids(page["jobs"]) == found[:LOOK_ROWS]
    assert page["searched_to"] == found[LOOK_ROWS - 1]
    rest = (await client.send("GET", page["pages"]["next"])).doc
    assert (ids(rest["jobs"]), "searched_to" in rest) == (found[LOOK_ROWS:], False)
    part: Doc = (await client.get("/jobs/count", search="needle", search_ms=0)).doc
    assert part == {"count": LOOK_ROWS, "searched_to": found[LOOK_ROWS - 1]}
    onward: dict[str, Any] = {"search": "needle", "search_ms": 0, "from": part["searched_to"]}
    assert (await client.get("/jobs/count", **onward)).doc["count"] == 5


async def test_pages_of_a_search_go_both_ways(client: Client) -> None:
    found: list[str] = []
    for number in range(9):
        job = await client.enqueue(type="needle" if number % 2 else "hay")
        found += [job["id"]] if number % 2 else []
    first = (await client.get("/jobs", search="needle", limit=3, order="desc")).doc
    assert ids(first["jobs"]) == found[:0:-1]
    second = (await client.send("GET", first["pages"]["next"])).doc
    assert (ids(second["jobs"]), second["pages"]["next"]) == (found[:1], None)
    back = (await client.send("GET", second["pages"]["prev"])).doc
    assert ids(back["jobs"]) == found[1:]


@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_jobs_with_large_payloads_are_looked_at_in_smaller_slices(client: Client) -> None:
    found = []
    for _ in range(3):
        job = await client.enqueue(type="t", payload={"text": "x" * 3_000_000 + " needle"})
        found.append(job["id"])
    page = (await client.get("/jobs", search="needle", search_ms=0)).doc
    assert ids(page["jobs"]) == found[:2]
    assert (await client.get("/jobs/count", search="needle")).doc == {"count": 3}


@pytest.mark.parametrize("only_looks", [False, True], ids=["sweep", "preview"])
async def test_a_sweep_goes_on_behind_jobs_that_are_gone_once_their_words_were_found(
    client: Client, monkeypatch: pytest.MonkeyPatch, *, only_looks: bool
) -> None:
    """They are deleted before the program of the filter reads them."""
    between = [new_job(type="call")] * (LOOK_ROWS - 1)
    jobs = [new_job(type="letter"), *between, new_job(type="letter")]
    first, *_, last = ids((await client.post("/jobs/bulk", {"jobs": jobs})).doc["jobs"])
    swept_words = SearchReads.swept_words

    async def deleted_behind(reads: SearchReads, filter: Filter, after: int) -> WordsFound:
        found = await swept_words(reads, filter, after)
        await client.delete(f"/jobs/{first}")
        return found

    monkeypatch.setattr(SearchReads, "swept_words", deleted_behind)
    wanted = {"search": "letter", "filter": "true"}
    if only_looks:
        seen = (await client.get("/sweeps/preview", **wanted)).doc
        assert (seen["count"], seen["exact"]) == (1, True)
    else:
        assert (await client.delete("/jobs", **wanted)).doc == {"deleted": 1}
        assert not await client.exists(last)


@pytest.mark.parametrize("text", [" ", '""', "a b c d e f g h i", "b" * 201])
async def test_a_search_without_words_or_with_too_many_is_refused(
    client: Client, text: str
) -> None:
    for path in ("/jobs", "/jobs/count", "/sweeps/preview"):
        reply = await client.get(path, search=text)
        assert (reply.status, "`search`" in reply.error) == (400, True)


@pytest.mark.parametrize("wire", [JSON], ids=str)
async def test_an_ended_sweep_shows_the_words_as_they_were_written(client: Client) -> None:
    await client.enqueue(type="send letter", retention={"dead_ms": 60_000})
    await client.post('/jobs/cancel?search="send+letter"', {})
    (sweep,) = (await client.get("/sweeps/ended")).doc["sweeps"]
    assert sweep["by"]["search"] == '"send letter"'


async def test_a_job_shows_its_latest_failure_in_a_list_that_wants_that(
    client: Client, jobs: dict[str, str]
) -> None:
    rows = {job["type"]: job for job in await client.jobs(last_error="true")}
    assert rows["failed"]["last_error"]["message"] == "SMTP: timeout, timed out"
    assert rows["failed"]["last_error"]["signature"].startswith("1-")
    assert "last_error" not in rows["letter"]
    assert all("last_error" not in job for job in await client.jobs())
