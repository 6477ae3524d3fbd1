"""Workers in processes of their own, so that they can be killed.

Such a process runs one `Worker` and writes each event to its standard output the moment that it
happens; settlements also before they are sent, so that one cut off is known to be *unknown*.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Self

from conformance.client import Client
from process.server import RemoteSite

from .actors import Notebook
from .history import (
    Event,
    Failure,
    StreamEnd,
    StreamStart,
    Success,
    from_line,
    now,
    to_line,
)
from .load import WORKERS, Worker

NUMBERS = 1_000_000
"""Streams of the n-th such worker are numbered from n times this."""

Key = tuple[type[Success] | type[Failure], str, float]


class Mortal:
    """One worker's process, seen from the test. Its events go into the test's notebook."""

    def __init__(self, process: asyncio.subprocess.Process, notebook: Notebook) -> None:
        self._process = process
        self._notebook = notebook
        self._unanswered: dict[Key, Success | Failure] = {}
        self._open: set[int] = set()
        self._reader = asyncio.create_task(self._read())
        self._killed = float("inf")

    @classmethod
    async def spawn(cls, port: int, kind: int, seed: float, notebook: Notebook) -> Self:
        """Start a worker of `WORKERS[kind]`."""
        first = NUMBERS * notebook.new_stream()
        tests = str(Path(__file__).parents[1])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__),
            *(str(port), str(kind), str(seed), str(first)),
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": tests},
        )
        return cls(process, notebook)

    async def kill(self) -> None:
        """SIGKILL, and take note of what it left open. It may have ended already."""
        self._killed = now()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reader

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if line.endswith(b"\n"):
                self._hear(from_line(line))
        end = now()
        for attempt in self._unanswered.values():
            self._notebook.add(replace(attempt, end=end))
        for stream in self._open:
            self._notebook.add(StreamEnd(start=min(self._killed, end), end=end, stream=stream))

    def _hear(self, event: Event) -> None:
        match event:
            case Success() | Failure():
                key = (type(event), event.job, event.start)
                if self._unanswered.pop(key, None) is None:
                    self._unanswered[key] = event
                    return
            case StreamStart():
                self._open.add(event.stream)
            case StreamEnd():
                self._open.discard(event.stream)
        self._notebook.add(event)


class _Dictation(Notebook):
    """Passes on what a worker does, line by line."""

    def add(self, event: Event) -> None:
        sys.stdout.write(to_line(event))
        sys.stdout.flush()

    def try_to(self, settlements: Sequence[Success | Failure]) -> None:
        sys.stdout.writelines(map(to_line, settlements))
        sys.stdout.flush()


async def main(port: int, kind: int, seed: str, first: int) -> None:
    worker = WORKERS[kind]
    async with Client(RemoteSite(port), worker.wire) as client:
        await Worker(client, _Dictation(first), Random(seed), worker).run()


if __name__ == "__main__":
    port, kind, seed, first = sys.argv[1:]
    asyncio.run(main(int(port), int(kind), seed, int(first)))
