"""An app whose handlers end in every way that Python has, in threads, processes and coroutines.

Each execution leaves a line when it begins and another when it ends, in the file of the variable
RUNS: the job's id, the process, the moment on the machine's steady clock, and which of the two.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zq

app = zq.App(
    os.environ.get("ZQ_URL", "http://127.0.0.1:1"),
    defaults={"max_attempts": 2, "backoff": zq.Backoff(exponent=0, jitter=0)},
)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Detailed(Exception):
    def to_dict(self) -> dict[str, object]:
        sys.exit("no details")


class Odd(BaseException):
    pass


class Unwritable:
    def model_dump(self, mode: str = "json") -> object:
        raise KeyboardInterrupt


def raising(error: Callable[[], BaseException]) -> Callable[[], object]:
    def function() -> object:
        raise error()

    return function


def forever(depth: int = 0) -> int:
    return forever(depth + 1) + 1


def itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


FINE: dict[str, Callable[[], object]] = {"fine": lambda: "fine", "nothing": lambda: None}
FAULTS: dict[str, Callable[[], object]] = {
    "error": raising(lambda: ValueError("wrong")),
    "mute": raising(Mute),
    "details": raising(Detailed),
    "group": raising(lambda: ExceptionGroup("both", [KeyError("a"), Mute()])),
    "base": raising(lambda: Odd("odd")),
    "base group": raising(lambda: BaseExceptionGroup("both", [Odd(), SystemExit(1)])),
    "exit": lambda: sys.exit("bye"),
    "interrupt": raising(KeyboardInterrupt),
    "generator": raising(GeneratorExit),
    "iterator": raising(StopIteration),
    "iterators": raising(StopAsyncIteration),
    "cancelled": raising(asyncio.CancelledError),
    "time": raising(TimeoutError),
    "memory": raising(MemoryError),
    "depth": forever,
    "characters": raising(lambda: FileNotFoundError("a\udcffb")),
    "long": raising(lambda: ValueError("x" * 300_000)),
    "retry": raising(lambda: zq.Retry("later", delay=0.01)),
}
UNWRITABLE: dict[str, Callable[[], object]] = {
    "unwritable": Unwritable,
    "no number": lambda: float("nan"),
    "endless": itself,
    "function": lambda: forever,
    "surrogate": lambda: "\udcff",
    "key": lambda: {Odd(): 1},
}
"""Results that cannot be sent. Another try would not help."""
HANGS = "hang"
EVERYWHERE = FINE | FAULTS | UNWRITABLE
OF_PROCESSES: dict[str, Callable[[], object]] = {
    "leaves": lambda: os._exit(0),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "aborts": os.abort,
}


def note(word: str) -> None:
    line = f"{zq.current_job().id} {os.getpid()} {time.monotonic()} {word}\n"
    out = os.open(os.environ["RUNS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(out, line.encode())
    finally:
        os.close(out)


@contextmanager
def noted() -> Iterator[None]:
    note("begins")
    try:
        yield
    finally:
        note("ends")


@app.task(queue="threads")
def in_thread(how: str) -> Any:
    with noted():
        return time.sleep(0.6) if how == HANGS else EVERYWHERE[how]()


@app.task(queue="processes")
def in_process(how: str) -> Any:
    with noted():
        return time.sleep(3600) if how == HANGS else (EVERYWHERE | OF_PROCESSES)[how]()


@app.task(queue="coroutines")
async def in_coroutine(how: str) -> Any:
    async def beside() -> object:
        return EVERYWHERE[how]()

    with noted():
        if how == HANGS:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if how in ("exit", "interrupt", "base"):
            return await asyncio.create_task(beside())
        return EVERYWHERE[how]()
