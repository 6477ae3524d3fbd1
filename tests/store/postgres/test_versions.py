"""The tests of this folder, with newer versions of PostgreSQL than Debian's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from outbox.postgres import PROGRAMS

from .versions import VERSIONS, programs

pytestmark = pytest.mark.long


@pytest.mark.parametrize("version", VERSIONS)
def test_a_newer_version_is_as_good(version: str, tmp_path: Path) -> None:
    folder = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", str(folder)]
    own = ["-p", "no:cacheprovider", "--basetemp", str(tmp_path / "own")]
    named = {PROGRAMS: str(programs(version)), "PYTEST_ADDOPTS": ""}
    tested = subprocess.run(
        [*command, *own],
        cwd=folder.parents[2],
        env={**os.environ, **named},
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout[-10_000:]
