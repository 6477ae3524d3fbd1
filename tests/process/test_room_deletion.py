"""A room goes with its folder and one line of the list: the rest does not know it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

ROOM = "zq.doors.topics"

IMPORT_ALL = """
import pkgutil
from importlib import import_module
from pathlib import Path

import zq

assert Path(zq.__file__).is_relative_to(Path.cwd()), zq.__file__
OPTIONAL = ("zq.spark", "zq.contrib", "zq.outbox", "zq.moving")
for module in pkgutil.walk_packages(zq.__path__, "zq."):
    if not module.name.startswith(OPTIONAL) and not module.name.endswith("__main__"):
        import_module(module.name)
"""

SERVE = """
import asyncio

import aiohttp

from zq.testing import server

CASES = (
    ("POST", "/jobs", {"queue": "q", "type": "t", "payload": 1}, 201),
    ("GET", "/jobs", None, 200),
    ("GET", "/openapi.json", None, 200),
    ("GET", "/metrics", None, 200),
    ("GET", "/api/version", None, 200),
    ("GET", "/v0/topics", None, 404),
)


async def main() -> None:
    async with server() as running, aiohttp.ClientSession() as session:
        for method, path, body, status in CASES:
            async with session.request(method, running.url + path, json=body) as reply:
                assert reply.status == status, (path, reply.status, await reply.text())


asyncio.run(main())
"""

TESTS = (
    *("tests/test_config.py", "tests/http/test_description.py", "tests/http/test_door.py"),
    *("tests/http/test_router.py", "tests/doors/queue_ti/test_both_doors.py"),
    "tests/store/sqlite/test_plans.py::test_the_plan_of_every_query_is_known",
)
"""The fast tests that ask most parts of the core what they know."""

MORE = ("tests/model", "tests/service", "tests/store/sqlite/test_plans.py", "tests/test_layout.py")
"""Tests that ask less, for the long tier. All fast ones pass as well: `pytest -m fast` in such a
copy, which takes minutes.
"""

OF_DOCUMENTS = "not test_the_documents_hold_the_table"
"""The documents still speak of the room: they are printed again, as after each change."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources and their tests, without the room and the tests of it."""
    folder = tmp_path_factory.mktemp("without") / "zq"
    # Compiled files come along: they are valid as long as the times of the sources are.
    large = shutil.ignore_patterns("node_modules", "target", "bin", "*.pyc.*")
    for name in ("zq", "tests", "docs", ".ci", "bench"):
        shutil.copytree(ROOT / name, folder / name, ignore=large)
    for name in ("pyproject.toml", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.rmtree(folder / "zq" / "doors" / "topics")
    for name in ("topics", "together"):
        shutil.rmtree(folder / "tests" / "doors" / name)
    rooms = folder / "zq" / "rooms.py"
    line = f'    "{ROOM}",\n'
    text = rooms.read_text(encoding="utf-8")
    assert text.count(line) == 1
    rooms.write_text(text.replace(line, ""), encoding="utf-8")
    return folder


@pytest.mark.parametrize("tests", [TESTS, pytest.param(MORE, marks=pytest.mark.long)], ids=len)
def test_without_a_room_the_rest_is_imported_serves_and_passes_its_tests(
    copy: Path, tests: Sequence[str]
) -> None:
    """All in one process, which imports what is in its working directory."""
    arguments = ["-n0", "-p", "no:cacheprovider", "-k", OF_DOCUMENTS, *tests]
    program = f"import pytest\nassert not pytest.main({arguments})\n{IMPORT_ALL}{SERVE}"
    environment = os.environ | {"PYTHONPATH": str(copy)}
    environment.pop("PYTEST_ADDOPTS", None)
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
