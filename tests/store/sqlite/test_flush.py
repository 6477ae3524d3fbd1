"""The flush of the log: every kind, and each one if the others are missing."""

import asyncio
import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from zq.model.commands import TickResult
from zq.model.errors import DiskFailed
from zq.store.errors import StoreFailed
from zq.store.sqlite.flush import KINDS, KernelFlush, open_flush

from ..rig import Rig, new_job

REFUSE = """
    import ctypes, os, struct

    def refuse(*numbers):
        '''Let the kernel answer ENOSYS to these system calls, as older ones do.'''
        LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
        steps = [(LOAD, 0, 0, 0)]
        steps += [(EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
        steps += [(RETURN, 0, 0, 0x7FFF0000), (RETURN, 0, 0, 0x00050000 | 38)]
        code = b"".join(struct.pack("HBBI", *step) for step in steps)
        text = ctypes.create_string_buffer(code)
        program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(text))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0, ctypes.get_errno()
"""
"""A filter of system calls for x86-64, of classic BPF (seccomp(2))."""

IO_SETUP, IO_SUBMIT, IO_URING_SETUP = 206, 209, 425

x86_only = pytest.mark.skipif(os.uname().machine != "x86_64", reason="its numbers are x86-64's")
with_caio = pytest.mark.skipif(
    all(module is None for _, module in KINDS), reason="caio's modules are not here"
)


@with_caio
@pytest.mark.parametrize("skipped", range(len(KINDS) + 1))
async def test_each_way_flushes_again_and_again(tmp_path: Path, skipped: int) -> None:
    kinds = KINDS[skipped:]
    file = tmp_path / "log"
    file.write_bytes(b"x")
    flush = await open_flush(file, kinds)
    assert flush.name == (kinds[0][0] if kinds else "thread")
    for _ in range(5):
        file.write_bytes(b"y" * 5_000)
        await flush.begin()
    flush.close()


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("skipped", range(len(KINDS) + 1))
async def test_each_way_gives_its_descriptors_back(tmp_path: Path, skipped: int) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"x")

    async def use() -> None:
        flush = await open_flush(file, KINDS[skipped:])
        await flush.begin()
        flush.close()

    await use()  # a context stays open, for the next engine
    before = descriptors()
    for _ in range(3):
        await use()
    assert len(descriptors() - before) <= 1  # that of the listing itself


@with_caio
async def test_one_context_of_the_kernel_serves_one_engine_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"x")
    contexts = []
    for _ in range(3):
        flush = await open_flush(file)
        assert isinstance(flush, KernelFlush)
        contexts.append(flush._context)
        await flush.begin()
        flush.close()
    assert all(context is contexts[0] for context in contexts)


@with_caio
async def test_a_context_with_a_flush_under_way_is_not_used_again(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"x")
    flush = await open_flush(file)
    assert isinstance(flush, KernelFlush)
    flush.begin()
    flush.close()
    again = await open_flush(file)
    assert isinstance(again, KernelFlush)
    assert again._context is not flush._context
    again.close()


async def test_what_cannot_be_flushed_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)
    with pytest.raises(OSError, match="Invalid argument"):
        await open_flush(pipe)
    os.close(keep)


@with_caio
@x86_only
@pytest.mark.parametrize(
    ("refused", "name"),
    [
        ([IO_SETUP], "io-uring"),
        ([IO_SUBMIT], "io-uring"),
        ([IO_SETUP, IO_URING_SETUP], "thread"),
        ([IO_SUBMIT, IO_URING_SETUP], "thread"),
        ([IO_URING_SETUP], "linux-aio"),
    ],
)
def test_what_the_kernel_refuses_is_done_another_way(
    tmp_path: Path, refused: list[int], name: str
) -> None:
    program = textwrap.dedent(REFUSE) + textwrap.dedent(f"""
        refuse({", ".join(map(str, refused))})
        import asyncio
        from pathlib import Path
        from zq.store.sqlite.flush import open_flush

        async def main():
            flush = await open_flush(Path({str(tmp_path / "log")!r}))
            await flush.begin()
            print(flush.name)
            flush.close()

        asyncio.run(main())
    """)
    (tmp_path / "log").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (name, "")


