"""Tests of no store in particular, once more on PostgreSQL: those that show most in little time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

FILES = {
    "tick/test_groups.py": "not interleaving",
    "tick/test_owners.py": "",
    "tick/test_late.py": "",
    "tick/test_pauses.py": "",
    "conformance/test_lifecycle.py": "json-",
    "conformance/test_unique.py": "json-",
}
"""Files, and which of their tests are run: what makes a database for each example takes long."""


@pytest.mark.parametrize("file", FILES)
def test_the_rules_hold_on_postgresql(file: str, tmp_path: Path) -> None:
    chosen = ("-k", FILES[file]) if FILES[file] else ()
    own = ("-p", "no:cacheprovider", "--basetemp", tmp_path / "own")
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *own, *chosen, TESTS / file],
        cwd=TESTS.parent,
        env={**os.environ, "ZQ_TESTS_STORE": "postgres", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout[-10_000:]
