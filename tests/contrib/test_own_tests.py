"""Django's own tests of tasks, word for word but for the names of modules, on a real server of zq.

`own_tests.py` says where they come from. Those of custom backends are left out: they run on none of
Django's backends either.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

import django
from process.server import clean_environment

from zq.testing import TestServer

from .framework import NAME
from .own_tests import PLACE

IS_BACKPORT = django.VERSION < (6,)

EVERYWHERE = {
    "dummy_backend.DummyBackendTestCase.test_refresh_result": "it edits a result in the backend",
    "dummy_backend.DummyBackendTestCase.test_refresh_result_async": "as above",
    "immediate_backend.ImmediateBackendTestCase.test_cannot_get_result": "zq keeps results",
    "immediate_backend.ImmediateBackendTestCase.test_cannot_refresh_result": "zq keeps results",
    "immediate_backend.ImmediateBackendTestCase.test_cannot_pass_run_after": "zq runs tasks later",
    "immediate_backend.ImmediateBackendTestCase.test_throws_keyboard_interrupt": "its task fails",
}
"""The tests that do not pass, each with the reason."""

OF_THE_BACKPORT = {
    "dummy_backend.DummyBackendTestCase.test_validate_disallowed_async_task": "other words",
    "tasks.TaskTestCase.test_pickle_task": "its tasks cannot be pickled",
    "tasks.TaskTestCase.test_pickle_task_result": "its tasks cannot be pickled",
    "tasks.TaskTestCase.test_unpickle_arbitrary_string": "its tasks cannot be pickled",
    "tasks.TaskTestCase.test_unpickle_non_task_object": "its tasks cannot be pickled",
    "tasks.TaskTestCase.test_run_after_in_decorator": "other words",
}
"""The tests that `django-tasks` itself does not pass. Django 6 does."""

MODULES = {r"\bdjango\.tasks\.backends\.(dummy|immediate)\b": "contrib.own_backends"}
RENAMED = {
    r"\bdjango\.tasks\b": NAME,
    r"\bInvalidTaskBackend\b": "InvalidTaskBackendError",
    r"\bInvalidTask\b": "InvalidTaskError",
}


def on_zq(program: str) -> str:
    """A file of the tests with the backends of zq, for the framework that is installed."""
    for pattern, name in (MODULES | RENAMED if IS_BACKPORT else MODULES).items():
        program = re.sub(pattern, name, program)
    return program


async def test_djangos_own_tests_pass_but_for_those_that_are_listed(
    zq_server: TestServer, tmp_path: Path
) -> None:
    assert PLACE.exists(), "sh .ci/setup dev downloads the tests of Django"
    (tmp_path / "tasks").mkdir()
    for file in PLACE.glob("*.py"):
        if file.name != "test_custom_backend.py":
            (tmp_path / "tasks" / file.name).write_text(on_zq(file.read_text()))
    paths = f"{Path(__file__).parent.parent}:{tmp_path}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "contrib.own_program"),
        cwd=tmp_path,
        env=clean_environment() | {"ZQ_URL": zq_server.url, "PYTHONPATH": paths},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    ends: dict[str, str | None] = json.loads(output.splitlines()[-1])

    failed = {test.removeprefix("tasks.test_"): said for test, said in ends.items() if said}
    listed = EVERYWHERE | (OF_THE_BACKPORT if IS_BACKPORT else {})
    unlisted = [said for test, said in failed.items() if test not in listed]
    assert not unlisted, "\n".join(filter(None, unlisted))
    assert listed.keys() - failed.keys() == set(), "these pass now: take them off the list"
    assert len(ends) == 76
