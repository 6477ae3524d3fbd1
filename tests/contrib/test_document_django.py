"""The project of docs/django.md, as it is printed: under its test client, and with its worker."""

import asyncio
import json
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from documents import code, commands
from process.server import clean_environment

from zq.client.values import Submission
from zq.testing import TestServer

from .framework import NAME

MANAGE = """\
import sys
from django.core.management import execute_from_command_line

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


def for_this_django(program: str) -> str:
    """A program of the page with the imports that the page asks for on this version of Django."""
    assert "from django.tasks import" in program
    return program.replace("from django.tasks import", f"from {NAME} import")


class Project:
    """The files of the document in a folder, and a server."""

    def __init__(self, folder: Path, server: TestServer) -> None:
        self.folder = folder
        paths = f"{Path(__file__).parent.parent}:{folder}"
        self._env = clean_environment() | {
            "ZQ_URL": server.url,
            "PYTHONPATH": paths,
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "settings",
        }
        (folder / "shop").mkdir()
        files = {
            "manage.py": MANAGE,
            "urls.py": URLS,
            "visit.py": VISIT,
            "settings.py": SETTINGS + code("django settings"),
            "shop/tasks.py": for_this_django(code("django tasks")),
            "shop/views.py": for_this_django(code("django views")),
        }
        for name, text in files.items():
            (folder / name).write_text(text)

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, *words),
            cwd=self.folder,
            env=self._env,
            stdout=asyncio.subprocess.PIPE,
        )

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
    project = Project(tmp_path, zq_server)
    migrate, check, worker = map(words_of, commands("django commands"))
    await project.run(*migrate)
    assert "no issues" in await project.run(*check)

    async with zq_server.app() as app, project.working(*worker) as output:
        events = app.events(queue="mail", types="completed")
        hearing = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        task = (await project.visit("/join/ann"))["task"]
        await asyncio.wait_for(hearing, 20)
        await events.aclose()
        while b'"message":"completed","task":"shop.tasks.welcome"' not in await output.readline():
            assert not output.at_eof()

    answer = await project.visit(f"/status/{task}")
    assert answer == {"status": "SUCCESSFUL", "value": "welcomed ann"}


async def test_the_worker_starts_again_when_a_task_changes(
    zq_server: TestServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, zq_server)
    tasks = tmp_path / "shop" / "tasks.py"
    job = Submission("default", "shop.tasks.report", {"args": ["mon"], "kwargs": {}})

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
    project = Project(tmp_path, zq_server)
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
    project = Project(tmp_path, zq_server)
    worker = await project.start("manage.py", "zq_worker", "--concurrency", "0")
    await asyncio.wait_for(worker.communicate(), 60)
    assert worker.returncode == 1
