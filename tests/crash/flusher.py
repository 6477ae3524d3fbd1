"""A program that flushes through the kernel: `python -m crash.flusher DIRECTORY STEP…`.

It works on the file `log` there. A step does one thing, and prints one JSON value:

- `write=TEXT`, `rewrite=TEXT`: at the end of the file, or over its beginning. null
- `sync`: fdatasync. 0, or the number of the error
- `ask`: a flush by io_submit, on a second descriptor. 1, or minus the number of the error
- `ask-uring`: what io_uring_setup says. Minus the number of the error
- `wait`: until the eventfd has told of a flush. The milliseconds since one was asked for
- `learn`: what io_getevents says of one flush. Its result
"""

import ctypes
import errno
import json
import os
import select
import struct
import sys
import time
from pathlib import Path

SYS_IO_SETUP, SYS_IO_GETEVENTS, SYS_IO_SUBMIT, SYS_IO_URING_SETUP = 206, 208, 209, 425
"""The numbers of x86-64."""

IOCB_CMD_FDSYNC, IOCB_FLAG_RESFD = 3, 1
DATA = 42

LIBC = ctypes.CDLL(None, use_errno=True)


class Iocb(ctypes.Structure):
    """`struct iocb` of linux/aio_abi.h."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("result_descriptor", ctypes.c_uint32),
    )


def call(number: int, *arguments: object) -> int:
    """What the kernel answers; minus the number of the error where it refuses."""
    result: int = LIBC.syscall(ctypes.c_long(number), *arguments)
    return result if result >= 0 else -ctypes.get_errno()


class Flusher:
    """One file, and what is asked of the kernel about it."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / "log", os.O_RDWR | os.O_CREAT)
        self._flushed = os.open(directory / "log", os.O_RDONLY)
        self._told = os.eventfd(0, os.EFD_NONBLOCK)
        self._context = ctypes.c_ulong(0)
        self._setup = call(SYS_IO_SETUP, ctypes.c_long(8), ctypes.byref(self._context))
        self._asked: dict[int, Iocb] = {}
        self._since = 0

    def do(self, step: str) -> float | None:
        name, _, text = step.partition("=")
        match name:
            case "write":
                os.pwrite(self._file, text.encode(), os.fstat(self._file).st_size)
            case "rewrite":
                os.pwrite(self._file, text.encode(), 0)
            case "sync":
                return self._sync()
            case "ask":
                return self._setup or self._ask()
            case "ask-uring":
                return call(SYS_IO_URING_SETUP, ctypes.c_long(8), ctypes.create_string_buffer(120))
            case "wait":
                select.select([self._told], [], [])
                os.eventfd_read(self._told)
                return (time.monotonic_ns() - self._since) / 1_000_000
            case "learn":
                return self._learn()
            case _:
                raise ValueError(step)
        return None

    def _sync(self) -> int:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def _ask(self) -> int:
        iocb = Iocb(
            data=DATA,
            opcode=IOCB_CMD_FDSYNC,
            descriptor=self._flushed,
            flags=IOCB_FLAG_RESFD,
            result_descriptor=self._told,
        )
        self._asked[ctypes.addressof(iocb)] = iocb
        pointer = ctypes.pointer(iocb)
        self._since = time.monotonic_ns()
        return call(SYS_IO_SUBMIT, self._context, ctypes.c_long(1), ctypes.byref(pointer))

    def _learn(self) -> int:
        event = ctypes.create_string_buffer(32)
        one = ctypes.c_long(1)
        assert call(SYS_IO_GETEVENTS, self._context, one, one, event, None) == 1
        data, asked_as, result, _ = struct.unpack("QQqq", event.raw)
        assert data == DATA
        del self._asked[asked_as]
        return int(result)


def main(directory: Path, steps: list[str]) -> None:
    """The names of directory and file are durable before the first step."""
    directory.mkdir()
    flusher = Flusher(directory)
    for folder in (directory.parent, directory):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    for step in steps:
        print(json.dumps(flusher.do(step)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
