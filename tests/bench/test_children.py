"""Processes that a bench starts end with it, whenever the user interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from bench.children import running


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_race_interrupt_while_a_process_is_being_started() -> None:
    started = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    with pytest.raises(KeyboardInterrupt), running(start, end):
        pytest.fail("the interrupt was lost")
    assert started[0].returncode == -signal.SIGKILL


def test_a_program_that_cannot_start_is_told() -> None:
    before = signal.getsignal(signal.SIGINT)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["/no/such/program"])

    with pytest.raises(FileNotFoundError), running(start, end):
        pytest.fail("there is nothing to run")
    assert signal.getsignal(signal.SIGINT) is before
