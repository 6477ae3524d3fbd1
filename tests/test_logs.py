"""The lines of the log, read back from a real descriptor."""

import contextlib
import json
import logging
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zq import logs

log = logging.getLogger("zq.serve")

Lines = Callable[[], list[str]]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[int, Lines]]:
    """A descriptor to log to, and the lines written to it so far."""
    path = tmp_path / "log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)

    def lines() -> list[str]:
        for handler in logging.getLogger().handlers:
            handler.flush()
        return path.read_text().splitlines()

    yield fd, lines
    os.close(fd)


def record_at(epoch: float, message: str = "listening", **fields: object) -> logging.LogRecord:
    record = log.makeRecord(log.name, logging.INFO, __file__, 1, message, (), None)
    record.created = epoch
    record.fields = fields
    return record


def test_a_json_line_is_compact_and_keeps_the_order_of_its_fields() -> None:
    record = record_at(1767225600.0, api="primary", addr="127.0.0.1:54321", scheme="http")

    assert logs.JsonFormatter().format(record) == (
        '{"timestamp":"2026-01-01T00:00:00.000Z","level":"INFO",'
        '"fields":{"message":"listening","api":"primary","addr":"127.0.0.1:54321","scheme":"http"},'
        '"target":"zq::serve"}'
    )


def test_a_compact_line_quotes_what_needs_it() -> None:
    record = record_at(1767225600.25, path="/a b", method="GET", ms=1.5, note="", ok=True, é="é")

    assert logs.CompactFormatter().format(record) == (
        "2026-01-01T00:00:00.250Z INFO zq::serve: listening "
        'path="/a b" method=GET ms=1.5 note="" ok=true é=é'
    )


@pytest.mark.parametrize("form", ["compact", "json"])
def test_text_from_outside_cannot_begin_a_line_or_move_the_cursor(
    form: str, written: tuple[int, Lines]
) -> None:
    fd, lines = written
    logs.set_up("info", form, fd)

    logs.event(log, logs.INFO, "one\ntwo\x1b[2J", path="a\nb\x1b[2J\u2028\ud800")

    (line,) = lines()
    assert line.isprintable()


def test_pretty_lines_stand_in_columns_and_further_lines_are_indented() -> None:
    formatter = logs.PrettyFormatter(colour=False)
    short = formatter.format(record_at(0.0, "stop", a=1))
    long = formatter.format(record_at(0.0, "listening\nagain\x1b[2J", a=1))

    assert short.index("a=1") == long.index("a=1")
    assert long.splitlines()[1] == '    "again\\u001b[2J"'
    assert "\x1b" not in short + long


def test_fields_that_json_does_not_know_are_written_as_text(written: tuple[int, Lines]) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)

    logs.event(log, logs.INFO, "odd", path=Path("/x"), nan=float("nan"), none=None, big=2**80)

    assert json.loads(lines()[0])["fields"] == {
        "message": "odd",
        "path": "/x",
        "nan": "nan",
        "none": None,
        "big": 2**80,
    }


@pytest.mark.parametrize(
    ("threshold", "levels"),
    [
        ("trace", ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]),
        ("debug", ["DEBUG", "INFO", "WARN", "ERROR"]),
        ("info", ["INFO", "WARN", "ERROR"]),
        ("warn", ["WARN", "ERROR"]),
        ("error", ["ERROR"]),
    ],
)
def test_lines_below_the_level_are_left_out(
    threshold: str, levels: list[str], written: tuple[int, Lines]
) -> None:
    fd, lines = written
    logs.set_up(threshold, "json", fd)

    for level in (logs.TRACE, logs.DEBUG, logs.INFO, logs.WARN, logs.ERROR):
        logs.event(log, level, "x")

    assert [json.loads(line)["level"] for line in lines()] == levels


def test_an_exception_becomes_fields(written: tuple[int, Lines]) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)

    try:
        raise OSError(28, "No space left on device")
    except OSError:
        log.exception("commit failed", extra={"fields": {"rows": 3}})

    fields = json.loads(lines()[0])["fields"]
    assert list(fields) == ["message", "rows", "error", "traceback"]
    assert fields["error"] == "OSError: [Errno 28] No space left on device"
    assert fields["traceback"].startswith("Traceback (most recent call last):")


