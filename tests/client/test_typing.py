"""The types that the library promises, as mypy sees them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "typing"
ERROR = re.compile(r"^[^:]*:(\d+): error: .*\[([a-z-]+)\]$", re.M)


def mypy(sample: str, cache: Path) -> tuple[str, set[tuple[int, str]]]:
    """(what it prints, the line and code of each error) for one sample."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"),
            *("--follow-imports=silent", f"--cache-dir={cache}", str(SAMPLES / sample)),
        ],
        capture_output=True,
        text=True,
        cwd=SAMPLES.parents[2],
    )
    assert not done.stderr
    return done.stdout, {(int(line), code) for line, code in ERROR.findall(done.stdout)}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_what_is_right_is_accepted(cache: Path) -> None:
    output, errors = mypy("accepted.py", cache)

    assert (output, errors) == ("", set())


def test_what_is_wrong_is_rejected(cache: Path) -> None:
    lines = (SAMPLES / "rejected.py").read_text(encoding="utf-8").splitlines()
    marked = {
        (number, code)
        for number, line in enumerate(lines, 1)
        for code in line.partition("  # no: ")[2].split()
    }
    assert len(marked) > 20

    output, errors = mypy("rejected.py", cache)

    assert errors == marked, output
