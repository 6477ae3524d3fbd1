"""A change by filter from the page does no more than its words say: what is refused, and why."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import pytest
from conformance.client import JSON, Client
from conformance.site import Site

from zq.wire.query import FILTERS

pytestmark = [pytest.mark.settings(no_admin=False, admin_port=0)]

CHANGES = [
    ("delete", "DELETE", "/jobs", None),
    ("cancel", "POST", "/jobs/cancel", {}),
    ("requeue", "POST", "/jobs/requeue", {}),
    ("patch", "PATCH", "/jobs", {"priority": 7}),
    ("patch", "POST", "/jobs/budgets/b", {"cost": 1}),
    ("patch", "PUT", "/jobs/budgets/b", {"cost": 1}),
    ("patch", "PATCH", "/jobs/budgets/b", {"cost": 1}),
    ("patch", "DELETE", "/jobs/budgets/b", None),
    ("patch", "DELETE", "/jobs/budgets", None),
]
"""The verb of the preview, and each change by filter."""

every_change = pytest.mark.parametrize(("verb", "method", "path", "body"), CHANGES)


class Said(NamedTuple):
    status: int
    code: str | None
    doc: Any


class PageRequests:
    """Requests as the page sends them."""

    def __init__(self, site: Site, http: aiohttp.ClientSession) -> None:
        self._api = f"{site.admin_url}/ui/api"
        self._http = http

    async def send(self, method: str, path: str, body: Any = None, **query: Any) -> Said:
        sent = {name: str(value) for name, value in query.items()}
        async with self._http.request(method, self._api + path, params=sent, json=body) as answer:
            text = await answer.text()
            doc = await answer.json() if text else None
            return Said(answer.status, answer.headers.get("Zq-Error"), doc)

    async def look(self, verb: str, **filter: Any) -> dict[str, Any]:
        """The `upto` and the `count` of a preview."""
        said = await self.send("GET", "/sweeps/preview", verb=verb, **filter)
        assert said.status == 200, said
        return {"upto": said.doc["upto"], "count": said.doc["count"]}


@pytest.fixture
async def page(site: Site) -> AsyncIterator[PageRequests]:
    async with aiohttp.ClientSession(trust_env=False) as http:
        yield PageRequests(site, http)


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


async def fill(client: Client) -> None:
    for state in ("dead", "completed", "scheduled", "ready"):
        await client.make(state, queue="mail")
    await client.call(
        "POST", "/budgets/b", {"allocation": 1, "strategy": {"type": "while_in_flight"}}
    )


@every_change
async def test_a_change_that_nobody_looked_at_is_refused(
    client: Client, page: PageRequests, verb: str, method: str, path: str, body: Any
) -> None:
    await fill(client)
    before = await client.jobs()
    seen = await page.look(verb, queue="mail")
    other = await page.look(verb, queue="male")
    for query in (
        {},
        {"queue": "mail"},
        {"queue": "mail", "upto": seen["upto"]},
        {"queue": "mail", "count": seen["count"]},
        {"upto": seen["upto"], "count": seen["count"]},
        {"queue": "mail", "upto": other["upto"], "count": seen["count"]},
        {"queue": "mail", "type": "test", **seen},
    ):
        said = await page.send(method, path, body, **query)
        assert (said.status, said.code) == (409, "preview_needed"), query
        assert "GET /sweeps/preview" in said.doc["error"]
    assert await client.jobs() == before


@every_change
async def test_a_change_that_was_looked_at_is_made(
    client: Client, page: PageRequests, verb: str, method: str, path: str, body: Any
) -> None:
    await fill(client)
    seen = await page.look(verb, queue="mail")
    said = await page.send(method, path, body, queue="mail", **seen)
    assert said.status == 200, said


@every_change
async def test_a_filter_that_is_empty_or_repeated_is_refused_by_its_name(
    client: Client, page: PageRequests, verb: str, method: str, path: str, body: Any
) -> None:
    await fill(client)
    before = await client.jobs()
    seen = await page.look(verb)
    for name in FILTERS:
        said = await page.send(method, path, body, **{**seen, name: ""})
        assert said.status == 400, name
        assert name == "filter" or f"`{name}` is empty" in said.doc["error"]
    twice = await page.send(method, f"{path}?queue=a&queue=b", body, **seen)
    assert (twice.status, "`queue`" in twice.doc["error"]) == (400, True)
    assert await client.jobs() == before


@pytest.mark.parametrize("path", ["/jobs", "/jobs/count", "/sweeps/preview"])
async def test_the_page_reads_nothing_wider_than_its_filter(page: PageRequests, path: str) -> None:
    for name in FILTERS:
        said = await page.send("GET", path, **{name: ""})
        assert said.status == 400, name


async def test_a_count_that_was_not_the_previews_is_refused(
    client: Client, page: PageRequests
) -> None:
    await client.enqueue_many(3, queue="mail")
    seen = await page.look("delete", queue="mail")
    said = await page.send("DELETE", "/jobs", queue="mail", upto=seen["upto"], count=2)
    assert (said.status, said.code) == (409, "preview_stale")
    assert await client.count() == 3


async def test_more_jobs_than_were_counted_are_not_changed(
    client: Client, page: PageRequests
) -> None:
    ids = await client.enqueue_many(3, queue="mail")
    await client.change(ids[0], queue="other")
    seen = await page.look("cancel", queue="mail")
    await client.change(ids[0], queue="mail")
    said = await page.send("POST", "/jobs/cancel", {}, queue="mail", **seen)
    assert (said.status, said.code) == (409, "preview_stale")
    assert "3 jobs match now, and the preview has counted 2: look again" in said.doc["error"]
    assert await client.count(status="ready") == 3
    await client.change(ids[1], queue="other")
    await client.change(ids[2], queue="other")
    said = await page.send("POST", "/jobs/cancel", {}, queue="mail", **seen)
    assert said.doc["cancelled"] == 1, "fewer than were counted are no surprise"


async def test_a_preview_is_too_old_after_ten_minutes(client: Client, page: PageRequests) -> None:
    await client.enqueue(queue="mail")
    seen = await page.look("delete", queue="mail")
    client.site.clock.advance(600_001)
    said = await page.send("DELETE", "/jobs", queue="mail", **seen)
    assert (said.status, said.code) == (409, "preview_needed")


@pytest.mark.parametrize(
    ("queues", "word"), [(["mail"], "mail"), (["mail", "sms"], "delete")], ids=["one", "two"]
)
async def test_a_deletion_of_many_needs_the_word_that_confirms_it(
    client: Client, page: PageRequests, queues: list[str], word: str
) -> None:
    for queue in queues:
        await client.enqueue_many(101, queue=queue)
    seen = await page.look("delete", type="test")
    for typed in ({}, {"typed": ""}, {"typed": "Mail"}, {"typed": word[:-1]}):
        said = await page.send("DELETE", "/jobs", type="test", **seen, **typed)
        assert (said.status, said.code) == (409, "not_confirmed"), typed
        assert repr(word) in said.doc["error"]
    said = await page.send("DELETE", "/jobs", type="test", **seen, typed=word)
    assert said.doc == {"deleted": seen["count"]}


async def test_a_hundred_jobs_are_deleted_without_a_word(
    client: Client, page: PageRequests
) -> None:
    await client.enqueue_many(100, queue="mail")
    seen = await page.look("delete", queue="mail")
    said = await page.send("DELETE", "/jobs", queue="mail", **seen)
    assert said.doc == {"deleted": 100}


async def test_a_cancellation_from_the_page_tells_how_it_is_undone(
    client: Client, page: PageRequests
) -> None:
    kept = {"retention": {"dead_ms": 60_000}}
    one = await client.enqueue(queue="one", **kept)
    await client.enqueue(queue="many", **kept)
    seen = await page.look("cancel", queue="many")
    many = await page.send("POST", "/jobs/cancel", {}, queue="many", **seen)
    single = await page.send("POST", f"/jobs/{one['id']}/cancel", {})
    assert await client.count(status="cancelled") == 2
    for said in (many, single):
        undone = await page.send("POST", f"/sweeps/{said.doc['undo']}/undo")
        assert undone.doc == {"undone": 1, "kept": {}, "gone": 0}
    assert await client.count(status="ready") == 2


async def test_the_native_api_may_bind_a_change_and_need_not(client: Client) -> None:
    await client.enqueue_many(3, queue="mail")
    refused = await client.delete("/jobs", queue="mail", count=3)
    assert (refused.status, refused.headers["zq-error"]) == (409, "preview_needed")
    seen = (await client.get("/sweeps/preview", queue="mail")).doc
    bound = {"queue": "mail", "upto": seen["upto"], "count": 2}
    assert (await client.delete("/jobs", **bound)).headers["zq-error"] == "preview_stale"
    assert (await client.delete("/jobs", **bound | {"count": 3})).doc == {"deleted": 3}
    await client.enqueue(queue="mail")
    assert (await client.delete("/jobs", queue="mail")).doc == {"deleted": 1}


@pytest.mark.settings(no_admin=False, admin_port=0, ui_mask="password")
async def test_suggestions_and_latest_errors_hide_what_the_mask_hides(
    client: Client, page: PageRequests
) -> None:
    job = await client.in_flight(payload={"password": "hunter", "user": "mia"})
    await client.fail(job["id"], message="login refused: password=hunter user=mia", kill=True)
    (cause,) = (await page.send("GET", "/suggest", field="cause", q="login")).doc["values"]
    (row,) = (await page.send("GET", "/jobs", last_error="true", search="refused")).doc["jobs"]
    keys = (await page.send("GET", "/suggest", field="payload")).doc["values"]
    assert "hunter" not in f"{cause} {row} {keys}"
    assert "user=mia" in cause["text"] and "user=mia" in row["last_error"]["message"]
    assert [each["text"] for each in keys] == ["password", "user"]
