"""Groups and entries of cron: what is sent, what is shown, what is kept, and what is refused."""

from typing import Any

import pytest

from zq.engine.turns import SLICE
from zq.features.crons import service_running
from zq.features.crons.verbs import ENTRY_STEPS

from .client import Client, Doc, Reply
from .crons import SECOND_MS, entry, entry_of, put

FULL: Doc = {
    "queue": "mail",
    "type": "digest",
    "priority": 7,
    "payload": {"to": ["a", "ü"], "n": 2**60},
    "retry_limit": 3,
    "backoff": {"exponent": 2.0, "base_ms": 10, "jitter_ms": 5},
    "retention": {"completed_ms": 60_000},
    "unique_key": "digest",
    "unique_while": "active",
    "meta": {"origin": "cron"},
    "content_type": "application/json",
    "lease_ms": 30_000,
    "group": "g",
    "ttl_ms": 600_000,
}
"""A job that sets everything that an entry may set."""


async def group_of(client: Client, group: str) -> Doc:
    reply = await client.get(f"/crons/{group}")
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def test_put_answers_in_the_order_of_the_request_and_get_by_name(client: Client) -> None:
    group = await put(client, "g", entry("b"), entry("a", paused=True), timezone="Asia/Tokyo")
    assert [e["name"] for e in group["entries"]] == ["b", "a"]
    assert {name: value for name, value in group.items() if name != "entries"} == {
        "name": "g",
        "paused": False,
        "timezone": "Asia/Tokyo",
    }
    next_at = client.site.now // SECOND_MS * SECOND_MS + SECOND_MS
    assert group["entries"][0] == {
        "name": "b",
        "expression": "* * * * * *",
        "paused": False,
        "job": {"queue": "default", "type": "test", "priority": 32768, "payload": None},
        "next_enqueue_at": next_at,
    }
    assert group["entries"][1]["paused_at"] == client.site.now
    seen = await group_of(client, "g")
    assert [e["name"] for e in seen["entries"]] == ["a", "b"]
    assert seen | {"entries": seen["entries"][::-1]} == group
    await put(client, "f")
    assert (await client.get("/crons")).doc == {"crons": ["f", "g"]}
    assert (await client.send("DELETE", "/crons")).doc == {"deleted": 2}
    assert (await client.get("/crons")).doc == {"crons": []}


async def test_everything_that_an_entry_sets_is_shown_survives_a_restart_and_is_enqueued(
    client: Client,
) -> None:
    sent = entry(job=FULL, timezone="Europe/Berlin")
    reply = await client.post("/crons/g/entries", sent)
    assert reply.status == 201
    shown = reply.doc
    assert shown["job"] == FULL
    assert shown["timezone"] == "Europe/Berlin"
    await client.site.restart()
    assert await entry_of(client, "g", "e") == shown
    stream = await client.take(queue="mail", prefetch=1)
    client.site.clock.advance(SECOND_MS)
    job = await stream.job()
    assert {name: job[name] for name in FULL if name != "ttl_ms"} == {
        name: value for name, value in FULL.items() if name != "ttl_ms"
    }
    assert job["ready_at"] == client.site.now
    assert job["expires_at"] == client.site.now + FULL["ttl_ms"]


async def test_put_replaces_the_set_and_leaves_an_empty_group(client: Client) -> None:
    await put(client, "g", entry("kept", "0 9 * * *"), entry("gone"), timezone="UTC")
    changed = await put(
        client, "g", entry("kept", "0 9 * * *", job={"priority": 1}), entry("new"), timezone="UTC"
    )
    assert [e["name"] for e in changed["entries"]] == ["kept", "new"]
    assert changed["entries"][0]["job"]["priority"] == 1
    assert await group_of(client, "g") == changed
    assert await put(client, "g") == {"name": "g", "paused": False, "entries": []}
    assert (await client.get("/crons")).doc == {"crons": ["g"]}


async def test_a_next_time_is_kept_by_what_keeps_expression_and_zone(client: Client) -> None:
    same: Doc = {"expression": "*/10 * * * * *"}
    first = await put(client, "g", entry("e", **same), timezone="Asia/Tokyo")
    next_at = first["entries"][0]["next_enqueue_at"]
    # So little that schedules wait for the clock, but what is computed now is another time.
    client.site.clock.step(-30 * SECOND_MS)

    async def again(*, zone: str | None, **fields: Any) -> int:
        group = await put(client, "g", entry("e", **fields), timezone=zone)
        found: int = group["entries"][0]["next_enqueue_at"]
        return found

    assert await again(zone="Asia/Tokyo", **same) == next_at
    assert await again(zone=None, timezone="Asia/Tokyo", **same) == next_at
    assert await again(zone="UTC", timezone="Asia/Tokyo", **same) == next_at
    assert await again(zone="Asia/Tokyo", expression="*/5 * * * * *") < next_at - 20 * SECOND_MS
    assert await again(zone="Asia/Tokyo", **same) == next_at - 30 * SECOND_MS


