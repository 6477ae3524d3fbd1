"""Fair keys of tasks and queues: from arguments and functions, checked where they are declared."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

import zq
from zq.client.app import App
from zq.client.errors import BackendError, InvalidOption
from zq.features.fair.client import FairLimit, ServerFairKeys


async def keys(app: App) -> list[str | None]:
    return [job.fair_key for job in (await app.backend.jobs()).jobs]


async def test_an_argument_is_the_key(app: App) -> None:
    @app.task(fair_key="tenant", fair_weight=2)
    async def page(number: int, tenant: Any = "none") -> None: ...

    await page.enqueue(1, "acme")
    await page.enqueue(2, tenant=7)
    await page.enqueue(3)
    await page.enqueue(4, UUID(int=5))
    await page.enqueue(5, None)
    await page.enqueue_many([page.args(6, "tiny")])

    uuid = "00000000-0000-0000-0000-000000000005"
    assert await keys(app) == ["acme", "7", "none", uuid, None, "tiny"]
    assert [job.fair_weight for job in (await app.backend.jobs()).jobs] == [2.0] * 6


async def test_a_later_step_has_the_key_of_its_own_arguments(app: App) -> None:
    @app.task
    async def size() -> int:
        return 1

    @app.task(fair_key="by")
    async def shorten(size: int, by: int = 2) -> None: ...

    await zq.chain(zq.step(size), zq.step(shorten, 3))

    (job,) = (await app.backend.jobs()).jobs
    assert job.meta is not None
    assert job.meta["zq_then"]["fair_key"] == "3"
    assert job.meta["zq_then"]["payload"]["args"] == [3]


async def test_a_function_of_the_arguments_makes_the_key(app: App) -> None:
    @app.task(fair_key=lambda order, *, shop: f"{shop}-{order['user']}")
    def page(order: dict[str, int], *, shop: str) -> None: ...

    await page.enqueue({"user": 3}, shop="a")
    page.options(fair_key=None)
    await page.options(fair_key="shop").enqueue({"user": 3}, shop="b")

    assert await keys(app) == ["a-3", "b"]


async def test_jobs_of_a_queue_have_the_key_that_is_given(app: App) -> None:
    mail = app.queue("mail", fair_key=lambda payload: payload["to"])
    await mail.enqueue("1", {"to": "ann"})
    await mail.enqueue("2", {"to": "ann"}, fair_key="vip")

    assert await keys(app) == ["ann", "vip"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"fair_key": "tenants"}, "'tenants' is no argument of the task: name one of number, rest"),
        ({"fair_key": lambda tenant, user, more: tenant}, "does not take the arguments"),
        ({"fair_key": 7}, "7 is neither text nor a function"),
        ({"fair_weight": 0.001}, "must be between 0.01 and 100, not 0.001"),
        ({"fair_weight": "2"}, "'2' is not a number"),
    ],
)
def test_what_cannot_be_is_refused_where_the_task_is_declared(
    options: dict[str, Any], named: str
) -> None:
    app = zq.App("sqlite://:memory:")
    with pytest.raises(InvalidOption, match=named):

        @app.task(**options)
        def page(number: int, rest: str) -> None: ...


@pytest.mark.parametrize("key", ["", "a" * 201, ["list"]])
async def test_a_call_whose_key_is_none_is_refused(app: App, key: object) -> None:
    @app.task(fair_key="tenant")
    async def page(tenant: Any) -> None: ...

    with pytest.raises(InvalidOption, match=r"fair_key: .* is no text of 1 to 200 characters"):
        await page.enqueue(key)


async def test_limits_of_keys_are_set_and_told(app: App) -> None:
    fair = ServerFairKeys(app.backend.ask)
    limit = FairLimit(weight=2, max_in_flight=3)
    assert await fair.put("q", "acme", limit) == limit
    assert (await fair.get("q", "acme")).limit == limit
    assert (await fair.page("q")).keys == []
    await fair.drop("q", "acme")
    with pytest.raises(BackendError, match="acme"):
        await fair.get("q", "acme")


async def test_an_app_shares_its_queue(app: App) -> None:
    done: list[str] = []

    @app.task(fair_key="tenant")
    def page(tenant: str) -> None:
        done.append(tenant)

    with app.immediate():
        await page.enqueue_many([page.args("a")] * 5)
    make: Callable[..., Any] = page
    make("b")
    assert done == ["a"] * 5 + ["b"]
