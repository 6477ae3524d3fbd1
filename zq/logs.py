"""The log: one line an event on standard output, and in files too where these are asked for.

Every layer logs through the standard library, with the values of an event beside its text:

    log = logging.getLogger("zq.serve")
    log.info("listening", extra={"fields": {"api": "primary", "addr": "127.0.0.1:7890"}})

Who may import this module writes the same as `event(log, INFO, "listening", api="primary", …)`.
In `json`, which scripts read, that is one line without a space between its tokens:

    {"timestamp":"2026-01-01T00:00:00.000Z","level":"INFO",
     "fields":{"message":"listening","api":"primary","addr":"127.0.0.1:7890"},"target":"zq::serve"}

Fields keep the order in which they were given. A field that is no text, number, bool or None is
written as its str(). An exception becomes the fields `error` and `traceback`.

Nobody who logs waits for whoever reads the log: see `LineWriter`.
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

from zq.logfile import RotatingFile

__all__ = ["DEBUG", "ERROR", "INFO", "TRACE", "WARN", "event", "set_up"]

TRACE = 5
WARN = WARNING
LEVELS = {"trace": TRACE, "debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR}

MOST_WAITING = 1024 * 1024
"""Bytes of lines that wait for a reader of the log; what comes on top of them is dropped."""

FLUSH_S = 1.0
"""How long an end waits for a reader to take the last lines."""

Write = Callable[[bytes], object]
"""Writes all of some lines, and may wait."""

_STDOUT = 1
_NAMES = {level: name.upper() for name, level in LEVELS.items()} | {logging.CRITICAL: "ERROR"}
_COLOURS = {"TRACE": "2", "DEBUG": "34", "INFO": "32", "WARN": "33", "ERROR": "31"}


def event(logger: logging.Logger, level: int, message: str, /, **fields: object) -> None:
    """Log `message` with `fields` beside it."""
    logger.log(level, message, extra={"fields": fields}, stacklevel=2)


def set_up(
    level: str, form: str | None = None, fd: int = _STDOUT, file: RotatingFile | None = None
) -> None:
    """Send everything of at least `level` (a key of LEVELS) to `fd`, and to `file` if there is one.

    `form` is pretty, compact or json; None means pretty on a terminal, else json.
    """
    handlers: list[logging.Handler] = []
    if fd == _STDOUT and sys.__stdout__ is None:
        # Started with standard output closed: descriptor 1 may be a client's socket by now.
        handlers.append(logging.NullHandler())
    else:
        handlers.append(_LineHandler(partial(_write_all, fd), _formatter(form, os.isatty(fd))))
    if file is not None:
        handlers.append(_LineHandler(file.write, _formatter(form, terminal=False), file.close))
    logging.basicConfig(level=LEVELS[level], handlers=handlers, force=True)
    # It would tell of every header that it encodes.
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
    """How many lines this process has dropped, for the log was not read."""
    handlers = logging.getLogger().handlers
    return sum(each.writer.dropped for each in handlers if isinstance(each, _LineHandler))


class _LineHandler(logging.Handler):
    """Has whole lines written."""

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
        """Wait for what is logged already to be written, for `FLUSH_S` at most."""
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()
        self._let_go()
        super().close()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode()

    def _tell_of_gap(self, lines: int) -> bytes:
        text = "lines of the log were dropped here, for nobody read it"
        record = logging.LogRecord("zq.logs", WARN, __file__, 0, text, (), None)
        record.fields = {"lines": lines}
        return self._line(record)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class LineWriter:
    """Has lines written by a thread of its own, so that only this thread waits.

    A pipe that nobody reads, a terminal that is stopped and a disk that is busy hold up whoever
    writes to them, and making them non-blocking would change them for all who share them. Lines
    wait in memory up to `MOST_WAITING`; the next ones are dropped until all that wait are on their
    way, and `tell_of_gap` makes the line that stands in their place. After a write that failed (a
    reader gone, a full disk) the next one is tried afresh.
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
        """Have a line written; it never waits."""
        if self._pid != os.getpid():
            self._begin()  # A fork has not taken the thread along.
        with self._changed:
            full = self._size and self._size + len(line) > MOST_WAITING
            # Whatever comes after a gap waits for the line that tells of it.
            if full or self._missing:
                self._missing += 1
                self.dropped += 1
                return
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is written, for `FLUSH_S` at most."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._lines or self._writing), FLUSH_S)

    def close(self) -> None:
        """Flush, and let the thread end."""
        self.flush()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while data := self._next():
            with contextlib.suppress(OSError):  # there is nowhere left to tell of it
                self._write(data)

    def _next(self) -> bytes:
        """All that waits, once something does; nothing after the end."""
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
    """Columns for a person; further lines of a message and tracebacks follow indented."""

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
    """`text` without anything that could move a terminal's cursor or begin a line of its own."""
    return text if text.isprintable() else json.dumps(text)
