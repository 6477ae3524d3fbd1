"""The log: one line for each event, on standard output and on request also in files.

Every layer logs through the standard library, with the values of an event beside its text:

    log = logging.getLogger("zq.serve")
    log.info("listening", extra={"fields": {"api": "primary", "addr": "127.0.0.1:7890"}})

Modules that may import this one can write `event(log, INFO, "listening", api="primary", …)`. In the
form `json`, which scripts read, that is one line without spaces between its tokens:

    {"timestamp":"2026-01-01T00:00:00.000Z","level":"INFO",
     "fields":{"message":"listening","api":"primary","addr":"127.0.0.1:7890"},"target":"zq::serve"}

Fields keep their order. A field that is not text, a number, a bool or None is written as its str().
An exception becomes the fields `error` and `traceback`.

No code that logs waits for the reader of the log: see `LineWriter`.
"""

import contextlib
import json
import logging
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from logging import DEBUG, ERROR, INFO, WARNING
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zq.logfile import RotatingFile

__all__ = ["DEBUG", "ERROR", "INFO", "TRACE", "WARN", "event", "set_up"]

TRACE = 5
WARN = WARNING
LEVELS = {"trace": TRACE, "debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR}

MOST_WAITING = 1024 * 1024
"""The most bytes of lines that wait for a reader of the log. Further lines are dropped."""

FLUSH_S = 1.0
"""At its end, the process waits this long for a reader to take the last lines."""

Write = Callable[[bytes], object]
"""Writes lines completely, and may block."""

_STDOUT = 1
_NAMES = {level: name.upper() for name, level in LEVELS.items()} | {logging.CRITICAL: "ERROR"}
_COLOURS = {"TRACE": "2", "DEBUG": "34", "INFO": "32", "WARN": "33", "ERROR": "31"}


def event(logger: logging.Logger, level: int, message: str, /, **fields: object) -> None:
    """Log `message` with `fields`."""
    logger.log(level, message, extra={"fields": fields}, stacklevel=2)


def set_up(
    level: str, form: str | None = None, fd: int = _STDOUT, file: "RotatingFile | None" = None
) -> None:
    """Send everything of at least `level` (a key of LEVELS) to `fd`, and to `file` if it is given.

    `form` is pretty, compact or json; None means pretty on a terminal, else json.
    """
    handlers: list[logging.Handler] = []
    if fd == _STDOUT and sys.__stdout__ is None:
        # Standard output was closed at the start, so descriptor 1 may be a client's socket by now.
        handlers.append(logging.NullHandler())
    else:
        handlers.append(_LineHandler(partial(_write_all, fd), _formatter(form, os.isatty(fd))))
    if file is not None:
        handlers.append(_LineHandler(file.write, _formatter(form, terminal=False), file.close))
    logging.basicConfig(level=LEVELS[level], handlers=handlers, force=True)
    # At DEBUG it would log every header that it encodes.
    logging.getLogger("hpack").setLevel(logging.INFO)


def _formatter(form: str | None, terminal: bool) -> logging.Formatter:
    match form or ("pretty" if terminal else "json"):
        case "json":
            return JsonFormatter()
        case "compact":
            return CompactFormatter()
        case "pretty":
            return PrettyFormatter(colour=terminal and not os.environ.get("NO_COLOR"))
        case unknown:
            raise ValueError(f"unknown log format {unknown!r}")


def dropped_lines() -> int:
    """How many lines this process has dropped because the log was not read."""
    handlers = logging.getLogger().handlers
    return sum(each.writer.dropped for each in handlers if isinstance(each, _LineHandler))


class _LineHandler(logging.Handler):
    """Passes whole lines to a writer."""

    def __init__(
        self,
        write: Write,
        form: logging.Formatter,
        let_go: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self.setFormatter(form)
        self._let_go = let_go
        self.writer = LineWriter(write, self._tell_of_gap)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._line(record)
        except Exception:  # a faulty log call is reported on standard error and harms no one
            self.handleError(record)
            return
        self.writer.write(line)

    def flush(self) -> None:
        """Wait until everything logged so far is written, for at most `FLUSH_S`."""
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
        self._let_go()
        super().close()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode()

    def _tell_of_gap(self, lines: int) -> bytes:
        text = "lines of the log were dropped here because nobody read it"
        record = logging.LogRecord("zq.logs", WARN, __file__, 0, text, (), None)
        record.fields = {"lines": lines}
        return self._line(record)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class LineWriter:
    """Writes lines in a thread of its own, so that only this thread waits.

    A pipe that nobody reads, a stopped terminal and a busy disk block their writers. Making them
    non-blocking would change them for all processes that share them. Lines wait in memory up to
    `MOST_WAITING`. Further lines are dropped until the waiting ones are being written, and a line
    from `tell_of_gap` replaces them. After a failed write (the reader has gone, the disk is full)
    the next one is tried again.
    """

    def __init__(self, write: Write, tell_of_gap: Callable[[int], bytes]) -> None:
        self._write = write
        self._tell_of_gap = tell_of_gap
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._lines: list[bytes] = []
        self._size = 0
        self._missing = 0
        self._writing = self._closed = False
        threading.Thread(target=self._run, name="zq-log", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Queue a line. This never waits."""
        if self._pid != os.getpid():
            self._begin()  # a fork does not copy the thread
        with self._changed:
            full = self._size and self._size + len(line) > MOST_WAITING
            # After a gap, lines wait for the line that reports it.
            if full or self._missing:
                self._missing += 1
                self.dropped += 1
                return
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything is written, for at most `FLUSH_S`."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._lines or self._writing), FLUSH_S)

    def close(self) -> None:
        """Flush, and end the thread."""
        self.flush()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while data := self._next():
            with contextlib.suppress(OSError):  # nothing is left to report the error to
                self._write(data)

    def _next(self) -> bytes:
        """All waiting lines, once there are any; empty at the end."""
        with self._changed:
            self._writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines or self._closed)
            data, missing = b"".join(self._lines), self._missing
            self._lines.clear()
            self._size = self._missing = 0
            self._writing = bool(data)
        return data + self._tell_of_gap(missing) if missing else data


class JsonFormatter(logging.Formatter):
    """`{"timestamp":…,"level":"INFO","fields":{"message":"listening",…},"target":"zq::serve"}`"""

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "timestamp": _timestamp(record),
            "level": _level(record),
            "fields": dict(_fields(record)),
            "target": _target(record),
        }
        return json.dumps(document, separators=(",", ":"))


class CompactFormatter(logging.Formatter):
    """`2026-01-01T00:00:00.000Z INFO zq::serve: listening api=primary addr=127.0.0.1:7890`"""

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(_fields(record))
        message = _printable(str(fields.pop("message")))
        fields.pop("traceback", None)
        head = f"{_timestamp(record)} {_level(record)} {_target(record)}: {message}"
        return " ".join([head, *_pairs(fields)])


class PrettyFormatter(logging.Formatter):
    """Columns for people. Further lines of a message and tracebacks are indented."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(_fields(record))
        first, *more = str(fields.pop("message")).splitlines() or [""]
        more += str(fields.pop("traceback", "")).splitlines()
        level = _level(record)
        columns = [
            self._paint("2", _timestamp(record)),
            self._paint(_COLOURS.get(level, "0"), f"{level:<5}"),
            self._paint("2", f"{_target(record):<12}"),
            " ".join([f"{_printable(first):<24}", *_pairs(fields)]).rstrip(),
        ]
        return "\n    ".join(["  ".join(columns), *map(_printable, more)])

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text


def _timestamp(record: logging.LogRecord) -> str:
    seconds, milliseconds = divmod(int(record.created * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"


def _level(record: logging.LogRecord) -> str:
    return _NAMES.get(record.levelno, record.levelname)


def _target(record: logging.LogRecord) -> str:
    return record.name.replace(".", "::")


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    yield "message", record.getMessage()
    for name, value in getattr(record, "fields", {}).items():
        yield name, _scalar(value)
    if record.exc_info and record.exc_info[1]:
        error = record.exc_info[1]
        yield "error", "".join(traceback.format_exception_only(error)).strip()
        yield "traceback", "".join(traceback.format_exception(error)).strip()


def _scalar(value: object) -> object:
    """`value` if JSON can hold it, else its text. JSON has no NaN and no infinity."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return str(value)


def _pairs(fields: dict[str, object]) -> list[str]:
    return [f"{name}={_word(value)}" for name, value in fields.items()]


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    plain = text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _printable(text: str) -> str:
    """`text` without characters that could move a terminal's cursor or begin a new line."""
    return text if text.isprintable() else json.dumps(text)