@with_caio
@x86_only
def test_a_kernel_that_takes_no_more_flushes_does_not_stop_the_server(tmp_path: Path) -> None:
    program = textwrap.dedent(REFUSE) + textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from zq.store.sqlite.flush import open_flush

        async def main():
            flush = await open_flush(Path({str(tmp_path / "log")!r}))
            assert flush.name == "linux-aio"
            await flush.begin()
            refuse({IO_SUBMIT})
            await flush.begin()
            print("flushed by a thread")
            flush.close()

        asyncio.run(main())
    """)
    (tmp_path / "log").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("flushed by a thread", "")


async def test_a_durable_tick_waits_for_its_flush_and_another_does_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, begun = rig.store._flush, 0
    begin = flush.begin

    def counted() -> asyncio.Future[None]:
        nonlocal begun
        begun += 1
        return begin()

    monkeypatch.setattr(flush, "begin", counted)
    for durable in (True, False, False, True, True):
        result = await rig.run(rig.enqueue([new_job()]), durable=durable)
        assert (result.flush_s > 0) is durable
    assert begun == 3


async def committed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> tuple[asyncio.Task[TickResult], asyncio.Future[None]]:
    """A tick that has committed, and the flush that it waits for."""
    landed, has_begun = asyncio.get_running_loop().create_future(), asyncio.Event()

    def begin() -> asyncio.Future[None]:
        has_begun.set()
        return landed

    monkeypatch.setattr(rig.store._flush, "begin", begin)
    tick = asyncio.create_task(rig.run(rig.enqueue([new_job()]), durable=True))
    await has_begun.wait()
    return tick, landed


async def test_race_what_is_read_before_its_flush_is_told_after_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is visible at once; a power cut might take back what was told before the flush."""
    tick, landed = await committed(rig, monkeypatch)
    read = asyncio.create_task(rig.statuses())
    done, _ = await asyncio.wait([read, tick], timeout=0.2)
    assert not done
    landed.set_result(None)
    assert len(await read) == 1
    await tick


async def test_race_what_is_read_before_a_flush_that_fails_is_never_told(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick, landed = await committed(rig, monkeypatch)
    read = asyncio.create_task(rig.statuses())
    await asyncio.sleep(0.1)
    landed.set_exception(OSError(5, "Input/output error"))
    with pytest.raises(DiskFailed):
        await read
    with pytest.raises(StoreFailed, match="Input/output"):
        await tick
    # The change can be seen, and nobody knows whether it is on the disk.
    for _ in range(2):
        with pytest.raises(DiskFailed):
            await rig.statuses()


async def test_the_logs_descriptor_leaves_sqlites_locks_alone(rig: Rig) -> None:
    """Closing any descriptor of a file drops a process's locks on it; the log carries none.

    Held against copies, restarts, and a log that is emptied: another process still finds the
    database locked.
    """
    for _ in range(3):
        await rig.keep(50)
        flush = await open_flush(rig.directory / "zq.db-wal")
        await flush.begin()
        flush.close()
        await rig.store.checkpoint()
        await rig.keep(50)
        await rig.store.checkpoint(shrink=True)
    await rig.store._writer.execute("BEGIN IMMEDIATE")
    flush = await open_flush(rig.directory / "zq.db-wal")
    flush.close()
    program = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], timeout=0)\n"
        "try:\n    db.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error:\n    print(error)\n"
        "db.execute('PRAGMA wal_checkpoint(TRUNCATE)')"
    )
    command = [sys.executable, "-c", program, str(rig.directory / "zq.db")]
    run = partial(subprocess.run, command, capture_output=True, text=True)
    done = await asyncio.to_thread(run)
    await rig.store._writer.execute("ROLLBACK")
    assert (done.stdout.strip(), done.stderr) == ("database is locked", "")
