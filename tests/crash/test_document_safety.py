"""The command of docs/safety.md, run as printed but for one crash instead of thirty."""

import subprocess
import sys

import pytest
from documents import ROOT, commands


@pytest.mark.long  # a server under load for seconds
def test_a_soak_judges_what_a_crash_left() -> None:
    (command,) = commands("safety")
    program, *words, cycles = command.split()
    assert (program, words[-1], cycles) == ("python", "--cycles", "30")
    done = subprocess.run(
        [sys.executable, *words, "1"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    crashes, _events, breaches = done.stdout.splitlines()[-1].split()[:3]
    assert (crashes, breaches) == ("1", "0")
