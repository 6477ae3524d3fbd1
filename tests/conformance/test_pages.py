"""Pages of a list: cursors, links, and deletions in between."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from .client import Client, Doc, ids


async def page(client: Client, target: str = "/jobs", **params: Any) -> Doc:
    reply = await client.get(target, **params)
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def walk(client: Client, **params: Any) -> list[str]:
    """Ids of all pages, by the `next` links."""
    current = await page(client, **params)
    found = ids(current["jobs"])
    while current["pages"]["next"]:
        current = await page(client, current["pages"]["next"])
        assert current["jobs"], "a next link led to an empty page"
        found += ids(current["jobs"])
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_the_next_links_visit_every_job_once(client: Client, limit: int) -> None:
    issued = await client.enqueue_many(7)
    assert await walk(client, limit=limit) == issued
    assert await walk(client, limit=limit, order="desc") == issued[::-1]


async def test_next_is_there_only_if_one_more_row_exists(client: Client) -> None:
    await client.enqueue_many(3)
    assert (await page(client, limit=3))["pages"]["next"] is None
    assert (await page(client, limit=2))["pages"]["next"]


async def test_next_looks_at_rows_that_match(client: Client) -> None:
    await client.enqueue(queue="a")
    await client.enqueue(queue="b", payload=1)
    assert (await page(client, limit=1, queue="a"))["pages"]["next"] is None
    assert (await page(client, limit=1, filter=". == 1"))["pages"]["next"] is None


async def test_links_carry_the_cursor_order_and_limit(client: Client) -> None:
    issued = await client.enqueue_many(5)
    second = await page(client, limit=2, **{"from": issued[1]})
    assert second["pages"] == {
        "self": f"/jobs?from={issued[1]}&order=asc&limit=2",
        "next": f"/jobs?from={issued[3]}&order=asc&limit=2",
        "prev": f"/jobs?from={issued[2]}&order=desc&limit=2",
    }


async def test_self_is_canonical(client: Client) -> None:
    assert (await page(client))["pages"]["self"] == "/jobs?order=asc&limit=50"
    empty = await page(client, "/jobs?queue=&type=&limit=9&priority=&order=desc")
    assert empty["pages"]["self"] == "/jobs?order=desc&limit=9"
    full = await page(
        client,
        "/jobs?attempts=0..4&type=t,s&priority=5..&queue=b,,a&status=ready&ready_at=..9&limit=3",
    )
    assert full["pages"]["self"] == (
        "/jobs?order=asc&limit=3&status=ready&queue=a,b&type=s,t"
        "&priority=5..&ready_at=..9&attempts=..4"
    )
    issued = await client.enqueue_many(2)
    by_id = await page(client, id=f"{issued[1]},{issued[0]}")
    assert by_id["pages"]["self"] == f"/jobs?order=asc&limit=50&id={issued[0]},{issued[1]}"


@pytest.mark.parametrize(
    ("text", "echo"),
    [("7", "7"), ("7..7", "7"), ("0..9", "..9"), ("9..65535", "9.."), ("3..9", "3..9")],
)
async def test_a_range_is_echoed_in_its_shortest_form(client: Client, text: str, echo: str) -> None:
    link = (await page(client, priority=text))["pages"]["self"]
    assert link == f"/jobs?order=asc&limit=50&priority={echo}"


@pytest.mark.parametrize(
    "params",
    [
        {"queue": "a&b"},
        {"queue": "a+b"},
        {"queue": "a b"},
        {"queue": "a=b#c"},
        {"queue": "100%25"},
        {"queue": "жук/🐝"},
        {"type": "x&limit=1"},
        {"status": "ready,scheduled"},
        {"priority": ".."},
        {"priority": "0..65535"},
        {"ready_at": "5..5"},
        {"ready_at": f"0..{2**63 - 1}"},
        {"filter": '.a == "b&c" and (.d | test("[+%# ]") | not)'},
        {"from": "a&b c"},
    ],
    ids=str,
)
async def test_every_self_link_parses_to_itself(client: Client, params: dict[str, str]) -> None:
    queue, kind = params.get("queue", "q"), params.get("type", "t")
    for _ in range(3):
        await client.enqueue(queue=queue, type=kind, payload={"a": "b&c", "d": "e"})
    await client.enqueue(queue="noise", type="noise")
    first = await page(client, limit=2, **params)
    again = await page(client, first["pages"]["self"])
    assert again == first
    values = dict(parse_qsl(urlsplit(first["pages"]["self"]).query, keep_blank_values=True))
    for name, value in params.items():
        if name in ("queue", "type", "filter", "from"):
            assert values[name] == value
    if first["pages"]["next"]:
        rest = await page(client, first["pages"]["next"])
        assert rest["jobs"]
        assert not set(ids(rest["jobs"])) & set(ids(first["jobs"]))


async def test_prev_leads_back_to_the_same_jobs_reversed(client: Client) -> None:
    issued = await client.enqueue_many(6)
    first = await page(client, limit=2)
    assert first["pages"]["prev"] is None
    second = await page(client, first["pages"]["next"])
    assert ids(second["jobs"]) == issued[2:4]
    back = await page(client, second["pages"]["prev"])
    assert ids(back["jobs"]) == issued[:2][::-1]
    third = await page(client, second["pages"]["next"])
    assert ids((await page(client, third["pages"]["prev"]))["jobs"]) == issued[2:4][::-1]


async def test_prev_of_a_descending_page_ascends(client: Client) -> None:
    issued = await client.enqueue_many(5)
    second = await page(client, (await page(client, limit=2, order="desc"))["pages"]["next"])
    assert ids(second["jobs"]) == [issued[2], issued[1]]
    assert second["pages"]["prev"] == f"/jobs?from={issued[2]}&order=asc&limit=2"
    assert ids((await page(client, second["pages"]["prev"]))["jobs"]) == issued[3:]


async def test_prev_needs_a_cursor_and_a_page_that_is_not_empty(client: Client) -> None:
    issued = await client.enqueue_many(2)
    assert (await page(client))["pages"]["prev"] is None
    beyond = await page(client, **{"from": issued[-1]})
    assert (beyond["jobs"], beyond["pages"]["prev"], beyond["pages"]["next"]) == ([], None, None)


async def test_deleting_seen_rows_neither_skips_nor_repeats(client: Client) -> None:
    issued = await client.enqueue_many(9)
    current = await page(client, limit=3)
    seen = ids(current["jobs"])
    while current["pages"]["next"]:
        # Every row of the page goes, the one that the cursor names among them.
        for job_id in ids(current["jobs"]):
            assert (await client.delete(f"/jobs/{job_id}")).status == 204
        current = await page(client, current["pages"]["next"])
        seen += ids(current["jobs"])
    assert seen == issued


async def test_rows_stored_meanwhile_appear_at_the_end(client: Client) -> None:
    issued = await client.enqueue_many(4)
    current = await page(client, limit=2)
    issued += await client.enqueue_many(2)
    seen = ids(current["jobs"])
    while current["pages"]["next"]:
        current = await page(client, current["pages"]["next"])
        seen += ids(current["jobs"])
    assert seen == issued


async def test_a_cursor_is_a_place_in_text_order(client: Client) -> None:
    issued = await client.enqueue_many(3)

    async def after(cursor: str, order: str) -> list[str]:
        return ids((await page(client, order=order, **{"from": cursor}))["jobs"])

    for cursor in ("0", "0" * 26, "00", " ", "!", "-1", "\t"):
        assert await after(cursor, "asc") == issued, cursor
        assert await after(cursor, "desc") == [], cursor
    for cursor in ("z", "~", "Z" * 26, "7ZZ", "é", "🐝", "a" * 1_000):
        assert await after(cursor, "asc") == [], cursor
        assert await after(cursor, "desc") == issued[::-1], cursor
    middle = issued[1]
    for cursor in (middle, middle + "0", middle + "z", middle[:-1] + "~"):
        assert await after(cursor, "asc") == issued[2:], cursor
    for cursor in (middle + "0", middle[:-1] + "~"):
        assert await after(cursor, "desc") == issued[:2][::-1], cursor
    assert await after(middle, "desc") == issued[:1]
    for cursor in (middle[:-1], middle[:-1] + "!"):
        assert await after(cursor, "asc") == issued[1:], cursor
        assert await after(cursor, "desc") == issued[:1], cursor
    for cursor in (issued[0][:5], issued[0][:10]):
        assert await after(cursor, "asc") == issued, cursor


async def test_an_id_list_and_a_cursor_go_together(client: Client) -> None:
    issued = await client.enqueue_many(5)
    wanted = [issued[4], issued[0], issued[2]]
    assert await walk(client, limit=1, id=",".join(wanted)) == sorted(wanted)
    assert await walk(client, limit=2, id=",".join(wanted), order="desc") == sorted(wanted)[::-1]


@pytest.mark.settings(filter_timeout=60_000)
@pytest.mark.parametrize("filter", [None, "length > 0"])
async def test_a_page_of_large_payloads_ends_early_and_has_a_next(
    client: Client, filter: str | None
) -> None:
    issued = [(await client.enqueue(payload="x" * 1_000_000))["id"] for _ in range(18)]
    asked = {} if filter is None else {"filter": filter}
    first = await page(client, limit=2_000, **asked)
    assert len(first["jobs"]) == 16
    second = (await client.get(first["pages"]["next"])).doc
    assert ids(first["jobs"]) + ids(second["jobs"]) == issued
    assert second["pages"]["next"] is None


async def test_jobs_are_chosen_by_when_they_ended(client: Client) -> None:
    early = await client.make("dead", queue="a")
    client.site.clock.advance(5_000)
    late = await client.make("dead", queue="b")
    await client.make("ready", queue="c")
    found = (await page(client, status="dead", finished_at=f"{client.site.now}.."))["jobs"]
    assert ids(found) == [late]
    found = (await page(client, finished_at=f"..{client.site.now - 1}"))["jobs"]
    assert ids(found) == [early]
