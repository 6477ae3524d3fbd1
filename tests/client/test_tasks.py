"""Tasks: the jobs that they enqueue, their options, and their results."""

import asyncio
import dataclasses
import enum
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.backend import Backend
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import Reply, Request
from zq.client.options import CHECKS, Options
from zq.client.task import CHUNK
from zq.client.values import JobQuery, StoredJob, Submission

from .conftest import working

NOWHERE = "http://127.0.0.1:1"


def dead_app(**options: Any) -> App:
    """An app whose server is not there: nothing may be sent."""
    return App(NOWHERE, **options)


async def finish(app: App) -> list[zq.Outcome]:
    return await zq.Worker(app).run_until_idle(PATIENCE_S)


async def only_job(backend: Backend) -> StoredJob:
    (job,) = (await backend.jobs()).jobs
    return job


async def test_a_task_is_called_by_a_worker_with_its_arguments(app: App) -> None:
    calls = []

    @app.task(queue="mail")
    async def send(to: str, *more: str, cc: str = "", **rest: int) -> str:
        calls.append((to, more, cc, rest))
        return to

    job = await send.enqueue("a", "b", cc="c", d=4)
    await finish(app)

    assert calls == [("a", ("b",), "c", {"d": 4})]
    assert (await job.result(), job.queue, job.duplicate) == ("a", "mail", False)
    assert await send("x") == "x"


async def test_a_call_that_the_function_does_not_take_is_refused_at_once() -> None:
    app = dead_app()

    @app.task
    async def add(a: int, b: int = 0, *, c: int = 0) -> int:
        return a + b + c

    wrong: Any = add
    for args, kwargs in (((), {}), ((1, 2, 3), {}), ((1,), {"d": 1}), ((1,), {"a": 1})):
        with pytest.raises(TypeError):
            await wrong.enqueue(*args, **kwargs)


async def test_call_is_request_and_response(app: App) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    async with working(app, concurrency=2):
        assert await add.call(1, b=2) == 3
        assert await asyncio.to_thread(add.call_sync, 3, 4) == 7
        with pytest.raises(zq.RetriesExhausted, match="ValueError: no") as failed:
            await fail.call()
    assert failed.value.attempts == 1
    assert failed.value.error is not None
    assert failed.value.error.backtrace is not None
    assert "test_tasks.py" in failed.value.error.backtrace


async def test_call_waits_as_long_as_it_is_told(live_app: App) -> None:
    @live_app.task
    async def never() -> None:
        raise AssertionError

    with pytest.raises(zq.WaitTimeout, match=r"not finished after 0\.05 s") as late:
        await never.options(wait=0.05).call()

    assert await late.value.job.cancel() == "cancelled"
    with pytest.raises(zq.JobCancelled):
        await late.value.job.result()


async def test_a_result_that_is_not_kept_reaches_who_waits(app: App) -> None:
    @app.task(result_ttl=None)
    async def add(a: int, b: int) -> int:
        return a + b

    async with working(app):
        assert await add.call(1, 2) == 3
    assert await app.backend.count() == 0


async def test_what_is_not_said_is_sent_with_the_librarys_defaults(app: App) -> None:
    @app.task
    async def work() -> None: ...

    await work.enqueue()

    job = await only_job(app.backend)
    assert (job.queue, job.type, job.payload) == ("default", "work", {"args": [], "kwargs": {}})
    # Executions, the first included, are one more than retries.
    assert job.retry_limit == 2
    assert job.unique_key is None


async def test_options_are_checked_and_sent(app: App, site: Site) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)

    @app.task(queue="q", name="named", max_attempts=7, run_at=moment)
    async def work() -> None: ...

    await work.options(key="k", priority=3).enqueue()

    job = await only_job(app.backend)
    assert (job.type, job.priority, job.unique_key, job.retry_limit) == ("named", 3, "k", 6)
    assert (job.status, job.ready_at) == ("scheduled", round(moment.timestamp() * 1000))


async def test_the_retention_and_back_off_are_those_of_the_options() -> None:
    app = dead_app(defaults={"result_ttl": timedelta(minutes=1)})

    @app.task(backoff=zq.Backoff(exponent=2, base=0.5, jitter=0), timeout=9)
    async def work() -> None: ...

    sent: list[Submission] = []
    kept = work.options(meta={"a": 1}, user="u", timeout=1.5, group="g", dedupe="d").options()
    sent.append(kept._form.submission({}))
    body = msgspec.json.decode(msgspec.json.encode(sent[0]))

    # A worker knows what the task says of its time.
    assert work._form.submission({}).meta is None
    assert body == {
        "queue": "default",
        "type": "work",
        "payload": {},
        "retry_limit": 2,
        "backoff": {"exponent": 2.0, "base_ms": 500, "jitter_ms": 0},
        "retention": {"completed_ms": 60_000},
        "group": "g",
        "dedupe": {"id": "d"},
        "meta": {"a": 1, "user": "u", "timeout_ms": 1500},
    }


