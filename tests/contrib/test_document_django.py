"""The project of docs/django.md, as it is printed: under its test client, and with its worker."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from documents import code, commands
from outbox.postgres import the_server
from process.server import clean_environment, running
from psycopg.conninfo import conninfo_to_dict

from zq.client.values import Submission
from zq.testing import TestServer

from .framework import NAME

MANAGE = """\
import sys
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
"""

SETTINGS = """\
from contrib.sample.settings import *

DEBUG = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
INSTALLED_APPS = INSTALLED_APPS[:-1]
ROOT_URLCONF = "urls"
"""

URLS = """\
from django.urls import path
from shop import views

urlpatterns = [path("join/<name>", views.join), path("status/<task>", views.status)]
"""

VISIT = """\
import json, sys
import django

django.setup()
from django.test import Client

print(json.dumps(Client().get(sys.argv[1]).json()))
"""


WORKING = b"works on default, mail"

CALL = {"args": ["mon"], "kwargs": {}}

PID = """

@task
def pid() -> int:
    import os

    return os.getpid()
"""


def for_this_django(program: str) -> str:
    """A program of the page with the imports that the page asks for on this version of Django."""
    assert "from django.tasks import" in program
    return program.replace("from django.tasks import", f"from {NAME} import")


class Project:
    """The files of the document in a folder, and the address of a server."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._env = clean_environment() | {
            "ZQ_URL": url,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "settings",
        }
        (folder / "shop").mkdir()
        files = {
            "manage.py": MANAGE,
            "urls.py": URLS,
            "visit.py": VISIT,
            "settings.py": SETTINGS + code("django settings"),
            "settings_test.py": code("django test settings"),
            "shop/tasks.py": for_this_django(code("django tasks")),
            "shop/__init__.py": "",
            "shop/tests.py": code("django tests"),
            "shop/views.py": for_this_django(code("django views")),
        }
        for name, text in files.items():
            (folder / name).write_text(text)

    async def start(self, *words: str, errors: int | None = None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, *words),
            cwd=self.folder,
            env=self._env,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )

    def add(self, file: str, text: str) -> None:
        """Append to a file of the project, which is made if need be."""
        with (self.folder / file).open("a") as opened:
            opened.write(text)

    async def run(self, *words: str) -> str:
        process = await self.start(*words)
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()

    async def visit(self, path: str) -> dict[str, str]:
        answer: dict[str, str] = json.loads(await self.run("visit.py", path))
        return answer

    @asynccontextmanager
    async def working(self, *words: str) -> AsyncIterator[asyncio.StreamReader]:
        """A worker that has begun to work, and is told to end by a signal."""
        process = await self.start(*words)
        assert process.stdout is not None
        while WORKING not in await process.stdout.readline():
            assert not process.stdout.at_eof()
        try:
            yield process.stdout
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()
        assert process.returncode == 0


def words_of(command: str) -> list[str]:
    tool, *words = shlex.split(command)
    assert tool == "python"
    return words


async def test_the_project(zq_server: TestServer, tmp_path: Path) -> None:
    project = Project(tmp_path, zq_server.url)
    migrate, check, worker = map(words_of, commands("django commands"))
    await project.run(*migrate)
    assert "no issues" in await project.run(*check)

    async with project.working(*worker) as output:
        task = (await project.visit("/join/ann"))["task"]
        while b'"message":"completed","task":"shop.tasks.welcome"' not in await output.readline():
            assert not output.at_eof()
        # The worker says so once the task has returned, and then tells the server.
        while (answer := await project.visit(f"/status/{task}"))["status"] == "RUNNING":
            pass
    assert answer == {"status": "SUCCESSFUL", "value": "welcomed ann"}


