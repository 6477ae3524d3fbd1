"""One stream tells of many topics, and goes on where it was."""

import asyncio
import base64
import json
import re
from typing import Any

import pytest
from conformance.client import JSON, Client, Wire
from conformance.site import Site
from conformance.streams import PATIENCE_S, StreamEnded, pause

from zq.doors.topics.engine import TopicReaders
from zq.doors.topics.http.streams import FrameWriter
from zq.doors.topics.service import Watches
from zq.doors.topics.store import TopicReads

from .frames import Frames
from .records import Doc, Records, refused, told


@pytest.fixture
async def log(site: Site, wire: Wire) -> Any:
    async with Client(site, wire) as client:
        yield Records(client)


async def make(log: Records, topics: Doc, **fields: Any) -> Doc:
    return told(await log.native.post("/v0/watch", {"topics": topics, **fields}))


async def watch(log: Records, topics: Doc, **fields: Any) -> Frames:
    session = await make(log, topics, **fields)
    return await Frames.open(log.native, session["stream_url"])


def seqs(data: Doc) -> list[int]:
    return [record["$seq"] for record in data["records"]]


async def test_a_session_says_where_it_begins_and_its_stream_what_is_new(log: Records) -> None:
    await log.append("t", *range(5))
    await log.append("u", "old")
    session = await make(log, {"t": {"from_seq": 3}, "u": {"tail": True}}, node="me")
    assert session["wid"].startswith("wid_") and len(session["wid"]) >= 26
    assert session["stream_url"] == f"/v0/watch/{session['wid']}"
    assert session["session_ttl_ms"] == 300_000
    assert session["topics"] == {
        "t": {"from_seq": 3, "head_seq": 5, "earliest_seq": 1},
        "u": {"from_seq": 1, "head_seq": 1, "earliest_seq": 1},
    }
    stream = await Frames.open(log.native, session["stream_url"])
    assert await stream.frame() == {"retry": "2000"}
    assert await stream.frame() == {"": f"hb {log.site.clock.now_ms()}"}
    seen: dict[str, list[str]] = {"t": [], "u": []}
    for _ in range(3):
        name, data, _ = await stream.event()
        seen[data["topic"]].append(name)
        if name == "record":
            assert seqs(data) == [4, 5]
            assert (data["from_seq"], data["to_seq"], data["head_seq"]) == (3, 5, 5)
    assert seen == {"t": ["record", "caught-up"], "u": ["caught-up"]}
    await log.append("u", "mine", node="me")
    await log.append("u", "new", node="other")
    data, _ = await stream.expect("record", topic="u", to_seq=3)
    assert data["records"] == [
        {"$seq": 3, "$ts": log.site.clock.now_ms(), "$node": "other", "data": "new"}
    ]
    await stream.expect("caught-up", topic="u", head_seq=3)


async def test_pages_have_no_more_records_or_bytes_than_are_asked_for(log: Records) -> None:
    await log.append("t", *["x" * 100] * 5)
    stream = await watch(log, {"t": {}}, limit=2)
    for expected in ([1, 2], [3, 4], [5]):
        assert seqs((await stream.expect("record"))[0]) == expected
    await stream.expect("caught-up", head_seq=5)
    stream = await watch(log, {"t": {}}, max_batch_bytes=250)
    assert seqs((await stream.expect("record"))[0]) == [1, 2, 3]


async def test_records_show_what_was_asked_for(log: Records) -> None:
    await log.post("t", {"records": [{"data": 1, "tag": "x", "meta": {"k": 1}}]})
    at = log.site.clock.now_ms()
    cases: list[tuple[Doc, Doc]] = [
        ({}, {"data": 1, "meta": {"k": 1}}),
        ({"include_data": False, "include_meta": False, "include_tags": True}, {"$tag": "x"}),
    ]
    for asked, shown in cases:
        stream = await watch(log, {"t": {}}, **asked)
        data, _ = await stream.expect("record")
        assert data["records"] == [{"$seq": 1, "$ts": at, **shown}]
        await stream.close()


