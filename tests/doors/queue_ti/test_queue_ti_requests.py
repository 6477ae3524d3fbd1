"""What queue-ti's door makes of requests: bodies, ids, paths, probes, and what it refuses."""

import pytest

from .messages import Messages

BAD = [
    ("/messages", b"{", "application/json"),
    ("/messages", b"{}", "application/json"),
    ("/messages", b'{"topic":"t","payload":""}', "application/json"),
    ("/messages", b'{"topic":"t","payload":1}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x","metadata":{"a":1}}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x","metadata":{"a":"\\u0000"}}', "application/json"),
    ("/messages", b'{"topic":"t\\u0000","payload":"x"}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x"}', "text/plain"),
    ("/messages/dequeue", b'{"topic":"t","count":1001}', "application/json"),
    ("/messages/dequeue", b'{"topic":"t","count":-1}', "application/json"),
    ("/messages/dequeue", b"{}", "application/json"),
    ("/messages/dequeue", b'{"topic":"t","consumer_group":"a@b"}', "application/json"),
    ("/messages/x/ack", b'{"consumer_group":1}', "application/json"),
]


async def test_what_is_wrong_gets_400_and_a_text(api: Messages) -> None:
    for target, body, kind in BAD:
        reply = await api.send("POST", target, body=body, headers={"content-type": kind})
        assert reply.status == 400, (target, body)
        assert reply.error


async def test_forms_and_other_kinds_of_json_are_bodies(api: Messages) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    reply = await api.send("POST", "/messages", body=b"topic=t&payload=a+b&key=k", headers=form)
    assert reply.status == 201
    json = {"content-type": "application/vnd.x+json; charset=utf-8"}
    body = b'{"topic":"t","payload":"a b"}'
    assert (await api.send("POST", "/messages", body=body, headers=json)).status == 201
    assert [m["payload"] for m in await api.list("t")] == ["a b", "a b"]


@pytest.mark.parametrize("verb", ["ack", "nack", "requeue"])
@pytest.mark.parametrize("id", ["abc", "00000000-0000-0000-0000-000000000000"])
async def test_an_id_of_nothing_is_not_found(api: Messages, verb: str, id: str) -> None:
    """The original answers 500 where it is no UUID."""
    reply = await api.send("POST", f"/messages/{id}/{verb}")
    assert reply.status == 404 and "message not found" in reply.error


async def test_paths_may_end_in_a_slash_and_others_are_refused_in_json(api: Messages) -> None:
    await api.enqueue("t")
    assert (await api.send("GET", "/messages/?topic=t")).doc["total"] == 1
    assert (await api.get("/nothing")).error == "Cannot GET /api/nothing"
    reply = await api.send("DELETE", "/messages")
    assert reply.status == 405 and reply.headers["allow"] == "GET, HEAD, POST"
    assert (await api.get("/version")).doc["version"]


async def test_probes_find_the_server_where_the_original_has_them(api: Messages) -> None:
    """The original answers `OK` as text. The probe of both dialects is one, in JSON here."""
    reply = await api.native.get("/healthz")
    assert reply.status == 200 and reply.doc["status"] == "ok"
    assert reply.doc == (await api.native.get("/health")).doc


@pytest.mark.parametrize("settings", [{"doors": ()}], ids=["closed"])
async def test_the_door_can_be_closed(api: Messages) -> None:
    assert (await api.get("/stats")).status == 404
    assert (await api.native.get("/queues")).status == 200
