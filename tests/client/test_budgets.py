"""Budgets in the library: the draws of tasks and the verbs of programs, over every backend."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.backend import Backend
from zq.client.connect import connect
from zq.client.errors import BackendError, InvalidOption
from zq.client.formats import JSON, MSGPACK
from zq.client.values import JobQuery, StoredJob, Submission
from zq.features.budgets.client import BindingReport, LimitPatch
from zq.features.budgets.wire import Strategy

from .conftest import Caller, working

TWO = zq.Limit(2)


@pytest.fixture(params=["json", "msgpack", "blocking", "embedded"])
async def call(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    kind: str = request.param
    url = f"sqlite://{tmp_path}/own" if kind == "embedded" else site.url
    backend = connect(url, codec=MSGPACK if kind == "msgpack" else JSON)
    yield Caller(backend.blocking if kind == "blocking" else backend, kind == "blocking")
    await backend.blocking.close()
    await backend.close()


@pytest.fixture(params=["http", "embedded"])
async def app(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    async with App(site.url if request.param == "http" else f"sqlite://{tmp_path}/own") as app:
        yield app


async def push(call: Caller, *budgets: zq.Budget) -> StoredJob:
    drawn = tuple(budget.wire() for budget in budgets) or None
    (job,) = await call(call.backend.enqueue([Submission("q", "t", 1, budgets=drawn)]))
    return job


async def drawn(backend: Backend, id: str) -> dict[str, int]:
    """What a job draws, by budget."""
    return {draw.key: draw.cost for draw in (await backend.get(id)).budgets or []}


async def test_as_many_tasks_run_at_once_as_their_budget_pays(app: App) -> None:
    running, gate = asyncio.Semaphore(0), asyncio.Event()

    @app.task(budgets=[zq.Budget("crm", create_with=TWO)])
    async def sync(contact: int) -> None:
        running.release()
        await gate.wait()

    @app.task(budgets=[zq.Budget("crm", cost=2)])
    async def sync_all() -> None: ...

    first = await sync.enqueue(1)
    await sync.enqueue_many([sync.args(2), sync.args(3)])
    await sync_all.enqueue()
    async with working(app, concurrency=9), asyncio.timeout(PATIENCE_S):
        await running.acquire()
        await running.acquire()
        crm = await app.backend.budgets.get("crm")
        assert (crm.available, crm.waiting, crm.unfinished) == (0, 2, 4)
        gate.set()
        await first.result()
    await zq.Worker(app).run_until_idle(PATIENCE_S)
    crm = await app.backend.budgets.get("crm")
    assert (crm.available, crm.waiting, crm.unfinished) == (2, 0, 0)


async def test_a_budget_may_be_said_by_the_app_the_task_and_the_call(app: App) -> None:
    async with App(backend=app.backend, defaults={"budgets": [zq.Budget("all", 1, TWO)]}) as strict:

        @strict.task
        async def plain() -> None: ...

        @strict.task(budgets=[zq.Budget("own", 2, TWO), zq.Budget("all")])
        async def own() -> None: ...

        letters = strict.queue("letters", budgets=[zq.Budget("mail", 1, TWO)])
        said = {
            "app": await plain.enqueue(),
            "task": await own.enqueue(),
            "call": await own.options(budgets=()).enqueue(),
            "queue": (await letters.enqueue("a", 1)).job,
            "id": (await letters.enqueue("b", 1, budgets=[zq.Budget("mail", 2)])).job,
        }
        assert {name: await drawn(app.backend, job.id) for name, job in said.items()} == {
            "app": {"all": 1},
            "task": {"own": 2, "all": 1},
            "call": {},
            "queue": {"mail": 1},
            "id": {"mail": 2},
        }


async def test_a_schedule_brings_its_budget_and_needs_it(app: App) -> None:
    @app.periodic("@daily", budgets=[zq.Budget("nightly", create_with=zq.Limit(1))])
    async def close_day() -> None: ...

    await zq.Worker(app).run_until_idle(PATIENCE_S)
    (shown,) = await app.backend.budgets.all()
    assert (shown.key, shown.allocation) == ("nightly", 1)
    with pytest.raises(BackendError, match="1 cron template") as refused:
        await app.backend.budgets.remove("nightly")
    assert refused.value.code == "budget_in_use"
    await app.backend.schedules.remove("app")
    await app.backend.budgets.remove("nightly")
    assert await app.backend.budgets.all() == []


async def test_every_verb_of_budgets(call: Caller) -> None:
    budgets = call.backend.budgets
    made = await call(budgets.create("a/b", zq.Limit(100, per=timedelta(minutes=1), burst=10)))
    assert (made.key, made.allocation, made.available) == ("a/b", 100, 10)
    assert made.strategy == Strategy("time_based", 60_000, 10)
    with pytest.raises(BackendError, match="'a/b' already exists") as refused:
        await call(budgets.create("a/b", TWO))
    assert refused.value.code == "budget_exists"

    changed = await call(budgets.change("a/b", LimitPatch(allocation=50, burst=None)))
    assert (changed.allocation, changed.strategy) == (50, Strategy("time_based", 60_000))
    changed = await call(budgets.change("a/b", LimitPatch(per=1.5)))
    assert (changed.allocation, changed.strategy) == (50, Strategy("time_based", 1500))
    changed = await call(budgets.change("a/b", LimitPatch(per=None)))
    assert changed.strategy == Strategy("while_in_flight")
    assert await call(budgets.change("a/b", LimitPatch())) == await call(budgets.get("a/b"))

    put = await call(budgets.put("a", TWO))
    assert [each.key for each in await call(budgets.all())] == ["a", "a/b"]
    again = await call(budgets.put("a", zq.Limit(3)))
    assert (again.allocation, again.created_at) == (3, put.created_at)

    await call(budgets.remove("a/b"))
    for verb in (budgets.get("a/b"), budgets.remove("a/b"), budgets.change("a/b", LimitPatch())):
        with pytest.raises(BackendError, match="'a/b' not found") as refused:
            await call(verb)
        assert refused.value.code == "budget_not_found"
    with pytest.raises(BackendError, match="must not contain ','"):
        await call(budgets.put("a,b", TWO))
    job = await push(call, zq.Budget("a", 3))
    with pytest.raises(BackendError, match="1 unfinished job draw up to 3"):
        await call(budgets.put("a", TWO))
    with pytest.raises(BackendError, match="1 unfinished job"):
        await call(budgets.remove("a"))
    assert [(draw.key, draw.cost) for draw in job.budgets or []] == [("a", 3)]


async def test_every_change_of_what_a_job_draws(call: Caller) -> None:
    budgets = call.backend.budgets
    id = (await push(call)).id

    async def bind(verb: Any, *wanted: zq.Budget) -> dict[str, int]:
        job = await call(budgets.bind(id, verb, *wanted))
        return {draw.key: draw.cost for draw in job.budgets or []}

    assert await bind("add", zq.Budget("a/b", 2, TWO)) == {"a/b": 2}
    with pytest.raises(BackendError) as refused:
        await bind("add", zq.Budget("a/b"))
    assert refused.value.code == "budget_bound"
    assert await bind("put", zq.Budget("c", create_with=TWO)) == {"a/b": 2, "c": 1}
    assert await bind("put", zq.Budget("c", 2)) == {"a/b": 2, "c": 2}
    assert await bind("change", zq.Budget("a/b", 1)) == {"a/b": 1, "c": 2}
    assert await bind("remove", zq.Budget("c")) == {"a/b": 1}
    for verb in ("change", "remove"):
        with pytest.raises(BackendError) as refused:
            await bind(verb, zq.Budget("c"))
        assert refused.value.code == "budget_not_bound"
    assert await bind("replace", zq.Budget("c"), zq.Budget("d", 1, TWO)) == {"c": 1, "d": 1}
    assert await bind("replace") == {}
    for wanted in ((), (zq.Budget("c"), zq.Budget("d"))):
        with pytest.raises(InvalidOption, match="put is for one budget"):
            await bind("put", *wanted)
    with pytest.raises(zq.JobNotFound):
        await call(budgets.bind("01JD0000000000000000000000", "replace"))


async def test_every_change_of_what_many_jobs_draw(call: Caller) -> None:
    backend = call.backend
    await call(backend.budgets.create("a/b", TWO))
    bound, free = await push(call, zq.Budget("a/b")), await push(call)
    of_a = JobQuery(budgets=("a/b",))

    async def bind(query: JobQuery, verb: Any, *wanted: zq.Budget) -> dict[str, int]:
        """How much each job that draws from the budget needs of it afterwards."""
        report = await call(backend.budgets.bind_all(query, verb, *wanted))
        assert report.blocked == []
        jobs = (await call(backend.jobs(of_a))).jobs
        costs = {job.id: draw.cost for job in jobs for draw in job.budgets or []}
        assert await call(backend.count(of_a)) == len(jobs) == len(costs)
        return {"changed": report.changed} | costs

    queue = JobQuery(queues=("q",))
    assert await bind(queue, "add", zq.Budget("a/b", 2)) == {"changed": 1, bound.id: 1, free.id: 2}
    assert await bind(queue, "put", zq.Budget("a/b", 2)) == {"changed": 1, bound.id: 2, free.id: 2}
    one = JobQuery(ids=(free.id,))
    assert await bind(one, "change", zq.Budget("a/b", 1)) == {"changed": 1, bound.id: 2, free.id: 1}
    assert await bind(one, "remove", zq.Budget("a/b")) == {"changed": 1, bound.id: 2}
    assert await bind(of_a, "replace") == {"changed": 1}
    with pytest.raises(InvalidOption, match="add others with put"):
        await call(backend.budgets.bind_all(queue, "replace", zq.Budget("a/b")))
    with pytest.raises(BackendError, match="'none' does not exist: create it first"):
        await call(backend.budgets.bind_all(queue, "put", zq.Budget("none")))


async def test_what_runs_is_named_and_keeps_what_it_draws(app: App) -> None:
    ran, gate = asyncio.Event(), asyncio.Event()

    @app.task(queue="q", budgets=[zq.Budget("crm", create_with=TWO)])
    async def sync() -> None:
        ran.set()
        await gate.wait()

    job = await sync.enqueue()
    async with working(app), asyncio.timeout(PATIENCE_S):
        await ran.wait()
        everything = JobQuery(queues=("q",))
        report = await app.backend.budgets.bind_all(everything, "remove", zq.Budget("crm"))
        assert report == BindingReport(0, [job.id])
        with pytest.raises(BackendError, match="only queued jobs"):
            await app.backend.budgets.bind(job.id, "replace")
        gate.set()


async def test_a_budget_that_nobody_made_refuses_the_call(app: App) -> None:
    @app.task(budgets=[zq.Budget("none")])
    async def sync() -> None: ...

    with pytest.raises(BackendError, match="'none' does not exist: create it first"):
        await sync.enqueue()


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ("crm", "budgets: 'crm' is not a list of Budgets"),
        (zq.Budget("crm"), "budgets: .* is not a list of Budgets"),
        (["crm"], "budgets: 'crm' is not a Budget"),
        ([zq.Budget("crm"), zq.Budget("crm", 2)], "budgets: 'crm' is named more than once"),
        ([zq.Budget(str(n)) for n in range(65)], "budgets: .* at most 64"),
    ],
    ids=["text", "one", "texts", "twice", "many"],
)
def test_budgets_that_cannot_be_are_refused_where_they_are_written(
    budgets: Any, message: str
) -> None:
    app = App("http://127.0.0.1:1")
    with pytest.raises(InvalidOption, match=message):
        app.task(budgets=budgets)(len)
    with pytest.raises(InvalidOption, match=message):
        app.task(len).options(budgets=budgets)


@pytest.mark.parametrize(
    ("make", "said", "message"),
    [
        (zq.Budget, {"key": 5}, "Budget: key: 5 is not text"),
        (zq.Budget, {"key": ""}, "Budget: key must not be empty"),
        (zq.Budget, {"key": "a,b"}, "Budget: key must not contain ','"),
        (zq.Budget, {"key": "a", "cost": 0}, "Budget: cost: 0 is not a whole number from 1 to"),
        (zq.Budget, {"key": "a", "cost": 1.5}, "Budget: cost: 1.5 is not a whole number"),
        (zq.Budget, {"key": "a", "create_with": 2}, "Budget: create_with: 2 is not a Limit"),
        (zq.Limit, {"allocation": 0}, "Limit: allocation: 0 is not a whole number"),
        (zq.Limit, {"allocation": 1_000_001}, "from 1 to 1000000"),
        (zq.Limit, {"allocation": 1, "per": 0}, "Limit: per must be a positive number of seconds"),
        (zq.Limit, {"allocation": 1, "per": "1m"}, "Limit: per: '1m' is not a time"),
        (zq.Limit, {"allocation": 1, "burst": 2}, "Limit: burst: only a limit with per has one"),
        (zq.Limit, {"allocation": 1, "per": 1, "burst": 0}, "Limit: burst: 0 is not a whole"),
        (LimitPatch, {"allocation": 0}, "LimitPatch: allocation: 0 is not a whole number"),
        (LimitPatch, {"per": -1}, "LimitPatch: per must be a positive number of seconds"),
        (LimitPatch, {"burst": True}, "LimitPatch: burst: True is not a whole number"),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_names_its_parameter(
    make: Any, said: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        make(**said)


async def test_what_a_handler_says_it_used_is_charged(app: App) -> None:
    tokens = zq.Budget("llm", 10, create_with=zq.Limit(100, per=3600))

    @app.task(budgets=[tokens])
    async def ask(n: int) -> None:
        zq.current_job().used("llm", n)
        with pytest.raises(InvalidOption):
            zq.current_job().used("llm", -1)

    await ask.enqueue(150)
    await zq.Worker(app).run_until_idle(PATIENCE_S)
    assert (await app.backend.budgets.get("llm")).available == -50


async def test_a_handler_holds_its_budget_and_gives_its_job_back(app: App) -> None:
    attempts: list[int] = []
    returned = asyncio.Event()
    app.on("requeued")(lambda event: returned.set())

    @app.task(budgets=[zq.Budget("llm", create_with=zq.Limit(1))], max_attempts=1)
    async def ask() -> None:
        attempts.append(zq.current_job().attempt)
        if len(attempts) == 1:
            await app.backend.budgets.hold("llm", 3600)
            raise zq.GiveBack

    job = await ask.enqueue()
    async with working(app):
        await returned.wait()
        shown = await app.backend.budgets.get("llm")
        assert shown.held_until is not None and attempts == [1]
        assert (await app.backend.get(job.id)).attempts == 0
        assert (await app.backend.budgets.reopen("llm")).held_until is None
        await job.result(timeout=PATIENCE_S)
    assert attempts == [1, 1]


async def test_a_hold_takes_the_header_of_the_service_as_it_came(call: Caller) -> None:
    on_server = call.backend.budgets
    await call(on_server.create("llm", zq.Limit(1)))
    assert (await call(on_server.hold("llm", "20"))).held_until is not None
    with pytest.raises(BackendError):
        await call(on_server.hold("llm", "soon"))
    with pytest.raises(InvalidOption):
        await call(on_server.hold("llm", -1))
