"""The engine in the caller's process: its directory, its life, and its jobs."""

import asyncio
import atexit
import gc
import multiprocessing
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from conformance.streams import PATIENCE_S
from manual_clock import ManualClock
from process.server import running

import zq
from zq.client.backend import run
from zq.client.connect import connect
from zq.client.errors import BackendError
from zq.client.values import Submission, TakeRequest
from zq.features.producers.client import NumberedJobs
from zq.features.producers.model import EpochEnd
from zq.model.settings import SettingsPatch
from zq.testing import run_until_idle

JOB = Submission("q", "work", {"n": 1})


def address(directory: Path) -> str:
    return f"sqlite://{directory}/data"


async def test_tasks_are_enqueued_worked_on_and_waited_for(tmp_path: Path) -> None:
    async with zq.App(address(tmp_path)) as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        @app.task
        def describe(n: int) -> str:
            return f"{n}!"

        jobs = [await double.enqueue(n) for n in range(3)]
        described = await describe.enqueue(7)
        outcomes = await run_until_idle(app)

        assert len(outcomes) == 4
        assert [await job.result() for job in jobs] == [0, 2, 4]
        assert await described.result() == "7!"


async def test_a_worker_answers_who_calls(tmp_path: Path) -> None:
    async with zq.App(address(tmp_path)) as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        worker = zq.Worker(app)
        life = asyncio.ensure_future(worker.run())
        assert await double.call(21) == 42
        await worker.stop()
        await life


def test_a_script_needs_no_event_loop(tmp_path: Path) -> None:
    with zq.App(address(tmp_path)) as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        job = double.enqueue_sync(21)
        asyncio.run(run_until_idle(app))
        assert job.result_sync() == 42


def test_jobs_are_there_again_after_closing(tmp_path: Path) -> None:
    with zq.App(address(tmp_path)) as app:
        (job,) = run(app.backend.blocking.enqueue([JOB]))
    with zq.App(address(tmp_path)) as app:
        assert run(app.backend.blocking.get(job.id)).payload == {"n": 1}


async def test_a_server_goes_on_with_the_jobs_of_a_script(tmp_path: Path) -> None:
    async with zq.App(f"sqlite://{tmp_path}") as app:
        (job,) = await app.backend.enqueue([JOB])
    async with running(tmp_path) as server, zq.App(f"http://127.0.0.1:{server.port}") as app:
        assert (await app.backend.get(job.id)).payload == {"n": 1}


async def test_jobs_with_numbers_are_stored_once_whoever_opens_the_directory(
    tmp_path: Path,
) -> None:
    jobs = [Submission("q", "work", number) for number in range(3)]
    for _ in range(2):
        async with zq.App(address(tmp_path)) as app:
            numbered = NumberedJobs(app.backend, "device-17", "7f3a")
            stored = [*await numbered.store(1, jobs[:2]), *await numbered.store(2, jobs[1:])]
            with pytest.raises(BackendError) as refused:
                await numbered.store(5, jobs)
            assert refused.value.code == "sequence_gap"
            assert await numbered.end() == EpochEnd("7f3a", 3)
    assert [job.duplicate for job in stored] == [True] * 4
    async with running(tmp_path / "data") as server, server.client() as client:
        assert [job["payload"] for job in await client.jobs()] == [0, 1, 2]
        assert (await client.get("/producers/device-17")).doc["last"] == 3


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with zq.App(address(tmp_path)) as first, zq.App(address(tmp_path)) as second:
        run(first.backend.blocking.enqueue([JOB]))
        with pytest.raises(zq.Unavailable, match=r"in use by another zq \(process \d+\)"):
            run(second.backend.blocking.enqueue([JOB]))
        run(first.backend.blocking.close())
        assert run(second.backend.blocking.count()) == 1


