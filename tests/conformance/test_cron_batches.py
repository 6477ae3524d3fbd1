"""Cron entries whose jobs have a batch: they fold when they fire."""

from typing import Any

import pytest

from zq.features.batches.engine import Folding
from zq.features.crons.model import RETRY_MS
from zq.model.errors import ServiceUnavailable
from zq.model.job import NewJob

from .batches import APPEND, batched, payload_of
from .batches import put as enqueue
from .client import Client, Doc
from .crons import HOUR_MS, SECOND_MS, entry, entry_of, put, until_moved


def folding(payload: object, **rule: str) -> Doc:
    """The body of an entry whose job is folded every second."""
    job = {"payload": payload, "batch": {"key": "b", **APPEND, **rule}}
    return entry(job=job)


async def test_a_firing_folds_into_what_waits_and_else_becomes_the_host(client: Client) -> None:
    shown = await put(client, "g", folding([1]))
    assert shown["entries"][0]["job"]["batch"] == {"key": "b", **APPEND}
    before = shown["entries"][0]
    for _ in range(3):
        client.site.clock.advance(SECOND_MS)
        before = await until_moved(client, "g", "e", before)
        assert before["last_enqueue_at"] == client.site.now
    (host,) = await client.jobs()
    assert host["payload"] == [1, 1, 1]
    assert (await enqueue(client, [2]))["id"] == host["id"]
    stream = await client.take()
    assert (await stream.job())["payload"] == [1, 1, 1, 2]
    client.site.clock.advance(SECOND_MS)
    await until_moved(client, "g", "e", before)
    (again,) = await client.jobs(status="ready")
    assert again["payload"] == [1]


@pytest.mark.parametrize("rule", [{"when": "("}, {"fold": "empty"}, {"when": "error"}])
async def test_a_rule_that_is_wrong_is_refused_with_its_entry(client: Client, rule: Doc) -> None:
    reply = await client.call("PUT", "/crons/g", {"entries": [entry("ok"), folding([1], **rule)]})
    assert (reply.status, reply.error[:5]) == (400, "batch")
    assert (await client.post("/crons/g/entries", folding([1], **rule))).status == 400
    assert (await client.call("PUT", "/crons/g/entries/e", folding([1], **rule))).status == 400
    assert (await client.get("/crons")).doc == {"crons": []}


@pytest.mark.settings(filter_timeout=800)
async def test_a_rule_has_all_the_time_of_a_program(client: Client) -> None:
    """A fold that takes long is tried a second time, and so is the rule of an entry."""
    reply = await client.call("PUT", "/crons/g", {"entries": [folding([1], when="def f: f; f")]})
    assert (reply.status, reply.error) == (400, "batch dry-run: it took longer than 0.8 s")


async def test_a_firing_whose_fold_fails_enqueues_nothing_and_moves_on(client: Client) -> None:
    host = await enqueue(client, [1], fold='if $existing != $new then error("no") else $new end')
    before = (await put(client, "g", folding([2])))["entries"][0]
    client.site.clock.advance(SECOND_MS)
    after = await until_moved(client, "g", "e", before)
    assert "last_enqueue_at" not in after
    assert await payload_of(client, host) == [1]
    assert await client.count() == 1
    assert (await entry_of(client, "g", "e"))["paused"] is False


async def test_a_fold_that_cannot_be_made_for_now_keeps_no_other_entry_from_firing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again in a moment, and not left out until its next time."""
    folds = client.site.server.engine[Folding]
    fire = folds.fire

    async def fire_some(key: int, job: NewJob, *rest: Any) -> int:
        if job.payload == "[1]":
            raise ServiceUnavailable("folds that take long were before this one")
        return await fire(key, job, *rest)

    monkeypatch.setattr(folds, "fire", fire_some)
    hourly = {"expression": "0 0 * * * *"}
    stuck = folding([1], key="first") | {"name": "stuck"} | hourly
    shown = await put(client, "g", stuck, folding([2], key="second") | {"name": "e"} | hourly)
    before = {each["name"]: each for each in shown["entries"]}
    client.site.clock.advance(HOUR_MS)

    after = await until_moved(client, "g", "e", before["e"])
    assert after["last_enqueue_at"] == client.site.now
    (job,) = await client.jobs()
    assert job["payload"] == [2]
    waits = await until_moved(client, "g", "stuck", before["stuck"])
    assert "last_enqueue_at" not in waits
    assert waits["next_enqueue_at"] == client.site.now + RETRY_MS

    monkeypatch.undo()
    client.site.clock.advance(RETRY_MS)
    fired = await until_moved(client, "g", "stuck", waits)
    assert fired["last_enqueue_at"] == client.site.now
    assert sorted([job["payload"] for job in await client.jobs()]) == [[1], [2]]


async def test_a_paused_entry_of_a_batch_moves_on_silently(client: Client) -> None:
    sent = folding([1]) | {"paused": True}
    before = (await put(client, "g", sent))["entries"][0]
    client.site.clock.advance(SECOND_MS)
    after = await until_moved(client, "g", "e", before)
    assert "last_enqueue_at" not in after
    assert await client.count() == 0
    reply = await client.post("/jobs", batched([3]))
    assert reply.status == 201