async def test_a_later_time_takes_the_place_of_an_earlier_one(live_app: App) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)

    @live_app.task(run_at=moment)
    async def work() -> None: ...

    await work.options(delay=3600).enqueue()

    job = await only_job(live_app.backend)
    assert job.status == "scheduled"
    assert 0 <= job.ready_at - job.created_at - 3_600_000 < 60_000 or (
        0 <= job.created_at + 3_600_000 - job.ready_at < 60_000
    )


def test_options_never_change_the_task_they_are_made_from() -> None:
    app = dead_app()

    @app.task(priority=1)
    async def work() -> None: ...

    other = work.options(priority=2, key="k")

    assert (work.effective["priority"], other.effective["priority"]) == (1, 2)
    assert "key" not in work.effective
    assert app.tasks == {"work": work}


BAD_OPTIONS: list[dict[str, Any]] = [
    {"dely": 1},
    {"max_attempts": 0},
    {"max_attempts": True},
    {"max_attempts": 2**32},
    {"priority": 65_536},
    {"priority": -1},
    {"priority": 1.5},
    {"delay": -1},
    {"delay": "5"},
    {"delay": float("nan")},
    {"run_at": datetime(2040, 1, 1)},
    {"run_at": 5},
    {"delay": 1, "run_at": datetime(2040, 1, 1, tzinfo=UTC)},
    {"result_ttl": 0},
    {"timeout": 0},
    {"backoff": 3},
    {"on_exception": {"ValueError": 1}},
    {"on_exception": {ValueError: -1}},
    {"on_exception": [ValueError]},
    {"key": 5},
    {"unique_while": "always"},
    {"group": 5},
    {"dedupe": 5},
    {"user": 5},
    {"meta": []},
    {"wait": -1},
    {"traceparent": 1},
    {"content_type": 1},
    {"batch": "b"},
    {"budgets": "b"},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_a_wrong_option_fails_where_it_is_written(options: dict[str, Any]) -> None:
    app = dead_app()

    with pytest.raises(zq.InvalidOption):
        app.task(**options)(lambda: None)
    with pytest.raises(zq.InvalidOption):
        App(NOWHERE, defaults=options)  # type: ignore[arg-type]
    assert app.tasks == {}


def test_every_option_has_a_check_and_every_check_is_tried() -> None:
    assert set(CHECKS) == Options.__required_keys__ | Options.__optional_keys__
    assert set(CHECKS) <= {name for options in BAD_OPTIONS for name in options}


@pytest.mark.parametrize("backoff", [{"exponent": -1}, {"base": -1}, {"jitter": 2**32}])
def test_a_back_off_that_cannot_be_is_refused(backoff: dict[str, Any]) -> None:
    with pytest.raises(zq.InvalidOption, match="Backoff"):
        zq.Backoff(**backoff)


def test_two_tasks_of_one_name_are_refused() -> None:
    app = dead_app()

    def work() -> None: ...

    app.task(work)
    with pytest.raises(zq.InvalidOption, match="name="):
        app.task(work)
    app.task(name="other")(work)
    assert set(app.tasks) == {"work", "other"}


@pytest.mark.parametrize(
    "url", ["localhost:7890", "ftp://a", "http://", "http://u@h", "http://h?a=1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(zq.InvalidOption, match=r"address|token"):
        App(url)


async def test_the_address_and_the_key_may_come_from_variables(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_URL", site.url + "/")
    async with App() as app:
        assert await app.backend.count() == 0


async def test_a_duplicate_by_key_is_told_from_a_new_job(app: App) -> None:
    told = []
    app.on("enqueued")(lambda event: told.append(event.id))

    @app.task
    async def work() -> None: ...

    first = await work.options(key="k").enqueue()
    second = await work.options(key="k").enqueue()

    assert (first.duplicate, second.duplicate) == (False, True)
    assert second.id == first.id
    assert told == [first.id]
    await finish(app)
    # By default the key is free once the job is done.
    assert not (await work.options(key="k").enqueue()).duplicate
    assert (await work.options(key="k", unique_while="exists").enqueue()).duplicate


async def test_many_calls_are_stored_in_their_order(app: App) -> None:
    @app.task
    async def work(n: int) -> None: ...

    jobs = await work.enqueue_many(work.args(n) for n in range(2 * CHUNK + 1))

    assert len({job.id for job in jobs}) == 2 * CHUNK + 1
    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    page = await app.backend.jobs(after=jobs[CHUNK - 2].id, limit=3)
    assert [job.payload["args"] for job in page.jobs] == [[CHUNK - 1], [CHUNK], [CHUNK + 1]]
    assert await work.enqueue_many([]) == []
    more = await asyncio.to_thread(work.enqueue_many_sync, [work.args(1)])
    assert len(more) == 1


@pytest.mark.settings(max_bulk_items=300, max_body=100_000)
async def test_many_calls_go_in_smaller_requests_where_the_server_asks_for_it(app: App) -> None:
    @app.task
    async def work(text: str) -> None: ...

    jobs = await work.enqueue_many([work.args("x" * 500)] * CHUNK)

    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    assert await app.backend.count() == CHUNK


@pytest.mark.settings(max_payload=1000)
async def test_a_refusal_tells_how_many_calls_were_stored_before(app: App) -> None:
    @app.task
    async def work(text: str) -> None: ...

    calls = [work.args("")] * CHUNK + [work.args("x" * 2000)] + [work.args("")] * CHUNK
    with pytest.raises(zq.BackendError) as refused:
        await work.enqueue_many(calls)

    assert refused.value.code == "payload_too_large"
    assert refused.value.__notes__ == [f"{CHUNK} of the jobs were stored before that"]
    assert await app.backend.count() == CHUNK


async def test_the_next_request_is_made_while_the_server_has_the_one_before(site: Site) -> None:
    made = asyncio.Event()
    bulks = 0

    class Slow(AioTransport):
        async def send(self, request: Request) -> Reply:
            nonlocal bulks
            bulks += 1
            reply = await super().send(request)
            if bulks == 1:
                async with asyncio.timeout(PATIENCE_S):
                    await made.wait()
                assert bulks == 1
            return reply

    address = Address(site.url)
    app = App(backend=HttpBackend(address, Slow(address)))

    @app.task
    async def work(n: int) -> None: ...

    def calls() -> Iterator[Any]:
        for n in range(2 * CHUNK):
            if n == CHUNK:
                made.set()
            yield work.args(n)

    async with app:
        assert len(await work.enqueue_many(calls())) == 2 * CHUNK
    assert bulks == 2


async def test_calls_that_end_in_an_error_leave_those_before_it(app: App) -> None:
    @app.task
    async def work(n: int) -> None: ...

    def calls() -> Iterator[Any]:
        for n in range(CHUNK + 1):
            yield work.args(n)
        raise LookupError

    with pytest.raises(LookupError) as ended:
        await work.enqueue_many(calls())

    assert ended.value.__notes__ == [f"{CHUNK} of the jobs were stored before that"]
    assert await app.backend.count() == CHUNK


class Colour(enum.Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclasses.dataclass
class Box:
    low: Point
    high: Point


class Person(pydantic.BaseModel):
    name: str
    born: datetime


async def test_arguments_and_results_are_made_into_what_is_annotated(app: App) -> None:
    got: list[Any] = []
    born = datetime(2000, 1, 2, tzinfo=UTC)

    @app.task
    async def work(
        box: Box,
        people: list[Person],
        colour: Colour | None,
        at: datetime,
        raw: bytes = b"",
        *,
        ids: set[UUID],
    ) -> Box:
        got.extend((box, people, colour, at, raw, ids))
        return box

    box = Box(Point(1), Point(2, 3))
    person = Person(name="Ann", born=born)
    job = await work.enqueue(box, [person], Colour.RED, born, b"\0\xff", ids={UUID(int=1)})
    await finish(app)

    assert got == [box, [person], Colour.RED, born, b"\0\xff", {UUID(int=1)}]
    assert await job.result() == box


async def test_a_model_comes_back_from_a_task(app: App) -> None:
    @app.task
    async def find(name: str) -> Person | None:
        return Person(name=name, born=datetime(2000, 1, 2, tzinfo=UTC)) if name else None

    known, unknown = await find.enqueue("Ann"), await find.enqueue("")
    await finish(app)

    person = await known.result()
    assert isinstance(person, Person)
    assert person.name == "Ann"
    assert await unknown.result() is None


async def test_a_wrong_value_for_an_annotated_parameter_is_not_tried_again(app: App) -> None:
    @app.task
    async def greet(person: Person) -> None:
        raise AssertionError

    wrong: Any = greet
    await wrong.enqueue({"name": "Ann"})
    (outcome,) = await finish(app)

    assert (outcome.status, outcome.attempts) == ("dead", 1)
    assert outcome.error is not None
    assert outcome.error.error_type == "InvalidPayload"
    assert "born" in outcome.error.message
    assert "greet: person" in outcome.error.message


async def test_a_payload_that_is_no_call_is_not_tried_again(app: App) -> None:
    @app.task
    async def work(point: Point) -> None:
        raise AssertionError

    nonsense: list[Any] = [None, {}, 5]
    await app.backend.enqueue([Submission("default", "work", each) for each in nonsense])
    outcomes = await finish(app)

    assert [each.status for each in outcomes] == ["dead"] * 3


async def test_what_is_no_data_cannot_be_enqueued(app: App) -> None:
    @app.task
    async def work(value: object) -> None: ...

    for value in (object(), lambda: None, open):
        with pytest.raises(zq.InvalidPayload, match="cannot be sent"):
            await work.enqueue(value)
    assert await app.backend.count(JobQuery()) == 0


async def test_a_job_that_a_job_enqueues_inherits_user_and_trace() -> None:
    app = dead_app()

    @app.task
    async def work() -> None: ...

    from zq.client.running import Running, current
    from zq.client.values import Delivery

    parent = Delivery("0" * 26, "t", "q", None, traceparent="00-1", meta={"user": "ann", "x": 1})
    token = current.set(Running(parent, None, app.backend))
    try:
        inherits = work.options(meta={"y": 2})._form.submission(None)
        own = work.options(user="bob")._form.submission(None)
    finally:
        current.reset(token)

    assert (inherits.meta, inherits.traceparent) == ({"y": 2, "user": "ann"}, "00-1")
    assert own.meta == {"user": "bob"}
    assert work._form.submission(None).meta is None


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("retries", "give max_attempts"),
        ("countdown", "give delay"),
        ("eta", "give run_at"),
        ("expires", "ttl_ms"),
        ("retry_backoff", "backoff"),
        ("acks_late", "always acknowledged after it ran"),
        ("rate_limit", "rate"),
        ("colour", "the options are key, unique_while"),
    ],
)
def test_an_option_of_another_library_is_refused_with_what_replaces_it(
    name: str, remedy: str
) -> None:
    task: Any = zq.App().task
    with pytest.raises(zq.InvalidOption, match=f"^{name} is not an option: .*{remedy}"):
        task(**{name: 2})


def test_a_call_with_another_queue_is_refused_with_where_the_queue_stands() -> None:
    task: Any = zq.App().task(lambda: None)
    with pytest.raises(zq.InvalidOption, match=r"^queue is not an option: @app.task"):
        task.options(queue="mail")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("delay", "enqueue_sync"),
        ("s", "zq.chain"),
        ("apply_async", "options"),
        ("schedule", "delay="),
        ("kiq", "await enqueue"),
        ("defer_async", "await enqueue"),
        ("delay_on_commit", "zq.outbox"),
        ("nothing", ""),
    ],
)
def test_a_method_of_another_library_is_refused_with_what_replaces_it(
    name: str, remedy: str
) -> None:
    @zq.App().task
    def nothing_to_do() -> None: ...

    task: Any = nothing_to_do
    with pytest.raises(AttributeError, match=f"^a task has no '{name}'.*{remedy}"):
        getattr(task, name)
    assert not hasattr(task, name)


def generate() -> Any:
    yield 1


async def generate_later() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (generate, "generate is a generator function"),
        (generate_later, "generate_later is a generator function"),
        ("mail", "'mail' is not a function"),
        (partial(max, 1), "is not a function"),
        (zq.App().task(lambda: None), "<lambda> is a task already"),
    ],
    ids=["generator", "async generator", "text", "partial", "task"],
)
def test_what_a_worker_could_not_call_is_no_task(function: Any, words: str) -> None:
    with pytest.raises(zq.InvalidOption, match=words):
        zq.App().task(function)


