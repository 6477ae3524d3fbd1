"""The commands for people, against a server: `zq …`."""

import asyncio
import contextlib
import json
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner
from conformance.streams import PATIENCE_S
from process.server import clean_environment

from zq.cli.every import SECTIONS
from zq.cli.group import main
from zq.cli.rooms import Section
from zq.client.backend import Backend
from zq.client.values import Delivery, LeasedFailure, StoredJob, Submission, Success, TakeRequest

PEOPLE = [
    command
    for section in (Section.LOOK, Section.JOBS, Section.QUEUES, Section.LOOK_BACK)
    for command in SECTIONS[section]
    if command.name not in ("health", "top", "history", "pipeline")
]
"""The commands that ask a server by its API."""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    errors: str
    server: str = ""
    """The server or directory that it says it has asked."""

    @property
    def documents(self) -> list[Any]:
        """What it printed, line by line, read as JSON."""
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def table(self) -> list[list[str]]:
        """What it printed, cut into cells at two spaces."""
        lines = self.output.splitlines()
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


class Shell:
    """Runs `zq` against a server, and looks at the server by the library."""

    def __init__(self, url: str, backend: Backend, directory: Path) -> None:
        self.backend = backend
        self.directory = directory
        self.url = url

    async def zq(self, *words: str, stdin: bytes | str | None = None, url: str = "") -> Ended:
        """Run a command to its end, in this process: one of its own costs five times as much."""

        def run() -> Ended:
            with contextlib.chdir(self.directory):
                done = CliRunner().invoke(
                    *(main, words, stdin), env={"ZQ_URL": url or self.url}, catch_exceptions=False
                )
            return Ended(done.exit_code, done.stdout, *_apart(done.stderr))

        return await asyncio.to_thread(run)

    async def start(
        self, *words: str, stdin: int = DEVNULL, stdout: int = PIPE, url: str = ""
    ) -> Process:
        """Begin a command in a process of its own, to be awaited with `ended`."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "zq.cli", *words),
            cwd=self.directory,
            env=clean_environment() | {"ZQ_URL": url or self.url},
            stdin=stdin,
            stdout=stdout,
            stderr=PIPE,
        )

    async def on_terminal(self, *words: str, columns: int = 120) -> str:
        """What a command that ends well writes to a terminal."""
        leader, follower = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "zq.cli", *words),
            cwd=self.directory,
            env=clean_environment()
            | {"ZQ_URL": self.url, "TERM": "xterm", "COLUMNS": str(columns)},
            stdin=DEVNULL,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)
        async with asyncio.timeout(PATIENCE_S):
            text, code = await asyncio.gather(asyncio.to_thread(_read, leader), process.wait())
        assert code == 0, text
        return _apart(text)[0]

    async def push(self, *payloads: Any, **fields: Any) -> list[StoredJob]:
        """Store jobs of the queue `mail`."""
        fields = {"queue": "mail", "type": "letter", **fields}
        return await self.backend.enqueue([Submission(payload=each, **fields) for each in payloads])

    async def finish(
        self,
        queue: str,
        result: Any = None,
        *,
        error: str = "",
        trace: str | None = None,
        worker: str = "",
    ) -> Delivery:
        """Take the next job of a queue and complete it, or let it die of an error."""
        stream = await self.backend.take(TakeRequest((queue,), 1, worker))
        try:
            async with asyncio.timeout(PATIENCE_S):
                (job,) = await stream.deliveries()
            assert isinstance(job, Delivery)
            if error:
                failure = LeasedFailure(error, "ValueError", trace, kill=True, lease=job.lease)
                await self.backend.fail(job.id, failure)
            else:
                await self.backend.succeed([Success(job.id, job.lease, result)])
            return job
        finally:
            await stream.close()


def _read(terminal: int) -> str:
    found = b""
    while True:
        try:
            found += os.read(terminal, 65536)
        except OSError:  # EIO: nobody holds the other side any more
            os.close(terminal)
            return found.decode()


async def ended(process: Process, stdin: bytes | None = None) -> Ended:
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate(stdin)
    assert process.returncode is not None
    return Ended(process.returncode, output.decode(), *_apart(errors.decode()))


def _apart(errors: str) -> tuple[str, str]:
    """What is on stderr without the line about the server, and that server."""
    lines = errors.splitlines(keepends=True)
    told = [line for line in lines if line.startswith(("server: ", "directory: "))]
    server = told[0].partition(": ")[2].strip() if told else ""
    return "".join(line for line in lines if line not in told), server
