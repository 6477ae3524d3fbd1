"""Tasks that tests run in processes, which find them by module and name."""

import functools
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import zq

app = zq.App("http://127.0.0.1:1")
queue = app.queue("heavy-queue", payload=int, result=int)


@app.task(queue="heavy")
def pid() -> int:
    return os.getpid()


@app.task(queue="heavy")
def other_pid() -> int:
    return os.getpid()


@app.task(queue="heavy", max_attempts=1)
def fail(message: str) -> None:
    raise LookupError(message)


class OutOfStock(Exception):
    def to_dict(self) -> dict[str, object]:
        return {"code": "OUT_OF_STOCK", "left": 0}


@app.task(queue="heavy", max_attempts=1)
def buy() -> None:
    raise OutOfStock("nothing is left")


@app.task(queue="heavy", on_exception={LookupError: None})
def fail_for_good() -> None:
    raise KeyError("never")


@app.task(queue="heavy", max_attempts=1)
def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(queue="heavy", max_attempts=1)
def leave() -> None:
    os._exit(3)


@app.task(queue="heavy", timeout=0.5, max_attempts=1)
def hang() -> None:
    while True:
        time.sleep(60)


@app.task(queue="heavy", max_attempts=1)
def no_data() -> object:
    return object()


@app.task(queue="heavy")
def who() -> list[object]:
    job = zq.current_job()
    return [job.id, job.attempt, job.type]


@app.task(queue="heavy")
async def beside() -> int:
    return os.getpid()


@queue.handler
def double(n: int, job: zq.Running[int]) -> int:
    assert job.payload == n
    return n * 2


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """An ordinary decorator."""

    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


@app.task(queue="heavy")
@plainly
async def wrapped(n: int) -> int:
    return n + 1
