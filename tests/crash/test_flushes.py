"""The laboratory sees every flush, also those through the kernel instead of libc."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.servers import slow_sync

from .disk import Call, Disk, Fault, Refusal


def tell(disk: Disk, *steps: str, **fields: Any) -> list[Any]:
    """Let `flusher.py` go through these steps; what each has printed."""
    return _tell(disk.root, disk.environment(**fields), *steps)


def _tell(directory: Path, environment: dict[str, str], *steps: str) -> list[Any]:
    tests = str(Path(__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-m", "crash.flusher", directory, *steps],
        env=os.environ | environment | {"PYTHONPATH": tests},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def left_by_a_cut(disk: Disk) -> str:
    disk.cut_power(0.0, Random(1))
    return (disk.root / "log").read_text()


SLOW = 300
"""Milliseconds that a disk takes longer."""

LANDED = ("ask", "wait", "learn")

STORIES = {
    "what nobody flushed is lost": (("write=a",), ""),
    "what was synced is there": (("write=a", "sync", "write=b"), "a"),
    "what was flushed is there": (("write=a", *LANDED, "write=b"), "a"),
    "flush after flush": (("write=a", *LANDED, "write=b", *LANDED, "write=c"), "ab"),
    "a flush covers nothing that was written after it was asked for": (
        ("write=a", "ask", "write=b", "rewrite=c", "wait", "learn"),
        "a",
    ),
    "who has not learned of a flush knows nothing": (("write=a", "ask", "wait"), ""),
    "a second flush covers what the first one did": (
        ("write=a", "ask", "write=b", "ask", "wait", "learn", "learn"),
        "ab",
    ),
    "a sync is not undone by a flush from before it": (
        ("write=a", "ask", "rewrite=b", "write=c", "sync", "wait", "learn"),
        "bc",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_power_cut_leaves_what_was_known_to_be_flushed(disk: Disk, story: str) -> None:
    steps, left = STORIES[story]
    for step, told in zip(steps, tell(disk, *steps), strict=True):
        assert told == {"ask": 1, "learn": 0, "sync": 0}.get(step, told), step
    assert left_by_a_cut(disk) == left


def test_a_disk_that_forgets_says_that_all_went_well_and_loses_it(disk: Disk) -> None:
    told = tell(disk, "write=a", *LANDED, "sync", forgets="log")
    assert (told[1], *told[3:]) == (1, 0, 0)
    disk.cut_power(0.0, Random(1))
    assert not (disk.root / "log").exists()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_flush_fails_in_its_turn_and_covers_nothing(disk: Disk, error: int) -> None:
    # The first two syncs are those of the directory and of the file's first flush.
    fault = Fault(Call.SYNC, 3, error)
    told = tell(disk, "write=a", *LANDED, "write=b", *LANDED, fault=fault)
    assert (told[3], told[5], told[7]) == (0, 1, -error)
    assert disk.report.read_text() == "sync log\n"
    assert left_by_a_cut(disk) == "a"


def test_a_slow_flush_is_slow_for_who_waits_and_covers_no_more_for_it(disk: Disk) -> None:
    _, asked, _, waited_ms, landed = tell(
        disk, "write=a", "ask", "write=b", *LANDED[1:], sync_ms=SLOW
    )
    assert (asked, landed) == (1, 0)
    assert waited_ms >= SLOW
    assert left_by_a_cut(disk) == "a"


@pytest.mark.parametrize(
    ("refusal", "first"),
    [
        (Refusal("setup", errno.ENOSYS), -errno.ENOSYS),
        (Refusal("setup", errno.EPERM), -errno.EPERM),
        (Refusal("submit", errno.EINVAL), -errno.EINVAL),
    ],
)
def test_a_kernel_that_flushes_for_nobody_says_so(disk: Disk, refusal: Refusal, first: int) -> None:
    assert tell(disk, "write=a", "ask", "sync", refuses=refusal) == [None, first, 0]
    assert left_by_a_cut(disk) == "a"


def test_a_ring_would_pass_unseen_and_is_not_to_be_had(disk: Disk) -> None:
    assert tell(disk, "ask-uring") == [-errno.ENOSYS]


def test_the_delayed_disk_of_the_benchmark_delays_flushes_too(tmp_path: Path) -> None:
    environment = slow_sync(tmp_path, delay_ms=SLOW)
    _, asked, waited_ms, landed = _tell(tmp_path / "data", environment, "write=a", *LANDED)
    assert (asked, landed) == (1, 0)
    assert waited_ms >= SLOW


RENAMES = """
import os, sys
folder = sys.argv[1]
os.mkdir(folder)
with open(folder + "/log.part", "wb") as file:
    file.write(b"kept")
    file.flush()
    os.fsync(file.fileno())
os.rename(folder + "/log.part", folder + "/log")
for directory in (folder, os.path.dirname(folder)):
    os.fsync(os.open(directory, os.O_RDONLY))
"""


def test_what_was_synced_before_a_file_got_its_name_survives(disk: Disk) -> None:
    """So zq keeps a damaged log."""
    environment = os.environ | disk.environment()
    subprocess.run([sys.executable, "-c", RENAMES, disk.root], env=environment, check=True)
    assert left_by_a_cut(disk) == "kept"
