"""Queues by message id: three outcomes, one job for each id, and results that callers share."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App
from zq.client.values import Success

from .conftest import Take, working
from .workers import finish


async def test_an_enqueue_has_three_outcomes_and_none_is_an_exception(app: App) -> None:
    queue = app.queue("q", payload=int, result=int)
    runs = []

    @queue.handler
    async def handle(n: int) -> int:
        runs.append(n)
        return n * 2

    first = await queue.enqueue("a", 5)
    second = await queue.enqueue("a", 99)
    assert (first.status, bool(first), first.existing_state) == ("queued", True, None)
    assert (second.status, bool(second), second.existing_state) == ("duplicate", False, "ready")
    assert second.job.id == first.job.id

    await finish(app)

    third = await queue.enqueue("a", 1000)
    assert (third.status, bool(third), third.result) == ("completed", False, 10)
    assert runs == [5]


async def test_three_at_once_store_one(app: App) -> None:
    queue = app.queue("q")

    outcomes = await asyncio.gather(*(queue.enqueue("a", n) for n in range(3)))

    assert sorted(each.status for each in outcomes) == ["duplicate", "duplicate", "queued"]


async def test_a_job_whose_worker_gave_no_result_is_a_duplicate_of_a_completed_one(
    app: App, take: Take
) -> None:
    queue = app.queue("q")
    await queue.enqueue("a", 1)
    (held,) = await take(1)
    await app.backend.succeed([Success(held.id, held.lease)])

    again = await queue.enqueue("a", 1)

    assert (again.status, again.existing_state) == ("duplicate", "completed")
    assert again.result is zq.MISSING
    assert await queue.enqueue_and_wait("a", 1) is None
    with pytest.raises(zq.JobNotFound):
        await queue.result("a")


async def test_queues_of_two_names_know_nothing_of_each_other(app: App) -> None:
    numbers, texts = app.queue("numbers"), app.queue("texts")
    seen = []

    @numbers.handler
    async def double(n: int) -> int:
        seen.append(n)
        return n * 2

    assert (await numbers.enqueue("job-1", 21)).status == "queued"
    assert (await texts.enqueue("job-1", "hello")).status == "queued"
    await finish(app)

    assert await numbers.result("job-1") == 42
    status = await texts.status("job-1")
    assert status is not None
    assert status.state == "ready"
    assert seen == [21]


async def test_none_is_a_result_and_nothing_is_another(app: App) -> None:
    queue = app.queue("q")

    @queue.handler
    def handle(_: object) -> None:
        """Give back nothing."""

    await queue.enqueue("a", {})
    with pytest.raises(zq.JobNotFound):
        await queue.result("a")
    assert await queue.result("a", "later") == "later"
    await finish(app)

    assert await queue.result("a", "later") is None
    again = await queue.enqueue("a", {})
    assert (again.status, again.result) == ("completed", None)
    assert await queue.enqueue_and_wait("a", {}) is None
    status = await queue.status("a")
    assert status is not None
    assert (status.state, status.result) == ("completed", None)


@pytest.mark.parametrize("when", ["queued", "running"])
async def test_a_second_waiter_joins_the_first(app: App, when: str) -> None:
    queue = app.queue("q")
    begun, go_on = asyncio.Event(), asyncio.Event()
    runs = []

    @queue.handler
    async def handle(n: int) -> int:
        runs.append(n)
        begun.set()
        await go_on.wait()
        return n * 2

    first = asyncio.create_task(queue.enqueue_and_wait("a", 21))
    await until_stored(queue, "a")
    second = asyncio.create_task(queue.enqueue_and_wait("a", 999)) if when == "queued" else None
    async with working(app):
        await begun.wait()
        second = second or asyncio.create_task(queue.enqueue_and_wait("a", 999))
        go_on.set()
        assert tuple(await asyncio.gather(first, second)) == (42, 42)
    assert runs == [21]


async def until_stored(queue: zq.Queue[Any, Any], id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await queue.status(id) is None:
            await pause()


async def test_a_wait_that_ends_leaves_the_job_to_be_fetched_later(live_app: App) -> None:
    queue = live_app.queue("q", result=str)
    begun, go_on = asyncio.Event(), asyncio.Event()

    @queue.handler
    async def handle(_: object) -> str:
        begun.set()
        await go_on.wait()
        return "x" * 100_000

    async with working(live_app):
        with pytest.raises(zq.WaitTimeout, match=r"not finished after 0\.05 s") as late:
            await queue.enqueue_and_wait("a", None, timeout=timedelta(milliseconds=50))
        await begun.wait()
        go_on.set()
        assert isinstance(late.value, TimeoutError)
        assert await late.value.job.result(PATIENCE_S) == "x" * 100_000


@pytest.mark.parametrize("id", ["", "x" * 513, "ž" * 257, 5, None])
async def test_an_id_is_a_text_of_1_to_512_bytes(id: Any) -> None:
    with pytest.raises(zq.InvalidOption, match="id"):
        await App("http://127.0.0.1:1").queue("q").enqueue(id, None)


@pytest.mark.parametrize("id", ["a,b", "a/b:c", "ž %2F?&#", "x" * 512])
async def test_any_text_is_an_id(app: App, id: str) -> None:
    queue = app.queue("q")
    keys = []

    @queue.handler
    async def handle(_: object, job: zq.Running[Any]) -> None:
        keys.append(job.key)

    assert (await queue.enqueue(id, None)).job.key == id
    assert (await queue.enqueue(id, None)).status == "duplicate"
    await finish(app)
    assert keys == [id]
    assert await queue.result(id) is None


async def test_a_second_parameter_with_a_default_is_the_functions_own(app: App) -> None:
    own, annotated, third = app.queue("own"), app.queue("annotated"), app.queue("third")
    got: dict[str, Any] = {}

    @own.handler
    async def limited(n: int, limit: int = 10) -> None:
        got["own"] = limit

    @annotated.handler
    def tested_alone(n: int, job: "zq.Running[int] | None" = None) -> None:
        got["annotated"] = job and job.key

    @third.handler
    def more(n: int, job: zq.Running[int], limit: int = 10) -> None:
        got["third"] = job.key, limit

    for queue in (own, annotated, third):
        await queue.enqueue("a", 1)
    await finish(app)
    assert got == {"own": 10, "annotated": "a", "third": ("a", 10)}


class Thumb(msgspec.Struct):
    url: str
    width: int = 10


async def test_values_are_made_into_what_is_annotated(app: App) -> None:
    queue = app.queue("q", payload=Thumb, result=Thumb)

    @queue.handler
    async def handle(thumb: Thumb) -> Thumb:
        assert isinstance(thumb, Thumb)
        return Thumb(thumb.url, thumb.width * 2)

    await queue.enqueue("a", Thumb("u"))
    await finish(app)

    assert await queue.result("a") == Thumb("u", 20)
    assert (await queue.enqueue("a", Thumb("u"))).result == Thumb("u", 20)
    assert await queue.enqueue_and_wait("a", Thumb("u")) == Thumb("u", 20)


async def test_a_payload_that_is_not_what_is_annotated_is_not_tried_again(app: App) -> None:
    queue = app.queue("q", payload=Thumb)

    @queue.handler
    async def handle(thumb: Thumb) -> None:
        raise AssertionError

    await app.queue("q").enqueue("a", {"width": 5})
    (outcome,) = await finish(app)

    assert (outcome.status, outcome.attempts) == ("dead", 1)
    assert outcome.error is not None
    assert (outcome.error.error_type, outcome.error.message) == (
        "InvalidPayload",
        "Object missing required field `url`",
    )


async def test_the_second_handler_takes_the_place_of_the_first(app: App) -> None:
    first, second = app.queue("q"), app.queue("q")
    first.handler(lambda _payload: 1)
    second.handler(lambda _payload: 2)

    await first.enqueue("a", None)
    await finish(app)

    assert await first.result("a") == 2


async def test_blocking_programs_have_the_same_methods(app: App) -> None:
    queue = app.queue("q", payload=int, result=int)
    sync = queue.sync

    @queue.handler
    def handle(n: int) -> int:
        return n * 2

    async with working(app):
        assert await asyncio.to_thread(sync.enqueue_and_wait, "a", 4, timeout=PATIENCE_S) == 8
    assert (await asyncio.to_thread(sync.enqueue, "a", 4)).result == 8
    assert await asyncio.to_thread(sync.result, "a") == 8
    assert await asyncio.to_thread(sync.result, "b", None) is None
    status = await asyncio.to_thread(sync.status, "a")
    assert status is not None
    assert status.state == "completed"
    assert await asyncio.to_thread(sync.update_result_ttl, "a", 9) == "updated"
    assert await asyncio.to_thread(sync.cancel, "a") == "completed"


def test_a_key_of_the_content_does_not_depend_on_the_order_of_a_dict() -> None:
    assert zq.content_key({"a": 1, "b": [2]}) == zq.content_key({"b": [2], "a": 1})
    assert zq.content_key({"a": 1}) != zq.content_key({"a": 2})
    # printf '{"a":1,"b":[2]}' | sha256sum
    assert zq.content_key({"b": [2], "a": 1}) == "0855bfc20eb6cfaa"


def test_new_ids_are_like_no_others() -> None:
    assert len({zq.new_id() for _ in range(100)}) == 100


OF_TASKS: list[dict[str, Any]] = [
    {"key": "a"},
    {"unique_while": "active"},
    {"wait": 5},
    {"batch": zq.Batch.last("b")},
]
OF_DECLARATIONS: list[dict[str, Any]] = [{"timeout": 5}, {"on_exception": {KeyError: None}}]


@pytest.mark.parametrize("options", OF_TASKS, ids=str)
def test_a_queue_refuses_what_only_tasks_have(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(zq.InvalidOption, match=f"^{name}: .* is for tasks"):
        App("http://127.0.0.1:1").queue("q", **options)


@pytest.mark.parametrize("options", OF_TASKS + OF_DECLARATIONS, ids=str)
async def test_a_job_of_a_queue_refuses_what_only_declarations_have(
    app: App, options: dict[str, Any]
) -> None:
    (name,) = options
    with pytest.raises(zq.InvalidOption, match=f"^{name}: .* single job"):
        await app.queue("q").enqueue("a", 1, **options)
    assert await app.queue("q").status("a") is None
