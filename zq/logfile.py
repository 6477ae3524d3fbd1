"""The log in files: `zq.log`, and the older `zq.log.1`, `zq.log.2` and so on.

The standard library rotates by size or by time. Here either of them begins a new file.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from zq.private import open_private

NAME = "zq.log"

PERIODS = {"hourly": 3_600, "daily": 86_400, "never": 0}
"""The period of one file, in seconds of UTC; 0 means no limit."""

log = logging.getLogger(__name__)


class RotatingFile:
    """Files of a log in a directory.

    A new file begins with the lines that would bring the last to `max_size` bytes, or that belong
    to another period of PERIODS. `max_files` older files are kept. `now` gives seconds since the
    epoch. The directory and its parent are made if needed. Raises OSError if nothing can be written
    there.
    """

    def __init__(
        self,
        directory: Path,
        rotation: str = "daily",
        max_size: int = 100 * 10**6,
        max_files: int = 10,
        now: Callable[[], float] = time.time,
    ) -> None:
        directory.parent.mkdir(exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        path = directory / NAME
        for older in directory.glob(f"{NAME}.*"):
            # An earlier version left them to the umask. Those of another owner stay as they are.
            with contextlib.suppress(OSError):
                os.close(open_private(older, os.O_RDONLY))
        written = path.stat().st_mtime if path.exists() else now()
        _make_sure_of_room(path)
        self._file = _File(path, max_size, max_files, _Period(PERIODS[rotation], now, written))

    def write(self, lines: bytes) -> None:
        """Write whole lines. Lines that cannot be written are lost, and the log says so once."""
        self._file.handle(logging.makeLogRecord({"msg": lines.decode().removesuffix("\n")}))

    def close(self) -> None:
        self._file.close()


def _make_sure_of_room(path: Path) -> None:
    """Raise OSError if the file cannot be opened, or the disk is full."""
    with os.fdopen(_opened(path), "ab") as file:
        end = file.tell()
        os.posix_fallocate(file.fileno(), end, 4096)
        file.truncate(end)


def _opened(path: Path) -> int:
    """Open the file, which is made if it is missing, and which only its owner may read."""
    return open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class _Period:
    """Tells when a period is over. The first period is that of `begun`."""

    def __init__(self, length: int, now: Callable[[], float], begun: float) -> None:
        self._length = length
        self._now = now
        self._number = self._number_of(begun)

    def is_over(self) -> bool:
        return self._number != self._number_of(self._now())

    def begin(self) -> None:
        self._number = self._number_of(self._now())

    def _number_of(self, seconds: float) -> int:
        return int(seconds // self._length) if self._length else 0


class _File(RotatingFileHandler):
    """Writes records that are whole lines already, one or many."""

    def __init__(self, path: Path, max_size: int, max_files: int, period: _Period) -> None:
        super().__init__(path, maxBytes=max_size, backupCount=max_files, encoding="utf-8")
        self._period = period
        self._failed = self._fails = False

    def _open(self) -> Any:
        return os.fdopen(_opened(Path(self.baseFilename)), self.mode, encoding=self.encoding)

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802
        if self.stream is None:
            self.stream = self._open()
        if self.stream.seek(0, os.SEEK_END) == 0:
            self._period.begin()
            return False
        return self._period.is_over() or bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802
        try:
            super().doRollover()
        except OSError:
            self.stream = None  # the next lines open it again
            raise
        self._period.begin()

    def emit(self, record: logging.LogRecord) -> None:
        self._failed = False
        super().emit(record)
        self._fails = self._failed

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        self._failed = True
        if not self._fails:
            self._fails = True
            log.warning(f"the file {self.baseFilename} cannot be written: {sys.exception()}")
