"""An app with chords, whose workers are killed.

A file has a line for each run of a member: its number, and the process that has begun it.
"""

import asyncio
import os
from pathlib import Path

import zq

app = zq.App()


STUCK = 0
"""The member whose first run does not end."""


def runs_of(n: int) -> list[int]:
    """The processes that have begun a member, in their order."""
    lines = map(str.split, Path(os.environ["RUNS"]).read_text().splitlines())
    return [int(process) for number, process in lines if int(number) == n]


def note(n: int) -> None:
    with Path(os.environ["RUNS"]).open("a") as runs:
        runs.write(f"{n} {os.getpid()}\n")


@app.task(queue="members")
async def member(n: int) -> int:
    note(n)
    if n == STUCK and len(runs_of(n)) == 1:
        await asyncio.sleep(3600)  # until its worker is killed
    await asyncio.sleep(0.005)  # so that some are always under way
    return n


@app.task(queue="ends")
async def end(parts: list[int]) -> list[int]:
    return parts
