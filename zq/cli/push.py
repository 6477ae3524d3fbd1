"""`zq push`: enqueues one job, or the jobs of a file."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import IO, TYPE_CHECKING, Any

import click

from zq.cli.output import job_document, print_json
from zq.cli.remote import Remote, ending, talks
from zq.cli.rooms import room_options, sent_for_rooms
from zq.cli.terminal import counted, one_line, say
from zq.cli.wait import report, wait_for
from zq.cli.words import MILLISECONDS, json_of
from zq.model.names import check_name
from zq.rooms import parts

if TYPE_CHECKING:
    from zq.cli.bulk import JobLine, Load, Numbered, Stopped

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)

RESULT_KEPT_MS = 3_600_000
"""The retention of a job that this command waits for, so that its result can be read."""


@click.command(
    context_settings={"allow_extra_args": True},
    epilog="""\b
Examples:
  zq push mail '{"to": "ann@example.org"}'   JSON
  zq push mail hello                         text
  zq push mail @letter.json                  the content of a file; - is standard input
  zq push mail 7 --delay 10m --priority 10   in ten minutes, more urgent than most
  zq push sums '[1, 2]' --wait               print the result
  zq push sync 7 --budget crm --budget net=5
  zq push --file jobs.ndjson                 a job on each line: {"queue": "mail", "payload": 7}
  zq push mail 7 --fair-key acme             one of the keys between which the queue is shared
  zq push mail --file to.ndjson --payloads   a payload on each line
  zq push --file day.ndjson --producer day-1 the same command again stores what is missing

