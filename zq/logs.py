"""The log: one line an event on standard output.

Every layer logs through the standard library, with the values of an event beside its text:

    log = logging.getLogger("zq.serve")
    log.info("listening", extra={"fields": {"api": "primary", "addr": "127.0.0.1:7890"}})

Who may import this module writes the same as `event(log, INFO, "listening", api="primary", …)`.
In `json`, which scripts read, that is one line without a space between its tokens:

    {"timestamp":"2026-01-01T00:00:00.000Z","level":"INFO",
     "fields":{"message":"listening","api":"primary","addr":"127.0.0.1:7890"},"target":"zq::serve"}

Fields keep the order in which they were given. A field that is no text, number, bool or None is
written as its str(). An exception becomes the fields `error` and `traceback`.
"""

import json
import logging
import math
import os
import sys
import time
import traceback
from collections.abc import Iterator
from logging import DEBUG, ERROR, INFO, WARNING

__all__ = ["DEBUG", "ERROR", "INFO", "TRACE", "WARN", "event", "set_up"]

TRACE = 5
WARN = WARNING
LEVELS = {"trace": TRACE, "debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR}

_STDOUT = 1
_NAMES = {level: name.upper() for name, level in LEVELS.items()} | {logging.CRITICAL: "ERROR"}
_COLOURS = {"TRACE": "2", "DEBUG": "34", "INFO": "32", "WARN": "33", "ERROR": "31"}


def event(logger: logging.Logger, level: int, message: str, /, **fields: object) -> None:
    """Log `message` with `fields` beside it."""
    logger.log(level, message, extra={"fields": fields}, stacklevel=2)


def set_up(level: str, form: str | None = None, fd: int = _STDOUT) -> None:
    """Send everything of at least `level` (a key of LEVELS) to `fd`.

    `form` is pretty, compact or json; None means pretty on a terminal, else json.
    """
    if fd == _STDOUT and sys.__stdout__ is None:
        # Started with standard output closed: descriptor 1 may be a client's socket by now.
        handler: logging.Handler = logging.NullHandler()
    else:
        handler = _LineHandler(fd)
        handler.setFormatter(_formatter(form, terminal=os.isatty(fd)))
    logging.basicConfig(level=LEVELS[level], handlers=[handler], force=True)
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


class _LineHandler(logging.Handler):
    """Writes whole lines to a descriptor.

    It keeps no buffer: after a write that failed (a reader gone, a full disk) nothing is left over
    to fail again at exit, and the next line is tried afresh.
    """

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd

    def emit(self, record: logging.LogRecord) -> None:
        try:
            data = f"{self.format(record)}\n".encode()
        except Exception:  # a faulty log call is reported on standard error and harms no one
            self.handleError(record)
            return
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            return  # there is nowhere left to tell of it


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
