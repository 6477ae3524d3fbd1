"""The lists of jobs that viewers see, and the messages that they may send."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from conformance.client import JSON, Client
from conformance.keyed import secret, write_keys
from conformance.site import Site
from conformance.streams import PATIENCE_S
from documents import ID, code

from zq.engine.news.viewers import MOST_VIEWERS
from zq.wire.viewing import MAX_MESSAGE

from .viewing import ADMIN, Watcher, ids, watching

pytestmark = pytest.mark.settings(**ADMIN)

HEAD, TAIL = {"kind": "head"}, {"kind": "tail"}
NOBODY = "01AAAAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


@pytest.fixture
async def watcher(site: Site) -> AsyncIterator[Watcher]:
    """A viewer that has seen its first snapshot, of nothing."""
    async with watching(site) as watcher:
        snapshot = await watcher.hear()
        assert snapshot["event"] == "job_snapshot"
        yield watcher


# What it is shown


async def test_it_begins_with_the_first_jobs_of_each_list_in_their_order(
    site: Site, client: Client
) -> None:
    late = await client.make("scheduled", ready_at=site.now + 90_000)
    soon = await client.make("scheduled")
    (held,) = [await client.make("in_flight", queue="held")]
    second, third = await client.enqueue_many(2)
    first = (await client.enqueue(priority=1))["id"]

    async with watching(site) as watcher:
        snapshot = await watcher.hear()

    assert snapshot["event"] == "job_snapshot"
    assert ids(snapshot["ready"]) == [first, second, third]
    assert ids(snapshot["in_flight"]) == [held]
    assert set(ids(snapshot["scheduled"])) == {soon, late}
    server = snapshot["server"]
    totals = [server[f"total_{name}"] for name in ("ready", "in_flight", "scheduled")]
    assert totals == [snapshot[name]["total"] for name in ("ready", "in_flight", "scheduled")]
    assert (server["tier"], server["version"]) == ("pro", "0.7.0")
    assert "subscription_limit" not in server
    (shown,) = snapshot["in_flight"]["items"]
    assert set(shown) == {
        *("id", "queue", "job_type", "priority", "ready_at", "attempts", "dequeued_at")
    }


async def test_each_change_is_told_where_it_happens(watcher: Watcher, client: Client) -> None:
    id = (await client.enqueue())["id"]
    assert await watcher.changes(1) == [("ready", id)]

    stream = await client.take(prefetch=1)
    await stream.job()
    assert await watcher.changes(2) == [("ready_removed", id), ("in_flight", id)]

    await stream.close()
    assert await watcher.changes(2) == [("in_flight_removed", id), ("ready", id)]

    stream = await client.take(prefetch=1)
    await stream.job()
    await watcher.changes(2)
    await client.fail(id, retry_at=client.site.now + 3_600_000)
    assert await watcher.changes(3) == [
        *(("dead", id), ("in_flight_removed", id), ("scheduled", id))
    ]

    client.site.clock.advance(3_600_000)
    assert await watcher.changes(2) == [("scheduled_removed", id), ("in_flight", id)]

    await client.succeed(id)
    assert await watcher.changes(2) == [("completed", id), ("in_flight_removed", id)]


async def test_what_comes_and_goes_between_two_frames_is_not_told(
    watcher: Watcher, client: Client
) -> None:
    taken = await client.in_flight()
    await client.succeed(taken["id"])

    assert (await watcher.hear())["event"] == "heartbeat"


async def test_totals_are_told_where_no_window_shows_the_change(
    watcher: Watcher, client: Client
) -> None:
    first = (await client.enqueue())["id"]
    assert ids(await watcher.subscribe("ready", HEAD, 1)) == [first]
    await client.enqueue()

    heartbeat = await watcher.hear()
    while heartbeat["server"]["total_ready"] == 1:
        heartbeat = await watcher.hear()
    assert heartbeat["event"] == "heartbeat"


async def test_a_job_that_moves_up_into_the_window_enters_it(
    watcher: Watcher, client: Client
) -> None:
    jobs = await client.enqueue_many(3)
    assert ids(await watcher.subscribe("ready", HEAD, 2)) == jobs[:2]

    await client.delete(f"/jobs/{jobs[0]}")
    assert await watcher.changes(2) == [("ready_removed", jobs[0]), ("ready", jobs[2])]

    better = (await client.enqueue(priority=1))["id"]
    assert await watcher.changes(2) == [("ready_removed", jobs[2]), ("ready", better)]


async def test_a_patch_shows_the_windows_anew(watcher: Watcher, client: Client) -> None:
    id = (await client.enqueue())["id"]
    await watcher.changes(1)
    await client.change(id, retry_limit=3)

    snapshot = await watcher.hear_of("job_snapshot")
    assert ids(snapshot["ready"]) == [id]


async def test_many_changes_are_one_snapshot(watcher: Watcher, client: Client) -> None:
    jobs = await client.enqueue_many(100)

    event = await watcher.told()
    assert event["event"] == "job_snapshot"
    assert ids(event["ready"]) == jobs


async def test_silence_is_broken_by_a_heartbeat_every_two_seconds(watcher: Watcher) -> None:
    first = await watcher.hear()
    second = await watcher.hear()

    assert first["event"] == second["event"] == "heartbeat"
    passed = second["server"]["uptime_ms"] - first["server"]["uptime_ms"]
    assert 2_000 <= passed < 2_300


async def test_detail_shows_what_a_job_sets(watcher: Watcher, client: Client) -> None:
    await client.enqueue(
        payload={"a": 1}, retry_limit=2, unique_key="k", unique_while="active", retention={}
    )
    await watcher.changes(1)
    await watcher.say(type="set_detail_level", detail=True)

    (job,) = (await watcher.hear_of("job_snapshot"))["ready"]["items"]
    assert job["payload"] == {"a": 1}
    assert (job["retry_limit"], job["unique_key"], job["unique_while"]) == (2, "k", "active")


# Windows


@pytest.mark.parametrize(
    ("anchor", "first"),
    [
        (HEAD, 0),
        (TAIL, 7),
        ({"kind": "offset", "offset": 0}, 0),
        ({"kind": "offset", "offset": 4}, 4),
        ({"kind": "offset", "offset": 6}, 6),
        ({"kind": "offset", "offset": 10**30}, 7),
    ],
)
async def test_a_window_is_where_its_anchor_says(
    watcher: Watcher, client: Client, anchor: dict[str, Any], first: int
) -> None:
    jobs = await client.enqueue_many(10)

    window = await watcher.subscribe("ready", anchor, 3)

    assert ids(window) == jobs[first : first + 3]
    assert (window["first_position"], window["total"]) == (first, 10)
    assert "resolved_anchor" not in window


@pytest.mark.parametrize(("at", "first"), [(0, 0), (5, 4), (9, 7)])
async def test_a_window_around_a_job_has_it_in_the_middle_and_goes_with_it(
    watcher: Watcher, client: Client, at: int, first: int
) -> None:
    jobs = await client.enqueue_many(10)

    window = await watcher.subscribe("ready", {"kind": "around", "id": jobs[at]}, 3)
    assert ids(window) == jobs[first : first + 3]
    assert (window["resolved_anchor"], window["first_position"]) == (jobs[at], first)

    better = (await client.enqueue(priority=1))["id"]
    if first:  # all positions are others
        snapshot = await watcher.hear_of("job_snapshot")
        assert ids(snapshot["ready"]) == jobs[first : first + 3]
        assert snapshot["ready"]["first_position"] == first + 1
    else:
        assert await watcher.changes(2) == [("ready_removed", jobs[2]), ("ready", better)]


@pytest.mark.parametrize(
    ("fallback", "shown"),
    [
        ({}, []),
        ({"fallback": "nowhere"}, []),
        ({"fallback": "head"}, [0]),
        ({"fallback": "tail"}, [1]),
    ],
)
@pytest.mark.parametrize("id", [NOBODY, "no id"])
async def test_a_window_around_a_job_that_is_not_there_falls_back(
    watcher: Watcher, client: Client, id: str, fallback: dict[str, str], shown: list[int]
) -> None:
    jobs = await client.enqueue_many(2)

    window = await watcher.subscribe("ready", {"kind": "around", "id": id, **fallback}, 1)

    assert ids(window) == [jobs[index] for index in shown]
    assert window["total"] == 2


@pytest.mark.parametrize("list", ["in_flight", "scheduled"])
async def test_the_other_lists_have_windows_too(
    watcher: Watcher, client: Client, list: str
) -> None:
    jobs = [await client.make(list, queue=f"q{n}") for n in range(4)]

    tail = await watcher.subscribe(list, TAIL, 2)
    around = await watcher.subscribe(list, {"kind": "around", "id": jobs[1]}, 2)

    assert ids(tail) == jobs[2:]
    assert tail["first_position"] == 2
    assert ids(around) == jobs[:2]


# Searches


async def found(watcher: Watcher, **changes: Any) -> tuple[int | None, list[str]]:
    """(position, ids of the window) of what a search finds."""
    usual = {"list": "ready", "anchor": {"kind": "start"}, "direction": "forward", "limit": 1}
    await watcher.say(**{"type": "find", **usual, **changes})
    event = await watcher.hear_of("find_result")
    assert event["list"] == changes.get("list", "ready")
    return event["matched_position"], ids(event["window"])


async def test_a_search_goes_from_match_to_match_either_way(
    watcher: Watcher, client: Client
) -> None:
    names = [("mail-in", "send"), ("web", "crawl"), ("mail-out", "send"), ("web", "send")]
    jobs = [(await client.enqueue(queue=q, type=t))["id"] for q, t in names]
    mail = {"queues": ["mail"]}

    def beyond(index: int) -> dict[str, Any]:
        return {"kind": "job_id", "id": jobs[index]}

    assert await found(watcher, query=mail) == (0, [jobs[0]])
    assert await found(watcher, query=mail, anchor=beyond(0)) == (2, [jobs[2]])
    assert await found(watcher, query=mail, anchor=beyond(2)) == (None, [])
    backward = {"direction": "backward", "query": mail}
    assert await found(watcher, **backward, anchor={"kind": "end"}) == (2, [jobs[2]])
    assert await found(watcher, **backward, anchor=beyond(2)) == (0, [jobs[0]])
    # The words of a field are alternatives; both fields have to match.
    both = {"queues": ["web", "in"], "types": ["nd"]}
    assert await found(watcher, query=both, anchor=beyond(0)) == (3, [jobs[3]])
    # A job that is not there is as good as the end that it comes from.
    gone = {"kind": "job_id", "id": NOBODY}
    assert await found(watcher, query=mail, anchor=gone) == (0, [jobs[0]])
    assert await found(watcher, **backward, anchor=gone) == (2, [jobs[2]])
    # There is nothing beyond an end.
    assert await found(watcher, **backward) == (None, [])
    assert await found(watcher, anchor={"kind": "end"}) == (None, [])


async def test_a_search_can_locate_a_job(watcher: Watcher, client: Client) -> None:
    jobs = await client.enqueue_many(5)
    locate = {"direction": "locate", "limit": 3}

    there = {"kind": "job_id", "id": jobs[3]}
    assert await found(watcher, **locate, anchor=there) == (3, jobs[2:])
    nobody = {"kind": "job_id", "id": NOBODY}
    assert await found(watcher, **locate, anchor=nobody) == (None, [])


@pytest.mark.parametrize("list", ["in_flight", "scheduled"])
async def test_the_other_lists_are_searched_too(
    watcher: Watcher, client: Client, list: str
) -> None:
    await client.make(list, queue="web")
    sought = await client.make(list, queue="mail")

    assert await found(watcher, list=list, query={"queues": ["mail"]}) == (1, [sought])


async def test_the_messages_of_the_documents_are_understood(
    watcher: Watcher, client: Client
) -> None:
    id = (await client.enqueue(queue="mail", type="send"))["id"]
    for line in code("admin messages").replace(ID, id).splitlines():
        await watcher.socket.send_str(line)
    heard = [await watcher.told()]
    while heard[-1]["event"] != "job_snapshot" or ids(heard[-1]["ready"]):
        heard.append(await watcher.told())
    assert not [event for event in heard if event["event"] == "error"]
    assert [e["matched_position"] for e in heard if e["event"] == "find_result"] == [0, 0]
    assert not await client.exists(id)


# Deleting


async def test_a_viewer_deletes_a_job_and_sees_it_go(watcher: Watcher, client: Client) -> None:
    id = (await client.enqueue())["id"]
    await watcher.changes(1)

    await watcher.say(type="delete_job", id=id)

    assert await watcher.changes(1) == [("ready_removed", id)]
    assert not await client.exists(id)


async def test_deleting_what_is_not_there_is_told(watcher: Watcher) -> None:
    await watcher.say(type="delete_job", id=NOBODY)

    assert (await watcher.hear_of("error"))["code"] == "job_not_found"


# Messages that are none

SUBSCRIBE = {"type": "subscribe", "list": "ready", "anchor": HEAD, "limit": 5}


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", "[]", "{}", "null", '{"type":"bogus"}', "[" * 2000, '"\\ud800"'),
        *('{"type":"subscribe"}', '{"type":"set_detail_level","detail":1}'),
        '{"type":"subscribe","list":"dead","anchor":{"kind":"head"},"limit":5}',
        '{"type":"subscribe","list":"ready","anchor":{"kind":"offset","offset":-1},"limit":5}',
        '{"type":"subscribe","list":"ready","anchor":{"kind":"head"},"limit":"5"}',
        '{"type":"find","list":"ready","anchor":{"kind":"head"},"direction":"forward","limit":1}',
    ],
)
async def test_a_message_that_is_none_is_told_and_changes_nothing(
    watcher: Watcher, client: Client, text: str
) -> None:
    await watcher.socket.send_str(text)

    error = await watcher.hear_of("error")
    assert (error["code"], "invalid message" in error["error"]) == ("invalid_request", True)
    id = (await client.enqueue())["id"]
    assert await watcher.changes(1) == [("ready", id)]


async def test_a_message_that_is_too_long_ends_the_connection(watcher: Watcher) -> None:
    await watcher.socket.send_str("x" * (MAX_MESSAGE + 1))

    closed = await watcher.socket.receive(timeout=PATIENCE_S)
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1009)


# Who gets in


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "rebound.example"}, 403),
    ],
)
async def test_a_page_of_another_site_opens_no_socket(
    site: Site, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        async with watching(site, headers=headers):
            pass
    assert refusal.value.status == status
    async with watching(site, headers={"Origin": site.admin_url}) as own:
        await own.hear_of("job_snapshot")


def bearing(name: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {secret(name)}"}}


async def test_keys_hold_for_viewers(tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys")
    site = Site(tmp_path / "data", {**ADMIN, "keys": keys})
    await site.start()
    for options, status in [({}, 401), (bearing("not-read"), 403), (bearing("shop"), 403)]:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            async with watching(site, **options):
                pass
        assert refusal.value.status == status

    async with (
        Client(site, JSON, secret("root")) as client,
        watching(site, **bearing("only-read")) as reader,
        watching(site, **bearing("root")) as owner,
    ):
        id = (await client.enqueue())["id"]
        await reader.say(type="delete_job", id=id)
        assert (await reader.hear_of("error"))["code"] == "scope_missing"
        assert await client.exists(id)
        await owner.say(type="delete_job", id=id)
        await client.until_gone(id)

        # A key that is taken away takes the viewer with it.
        write_keys(keys, "only-read")
        site.server.reload()
        await ended(reader)
        assert not owner.socket.closed
    await site.stop()


async def ended(watcher: Watcher) -> int | None:
    """The code with which the server closes; what comes before is dropped."""
    async with asyncio.timeout(PATIENCE_S):
        while not watcher.socket.closed:
            await watcher.socket.receive()
    return watcher.socket.close_code


async def test_what_is_no_upgrade_is_told_so(site: Site) -> None:
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.get(f"{site.admin_url}/events") as answer,
    ):
        assert (answer.status, answer.headers["Upgrade"]) == (426, "websocket")
        assert "WebSocket" in (await answer.json())["error"]


async def test_viewers_are_bounded(site: Site) -> None:
    viewers = site.server.services.viewers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zq.engine.news.viewers.MOST_VIEWERS", 1)
        async with watching(site):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
                async with watching(site):
                    pass
            assert refusal.value.status == 503
    assert MOST_VIEWERS > 20
    assert len(viewers) <= 1
