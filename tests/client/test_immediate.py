"""Handlers that run at the enqueue, and apps that are pointed at another server."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from conformance.streams import pause

import zq
from zq.client.backend import run
from zq.client.values import StoredJob
from zq.testing import run_until_idle, server

ELSEWHERE = "http://127.0.0.1:9"
"""Nobody listens there: what reaches for it fails."""


@pytest.fixture
def app() -> zq.App:
    """An app as programs have it, at the level of a module."""
    return zq.App(ELSEWHERE)


def stored(app: zq.App, job: zq.Job[Any]) -> StoredJob:
    return run(app.backend.blocking.get(job.id))


def test_enqueuing_returns_after_the_handler(app: zq.App) -> None:
    ran: list[int] = []

    @app.task
    def note(n: int) -> int:
        ran.append(n)
        return n * 2

    with app.immediate():
        job = note.enqueue_sync(1)
        assert ran == [1]
        assert job.result_sync() == 2
        assert note.call_sync(2) == 4
        note.enqueue_many_sync([note.args(3), note.args(4)])
        assert sorted(ran) == [1, 2, 3, 4]


def test_functions_run_in_the_thread_that_enqueues(app: zq.App) -> None:
    """A test's database connection belongs to its thread: also one function within another."""
    threads: list[int] = []

    @app.task
    def inner() -> int:
        threads.append(threading.get_ident())
        return 1

    @app.task
    def outer() -> int:
        threads.append(threading.get_ident())
        return inner.call_sync() + inner.call_sync()

    with app.immediate():
        assert outer.call_sync() == 2
    assert threads == [threading.get_ident()] * 3


async def test_coroutines_run_in_the_loop_of_the_test(app: zq.App) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @app.task
    async def note() -> int:
        loops.append(asyncio.get_running_loop())
        return 5

    async with app.immediate():
        job = await note.enqueue()
        assert loops == [asyncio.get_running_loop()]
        assert await job.result() == 5
        assert await note.call() == 5
        # A blocking call in a program with a loop runs in another one.
        note.enqueue_sync()
        assert loops[2] is not loops[0]


def test_a_blocking_caller_awaits_no_listener(app: zq.App) -> None:
    ran: list[int] = []

    class Told:
        async def __call__(self, _: zq.Event) -> None:
            await asyncio.sleep(0)

    app.on("enqueued")(Told())
    app.on("enqueued")(Told().__call__)

    @app.task
    def note() -> None:
        ran.append(1)

    with app.immediate():
        note.enqueue_sync()
    assert ran == [1]


async def test_who_enqueues_while_handlers_run_waits_for_its_own(app: zq.App) -> None:
    ran: list[int] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def note(n: int) -> None:
        begun.set()
        await go_on.wait()
        ran.append(n)

    async def enqueue(n: int) -> bool:
        await note.enqueue(n)
        return n in ran

    async with app.immediate():
        first = asyncio.create_task(enqueue(1))
        await begun.wait()
        others = [asyncio.create_task(enqueue(n)) for n in (2, 3)]
        while await app.backend.count() < 3:
            await pause()
        go_on.set()
        assert await asyncio.gather(first, *others) == [True, True, True]
    assert sorted(ran) == [1, 2, 3]


async def test_handlers_of_two_apps_enqueue_for_each_other(app: zq.App) -> None:
    other = zq.App(ELSEWHERE)
    ran: list[str] = []

    @app.task
    async def last() -> None:
        ran.append("last")

    @other.task
    async def there() -> None:
        await last.enqueue()

    @app.task
    async def here() -> None:
        await there.enqueue()
        await last.enqueue()

    async with app.immediate(), other.immediate():
        await here.enqueue()
    assert ran == ["last", "last"]


async def test_what_handlers_enqueue_runs_as_well_before_it_returns(app: zq.App) -> None:
    ran: list[str] = []

    @app.task
    async def inner(word: str) -> str:
        ran.append(word)
        return word.upper()

    @app.task
    async def outer() -> None:
        await inner.enqueue("later")
        ran.append(await inner.call("within"))

    async with app.immediate():
        await outer.enqueue()
    assert sorted(ran) == ["WITHIN", "later", "within"]


async def test_a_failed_job_is_tried_again_without_a_wait(app: zq.App) -> None:
    attempts: list[int] = []

    @app.task(max_attempts=4, backoff=zq.Backoff(base=3600.0))
    async def flaky() -> str:
        attempts.append(zq.current_job().attempt)
        if len(attempts) < 3:
            raise ConnectionError
        return "done"

    async with app.immediate():
        assert await flaky.call() == "done"
    assert attempts == [1, 2, 3]