async def test_a_group_that_is_refused_changes_nothing(client: Client) -> None:
    before = await put(client, "g", entry("a"), paused=True)
    for wrong in (
        {"entries": [entry("b"), entry("c", "61 * * * *")]},
        {"entries": [entry("b"), entry("b")]},
        {"entries": [entry("b", timezone="Mars/Base")]},
        {"entries": [entry("b")], "timezone": "Mars/Base"},
        {"entries": [entry("b", job={"ready_at": 1})]},
        {"entries": [entry("b", job={"queue": ""})]},
        {"entries": [entry("")]},
        {"entries": "all"},
        {},
    ):
        reply = await client.call("PUT", "/crons/g", wrong)
        assert reply.status == 400, wrong
        assert reply.error
    assert await group_of(client, "g") == before


MESSAGES: dict[str, Doc] = {
    "invalid cron expression: ": entry(expression="0 0 30 2 *"),
    'invalid timezone: "Mars/Base"': entry(timezone="Mars/Base"),
    "ready_at is not supported for cron entries": entry(job={"ready_at": 5}),
    "name must not contain ','": entry("a,b"),
    "name must not be empty": entry(""),
    "queue must not contain '*' (reserved)": entry(job={"queue": "*"}),
    "type must not be empty": entry(job={"type": ""}),
    "unique_while requires unique_key": entry(job={"unique_while": "active"}),
}


async def test_what_is_wrong_with_an_entry_is_said(client: Client) -> None:
    for message in MESSAGES:
        for method, path in (("POST", "/crons/g/entries"), ("PUT", "/crons/g/entries/e")):
            reply = await client.call(method, path, MESSAGES[message])
            assert (reply.status, reply.error.startswith(message)) == (400, True), reply.error
        doubled = await client.call("PUT", "/crons/g", {"entries": [entry("e1"), entry("e1")]})
        assert (doubled.status, doubled.error) == (400, 'duplicate cron entry name: "e1"')
        assert (await client.get("/crons")).doc == {"crons": []}


async def test_what_is_not_there_is_404_and_what_is_there_409(client: Client) -> None:
    def told(reply: Reply) -> tuple[int, str]:
        return reply.status, reply.error

    no_group = (404, "cron group 'g' not found")
    for method in ("GET", "DELETE"):
        assert told(await client.send(method, "/crons/g")) == no_group
        assert told(await client.send(method, "/crons/g/entries/e")) == no_group
    assert told(await client.patch("/crons/g", {"paused": True})) == no_group
    assert (await client.post("/crons/g/entries", entry())).status == 201
    assert told(await client.post("/crons/g/entries", entry())) == (
        409,
        "cron entry 'e' already exists in group 'g'",
    )
    no_entry = (404, "cron entry 'f' not found in group 'g'")
    for method in ("GET", "DELETE"):
        assert told(await client.send(method, "/crons/g/entries/f")) == no_entry
    assert told(await client.patch("/crons/g/entries/f", {"paused": True})) == no_entry
    assert (await client.patch("/crons/g/entries/e", {})).status == 400
    assert (await client.send("DELETE", "/crons/g/entries/e")).status == 204
    assert (await group_of(client, "g"))["entries"] == []
    assert (await client.send("DELETE", "/crons/g")).status == 204
    assert (await client.get("/crons")).doc == {"crons": []}


async def test_the_name_in_the_path_goes_before_the_one_in_the_body(client: Client) -> None:
    reply = await client.call("PUT", "/crons/a%2Fb/entries/c%2Fd", entry("other"))
    assert (reply.status, reply.doc["name"]) == (200, "c/d")
    assert (await entry_of(client, "a%2Fb", "c%2Fd")) == reply.doc
    again = await client.call("PUT", "/crons/a%2Fb/entries/c%2Fd", entry("x", "0 0 * * *"))
    assert again.doc["expression"] == "0 0 * * *"
    assert (await group_of(client, "a%2Fb"))["entries"] == [again.doc]
    assert (await client.get("/crons")).doc == {"crons": ["a/b"]}


