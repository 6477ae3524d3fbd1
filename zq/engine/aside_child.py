"""The program of the process that runs functions aside. Only `aside.py` starts it and talks to it.

    python -I -S child.py PATH MEMORY MODULE...

PATH is the parent's `sys.path` as a JSON array, MEMORY limits the address space in bytes, and each
MODULE is imported before the process gives up its rights. It ends at the end of its input.

    request   REQUEST (bytes of the call, bytes of the data, CPU seconds), the call as a pickled
              tuple (module, name of the function, arguments), and the data
    reply     frames: FRAME (kind, bytes that follow), and then the bytes. PIECE has one output of
              the function, ERROR a pickled tuple (module and name of a `ZqError`, its message), and
              END nothing. The first reply, an END, says that the process is ready.

The parent sends only calls that its own code has made, and reads back only bytes and names of
errors.
"""

import importlib
import json
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

REQUEST = struct.Struct(">IQI")
FRAME = struct.Struct(">BQ")
PIECE, END, ERROR = range(3)

NICE = 5
"""The loop of the server comes first where both want a processor."""


def main() -> None:
    """Import what is asked for, give up all rights that are not needed, and answer calls."""
    path, memory, modules = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    sys.path[:] = json.loads(path)
    for module in modules:
        importlib.import_module(module)
    from zq.engine.jq.child import allow_cpu, confine

    confine(memory)
    os.nice(NICE)
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    send(replies, END, b"")
    while header := requests.read(REQUEST.size):
        length, size, cpu_seconds = REQUEST.unpack(header)
        allow_cpu(cpu_seconds)
        call = pickle.loads(requests.read(length))
        answer(call, requests.read(size), replies)


def answer(call: tuple[str, str, tuple[Any, ...]], data: bytes, replies: BinaryIO) -> None:
    """Run one call, and send its outputs and its end."""
    from zq.model.errors import ZqError

    module, name, arguments = call
    function: Callable[..., Iterable[bytes]] = getattr(sys.modules[module], name)
    try:
        for piece in function(data, *arguments):
            send(replies, PIECE, piece)
    except ZqError as error:
        kind = type(error)
        send(replies, ERROR, pickle.dumps((kind.__module__, kind.__qualname__, error.message)))
    else:
        send(replies, END, b"")


def send(replies: BinaryIO, kind: int, body: bytes) -> None:
    replies.write(FRAME.pack(kind, len(body)))
    replies.write(body)
    replies.flush()


if __name__ == "__main__":
    main()
