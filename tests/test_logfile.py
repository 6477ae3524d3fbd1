"""The log in files: when a new one begins, how many are kept, and bad disks."""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zq import logs
from zq.logfile import RotatingFile

HOUR = 3600.0
MIDNIGHT = 86_400.0 * 20_000
BIG = 10**9


Open = Callable[..., RotatingFile]


class Watch:
    """A clock that stands still until it is set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch(MIDNIGHT + 12 * HOUR)


@pytest.fixture
def opened(tmp_path: Path, watch: Watch) -> Iterator[Open]:
    """Opens the log in a directory, by the watch; every one is closed at the end."""
    with contextlib.ExitStack() as stack:

        def open_(
            rotation: str = "never", max_size: int = BIG, max_files: int = 10
        ) -> RotatingFile:
            file = RotatingFile(tmp_path / "log", rotation, max_size, max_files, watch)
            return stack.enter_context(contextlib.closing(file))

        yield open_


def contents(directory: Path) -> list[str]:
    """What the files hold, the newest first."""
    order = {"zq.log": 0} | {f"zq.log.{number}": number for number in range(1, 20)}
    files = sorted(directory.iterdir(), key=lambda path: order[path.name])
    return [path.read_text() for path in files]


def test_files_of_an_earlier_version_are_closed_to_others(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "log").mkdir()
    files = [tmp_path / "log" / name for name in ("zq.log", "zq.log.1", "zq.log.2")]
    for file in files:
        file.touch(0o644)
    opened()
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3


def test_lines_are_kept_as_they_are(tmp_path: Path, opened: Open) -> None:
    opened().write("one\n  two ü\n".encode())
    opened().write(b"three\n")

    assert (tmp_path / "log" / "zq.log").read_text() == "one\n  two ü\nthree\n"


def test_a_file_that_would_grow_too_large_is_followed_by_another(
    tmp_path: Path, opened: Open
) -> None:
    file = opened(max_size=100, max_files=3)
    for number in range(6):
        file.write(b"%d" % number + b"." * 58 + b"\n")

    # Sixty bytes each: two do not fit into one file, and besides the newest three are kept.
    assert [text[0] for text in contents(tmp_path / "log")] == ["5", "4", "3", "2"]


@pytest.mark.parametrize(
    ("rotation", "first", "second", "files"),
    [
        ("daily", 23.9 * HOUR, 24 * HOUR, 2),
        ("daily", 0, 23.9 * HOUR, 1),
        ("hourly", 1.9 * HOUR, 2 * HOUR, 2),
        ("hourly", 2 * HOUR, 2.9 * HOUR, 1),
        ("hourly", 2 * HOUR, 49 * HOUR, 2),
        ("never", 0, 9000 * HOUR, 1),
    ],
)
def test_another_period_begins_another_file(
    tmp_path: Path,
    opened: Open,
    watch: Watch,
    rotation: str,
    first: float,
    second: float,
    files: int,
) -> None:
    file = opened(rotation)
    watch.now = MIDNIGHT + first
    file.write(b"first\n")
    watch.now = MIDNIGHT + second
    file.write(b"second\n")
    file.write(b"third\n")

    expected = ["second\nthird\n", "first\n"] if files == 2 else ["first\nsecond\nthird\n"]
    assert contents(tmp_path / "log") == expected


@pytest.mark.parametrize(("later", "files"), [(0.5 * HOUR, 1), (1.5 * HOUR, 2)])
def test_a_restart_goes_on_with_the_file_of_its_period(
    tmp_path: Path, opened: Open, watch: Watch, later: float, files: int
) -> None:
    opened("hourly").write(b"before\n")
    os.utime(tmp_path / "log" / "zq.log", (watch.now, watch.now))
    watch.now += later
    opened("hourly").write(b"after\n")

    assert len(contents(tmp_path / "log")) == files


def test_size_and_time_work_together(tmp_path: Path, opened: Open, watch: Watch) -> None:
    file = opened("daily", max_size=100)
    file.write(b"a" * 59 + b"\n")
    file.write(b"b" * 59 + b"\n")
    watch.now += 24 * HOUR
    file.write(b"c\n")

    assert [text[0] for text in contents(tmp_path / "log")] == ["c", "b", "a"]


def test_both_logs_have_each_line_and_the_files_are_json(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    logs.set_up("info", None, writer, RotatingFile(tmp_path))
    logs.event(logging.getLogger("zq"), logs.INFO, "hello", n=1)
    for handler in logging.getLogger().handlers:
        handler.flush()

    line = (tmp_path / "zq.log").read_bytes()
    assert os.read(reader, 4096) == line
    assert json.loads(line)["fields"] == {"message": "hello", "n": 1}
    os.close(reader)
    logging.getLogger().handlers[0].close()
    os.close(writer)


def test_a_disk_that_fails_is_told_once_and_stops_nobody(tmp_path: Path, watch: Watch) -> None:
    reader, writer = os.pipe()
    file = RotatingFile(tmp_path, "hourly", BIG, max_files=1, now=watch)
    logs.set_up("info", "json", writer, file)
    log = logging.getLogger("zq")

    def say(text: str) -> None:
        log.info(text)
        for handler in logging.getLogger().handlers:
            handler.flush()

    say("whole")
    # The next file cannot take its place: in the way is a directory.
    (tmp_path / "zq.log.1").mkdir()
    watch.now += HOUR
    say("lost")
    say("lost too")
    (tmp_path / "zq.log.1").rmdir()
    say("again")
    for handler in logging.getLogger().handlers:
        handler.flush()

    said = [json.loads(line)["fields"]["message"] for line in os.read(reader, 65536).splitlines()]
    assert [text for text in said if "cannot be written" not in text] == [
        *("whole", "lost", "lost too", "again"),
    ]
    told = [text for text in said if "cannot be written" in text]
    assert len(told) == 1
    assert str(tmp_path / "zq.log") in told[0]
    assert '"again"' in (tmp_path / "zq.log").read_text()
    assert '"whole"' in (tmp_path / "zq.log.1").read_text()
    os.close(reader)
    logging.getLogger().handlers[0].close()
    os.close(writer)


def test_a_place_that_takes_no_bytes_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "zq.log").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"."):
        RotatingFile(tmp_path)