async def test_the_worker_starts_again_when_a_task_changes(
    zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    tasks = tmp_path / "shop" / "tasks.py"
    job = Submission("default", "shop.tasks.report", CALL)

    async with (
        zq_server.app() as app,
        project.working("manage.py", "zq_worker", "--no-relay") as output,
    ):
        first = await app.backend.enqueue_and_wait(job, 20_000)
        tasks.write_text(tasks.read_text().replace('"day": day', '"date": day'))
        while WORKING not in await output.readline():
            assert not output.at_eof()
        second = await app.backend.enqueue_and_wait(job, 20_000)

    assert (first.result, second.result) == (
        {"day": "mon", "attempt": 1},
        {"date": "mon", "attempt": 1},
    )


async def test_a_burst_takes_what_is_in_the_outbox_and_needs_its_table(
    zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    burst = ("manage.py", "zq_worker", "--burst")
    unready = await project.start(*burst)
    await unready.communicate()
    assert unready.returncode == 1  # the outbox has no table

    await project.run("manage.py", "migrate")
    wrong = "import django; django.setup(); from shop.tasks import *; print(welcome.enqueue().id)"
    task = (await project.run("-c", wrong)).strip()
    assert "finished 1 tasks" in await project.run(*burst)
    assert await project.visit(f"/status/{task}") == {"status": "FAILED", "value": None}


async def test_a_reloading_worker_that_cannot_work_ends(
    zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    worker = await project.start("manage.py", "zq_worker", "--concurrency", "0")
    await asyncio.wait_for(worker.communicate(), 60)
    assert worker.returncode == 1


POSTGRESQL = """
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "{name}",
    "USER": "zq", "HOST": "{host}"}}}}
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def database_settings(request: pytest.FixtureRequest) -> str:
    """The settings of a database, to be appended to those of the project."""
    if request.param == "sqlite":
        return ""
    given = conninfo_to_dict(the_server().new_database())
    return POSTGRESQL.format(name=given["dbname"], host=given["host"])


async def test_the_project_has_tests(
    database_settings: str, zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    project.add("settings.py", database_settings)
    # The app's own tests; Django finds no others in the folder.
    words = words_of(code("django test command"))
    process = await project.start(*words, errors=asyncio.subprocess.STDOUT)
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    assert b"Ran 2 tests" in output
    assert b"being accessed by other users" not in output


async def test_the_project_beside_the_jobs_of_its_server(tmp_path: Path) -> None:
    """Its database is that of zq, whose server takes the rows of the outbox by itself."""
    address = the_server().new_database()
    data = tmp_path / "server"
    data.mkdir()
    async with running(data, "--store", address) as zq, zq.client() as client:
        folder = tmp_path / "project"
        folder.mkdir()
        project = Project(folder, f"http://127.0.0.1:{zq.port}")
        given = conninfo_to_dict(address)
        project.add("settings.py", POSTGRESQL.format(name=given["dbname"], host=given["host"]))
        migrate, _, worker = map(words_of, commands("django commands"))
        await project.run(*migrate)
        await project.run(*migrate)
        task = (await project.visit("/join/ann"))["task"]
        await client.until_count(1, queue="mail")
        assert await project.visit(f"/status/{task}") == {"status": "READY", "value": None}
        async with project.working(*worker):
            await client.until_count(0, queue="mail", status="ready,in_flight")
        answer = await project.visit(f"/status/{task}")
        assert answer == {"status": "SUCCESSFUL", "value": "welcomed ann"}
        await project.visit("/join/bob")
        assert "finished 1 tasks" in await project.run("manage.py", "zq_worker", "--burst")


async def test_schedules_are_those_of_the_settings(zq_server: TestServer, tmp_path: Path) -> None:
    project = Project(tmp_path, zq_server.url)
    project.add("settings.py", code("django periodic"))
    burst = ("manage.py", "zq_worker", "--burst", "--no-relay")
    await project.run(*burst)
    async with zq_server.app() as app:
        group = await app.backend.schedules.group("django-default")
        shown = {(each.name, each.expression, each.timezone) for each in group.entries}
        assert shown == {
            ("shop.tasks.nightly", "15 3 * * *", None),
            ("shop.tasks.weekly", "0 8 * * mon", "Europe/Berlin"),
        }
        # Those that the settings no longer name end.
        project.add(
            "settings.py", '\ndel TASKS["default"]["OPTIONS"]["periodic"]["shop.tasks.weekly"]'
        )
        await project.run(*burst)
        group = await app.backend.schedules.group("django-default")
        assert [each.name for each in group.entries] == ["shop.tasks.nightly"]


async def test_a_function_of_the_project_sets_each_worker_up(
    zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    project.add("shop/worker.py", code("django setup"))
    project.add("settings.py", '\nTASKS["default"]["OPTIONS"]["setup"] = "shop.worker.setup"\n')
    async with zq_server.app() as app:
        await app.backend.enqueue([Submission("default", "shop.tasks.report", CALL)])
    process = await project.start(
        *("manage.py", "zq_worker", "--burst", "--no-relay", "-v", "2"),
        errors=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert b"shop.tasks.report took" in output, output.decode()


@pytest.mark.parametrize("place", [("--threads", "1"), ("--processes", "1")], ids=" ".join)
async def test_a_worker_takes_the_options_of_zq_worker(
    place: tuple[str, ...], zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server.url)
    project.add("shop/tasks.py", PID)
    job = Submission("default", "shop.tasks.pid", {"args": [], "kwargs": {}})
    worker = ("manage.py", "zq_worker", "--no-relay", "--no-reload", *place)
    async with zq_server.app() as app:
        queues = ("--queues", "mail, default")
        process = await project.start(*worker, *queues, "--prefetch", "2", "--lease", "5")
        outcome = await app.backend.enqueue_and_wait(job, 20_000)
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert (outcome.result == process.pid) == ("--threads" in place)
