"""Tests of no store in particular, once more on PostgreSQL: those that show most in little time."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]

FILES = (
    *("tick/test_groups.py", "tick/test_owners.py", "tick/test_late.py", "tick/test_pauses.py"),
    *("conformance/test_lifecycle.py", "conformance/test_unique.py"),
    "conformance/test_limits.py::"
    "test_a_change_behind_another_programs_lock_is_refused_with_the_cause",
)

CHOSEN = "not interleaving and (tick or json-)"
"""All but those that make a database for each example, and of the conformance suite one wire."""


def test_the_rules_hold_on_postgresql(tmp_path: Path) -> None:
    own = ("-p", "no:cacheprovider", "--basetemp", tmp_path / "own")
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *own,
            "-k",
            CHOSEN,
            *(TESTS / file for file in FILES),
        ],
        cwd=TESTS.parent,
        env={**os.environ, "ZQ_TESTS_STORE": "postgres", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout[-10_000:]
