"""`zq worker` in a process of its own, against a server in another: its work, and what it says."""

import asyncio
import signal
from pathlib import Path
from textwrap import dedent

from conformance.streams import PATIENCE_S, pause

from zq.client.app import App
from zq.client.files.registry import queues
from zq.client.values import JobQuery

from .workers import SHOP, app_url, shop, worker


async def test_a_burst_does_what_is_there_and_ends_with_0(app: App, tmp_path: Path) -> None:
    quick, *_ = shop(app)
    jobs = await quick.enqueue_many(quick.args(n) for n in range(5))

    async with worker(tmp_path, app_url(app), "--burst", "-c", "3") as process:
        assert (await process.ended())[0] == 0

    assert [await job.result() for job in jobs] == [1, 2, 3, 4, 5]


async def test_a_folder_of_files_needs_no_app(app: App, tmp_path: Path) -> None:
    folder = tmp_path / "queues"
    folder.mkdir()
    (folder / "mail.py").write_text("def handle(payload): return payload['n'] + 1\n")
    (mail,) = app.discover(folder)
    try:
        id = await mail.push({"n": 1})
        words = ("--package", "queues", "--burst")
        async with worker(tmp_path, app_url(app), *words, app="") as process:
            assert (await process.ended())[0] == 0
        assert (await app.backend.result(id, 0)).result == 2
    finally:
        queues.clear()


CALLING = """\
import zq

app = zq.App(defaults={"max_attempts": 1})


@app.task
async def greet(name: str) -> None: ...


@app.task(queue="calls")
async def call() -> bool:
    return (await greet.enqueue(5)).duplicate
"""


async def test_calls_that_handlers_make_can_be_left_unchecked(app: App, tmp_path: Path) -> None:
    @app.task(queue="calls", max_attempts=1)
    async def call() -> bool:
        raise NotImplementedError

    for flags, status in (((), "dead"), (("--no-check",), "completed")):
        job = await call.enqueue()
        words = ("--queues", "calls", "--burst", *flags)
        async with worker(tmp_path, app_url(app), *words, source=CALLING) as process:
            assert (await process.ended())[0] == 0
        assert (await app.backend.get(job.id)).status == status


async def test_a_server_that_cannot_be_reached_gives_3(tmp_path: Path) -> None:
    async with worker(tmp_path, "http://127.0.0.1:1", "--connect-timeout", "0") as process:
        code, said = await process.ended()

    assert code == 3
    assert "zq serve" in said


async def test_so_many_jobs_and_no_more(app: App, tmp_path: Path) -> None:
    quick, *_ = shop(app)
    await quick.enqueue_many([quick.args(1)] * 5)

    async with worker(tmp_path, app_url(app), "--max-jobs", "2") as process:
        assert (await process.ended())[0] == 0

    assert await app.backend.count(JobQuery(statuses=("completed",))) == 2
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("ready",))) != 3:
            await pause()


async def test_a_start_says_for_whom_and_for_what_it_works(app: App, tmp_path: Path) -> None:
    words = ("-q", "mial, mail", "-c", "3")
    async with worker(tmp_path, app_url(app), *words) as process:
        warned = await process.line('"level":"WARN"')
        assert warned["message"] == "the app has no tasks for queue 'mial'; did you mean mail?"
        begun = await process.line('"message":"working"')
        assert (begun["server"], begun["queues"]) == (app_url(app), "mial,mail")
        assert (begun["tasks"].split(",")[-2:], begun["concurrency"]) == (["slow", "stubborn"], 3)
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 0


async def test_a_changed_python_file_starts_it_again_and_the_servers_files_do_not(
    app: App, tmp_path: Path
) -> None:
    quick, *_ = shop(app)

    # The server's directory lies in the one that is watched, as with `zq serve` beside the app.
    async with worker(tmp_path, app_url(app), "--reload") as process:
        await process.line('"message":"working"')
        async with asyncio.timeout(PATIENCE_S):
            assert await quick.call(1) == 2
        changed = dedent(SHOP).replace("return n + 1", "return n + 100")
        (tmp_path / "shop.py").write_text(changed)
        assert (await process.line('"message":"starting again"'))["changed"] == "shop.py"
        await process.line('"message":"working"')
        async with asyncio.timeout(PATIENCE_S):
            assert await quick.call(1) == 101
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 0


TALKATIVE = """\
    import logging
    import zq

    app = zq.App()
    log = logging.getLogger("shop")

    @app.task(queue="mail")
    def quick(n: int) -> int:
        log.info("counting", extra={"fields": {"n": n}})
        return n + 1
"""


async def test_the_log_tells_of_jobs_of_their_handlers_and_of_progress(
    app: App, tmp_path: Path
) -> None:
    quick, *_ = shop(app)
    job = await quick.enqueue(1)
    words = ("--progress", "10ms")
    given = (tmp_path, app_url(app), *words)
    async with worker(*given, source=TALKATIVE, log=["--json-logs"]) as process:
        assert (await process.line("counting"))["job_id"] == job.id
        completed = await process.line("completed")
        assert (completed["task"], completed["job"]) == ("quick", job.id)
        progress = await process.line("progress")
        assert (progress["finished"], progress["running"]) == (1, 0)
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 0