async def test_a_standby_waits_for_the_directory_and_goes_on_with_its_jobs(tmp_path: Path) -> None:
    worked = []
    async with zq.App(address(tmp_path)) as first:
        await first.backend.enqueue([JOB])
        async with zq.App(address(tmp_path), standby=True) as second:

            @second.queue("q").handler
            async def work(payload: object) -> None:
                worked.append(payload)

            worker = zq.Worker(second, max_jobs=1)
            running = asyncio.create_task(worker.run())
            counting = asyncio.create_task(asyncio.to_thread(run, second.backend.blocking.count()))
            with pytest.raises(zq.Unavailable, match="in use"):
                await zq.App(address(tmp_path)).backend.count()
            assert not running.done()
            assert not counting.done()

            await first.close()
            async with asyncio.timeout(PATIENCE_S):
                await counting
                await running
            # It is the owner now, with all that this means.
            with pytest.raises(zq.Unavailable, match="in use"):
                await first.backend.count()
    assert worked == [{"n": 1}]


async def test_a_worker_that_stands_by_can_be_stopped(tmp_path: Path) -> None:
    async with (
        zq.App(address(tmp_path)) as first,
        zq.App(address(tmp_path), standby=True) as second,
    ):
        await first.backend.count()
        second.task(lambda: None)
        worker = zq.Worker(second)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            await worker.stop()
            with pytest.raises(zq.Unavailable, match="stopped"):
                await running


def test_a_server_has_any_number_of_clients() -> None:
    with pytest.raises(zq.InvalidOption, match="standby"):
        zq.App("http://127.0.0.1:1", standby=True)


def _count(backend: zq.Backend, answers: "multiprocessing.Queue[str]") -> None:
    try:
        run(backend.blocking.count())
        answers.put("counted")
    except zq.Unavailable as error:
        answers.put(error.message)


def test_it_says_that_it_does_not_survive_a_fork(tmp_path: Path) -> None:
    forking = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[str] = forking.Queue()
    with zq.App(address(tmp_path)) as app:
        run(app.backend.blocking.enqueue([JOB]))
        child = forking.Process(target=_count, args=(app.backend, answers), daemon=True)
        child.start()
        assert "does not survive a fork" in answers.get(timeout=PATIENCE_S)
        child.join(PATIENCE_S)
        assert run(app.backend.blocking.count()) == 1


def test_what_is_private_goes_with_the_app() -> None:
    with zq.App("sqlite://:memory:") as app:
        run(app.backend.blocking.enqueue([JOB]))
        directory = _directory_of_the_engine(app)
        assert (directory / "zq.db").exists()
        assert run(zq.App("sqlite://:memory:").backend.blocking.count()) == 0
    assert not directory.exists()


FORKING = """
import os
import sys
import zq

app = zq.App("sqlite://:memory:")
queue = app.queue("q").sync
queue.enqueue("before", 1)
if child := os.fork():
    os.waitpid(child, 0)
    print(queue.enqueue("after", 1).status, queue.enqueue("before", 1).status)
else:
    {ending}
"""


@pytest.mark.parametrize("ending", ["sys.exit()", "app.__exit__()"])
def test_a_child_that_ends_leaves_the_parents_private_directory(ending: str) -> None:
    program = FORKING.format(ending=ending)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("queued duplicate\n", "")


FORKED = """
import os
import sys
import zq

app = zq.App(sys.argv[1])
queue = app.queue("q").sync
queue.enqueue("before", 1)
closed, close = os.pipe()
ended, end = os.pipe()
if os.fork():
    os.close(end)
    app.__exit__()
    print(queue.enqueue("after", 1).status, flush=True)
    app.__exit__()
    os.close(close)
    os.read(ended, 1)
else:
    os.close(close)
    os.read(closed, 1)
    app.__exit__()
    try:
        queue.enqueue("child", 1)
    except zq.Unavailable as error:
        print(error.code, "was open when this process was forked" in error.message)
"""


