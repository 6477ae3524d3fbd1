"""`zq worker` in a process of its own, against a server in another."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner
from conformance.site import Site
from conformance.streams import PATIENCE_S
from process.server import clean_environment

from zq.cli import main
from zq.client.app import App
from zq.client.files.registry import queues
from zq.client.values import JobQuery

SHOP = """\
    import asyncio, time
    import zq

    app = zq.App(defaults={"max_attempts": 1})

    @app.task(queue="mail")
    async def quick(n: int) -> int:
        return n + 1

    @app.task(queue="mail")
    async def slow(seconds: float) -> str:
        print("begun", flush=True)
        await asyncio.sleep(seconds)
        return "done"

    @app.task(queue="stubborn")
    def stubborn() -> None:
        print("begun", flush=True)
        time.sleep(3600)

    @app.task(queue="stubborn")
    async def deaf() -> None:
        print("begun", flush=True)
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                print("swallowed", flush=True)

    @app.task(queue="stubborn")
    async def blocking() -> None:
        print("begun", flush=True)
        time.sleep(3600)
"""


class WorkerProcess:
    """A running `zq worker`; its lines can be awaited."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self, text: str) -> dict[str, Any]:
        """Wait for a line with this text; the fields that it has, if it is one of the log."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            async for raw in self._process.stdout:
                if text in raw.decode():
                    return json.loads(raw)["fields"] if raw.startswith(b"{") else {}
        raise AssertionError(f"it ended without a word of {text!r}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> tuple[int, str]:
        """Its exit code and what else it said."""
        async with asyncio.timeout(PATIENCE_S):
            output, errors = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, (output + errors).decode()


@contextlib.asynccontextmanager
async def worker(
    directory: Path,
    url: str,
    *words: str,
    source: str = SHOP,
    app: str = "shop:app",
    log: Sequence[str] = ("--log-format", "json"),
) -> AsyncIterator[WorkerProcess]:
    """`zq worker shop:app` in a directory that has shop.py."""
    (directory / "shop.py").write_text(dedent(source))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "zq.cli", "worker", *filter(None, [app]), *log, *words),
        cwd=directory,
        env=clean_environment() | {"ZQ_URL": url, "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield WorkerProcess(process)
    finally:
        if process.returncode is None:
            # All of them: a process that it has started holds the pipes open as well.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


def shop(app: App) -> Any:
    """The producer's side of the same app."""

    @app.task(queue="mail")
    async def quick(n: int) -> int:
        raise NotImplementedError

    @app.task(queue="mail", max_attempts=1)
    async def slow(seconds: float) -> str:
        raise NotImplementedError

    @app.task(queue="stubborn")
    def stubborn() -> None: ...

    @app.task(queue="stubborn")
    async def deaf() -> None: ...

    @app.task(queue="stubborn")
    async def blocking() -> None: ...

    return quick, slow, stubborn


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


def app_url(app: App) -> str:
    backend: Any = app.backend
    url: str = backend._address.url
    return url


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    async with App(site.url) as app:
        yield app


async def test_the_first_signal_lets_what_runs_finish(app: App, tmp_path: Path) -> None:
    _, slow, _ = shop(app)
    job = await slow.enqueue(0.5)

    async with worker(tmp_path, app_url(app)) as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 0

    assert await job.result() == "done"


async def test_the_second_signal_ends_it_and_the_job_goes_back_at_once(
    app: App, tmp_path: Path
) -> None:
    _, slow, _ = shop(app)
    job = await slow.enqueue(3600)

    async with worker(tmp_path, app_url(app)) as process:
        await process.line("begun")
        process.signal(signal.SIGINT)
        await process.line("running jobs may finish")
        process.signal(signal.SIGINT)
        assert (await process.ended())[0] == 1

    await until_ready(app, job.id)


async def until_ready(app: App, id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await app.backend.get(id)).status != "ready":
            pass
    assert (await app.backend.get(id)).attempts == 0


async def test_a_thread_that_does_not_end_does_not_keep_the_worker(
    app: App, tmp_path: Path
) -> None:
    _, _, stubborn = shop(app)
    job = await stubborn.enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1ms") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 1

    await until_ready(app, job.id)


