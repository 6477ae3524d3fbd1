"""The types that the library promises, as mypy sees them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "typing"
ERROR = re.compile(r"^[^:]*?(\w+\.py):(\d+): error: .*\[([a-z-]+)\]$", re.M)

Error = tuple[str, int, str]
"""The file, the line and the code."""


@pytest.fixture(scope="module")
def said() -> tuple[str, set[Error]]:
    """What mypy prints about all samples, and each error."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", f"--config-file={SAMPLES / 'mypy.ini'}"),
            *("--no-error-summary", "--follow-imports=silent", "--cache-dir=/dev/null"),
            *map(str, SAMPLES.glob("*.py")),
        ],
        capture_output=True,
        text=True,
        cwd=SAMPLES.parents[2],
    )
    assert not done.stderr
    found = {(file, int(line), code) for file, line, code in ERROR.findall(done.stdout)}
    return done.stdout, found


def test_what_is_right_is_accepted(said: tuple[str, set[Error]]) -> None:
    assert "accepted.py" not in said[0]


def test_what_is_wrong_is_rejected(said: tuple[str, set[Error]]) -> None:
    lines = (SAMPLES / "rejected.py").read_text(encoding="utf-8").splitlines()
    marked = {
        ("rejected.py", number, code)
        for number, line in enumerate(lines, 1)
        for code in line.partition("  # no: ")[2].split()
    }
    assert len(marked) > 20

    output, errors = said

    assert errors == marked, output