async def test_pauses_and_resumes_are_stamped_when_something_changes(client: Client) -> None:
    site, day = client.site, entry("e", "0 0 * * *")
    await put(client, "g", day)
    for path, body in (("/crons/g", {"entries": [day]}), ("/crons/g/entries/e", day)):
        paused = (await client.patch(path, {"paused": True})).doc
        assert (paused["paused"], paused["paused_at"]) == (True, site.now)
        site.clock.step(10)
        assert (await client.patch(path, {"paused": True})).doc == paused
        kept = (await client.call("PUT", path, body)).doc
        assert (kept["paused"], kept["paused_at"]) == (True, site.now - 10)
        resumed = (await client.call("PUT", path, body | {"paused": False})).doc
        assert resumed["paused_at"] == site.now - 10
        assert (resumed["paused"], resumed["resumed_at"]) == (False, site.now)
        assert (await client.get(path)).doc == resumed


async def test_the_zone_is_the_entrys_or_the_groups(client: Client) -> None:
    client.site.clock.step(1_700_000_000_000 - client.site.now)  # 2023-11-14T22:13:20Z
    utc, melbourne, tokyo = 1_700_038_800_000, 1_700_085_600_000, 1_700_006_400_000
    daily = "0 9 * * *"
    group = await put(
        client,
        "g",
        entry("inherits", daily),
        entry("own", daily, timezone="Australia/Melbourne"),
        timezone="UTC",
    )
    assert [e["next_enqueue_at"] for e in group["entries"]] == [utc, melbourne]
    group = (await client.patch("/crons/g", {"timezone": "Asia/Tokyo"})).doc
    assert [e["next_enqueue_at"] for e in group["entries"]] == [tokyo, melbourne]
    assert group["timezone"] == "Asia/Tokyo"
    assert await group_of(client, "g") == group
    assert (await client.patch("/crons/g", {"timezone": "Mars/Base"})).status == 400
    cleared = (await client.patch("/crons/g", {"timezone": None})).doc
    assert "timezone" not in cleared
    assert cleared["entries"][1]["next_enqueue_at"] == melbourne
    assert await group_of(client, "g") == cleared
    assert (await client.patch("/crons/g", {})).doc == cleared
    await put(client, "g", timezone="UTC")
    assert "timezone" not in await put(client, "g")


async def test_a_group_that_is_too_large_to_be_shown_is_changed_as_others_are(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.site.clock.step(1_700_000_000_000 - client.site.now)  # 2023-11-14T22:13:20Z
    utc, tokyo = 1_700_038_800_000, 1_700_006_400_000
    daily, own = entry("daily", "0 9 * * *"), entry("own", "0 9 * * *", timezone="UTC")
    large = entry("large", "0 9 * * *", job={"payload": "x" * 2_000})
    before = await put(client, "g", daily, own, large)
    monkeypatch.setattr(service_running, "MOST_SHOWN", 1_000)
    assert (await client.get("/crons/g")).status == 413

    paused = await client.patch("/crons/g", {"paused": True})
    assert (paused.status, paused.doc) == (
        200,
        {"name": "g", "paused": True, "paused_at": client.site.now},
    )
    assert await entry_of(client, "g", "large") == before["entries"][2]
    moved = await client.patch("/crons/g", {"paused": False, "timezone": "Asia/Tokyo"})
    assert (moved.status, moved.doc["timezone"]) == (200, "Asia/Tokyo")
    times = [(await entry_of(client, "g", e))["next_enqueue_at"] for e in ("daily", "own", "large")]
    assert times == [tokyo, utc, tokyo]

    await client.patch("/crons/g/entries/daily", {"paused": True})
    client.site.clock.step(-30 * SECOND_MS)
    replaced = await put(client, "g", large, daily, timezone="Asia/Tokyo")
    assert [e["next_enqueue_at"] for e in replaced["entries"]] == [tokyo, tokyo]
    assert [e["paused"] for e in replaced["entries"]] == [False, True]
    assert (await client.get("/crons/g/entries/own")).status == 404


async def test_many_entries_are_checked_in_slices(client: Client) -> None:
    turns = client.site.server.engine.turns
    before = turns.waited
    await put(client, "g", *[entry(f"e{n}") for n in range(300)])
    assert turns.waited - before >= 300 * ENTRY_STEPS // SLICE