async def test_data_that_was_sent_in_several_lines_is_one_line_of_an_event(log: Records) -> None:
    body = b'{"records": [{"data": {"a":\r\n"x",\n "b": [1\r, 2]}}]}'
    headers = {"content-type": "application/json"}
    assert (await log.native.send("POST", "/v0/topics/t", body, headers)).status == 201
    stream = await watch(log, {"t": {}})
    data, _ = await stream.expect("record")
    assert data["records"][0]["data"] == {"a": "x", "b": [1, 2]}


async def test_a_reader_comes_back_to_where_its_session_is(log: Records) -> None:
    await log.append("t", 1, 2)
    session = await make(log, {"t": {}})
    first = await Frames.open(log.native, session["stream_url"])
    _, backlog = await first.expect("record", to_seq=2)
    _, drained = await first.expect("caught-up")
    assert backlog == drained
    await first.close()
    await log.append("t", 3)
    for last_id in (backlog, "", "nonsense", _id(t=99), _id(other=1)):
        stream = await Frames.open(log.native, session["stream_url"], **{"last-event-id": last_id})
        if last_id == backlog:
            assert seqs((await stream.expect("record"))[0]) == [3], "the backlog is not sent again"
        await stream.expect("caught-up", head_seq=3)
        await stream.close()
    stream = await Frames.open(log.native, session["stream_url"], **{"last-event-id": _id(t=1)})
    assert seqs((await stream.expect("record"))[0]) == [2, 3], "it may go back"


async def test_a_place_that_fits_no_header_is_known_to_the_session_alone(log: Records) -> None:
    names = [f"{n:03}" + "x" * 252 for n in range(100)]
    await asyncio.gather(*(log.append(name, 1) for name in names))
    session = await make(log, {name: {} for name in names})
    stream = await Frames.open(log.native, session["stream_url"])
    _, id = await stream.expect("record")
    assert id == ""
    for _ in range(199):
        await stream.event()
    await stream.close()
    await log.append(names[5], 2)
    stream = await Frames.open(log.native, session["stream_url"])
    found = [await stream.event() for _ in range(101)]
    assert [seqs(data) for name, data, _ in found if name == "record"] == [[2]]


async def test_a_second_stream_of_a_session_ends_the_first(log: Records) -> None:
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    first = await Frames.open(log.native, session["stream_url"])
    await first.expect("record")
    second = await Frames.open(log.native, session["stream_url"])
    await log.append("t", 2)
    await first.expect("caught-up", head_seq=1)
    with pytest.raises(StreamEnded):
        await first.event()
    found: list[int] = []
    while found != [2]:
        name, data, _ = await second.event()
        found = seqs(data) if name == "record" else found


