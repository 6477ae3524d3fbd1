"""How long a queue keeps a result and its id, and when the id is free again."""

from datetime import timedelta
from typing import Any

import pytest
from conformance.site import Site

import zq
from zq.client.app import App

from .workers import finish


async def test_an_id_is_free_again_when_its_result_is_over(app: App, site: Site) -> None:
    queue = app.queue("q")
    results = iter((10, 20))

    @queue.handler
    async def handle(_: object) -> int:
        return next(results)

    await queue.enqueue("a", None, result_ttl=0.05)
    await finish(app)
    # The time of the first counts: a duplicate changes nothing.
    await queue.enqueue("a", None, result_ttl=5)
    site.clock.advance(49)
    assert await queue.result("a") == 10
    site.clock.advance(1)

    assert await queue.status("a") is None
    assert (await queue.enqueue("a", None)).status == "queued"
    await finish(app)
    assert await queue.result("a") == 20


async def test_a_failed_id_stays_taken_until_its_time_is_over(app: App, site: Site) -> None:
    queue = app.queue("q", max_attempts=1, result_ttl=timedelta(milliseconds=20))

    @queue.handler
    async def handle(_: object) -> None:
        raise ValueError("no")

    await queue.enqueue("a", None)
    await finish(app)

    again = await queue.enqueue("a", None)
    assert (again.status, again.existing_state) == ("duplicate", "dead")
    with pytest.raises(zq.JobFailed, match="ValueError: no"):
        await queue.enqueue_and_wait("a", None)
    site.clock.advance(20)
    assert await queue.status("a") is None
    assert (await queue.enqueue("a", None)).status == "queued"


async def test_a_failed_id_is_queued_again_where_that_is_asked_for(app: App) -> None:
    queue = app.queue("q", max_attempts=1)

    @queue.handler
    async def handle(n: int) -> int:
        return 10 // n

    await queue.enqueue("a", 0)
    await finish(app)

    assert (await queue.enqueue("a", 5, on_failed="requeue")).status == "queued"
    await finish(app)
    assert await queue.result("a") == 2


async def test_a_finished_job_is_kept_longer(app: App, site: Site) -> None:
    queue = app.queue("q", max_attempts=1, result_ttl=0.02)

    @queue.handler
    async def handle(n: int) -> int:
        return 10 // n

    for id, n in (("good", 5), ("bad", 0)):
        await queue.enqueue(id, n)
        assert await queue.update_result_ttl(id, 0.2) == "not_terminal"
    await finish(app)

    for id in ("good", "bad"):
        assert await queue.update_result_ttl(id, 0.2) == "updated"
    assert await queue.update_result_ttl("unknown", 0.2) == "not_found"
    site.clock.advance(199)
    for id in ("good", "bad"):
        assert await queue.status(id) is not None
    site.clock.advance(1)
    for id in ("good", "bad"):
        assert await queue.update_result_ttl(id, 0.2) == "not_found"


@pytest.mark.parametrize("ttl", [0, -1, 0.0001, float("nan"), float("inf"), "5", None, True])
async def test_a_time_that_cannot_be_is_refused_before_anything_is_sent(ttl: Any) -> None:
    queue = App("http://127.0.0.1:1").queue("q")

    for error in (zq.InvalidOption, TypeError, ValueError):
        with pytest.raises(error, match="result_ttl"):
            await queue.enqueue("a", None, result_ttl=ttl)
        with pytest.raises(error, match="result_ttl"):
            await queue.update_result_ttl("a", ttl)