A file is sent in order, in bulk requests. If the command has to stop, it names the line and the
option with which to continue. Options of a job hold for lines that do not set them themselves.
With --producer, the server remembers by that name how many jobs of the file it has stored: after
any interruption, the same command goes on where it was. A file may grow at its end meanwhile.
Exit codes: 0, 1 if the server refuses or the job that is waited for fails, 2 for wrong usage, 3 if
no server answers.
""",
)
@click.argument("queue", required=False)
@click.argument("payload", required=False, metavar="[JSON|TEXT|@FILE|-]")
@click.option("--queue", "-q", "elsewhere", hidden=True)  # as other commands have it
@click.option("--type", "type_", metavar="NAME", help="Type of the job. [default: the queue]")
@click.option("--group", help="Group of the job. Jobs of a group run one after another.")
@click.option("--dedupe", metavar="ID", help="A second job with this id is not stored.")
@click.option(
    "--key", "unique_key", help="Unique key. No second job is stored while one with this key waits."
)
@click.option("--priority", type=click.IntRange(0, 65_535), help="Priority. 0 is the most urgent.")
@click.option(
    "--delay",
    type=MILLISECONDS,
    help="Run the job no earlier than after this time: 500ms, 10m, 1d.",
)
@room_options
@click.option("--text", is_flag=True, help="Send the payload as text, even if it looks like JSON.")
@click.option("--wait", is_flag=True, help="Wait until the job has finished, and print its result.")
@click.option("--timeout", type=MILLISECONDS, help="Wait no longer than this.")
@click.option(
    "--file", "file", type=_FILE, help="File with a job on each line; - is standard input."
)
@click.option("--payloads", is_flag=True, help="The lines of the file are payloads.")
@click.option(
    "--from-line", type=click.IntRange(min=1), default=1, help="Begin at this line of the file."
)
@click.option(
    "--producer",
    metavar="NAME",
    help="Number the jobs of the file under this name, which no other file has.",
)
@talks
def push(
    remote: Remote,
    queue: str | None,
    payload: str | None,
    file: str | None,
    **options: Any,
) -> None:
    """Store a job in QUEUE, or the jobs of a file."""
    _refuse(
        ("the queue stands first: zq push QUEUE PAYLOAD", options.pop("elsewhere") is not None),
        (
            "a job has one payload: put it into quotes as a whole, and write its type as --type",
            click.get_current_context().args,
        ),
    )
    if file is not None:
        _refuse(
            ("give a payload or --file, not both", payload is not None),
            ("--wait is for one job, not for a file", options["wait"]),
            ("--key is for one job: write unique_key on each line", options["unique_key"]),
            ("--dedupe is for one job: write dedupe on each line", options["dedupe"]),
            (
                "--payloads needs a queue: zq push QUEUE --file …",
                options["payloads"] and not queue,
            ),
            (
                "--producer knows where to begin: leave out --from-line",
                options["producer"] and options["from_line"] != 1,
            ),
        )
        _push_file(remote, queue, file, options)
        return
    if queue is None:
        raise click.UsageError("name a queue, or a file of jobs: --file jobs.ndjson")
    _refuse(
        ("--timeout needs --wait", options["timeout"] is not None and not options["wait"]),
        ("--payloads, --from-line and --producer need --file", _is_of_file(options)),
    )
    _push_one(remote, queue, payload, options)


def _refuse(*rules: tuple[str, Any]) -> None:
    for complaint, broken in rules:
        if broken:
            raise click.UsageError(complaint)


def _is_of_file(options: dict[str, Any]) -> bool:
    return bool(options["payloads"] or options["from_line"] != 1 or options["producer"])


# One job


def _push_one(remote: Remote, queue: str, payload: str | None, options: dict[str, Any]) -> None:
    # A bad queue name is also a bad type. The message must name the queue, which the user gave.
    check_name("queue", queue)
    data = payload_of(payload, as_text=options["text"])
    job = _job(queue, data, options | {"type_": options["type_"] or queue})
    (stored,) = remote.run(remote.backend.enqueue([job]))
    if options["wait"]:
        if not remote.as_json:
            say(f"the job {stored.id} is stored; waiting for it", err=True)
        report(remote, stored.id, wait_for(remote, stored.id, options["timeout"]))
    elif remote.as_json:
        print_json(job_document(stored))
    else:
        say(stored.id)
        if stored.duplicate:
            say(f"the job existed already: it is {stored.status or 'finished'}", err=True)


def payload_of(word: str | None, *, as_text: bool) -> bytes:
    """A payload as the words of a command say it, as JSON text."""
    import msgspec

    text = _content(word)
    if not text:
        raise click.UsageError('the payload is empty: write "" in quotes if that is meant')
    if as_text:
        return msgspec.json.encode(text)
    try:
        json_of(text)
    except ValueError as error:
        if text.lstrip()[0:1] in ("{", "[", '"'):
            raise click.UsageError(
                f"the payload looks like JSON but is not: {error}. Use --text to send it as text"
            ) from None
        return msgspec.json.encode(text)
    return text.encode()


def _content(word: str | None) -> str:
    if word is None:
        if not sys.stdin.isatty():
            raise click.UsageError("give a payload: JSON, text, @FILE, or - for standard input")
        return str(click.prompt("Payload", err=True))
    if word != "-" and not word.startswith("@"):
        return word
    try:
        if word == "-":
            return sys.stdin.buffer.read().decode()
        return Path(word[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{word[1:]}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(
            f"{word} does not hold UTF-8 text, which payloads have to be"
        ) from None


def _job(queue: str | None, data: bytes, options: dict[str, Any]) -> "JobLine":
    from msgspec import Raw

    from zq.cli.bulk import JobLine
    from zq.client.values import Dedupe
    from zq.model.job import SentFields
    from zq.model.patching import StrictRetention

    delay, dedupe = options["delay"], options["dedupe"]
    names = ("priority", *SentFields.__struct_fields__)
    as_sent = {name: value for name, value in options.items() if name in names}
    return JobLine(
        queue=queue or "",
        type=options["type_"] or "",
        payload=Raw(data),
        ready_at=None if delay is None else time.time_ns() // 1_000_000 + delay,
        dedupe=None if dedupe is None else Dedupe(dedupe),
        retention=StrictRetention(RESULT_KEPT_MS) if options["wait"] else None,
        **as_sent | sent_for_rooms(options),
    )


# A file of jobs


def _push_file(remote: Remote, queue: str | None, name: str, options: dict[str, Any]) -> None:
    from zq.cli.bulk import Load, Stopped

    producer = options.pop("producer")
    load = Load(remote.backend, _job(queue, b"null", options), options["payloads"])
    if producer is not None:
        (numbering,) = parts("cli", "NUMBERING", FunctionType)
        load.numbered = numbering(remote.backend, producer)
    stopped = None
    with _opened(name) as file, _bar(load, file, name):
        try:
            load.run(file, options["from_line"])
        except Stopped as reason:
            stopped = reason
    remote.tell()
    if remote.as_json:
        counts = {"stored": load.stored, "duplicates": load.duplicates}
        if stopped is not None:
            counts |= {"stopped_at": stopped.line, "doubtful_to": stopped.doubtful}
        print_json(counts)
    else:
        also = f", {load.duplicates:,} existed already" if load.duplicates else ""
        say(f"{counted(load.stored, 'job')} stored{also}")
    if stopped is not None:
        raise _explained(stopped, name, resumes=producer is not None)


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as file:
        yield file


@contextmanager
def _bar(load: "Load", file: IO[bytes], name: str) -> Iterator[None]:
    """Show the progress on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich import progress
    from rich.console import Console

    size = None if name == "-" else Path(name).stat().st_size
    columns = (
        progress.TextColumn("{task.fields[jobs]:,} jobs"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=size, jobs=0)

        def show(last: "Numbered") -> None:
            bar.update(task, completed=last.end, jobs=load.stored + load.duplicates)

        load.progress = show
        yield


def _explained(stopped: "Stopped", name: str, *, resumes: bool) -> click.ClickException:
    reason, line = stopped.reason, stopped.line
    file = one_line(name)
    more = f". Stopped at line {line} of {file}. All lines before it are stored"
    if resumes:
        more += ". The same command goes on there"
    elif stopped.doubtful:
        more += (
            f"; lines {line} to {stopped.doubtful} may be stored. --from-line {line} sends them"
            f" again, --from-line {stopped.doubtful + 1} leaves them out"
        )
    else:
        more += f". Continue with --from-line {line}"
    return ending(reason, more)