@pytest.mark.parametrize("happens", ["record", "topic-deleted"])
async def test_a_stream_that_was_replaced_takes_nothing_from_the_next_one(
    log: Records, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    """It is within a read when the next one begins, and at its end before that one reads."""
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    first = await Frames.open(log.native, session["stream_url"])
    await first.expect("record")
    await first.expect("caught-up")
    page, beat = TopicReads.page, FrameWriter.beat
    reads, reads_on, begins = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def held_page(*args: Any, **more: Any) -> Any:
        reads.set()
        await reads_on.wait()
        return await page(*args, **more)

    async def held_beat(writer: FrameWriter, *, first: bool = False) -> None:
        if first:
            await begins.wait()
        await beat(writer, first=first)

    monkeypatch.setattr(TopicReads, "page", held_page)
    monkeypatch.setattr(FrameWriter, "beat", held_beat)
    if happens == "record":
        await log.append("t", 2)
    else:
        await log.native.send("DELETE", "/v0/topics/t")
    await reads.wait()
    second = await Frames.open(log.native, session["stream_url"], **{"last-event-id": _id(t=1)})
    reads_on.set()
    with pytest.raises(StreamEnded):
        while True:
            await first.event()
    begins.set()
    data, _ = await second.expect(happens, topic="t")
    if happens == "record":
        assert (data["from_seq"], seqs(data)) == (1, [2])


async def test_a_reader_is_told_what_it_has_missed(log: Records) -> None:
    await log.put("t", cap_records=2)
    await log.append("t", *range(5))
    stream = await watch(log, {"t": {"from_seq": 1}})
    data, id = await stream.expect("tombstone", topic="t", reason="cap", gap_from=2, gap_to=3)
    assert (data["earliest_seq"], data["head_seq"], data["missed_estimate"]) == (4, 5, 2)
    assert id == _id(t=3)
    assert seqs((await stream.expect("record", from_seq=3))[0]) == [4, 5]
    await stream.expect("caught-up")


async def test_a_topic_that_is_deleted_ends_for_its_watchers_and_no_other_does(
    log: Records,
) -> None:
    await log.append("t", 1)
    await log.append("u", 1)
    stream = await watch(log, {"t": {"tail": True}, "u": {"tail": True}})
    for _ in range(2):
        await stream.expect("caught-up")
    await log.native.send("DELETE", "/v0/topics/t")
    _, id = await stream.expect("topic-deleted", topic="t", reason="deleted")
    assert id == _id(u=1)
    await log.append("t", "another topic")
    await log.append("u", 2)
    await stream.expect("record", topic="u")


async def test_a_reset_is_told_to_the_watchers_of_other_topics_too(log: Records) -> None:
    """RACE: a write is in the same tick."""
    for _ in range(5):
        await log.append("t", 1)
        stream = await watch(log, {"t": {"tail": True}})
        await stream.expect("caught-up")
        await asyncio.gather(log.native.send("POST", "/reset"), log.append("u", 1))
        await stream.expect("topic-deleted", topic="t")
        await stream.close()


async def test_a_silent_stream_gives_signs_of_life_at_the_interval_of_its_session(
    log: Records,
) -> None:
    await log.append("t", 1)
    stream = await watch(log, {"t": {"tail": True}}, heartbeat_ms=2_000)
    await stream.expect("caught-up")
    for _ in range(2):
        log.site.clock.advance(2_500)
        assert await stream.frame() == {"": f"hb {log.site.clock.now_ms()}"}


async def test_a_session_that_nobody_reads_is_forgotten(log: Records) -> None:
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    log.site.clock.advance(299_999)
    stream = await Frames.open(log.native, session["stream_url"])
    await stream.expect("record")
    log.site.clock.advance(300_000)
    await log.append("t", 2)
    await stream.expect("caught-up")
    await stream.expect("record")
    await stream.close()
    async with asyncio.timeout(PATIENCE_S):
        while (figures := await _figures(log))["topics_sse_connections"]:
            await pause()
    assert figures["topics_watch_sessions"] == 1
    log.site.clock.advance(300_000)
    assert (await _figures(log))["topics_watch_sessions"] == 0
    headers = {"accept": "text/event-stream"}
    reply = await log.native.send("GET", session["stream_url"], headers=headers)
    assert refused(reply) == (404, "not_found")


async def test_a_stream_wants_a_client_that_reads_events(log: Records) -> None:
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    reply = await log.native.send("GET", session["stream_url"])
    assert refused(reply) == (406, "not_acceptable")


async def test_a_server_that_stops_ends_its_streams_and_forgets_their_sessions(
    log: Records,
) -> None:
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    stream = await Frames.open(log.native, session["stream_url"])
    await stream.expect("record")
    await log.site.restart()
    await stream.expect("caught-up")
    with pytest.raises(StreamEnded):
        await stream.event()


async def test_a_reader_that_stops_reading_holds_back_its_own_stream_and_loses_nothing(
    site: Site,
) -> None:
    async with Client(site, JSON) as client:
        log = Records(client)
        for n in range(32):
            await log.append("t", f"{n:02}" + "x" * 1_000_000)
        session = await make(log, {"t": {}})
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=4_096)
        head = f"GET {session['stream_url']} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        writer.write(head.encode())
        # Little is held for a reader that does not read, perhaps not even the first record.
        before, now = -1, 0
        while before != now:
            for _ in range(50):
                assert (await client.get("/v0/health")).status == 200, "others go on"
            cursors = site.server.services[Watches].session(session["wid"]).cursors
            before, now = now, cursors["t"]
        assert now < 32
        text = bytearray()
        async with asyncio.timeout(PATIENCE_S):
            while b"event: caught-up" not in text[-1_000:]:
                text += await reader.read(1 << 20)
        assert re.findall(rb'"(\d\d)xxx', text) == [b"%02d" % n for n in range(32)]
        writer.close()