def test_the_final_failure_raises_the_handlers_own_exception(app: zq.App) -> None:
    @app.task(max_attempts=2, backoff=zq.Backoff(base=60.0))
    def divide(n: int) -> float:
        return 1 / n

    with app.immediate():
        with pytest.raises(ZeroDivisionError) as failure:
            divide.enqueue_sync(0)
        assert "divide" in [entry.name for entry in failure.traceback]
        assert divide.call_sync(2) == 0.5


def test_each_of_several_failed_jobs_is_tried_again(app: zq.App) -> None:
    ran: list[int] = []

    @app.task(max_attempts=2, on_exception={ValueError: 1.0, KeyError: 3600.0})
    def work(n: int) -> int:
        ran.append(n)
        if n == 3:
            raise zq.Kill("never")
        if ran.count(n) == 1:
            raise ValueError if n == 1 else KeyError
        return n

    with app.immediate():
        first, second = work.enqueue_many_sync([work.args(1), work.args(2)])
        assert (first.result_sync(), second.result_sync()) == (1, 2)
        assert ran[2:] == [1, 2]
        ran.clear()
        with pytest.raises(zq.Kill, match="never"):
            work.enqueue_many_sync([work.args(2), work.args(3)])
        assert ran.count(2) == 2


def test_an_enqueue_is_one_run_of_a_worker(app: zq.App) -> None:
    called: list[str] = []

    @app.on_startup
    def begin() -> None:
        called.append("startup")

    @app.while_working
    async def beside() -> None:
        called.append("while working")
        await asyncio.Event().wait()

    @app.on_shutdown
    def end() -> None:
        called.append("shutdown")

    @app.task(max_attempts=3)
    def work() -> None:
        called.append("work")
        if called.count("work") < 3:
            raise ConnectionError

    with app.immediate():
        work.enqueue_sync()
    assert called == ["startup", "while working", *["work"] * 3, "shutdown"]


def test_periodic_tasks_wait_for_a_real_worker(app: zq.App) -> None:
    ran: list[str] = []

    @app.periodic("0 * * * *")
    def hourly() -> None:
        ran.append("hourly")

    @app.task(max_attempts=2, backoff=zq.Backoff(base=7200.0))
    def work() -> None:
        ran.append("work")
        if len(ran) == 1:
            raise ConnectionError

    with app.immediate():
        work.enqueue_sync()
        hourly.enqueue_sync()
    assert ran == ["work", "work", "hourly"]


def test_a_result_that_cannot_be_stored_is_a_failure(app: zq.App) -> None:
    @app.task
    def work() -> object:
        return object()

    with app.immediate(), pytest.raises(zq.JobFailed, match="values of type object cannot be sent"):
        work.enqueue_sync()


async def test_a_coroutine_may_not_block_the_worker_that_it_waits_for(app: zq.App) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(max_attempts=1)
    async def work(how: str) -> int:
        if how == "call":
            return add.call_sync(1, 2)
        return add.enqueue_sync(1, 2).result_sync()

    async def wait() -> int:
        return add.call_sync(1, 2)

    @app.task
    def work_in_a_thread() -> int:
        return add.call_sync(1, 2) + asyncio.run(wait())

    async with app.immediate():
        with pytest.raises(RuntimeError, match=r"would block .*: write await add.call\("):
            await work.enqueue("call")
        with pytest.raises(RuntimeError, match=r"would block .*: write await job.result\("):
            await work.enqueue("result")
        assert await work_in_a_thread.call() == 6


def test_a_delayed_job_waits_for_its_time(app: zq.App) -> None:
    ran: list[int] = []

    @app.task
    def note() -> None:
        ran.append(1)

    with app.immediate():
        job = note.options(delay=3600.0).enqueue_sync()
        assert stored(app, job).status == "scheduled"
    assert ran == []


async def test_an_app_works_with_another_server_inside_of_a_block(app: zq.App) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    async with server() as running, app.use(running):
        job = await add.enqueue(1, 2)
        await run_until_idle(app)
        assert await job.result() == 3
    with app.use("sqlite://:memory:"):
        assert stored(app, add.enqueue_sync(1, 2)).status == "ready"
    with pytest.raises(zq.Unavailable):
        add.enqueue_sync(1, 2)


def test_a_server_that_cannot_be_is_refused(app: zq.App) -> None:
    with pytest.raises(zq.InvalidOption):
        app.use("ftp://example.org")
    assert app.backend is app.core.backend


PROGRAM = """
import sys
sys.modules["pytest"] = None  # It is not installed.
import zq

app = zq.App()

@app.task
def add(a, b):
    return a + b

with app.immediate():
    print(add.call_sync(1, 2))
"""


def test_the_kit_does_not_need_pytest() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3\n", "")