def test_libraries_log_through_the_same_lines(written: tuple[int, Lines]) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)

    logging.getLogger("aiohttp.server").warning("%d of %s", 2, "x")

    line = json.loads(lines()[0])
    assert line["target"] == "aiohttp::server"
    assert line["fields"] == {"message": "2 of x"}


def test_a_faulty_log_call_does_not_raise(
    written: tuple[int, Lines], capsys: pytest.CaptureFixture[str]
) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)

    log.info("%d", "no number")
    log.info("next")

    assert [json.loads(line)["fields"]["message"] for line in lines()] == ["next"]
    assert "TypeError" in capsys.readouterr().err


def test_set_up_again_replaces_the_first(tmp_path: Path, written: tuple[int, Lines]) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)
    logs.set_up("info", "json", fd)

    log.info("once")

    assert len(lines()) == 1


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_gets_the_pretty_form_in_colour_unless_no_color_is_set(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    master, terminal = pty.openpty()
    logs.set_up("info", None, terminal)

    log.info("hello")

    assert select.select([master], [], [], 10)[0], "nothing was written"
    shown = os.read(master, 4096).decode()
    os.close(master)
    os.close(terminal)
    assert "hello" in shown
    assert ("\x1b[32m" in shown) is coloured


PROGRAM = """
import logging
from zq import logs
logs.set_up("info")
for n in range(2000):
    logging.getLogger("zq").info("line", extra={"fields": {"n": n}})
"""


def test_json_is_the_form_where_standard_output_is_no_terminal() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)

    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["fields"]["n"] for line in lines] == list(range(2000))


def test_a_reader_that_goes_away_harms_no_one() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()

    assert (process.returncode, errors) == (0, b"")


def test_a_full_disk_loses_the_line_and_nothing_else() -> None:
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run([sys.executable, "-c", PROGRAM], stdout=full, stderr=subprocess.PIPE)

    assert (run.returncode, run.stderr) == (0, b"")


def test_nothing_is_written_to_what_took_the_place_of_a_closed_standard_output(
    tmp_path: Path,
) -> None:
    program = f"import os; assert os.open({str(tmp_path / 'data')!r}, os.O_RDWR | os.O_CREAT) == 1"
    subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program + PROGRAM], check=True
    )

    assert (tmp_path / "data").read_bytes() == b""


def filled_pipe() -> tuple[int, int]:
    """A pipe that takes no more bytes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    os.set_blocking(writer, True)
    return reader, writer


def test_a_pipe_that_nobody_reads_holds_up_nobody_and_the_gap_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "MOST_WAITING", 20_000)
    reader, writer = filled_pipe()
    logs.set_up("info", "json", writer)
    before = logs.dropped_lines()

    for n in range(1000):
        logs.event(log, logs.INFO, "line", n=n)

    assert 0 < logs.dropped_lines() - before < 1000
    # The pen may have been lifted more than once; what is missing stands where it is missing.
    seen, text = 0, b""
    while seen < 1000:
        text += os.read(reader, 65536)
        *whole, text = text.lstrip(b".").split(b"\n")
        for line in whole:
            fields = json.loads(line)["fields"]
            assert fields.get("n", seen) == seen
            seen += fields.get("lines", 1)
    logs.event(log, logs.INFO, "after")
    assert json.loads(os.read(reader, 65536))["fields"] == {"message": "after"}
    os.close(reader)
    logging.getLogger().handlers[0].close()
    os.close(writer)


UNREAD = """
import logging, sys
from zq import logs
logs.FLUSH_S = 0.2
logs.set_up("info")
for n in range(20_000):
    logging.getLogger("zq").info("line", extra={"fields": {"n": n}})
"""


def test_an_end_does_not_wait_for_a_reader_that_never_comes() -> None:
    with subprocess.Popen([sys.executable, "-c", UNREAD], stdout=subprocess.PIPE) as process:
        assert process.wait(timeout=60) == 0


def test_a_forked_process_logs_as_well(written: tuple[int, Lines]) -> None:
    fd, lines = written
    logs.set_up("info", "json", fd)
    program = f"""
import logging, os
from zq import logs
logs.set_up("info", "json", {fd})
logging.getLogger("zq").info("parent")
if not os.fork():
    logging.getLogger("zq").info("child")
    logging.shutdown()
    os._exit(0)
os.wait()
"""
    subprocess.run([sys.executable, "-c", program], pass_fds=[fd], check=True)

    assert sorted(json.loads(line)["fields"]["message"] for line in lines()) == ["child", "parent"]