def test_what_is_no_call_is_refused_with_what_to_write() -> None:
    @zq.App().task
    def add(a: int, b: int) -> int:
        return a + b

    calls: Any = [(1, 2)]
    with pytest.raises(zq.InvalidOption, match=r"^\(1, 2\) is not a call of the task: .*task.args"):
        add.enqueue_many_sync(calls)
    with pytest.raises(TypeError, match=r"add: missing a required argument: 'b'$"):
        add.args(1)  # type: ignore[call-arg]


def test_what_is_easily_mistaken_is_told_with_what_to_write() -> None:
    app: Any = zq.App()
    app.task(lambda: None)
    with pytest.raises(zq.InvalidOption, match=r"^queues: give a list, \['mail'\]"):
        zq.Worker(app, queues="mail")
    with pytest.raises(zq.InvalidOption, match=r"^'failure' is no event .* failed, failing"):
        app.on("failure")(print)
    with pytest.raises(zq.InvalidOption, match=r"^middleware: give a list"):
        zq.App(middleware=print)  # type: ignore[arg-type]
    with pytest.raises(zq.InvalidOption, match=r"^5 is not an address, such as 'http"):
        zq.App(5)  # type: ignore[arg-type]
    queue = app.queue("mail")
    with pytest.raises(AttributeError, match=r"^a queue has no 'enqueue_sync': call sync.enqueue"):
        queue.enqueue_sync("1", "a")
    with pytest.raises(AttributeError, match=r"^a queue has no 'nothing'$"):
        _ = queue.nothing
