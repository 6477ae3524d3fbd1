"""The live view: snapshots, changes, limits, and what it costs."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from conformance.site import Site

from zq.features.failures.service import Failures
from zq.features.trends.model import MINUTE_MS
from zq.model.errors import ReadersBusy
from zq.model.reach import EVERYWHERE
from zq.operators.page.http.live import KEPT_S, MOST_READERS, MOST_VIEWS, LiveViews
from zq.operators.page.http.views import View, ViewFrame, Views, changed
from zq.operators.page.service import Overviews
from zq.store import lookups
from zq.store.snapshot import Snapshot

pytestmark = pytest.mark.settings(no_admin=False, admin_port=0)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(trust_env=False, connector=connector) as session:
        yield session


async def frame(answer: aiohttp.ClientResponse) -> Any:
    """The next frame."""
    async with asyncio.timeout(60):
        while not (line := await answer.content.readline()).startswith(b"data: "):
            assert line, "the stream has ended"
    return json.loads(line[6:])


def live(site: Site, http: aiohttp.ClientSession, **view: Any) -> Any:
    return http.get(f"{site.admin_url}/ui/live", params=view)


async def push(site: Site, http: aiohttp.ClientSession, queue: str) -> None:
    job = {"queue": queue, "type": "t", "payload": 1}
    async with http.post(f"{site.url}/jobs", json=job) as answer:
        assert answer.status == 201


async def test_a_snapshot_comes_first_and_then_what_has_changed(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await push(site, http, "mail")
    async with live(site, http, topic="overview") as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Accel-Buffering"] == "no"
        first = await frame(answer)
        assert first["full"]["queues"]["mail"]["counts"] == {"ready": 1}
        await push(site, http, "mail")
        site.clock.advance(1_000)
        second = await frame(answer)
    assert second["seq"] == first["seq"] + 1
    mail = second["patch"]["queues"]["mail"]
    assert mail["counts"] == {"ready": 2}
    assert mail.keys() <= {"counts", "arrived", "growth"}
    # A slow disk would be a finding.
    assert second["patch"]["pulse"]["totals"] == {"ready": 2}
    assert "known_queues" not in second["patch"]


async def test_a_view_that_is_new_begins_with_the_last_look_if_that_is_fresh(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await push(site, http, "mail")
    async with live(site, http, topic="overview") as answer:
        await frame(answer)
        await push(site, http, "sms")
        async with live(site, http, topic="queues") as other:
            assert list((await frame(other))["full"]["queues"]) == ["mail"]
            site.clock.advance(1_000)
            assert list((await frame(other))["patch"]["queues"]) == ["sms"]


async def test_a_page_that_comes_back_soon_has_only_queues_read_that_have_changed(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = site.server.services
    live = LiveViews(Views(services, None), services[Overviews], site.clock)
    read, asked = lookups.visible_counts, list[Any]()

    def noted(snapshot: Snapshot, now: int, queues: Any = None) -> Any:
        asked.append(queues)
        return read(snapshot, now, queues)

    monkeypatch.setattr(lookups, "visible_counts", noted)
    for queue in ("mail", "sms", "fax"):
        await push(site, http, queue)
    for away, reads in ((0, [None]), (4, [["fax", "new"]]), (KEPT_S, [None])):
        site.clock.advance(away * 1_000)
        asked.clear()
        await push(site, http, "fax")
        await push(site, http, "new")
        with live.reader(View("queues", EVERYWHERE)) as reader:
            while reader.shared.frame is None:
                await reader.wait()
            found = reader.shared.frame.document
        assert found["matching"] == 4
        assert asked == reads
    live.close()


async def test_what_is_done_on_the_page_is_shown_before_the_next_look_is_due(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await push(site, http, "mail")
    async with live(site, http, topic="overview") as answer:
        await frame(answer)
        pause = {"paused": True}
        target = f"{site.admin_url}/ui/api/queues/mail/settings"
        async with http.put(target, json=pause) as done:
            assert done.status == 200
        second = await frame(answer)
    assert second["patch"]["queues"]["mail"]["paused"] is True


async def test_jobs_that_wait_long_are_told_with_when_they_are_drained(
    site: Site, http: aiohttp.ClientSession
) -> None:
    def told(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [
            (each["code"], re.sub(r"\d+ min", "N min", queue["text"]))
            for each in findings
            if "queues" in each
            for queue in each["queues"]
        ]

    for _ in range(3):
        await push(site, http, "mail")
    site.clock.advance(6 * MINUTE_MS)
    claim = {"max": 1, "lease_ms": MINUTE_MS, "holder": "w"}
    async with http.post(f"{site.url}/queues/mail/claim", json=claim) as answer:
        (job,) = (await answer.json())["jobs"]
    begin = "2 waiting"
    async with live(site, http, topic="overview") as answer:
        first = (await frame(answer))["full"]["findings"]
        assert told(first) == [("old", f"{begin}, none done in five minutes")]
        report = {"lease": job["lease"]}
        async with http.post(f"{site.url}/jobs/{job['id']}/success", json=report) as done:
            assert done.status == 204
        site.clock.advance(1_000)
        second = (await frame(answer))["patch"]["findings"]
        assert told(second) == [("old", f"{begin}, drained in N min")]


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
        ({}, {"a": {}}, {"a": {}}),
    ],
    ids=str,
)
def test_a_change_is_a_merge_patch(
    before: dict[str, object], after: dict[str, object], patch: dict[str, object]
) -> None:
    assert changed(before, after) == patch


def test_a_frame_is_encoded_once_for_all_its_readers() -> None:
    made = ViewFrame(1, 5, {"a": 1}, {"a": 0})

    assert made.whole is made.whole
    assert made.change is made.change
    assert made.change == b'data: {"seq":1,"at":5,"patch":{"a":1}}\n\n'


async def test_readers_of_one_view_share_its_frames_and_views_are_limited(
    site: Site, http: aiohttp.ClientSession
) -> None:
    open_streams = [await live(site, http, topic="queues", q=str(n)) for n in range(MOST_VIEWS)]
    for answer in open_streams:
        await frame(answer)
    async with live(site, http, topic="queues", q="another") as answer:
        assert answer.status == 503
        assert "different views" in (await answer.json())["error"]
    async with http.get(
        f"{site.admin_url}/ui/look", params={"topic": "queues", "q": "x"}
    ) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert (await answer.json())["full"]["matching"] == 0
    async with live(site, http, topic="queues", q="0") as answer:
        assert answer.status == 200
    for answer in open_streams:
        answer.close()
    assert MOST_READERS == 200


@pytest.mark.parametrize(
    ("view", "status"),
    [
        ({"topic": "nothing"}, 400),
        ({"topic": "queues", "sort": "colour"}, 400),
        ({"topic": "queues", "limit": "101"}, 400),
        ({"topic": "queue", "queue": ""}, 400),
        ({"topic": "queues", "colour": "red"}, 400),
        ({"topic": "queue", "queue": "mail"}, 200),
        ({"topic": "workers"}, 200),
        ({"topic": "failures"}, 200),
        ({"topic": "health"}, 200),
        ({"topic": "pulse"}, 200),
    ],
    ids=str,
)
async def test_a_view_is_checked(
    site: Site, http: aiohttp.ClientSession, view: dict[str, str], status: int
) -> None:
    async with http.get(f"{site.admin_url}/ui/look", params=view) as answer:
        assert answer.status == status
    async with live(site, http, **view) as answer:
        assert answer.status == status


async def test_queues_are_found_sorted_and_cut_by_the_server(
    site: Site, http: aiohttp.ClientSession
) -> None:
    for queue in ("mail-b", "mail-a", "mail-a", "sms"):
        await push(site, http, queue)
    view = {"topic": "queues", "q": "mail", "sort": "waiting", "limit": "1"}
    async with live(site, http, **view) as answer:
        first = (await frame(answer))["full"]
        assert (first["order"], first["matching"]) == (["mail-a"], 2)
    async with live(site, http, **view, **{"from": "1"}) as answer:
        assert (await frame(answer))["full"]["order"] == ["mail-b"]


async def test_silence_is_broken_by_a_comment(site: Site, http: aiohttp.ClientSession) -> None:
    async with live(site, http, topic="pulse") as answer:
        await frame(answer)
        async with asyncio.timeout(60):
            site.clock.advance(2_100)
            while (line := await answer.content.readline()) == b"\n":
                pass
        assert line == b": 0 ms old\n"


async def test_a_page_is_told_how_old_its_numbers_are_while_looks_fail(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def comment(answer: aiohttp.ClientResponse) -> bytes:
        async with asyncio.timeout(60):
            while not (line := await answer.content.readline()).startswith(b": "):
                pass
        return line

    async def refused() -> None:
        raise ReadersBusy("all readers are busy")

    async with live(site, http, topic="pulse") as answer:
        await frame(answer)
        with monkeypatch.context() as patch:
            patch.setattr(site.server.services[Overviews], "take", refused)
            await push(site, http, "mail")
            site.clock.advance(2_100)
            assert await comment(answer) == b": 2100 ms old\n"
            site.clock.advance(2_100)
            assert await comment(answer) == b": 4200 ms old\n"
        site.clock.advance(1_000)
        assert (await frame(answer))["patch"]["pulse"]["totals"] == {"ready": 1}
        site.clock.advance(2_100)
        assert await comment(answer) == b": 0 ms old\n"


async def test_a_view_that_could_not_be_made_once_is_there_again(
    site: Site, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although somebody else has had it open all the time."""

    async def refused(reach: object) -> None:
        raise ReadersBusy("all readers are busy")

    async def look_until(status: int) -> None:
        async with asyncio.timeout(60):
            while True:
                view = {"topic": "overview"}
                async with http.get(f"{site.admin_url}/ui/look", params=view) as answer:
                    if answer.status == status:
                        return

    async with live(site, http, topic="overview") as answer:
        await frame(answer)
        with monkeypatch.context() as patch:
            patch.setattr(site.server.services[Failures], "causes", refused)
            await push(site, http, "mail")
            site.clock.advance(1_000)
            await look_until(503)
        site.clock.advance(5_000)
        await look_until(200)
