"""What viewers send: the messages of the documents, deletions, and messages that are none."""

import aiohttp
import pytest
from conformance.client import Client
from conformance.streams import PATIENCE_S
from documents import ID, code

from zq.operators.admin.wire import MAX_MESSAGE

from .viewing import ADMIN, NOBODY, Watcher, ids

pytestmark = pytest.mark.settings(**ADMIN)


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


async def test_a_message_that_is_none_is_told_and_changes_nothing(
    watcher: Watcher, client: Client
) -> None:
    for text in [
        *("", "hello", "[]", "{}", "null", '{"type":"bogus"}', "[" * 2000, '"\\ud800"'),
        *('{"type":"subscribe"}', '{"type":"set_detail_level","detail":1}'),
        '{"type":"subscribe","list":"dead","anchor":{"kind":"head"},"limit":5}',
        '{"type":"subscribe","list":"ready","anchor":{"kind":"offset","offset":-1},"limit":5}',
        '{"type":"subscribe","list":"ready","anchor":{"kind":"head"},"limit":"5"}',
        '{"type":"find","list":"ready","anchor":{"kind":"head"},"direction":"forward","limit":1}',
    ]:
        await watcher.socket.send_str(text)

        error = await watcher.hear_of("error")
        assert error["code"] == "invalid_request", text
        assert "invalid message" in error["error"], text
        id = (await client.enqueue())["id"]
        assert await watcher.changes(1) == [("ready", id)], text


async def test_a_message_that_is_too_long_ends_the_connection(watcher: Watcher) -> None:
    await watcher.socket.send_str("x" * (MAX_MESSAGE + 1))

    closed = await watcher.socket.receive(timeout=PATIENCE_S)
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1009)
