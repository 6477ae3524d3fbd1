"""An app with chords, whose workers are killed.

A file has a line for each run of a member: its number, and the process that has begun it.
"""

import asyncio
import os
from pathlib import Path

import zq

app = zq.App()


def note(n: int) -> None:
    with Path(os.environ["RUNS"]).open("a") as runs:
        runs.write(f"{n} {os.getpid()}\n")


@app.task(queue="members")
async def member(n: int) -> int:
    note(n)
    await asyncio.sleep(0.005)  # so that some are always under way
    return n


@app.task(queue="ends")
async def end(parts: list[int]) -> list[int]:
    return parts