def test_a_child_that_lives_on_does_not_keep_the_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, address(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("queued\ndirectory_taken True\n", "")


def _directory_of_the_engine(app: zq.App) -> Path:
    from zq.client.embedded.backend import EmbeddedBackend

    assert isinstance(app.backend, EmbeddedBackend)
    return app.backend.home.directory


def test_threads_and_event_loops_may_share_it(tmp_path: Path) -> None:
    with zq.App(address(tmp_path)) as app:

        def produce() -> None:
            run(app.backend.blocking.enqueue([JOB]))

        async def produce_in_a_loop() -> None:
            await asyncio.gather(*(app.backend.enqueue([JOB]) for _ in range(5)))

        threads = [threading.Thread(target=produce) for _ in range(5)]
        threads += [threading.Thread(target=lambda: asyncio.run(produce_in_a_loop()))] * 1
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert run(app.backend.blocking.count()) == 10


def test_an_engine_whose_files_were_taken_away_starts_again_with_the_next_use(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with zq.App(f"sqlite://{data}") as app:
        backend = app.backend.blocking
        run(backend.enqueue([JOB]))
        data.rename(tmp_path / "away")
        with pytest.raises(zq.BackendError):
            for _ in range(100):  # it notices before one of them is stored
                run(backend.enqueue([JOB]))
        (tmp_path / "away").rename(data)
        before = run(backend.count())
        run(backend.enqueue([JOB]))
        assert run(backend.count()) == before + 1 > 1


def test_closed_engines_leave_nothing_alive(tmp_path: Path) -> None:
    def use(number: int) -> weakref.ref[Any]:
        with zq.App(f"sqlite://{tmp_path / str(number)}") as app:
            run(app.backend.blocking.enqueue([JOB]))
            return weakref.ref(app.backend)

    use(0)  # what the first one imports and caches stays
    gc.collect()
    threads, files = threading.active_count(), len([*Path("/proc/self/fd").iterdir()])
    callbacks = atexit._ncallbacks()
    left = [use(number) for number in range(1, 21)]
    gc.collect()
    for _ in range(1_200):  # one of another test may just end
        if threading.active_count() <= threads:
            break
        time.sleep(0.05)
    assert threading.active_count() <= threads
    assert len([*Path("/proc/self/fd").iterdir()]) <= files
    assert atexit._ncallbacks() == callbacks
    assert [each() for each in left] == [None] * 20


async def test_closing_ends_the_streams_and_gives_their_jobs_back(tmp_path: Path) -> None:
    async with zq.App(address(tmp_path)) as app:
        (job,) = await app.backend.enqueue([JOB])
        stream = await app.backend.take(TakeRequest(("q",), 1))
        await stream.deliveries()
        waiting = asyncio.ensure_future(stream.deliveries())
        await app.backend.close()
        with pytest.raises(zq.Unavailable):
            await waiting
        await stream.close()
        assert (await app.backend.get(job.id)).status == "ready"


async def test_what_nobody_waits_for_any_more_is_dropped(tmp_path: Path) -> None:
    async with zq.App(address(tmp_path)) as app:
        (job,) = await app.backend.enqueue([JOB])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await app.backend.result(job.id, 30_000)
        assert (await app.backend.get(job.id)).status == "ready"


async def test_time_is_the_clocks_that_it_was_given(tmp_path: Path) -> None:
    from zq.client.embedded.backend import EmbeddedBackend
    from zq.client.embedded.engine import EmbeddedEngine

    clock = ManualClock()
    backend = EmbeddedBackend(EmbeddedEngine(tmp_path / "data", clock))
    (job,) = await backend.enqueue([Submission("q", "work", None, ready_at=clock.now_ms() + 500)])
    assert (job.status, job.created_at) == ("scheduled", clock.now_ms())
    await backend.close()


async def test_priorities_age_by_the_clock(tmp_path: Path) -> None:
    from zq.client.embedded.backend import EmbeddedBackend
    from zq.client.embedded.engine import EmbeddedEngine

    clock = ManualClock()
    backend = EmbeddedBackend(EmbeddedEngine(tmp_path / "data", clock))
    await backend.change_settings("q", SettingsPatch(priority_aging_ms=1_000))
    (old,) = await backend.enqueue([Submission("q", "work", None, priority=50)])
    clock.advance(10_500)
    later = [Submission("q", "work", None, priority=priority) for priority in (39, 41)]
    urgent, younger = await backend.enqueue(later)

    stream = await backend.take(TakeRequest(("q",), prefetch=3))
    taken: list[str] = []
    while len(taken) < 3:
        taken += [delivery.id for delivery in await stream.deliveries()]
    await stream.close()
    await backend.close()

    assert taken == [urgent.id, old.id, younger.id]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///etc/hostname"])
def test_an_address_that_names_no_directory_is_refused(url: str) -> None:
    with pytest.raises(zq.InvalidOption, match="is not a directory"):
        connect(url)


async def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with zq.App(f"sqlite://{tmp_path}/file/data") as app:
        with pytest.raises(zq.BackendError, match="cannot be used"):
            await app.backend.count()