@pytest.mark.parametrize("task", ["stubborn", "deaf"])
async def test_a_handler_that_hears_nothing_does_not_keep_the_worker_beyond_its_time(
    app: App, tmp_path: Path, task: str
) -> None:
    shop(app)
    job = await app.tasks[task].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1s") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        code, said = await process.ended()

    assert code == 1
    assert f"of shop.{task} goes on although" in said
    await until_ready(app, job.id)


@pytest.mark.parametrize("task", ["stubborn", "deaf", "blocking"])
async def test_the_second_signal_ends_a_worker_whatever_its_handler_does(
    app: App, tmp_path: Path, task: str
) -> None:
    shop(app)
    job = await app.tasks[task].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1h") as process:
        await process.line("begun")
        process.signal(signal.SIGINT)
        # A blocked event loop cannot say that it has heard of the first.
        await (
            asyncio.sleep(0.5) if task == "blocking" else process.line("running jobs may finish")
        )
        process.signal(signal.SIGINT)
        code, said = await process.ended()

    assert code == 1
    assert f"in {task}" in said if task == "blocking" else "goes on although" in said
    await until_ready(app, job.id)


async def test_a_blocked_event_loop_does_not_keep_the_worker_for_ever(
    app: App, tmp_path: Path
) -> None:
    shop(app)
    job = await app.tasks["blocking"].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1ms") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        code, said = await process.ended()

    assert code == 1
    assert 'shop.py", line' in said
    await until_ready(app, job.id)


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
            pass


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


def invoke(*words: str, **variables: str) -> tuple[int, str]:
    result = CliRunner(env=variables).invoke(main, ["worker", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "MODULE:APP"),
        (("nothing_such:app",), "no module 'nothing_such'"),
        (("json:nothing_such",), "no 'nothing_such'"),
        (("json",), "no 'app'"),
        (("--package", "nowhere"), "nowhere: this folder does not exist"),
        (("json:dumps",), "is not a zq.App but a function"),
        (("json:dumps", "-c", "0"), "concurrency"),
        (("json:dumps", "--lease", "soon"), '"soon" is not a duration'),
        (("json:dumps", "--json-logs", "--log-format", "pretty"), "--json-logs or --log-format"),
    ],
)
def test_a_wrong_word_gives_2_and_says_what_is_wrong(
    words: tuple[str, ...], complaint: str
) -> None:
    code, output = invoke(*words)

    assert code == 2
    assert complaint in output


def test_what_reload_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)

    code, output = invoke("json:dumps", "--reload")

    assert code == 2
    assert "pip install 'zq-queue[reload]'" in output


def test_an_app_without_tasks_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty_app.py").write_text("import zq\napp = zq.App()\n")
    monkeypatch.syspath_prepend(tmp_path)

    code, output = invoke("empty_app")

    assert code == 2
    assert "no tasks" in output


def test_every_flag_has_a_variable() -> None:
    code, output = invoke("json:dumps", ZQ_WORKER_CONCURRENCY="0")
    assert code == 2
    assert "concurrency" in output
    _, help = invoke("--help")
    for flag in set(re.findall(r"--([a-z-]+)", help)) - {"concurrency", "help"}:
        assert "ZQ_WORKER_" + flag.replace("-", "_").upper() in help.replace("\n", "")


def test_a_broken_address_in_a_variable_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_address.py").write_text("import zq\napp = zq.App()\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner().invoke(main, ["worker", "broken_address"], env={"ZQ_URL": "here:7890"})
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "broken_address: 'here:7890' is not an address" in result.stderr


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ("shop.py", "shop:app"),
        ("./shop.py:queue", "shop:queue"),
        ("shop/jobs", "shop.jobs:app"),
        ("shop.app", "shop:app"),
    ],
)
def test_a_module_that_is_written_otherwise_is_told_what_to_write(spec: str, right: str) -> None:
    result = CliRunner().invoke(main, ["worker", spec])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert f": write {right}. See" in result.stderr


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
