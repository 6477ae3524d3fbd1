"""An app whose tasks run in processes, within what its module says of the app."""

import contextvars
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import zq

shop: contextvars.ContextVar[str] = contextvars.ContextVar("shop")
started: list[int] = []


async def in_context(job: zq.Running[Any], call_next: Callable[[], Awaitable[Any]]) -> Any:
    shop.set("Corner shop")
    return f"{await call_next()} in {os.getpid()}"


app = zq.App(os.environ.get("ZQ_URL", "http://127.0.0.1:1"), middleware=[in_context])


@app.on_startup
async def start() -> None:
    started.append(os.getpid())


@app.on_shutdown
async def end() -> None:
    (Path(os.environ["ENDED"]) / str(os.getpid())).touch()


@app.task(max_attempts=1)
def where() -> str:
    assert started == [os.getpid()]
    return shop.get()


# Long enough to start the other one, however busy the machine is.
@app.task(max_attempts=1, timeout=4.0)
def starts_another(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(str(child.pid))
    child.wait()


@app.task(max_attempts=1)
def fails_when_told(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    while Path(path).exists():
        time.sleep(0.01)
    zq.current_job().progress_sync("told")
    raise LookupError("lost")


@app.task(max_attempts=1)
def goes_on(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)
