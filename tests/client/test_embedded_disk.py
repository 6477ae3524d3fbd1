"""An embedded engine whose disk has failed: nothing is told of what may not be on it."""

import asyncio
import errno
from pathlib import Path

import pytest

import zq
from zq.client.app import App
from zq.client.backend import run
from zq.store.sqlite import flush


def broken(_flush: object) -> asyncio.Future[None]:
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(OSError(errno.EIO, "Input/output error"))
    return failed


def test_after_a_failed_flush_no_read_tells_what_may_not_be_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine began anew before, and read the lost job from the system's memory."""
    app = App(f"sqlite://{tmp_path}/data")

    @app.task
    def work(n: int) -> int:
        return n

    work.enqueue_sync(1)
    with monkeypatch.context() as patched:
        patched.setattr(flush.KernelFlush, "begin", broken)
        patched.setattr(flush.ThreadFlush, "begin", broken)
        with pytest.raises(zq.ZqError, match="may or may not be stored"):
            work.enqueue_sync(2)
    backend = app.backend.blocking
    for ask in (backend.count, backend.jobs):
        with pytest.raises(zq.ZqError, match="the disk has failed"):
            run(ask())
    with pytest.raises(zq.ZqError):
        work.enqueue_sync(3)
