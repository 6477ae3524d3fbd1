"""Tasks with a batch: many calls become one, on a real server and in the embedded engine."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site

import zq
from zq.client.app import App

from .workers import finish


@pytest.fixture(params=["server", "embedded"])
async def app(request: pytest.FixtureRequest, site: Site, tmp_path: Path) -> AsyncIterator[App]:
    own = f"sqlite://{tmp_path / 'own'}"
    async with App(own if request.param == "embedded" else site.url) as app:
        yield app


async def test_calls_are_joined_by_their_lists_up_to_a_limit(app: App) -> None:
    calls: list[tuple[list[int], str]] = []

    @app.task(batch=zq.Batch.append("contacts", "ids", limit=4))
    async def sync(ids: list[int], *, source: str = "web") -> int:
        calls.append((ids, source))
        return len(ids)

    first = await sync.enqueue([1, 2], source="app")
    second = await sync.enqueue(ids=[3, 4])
    third = await sync.enqueue([5])
    more = await sync.enqueue_many([sync.args([6]), sync.args([7, 8, 9])])
    assert [job.folded for job in (first, second, third, *more)] == [
        *(False, True, False),
        *(True, False),
    ]
    assert not any(job.duplicate for job in (first, second, third, *more))
    assert (first.id, third.id) == (second.id, more[0].id)
    await finish(app)
    assert calls == [([1, 2, 3, 4], "app"), ([5, 6], "web"), ([7, 8, 9], "web")]
    assert await second.result() == 4


async def test_lists_may_lie_deeper_and_hold_nothing_twice(app: App) -> None:
    calls: list[Any] = []

    @app.task(batch=zq.Batch.append("pages", "request.urls", limit=3, unique=True))
    async def fetch(request: dict[str, Any]) -> None:
        calls.append(request)

    for urls in (["b"], ["a", "b"], ["c", "a"], ["d"]):
        await fetch.enqueue({"urls": urls, "n": len(calls)})
    await finish(app)
    assert [call["urls"] for call in calls] == [["a", "b", "c"], ["d"]]


async def test_the_last_call_wins(app: App) -> None:
    calls: list[int] = []

    @app.task(batch=zq.Batch.last("state"))
    async def show(level: int) -> None:
        calls.append(level)

    for level in (1, 2, 3):
        await show.enqueue(level)
    # Another key is another batch.
    await show.options(batch=zq.Batch.last("other")).enqueue(9)
    await finish(app)
    assert calls == [3, 9]


async def test_any_programs_of_jq_will_do(app: App) -> None:
    totals: list[int] = []
    fold = "$existing | .kwargs.n += $new.kwargs.n"

    @app.task(batch=zq.Batch("sum", "$new.kwargs.n > 0", fold))
    async def add(n: int) -> None:
        totals.append(n)

    for n in (1, 2, -5, 4):
        await add.enqueue(n)
    await finish(app)
    assert totals == [3, -1]


def test_options_that_cannot_be_are_refused_before_anything_is_sent() -> None:
    app = App("http://127.0.0.1:1")
    with pytest.raises(zq.InvalidOption, match="key or batch"):
        app.task(key="k", batch=zq.Batch.last("b"))(len)
    with pytest.raises(zq.InvalidOption, match="not a Batch"):
        wrong: Any = "b"
        app.task(batch=wrong)(len)
    for at in ("", "a.", ".b"):
        with pytest.raises(zq.InvalidOption, match="at:"):
            zq.Batch.append("k", at)
    with pytest.raises(zq.InvalidOption, match="limit"):
        zq.Batch.append("k", "ids", limit=0)
