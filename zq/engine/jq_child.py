"""The program of the process that runs jq. Only `jq_process` starts it and speaks to it.

    python -I -S jq_child.py DIRECTORY MEMORY CPU_SECONDS

DIRECTORY holds the jq package, MEMORY bounds the address space in bytes, CPU_SECONDS the processor
time of one request. Requests come on standard input, replies go to standard output, one after the
other; the first reply says that the process is confined and ready. The end of input ends it.

    request   REQUEST (bytes of the program, number of rows), the program, then each row: ROW
              (bytes), JSON text. No rows: compile only.
    reply     REPLY (whether the program compiles, bytes that follow), then a byte a row, 1 for a
              match and 0 for none; or the reason why it does not compile. Text is UTF-8.

What jq could do to the host, and what stops it:

    read the environment            it is empty
    open files, or learn of them    no descriptor can be opened; `import` and `include` are syntax
                                    errors and `modulemeta` fails (see GUARD)
    fill memory, run for ever       address space and processor time are limited, and jq_lane
                                    kills this process when a call takes too long
    outlive the server              the kernel kills this process when its parent ends

It runs outside of the package, so it imports nothing of zq.
"""

import functools
import os
import re
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

REQUEST = struct.Struct(">II")
ROW = struct.Struct(">I")
REPLY = struct.Struct(">?I")

GUARD = 'def modulemeta: error("modulemeta is not available");\n'
"""Goes before every program. jq takes `module`, `import` and `include` at the very start only, so
after a definition they are syntax errors, whatever strings, comments and field names contain; and
the definition hides the builtin that tells whether a module's file exists."""

CACHED_PROGRAMS = 32
LONGEST_REASON = 500

Compile = Callable[[str], Any]


def main() -> None:
    directory, memory, cpu_seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    compile_program = load_jq(directory)
    confine(memory)
    serve(compile_program, cpu_seconds, sys.stdin.buffer, sys.stdout.buffer)


def load_jq(directory: str) -> Compile:
    """jq.compile with a cache, warmed up: nothing can be loaded any more once it is confined."""
    sys.path.append(directory)
    import jq

    jq.compile(GUARD + "try error catch .").input_text('"warm"').all()
    compile_program: Compile = functools.lru_cache(CACHED_PROGRAMS)(jq.compile)
    return compile_program


def confine(memory: int) -> None:
    """Take from this process everything that jq has no need of."""
    # Python may have set LC_CTYPE by itself.
    os.environ.clear()
    # Whoever stops the whole group of processes means the server, which may still be draining.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with_parent()
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        # The three open descriptors stay; last, because looking up the others may open files.
        (resource.RLIMIT_NOFILE, 0),
    ):
        bound = within_inherited(kind, most)
        resource.setrlimit(kind, (bound, bound))


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, even in the middle of a program.

    Elsewhere than on Linux the end of input ends it after the running request.
    """
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1  # PR_SET_PDEATHSIG in linux/prctl.h
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)


def within_inherited(kind: int, most: int) -> int:
    """`most`, or the hard limit that this process was started with if that is lower."""
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def serve(
    compile_program: Compile, cpu_seconds: int, requests: BinaryIO, replies: BinaryIO
) -> None:
    """Say that all is ready, then answer requests until their end."""
    reply(replies, True, b"")
    while header := requests.read(REQUEST.size):
        allow_cpu(cpu_seconds)
        length, count = REQUEST.unpack(header)
        program = requests.read(length).decode()
        payloads = rows(requests, count)
        try:
            compiled = compile_program(GUARD + program)
        except ValueError as error:
            for _ in payloads:
                pass
            reply(replies, False, reason(error).encode())
        else:
            reply(replies, True, bytes(matches(compiled, payload) for payload in payloads))


def allow_cpu(seconds: int) -> None:
    """Set the processor time that may pass from now on before the kernel ends this process."""
    soft = within_inherited(resource.RLIMIT_CPU, int(time.process_time()) + 1 + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def rows(requests: BinaryIO, count: int) -> Iterator[str]:
    """The payloads of a request. Only one is in memory at a time."""
    for _ in range(count):
        (length,) = ROW.unpack(requests.read(ROW.size))
        yield requests.read(length).decode()


def matches(compiled: Any, payload: str) -> bool:
    """Whether the program puts out a value that is neither null nor false before any error."""
    outputs = compiled.input_text(payload)
    try:
        return any(value is not None and value is not False for value in outputs)
    except ValueError:
        return False


def reason(error: ValueError) -> str:
    """The first of jq's complaints on one line, with line numbers as the client counts them."""
    first = str(error).partition("\n")[0].removeprefix("jq: error: ").rstrip(":")
    place = re.compile(r" at <top-level>, line (\d+)")
    return place.sub(lambda found: f" at line {int(found[1]) - 1}", first)[:LONGEST_REASON]


def reply(replies: BinaryIO, compiles: bool, body: bytes) -> None:
    replies.write(REPLY.pack(compiles, len(body)) + body)
    replies.flush()


if __name__ == "__main__":
    main()