async def test_many_readers_of_one_topic_are_all_woken_by_one_write(log: Records) -> None:
    """RACE: more readers look at the topic at once than may wait for a long read."""
    await log.append("t", 1)
    streams = [await watch(log, {"t": {"tail": True}}) for _ in range(40)]
    for stream in streams:
        await stream.expect("caught-up")
    patient = [asyncio.create_task(log.diff("t", 1, wait_ms=30_000)) for _ in range(40)]
    async with asyncio.timeout(PATIENCE_S):
        while len(log.site.server.engine[TopicReaders]) < 80:
            await pause()
    await log.append("t", 2)
    for stream in streams:
        assert seqs((await stream.expect("record"))[0]) == [2]
    for waiting in patient:
        assert [record["$seq"] for record in (await waiting)["records"]] == [2]


@pytest.mark.parametrize(
    ("topics", "fields", "status", "code"),
    [
        ({}, {}, 400, "invalid_request"),
        ({"_t": {}}, {}, 400, "invalid_request"),
        ({"t": {"from_seq": -1}}, {}, 400, "invalid_request"),
        ({"t": {}}, {"consistency": "odd"}, 400, "invalid_request"),
        ({f"t{n}": {} for n in range(257)}, {}, 400, "invalid_request"),
        ({"t": {}}, {}, 404, "topic_not_found"),
    ],
    ids=["nothing", "name", "cursor", "consistency", "too many", "not there"],
)
async def test_a_session_that_makes_no_sense_is_refused(
    log: Records, topics: Doc, fields: Doc, status: int, code: str
) -> None:
    reply = await log.native.post("/v0/watch", {"topics": topics, **fields})
    assert refused(reply) == (status, code)


async def test_topics_that_are_not_there_may_be_left_out(log: Records) -> None:
    await log.append("t", 1)
    reply = await log.native.post("/v0/watch?lenient=true", {"topics": {"t": {}, "none": {}}})
    assert list(told(reply)["topics"]) == ["t"]


def _id(**cursors: int) -> str:
    text = json.dumps(cursors, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


async def _figures(log: Records) -> Doc:
    return told(await log.native.get("/v0/metrics"))


@pytest.mark.parametrize(
    ("place", "limit"),
    [
        ("zq.doors.topics.service.MAX_SESSIONS", "max_watch_sessions"),
        ("zq.doors.topics.http.streams.MOST_STREAMS", "max_sse_connections"),
    ],
    ids=["sessions", "streams"],
)
async def test_there_is_a_bounded_number_of_sessions_and_streams(
    log: Records, monkeypatch: pytest.MonkeyPatch, place: str, limit: str
) -> None:
    monkeypatch.setattr(place, 1)
    await log.append("t", 1)
    session = await make(log, {"t": {}})
    stream = await Frames.open(log.native, session["stream_url"])
    if limit == "max_watch_sessions":
        reply = await log.native.post("/v0/watch", {"topics": {"t": {}}})
    else:
        headers = {"accept": "text/event-stream"}
        reply = await log.native.send("GET", session["stream_url"], headers=headers)
    assert refused(reply) == (429, "throttled")
    assert reply.doc["error"]["detail"] == {"limit": limit, "max": 1}
    assert reply.headers["retry-after"] == "1"
    await stream.expect("record")
