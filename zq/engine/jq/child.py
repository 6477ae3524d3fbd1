"""The program of the process that runs jq. Only `process.py` starts it and talks to it.

    python -I -S child.py DIRECTORY MEMORY CPU_SECONDS

DIRECTORY holds the jq package. MEMORY limits the address space in bytes, CPU_SECONDS the processor
time of one request. Requests come on standard input, and replies go to standard output, in the same
order. The first reply says that the process is confined and ready. It ends at the end of its input.

    request   REQUEST (whether outputs are wanted, bytes of the program, number of rows), the
              program, then each row: ROW (bytes), JSON text. No rows: compile only.
    reply     REPLY (whether the program compiles, bytes that follow), then a byte a row, 1 for a
              match and 0 for none. If outputs are wanted, a JSON array follows instead. It has for
              each row the outputs, which are texts, and the error that ended them or null. If the
              program does not compile, the reason follows. Text is UTF-8.

What jq could do to the host, and how that is prevented:

    read the environment            it is empty
    open files, or learn of them    no descriptor can be opened; `import` and `include` are syntax
                                    errors and `modulemeta` is not defined (see GUARD)
    fill memory, run for ever       address space and processor time are limited, and `lane.py`
                                    kills this process when a call takes too long
    outlive the server              the kernel kills this process when its parent ends

It runs outside of the package, so it imports nothing from zq.
"""

import functools
import json
import os
import re
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

REQUEST = struct.Struct(">?II")
ROW = struct.Struct(">I")
REPLY = struct.Struct(">?I")

FOREIGN = (
    *("IN($a)", "IN($a; $b)", "tostream", "fromstream($a)"),
    *("input", "inputs", "input_filename", "input_line_number", "modulemeta"),
    *("get_search_list", "builtins", "have_decnum", "have_literal_numbers"),
)
"""Functions that jq has and Zizq's engine does not, or that reveal files and further inputs."""

DIVISION = (
    "def _quotient($a; $b): $a / $b; def _divide($a; $b):"
    ' if ($a | type) == "number" and $b == 0'
    " then if $a > 0 then infinite elif $a < 0 then -infinite else nan end"
    " else _quotient($a; $b) end;"
)
"""A number divided by zero is infinite, as in Zizq's engine. In jq it is an error."""

GUARD = (
    " ".join(f"def {name}: unknown_{name.partition('(')[0]};" for name in FOREIGN) + DIVISION + "\n"
)
"""This precedes every program, on one line. jq accepts `module`, `import` and `include` only at the
very start. After a definition they are syntax errors, whatever strings, comments and field names
contain. jq drops an unused definition before it looks its names up, so a name of `FOREIGN` is an
error exactly where a program uses it."""

CACHED_PROGRAMS = 32
LONGEST_REASON = 500

Compile = Callable[[str], Any]


def main() -> None:
    """Run programs until the input ends. Arguments: where jq is, bytes of memory, CPU seconds."""
    directory, memory, cpu_seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    compile_program = load_jq(directory)
    confine(memory)
    serve(compile_program, cpu_seconds, sys.stdin.buffer, sys.stdout.buffer)


def load_jq(directory: str) -> Compile:
    """Return jq.compile with a cache, warmed up: a confined process can load nothing more."""
    sys.path.append(directory)
    import jq

    jq.compile(GUARD + "try error catch .").input_text('"warm"').all()
    compile_program: Compile = functools.lru_cache(CACHED_PROGRAMS)(jq.compile)
    return compile_program


def confine(memory: int) -> None:
    """Take away every right of this process that jq does not need."""
    # Python itself may have set LC_CTYPE.
    os.environ.clear()
    # A SIGTERM to the process group is meant for the server, which may still be draining.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_with_parent()
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        # The three open descriptors stay. This comes last, since the others may open files.
        (resource.RLIMIT_NOFILE, 0),
    ):
        bound = within_inherited(kind, most)
        resource.setrlimit(kind, (bound, bound))


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, even while a program runs.

    On other systems than Linux the end of input ends it after the running request.
    """
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1  # PR_SET_PDEATHSIG in linux/prctl.h
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)


def within_inherited(kind: int, most: int) -> int:
    """`most`, or the hard limit that this process inherited if that is lower."""
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def serve(
    compile_program: Compile, cpu_seconds: int, requests: BinaryIO, replies: BinaryIO
) -> None:
    """Report that all is ready, then answer requests until the end of input."""
    reply(replies, True, b"")
    while header := requests.read(REQUEST.size):
        allow_cpu(cpu_seconds)
        wants_outputs, length, count = REQUEST.unpack(header)
        program = requests.read(length).decode()
        payloads = rows(requests, count)
        try:
            compiled = compile_program(GUARD + program)
        except ValueError as error:
            for _ in payloads:
                pass
            reply(replies, False, reason(error).encode())
        else:
            if wants_outputs:
                found = [outputs(compiled, payload) for payload in payloads]
                reply(replies, True, json.dumps(found).encode())
            else:
                reply(replies, True, bytes(matches(compiled, payload) for payload in payloads))


def allow_cpu(seconds: int) -> None:
    """Set the processor time from now on after which the kernel ends this process."""
    soft = within_inherited(resource.RLIMIT_CPU, int(time.process_time()) + 1 + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def rows(requests: BinaryIO, count: int) -> Iterator[str]:
    """The payloads of a request. Only one is in memory at a time."""
    for _ in range(count):
        (length,) = ROW.unpack(requests.read(ROW.size))
        yield requests.read(length).decode()


def matches(compiled: Any, payload: str) -> bool:
    """True if the program outputs a value that is neither null nor false before any error."""
    outputs = compiled.input_text(payload)
    try:
        return any(value is not None and value is not False for value in outputs)
    except ValueError:
        return False


def outputs(compiled: Any, row: str) -> tuple[list[str], str | None]:
    """The outputs of the program, which are all texts, and its error, if any."""
    found: list[str] = []
    try:
        found += compiled.input_text(row)
    except ValueError as error:
        return found, reason(error)
    return found, None


def reason(error: ValueError) -> str:
    """jq's first error message on one line, with line numbers as the client counts them."""
    first = str(error).partition("\n")[0].removeprefix("jq: error: ").rstrip(":")
    if hidden := re.match(r"unknown_(\w+)/0 is not defined", first):
        return f"{hidden[1]} is not defined"
    place = re.compile(r" at <top-level>, line (\d+)")
    return place.sub(lambda found: f" at line {int(found[1]) - 1}", first)[:LONGEST_REASON]


def reply(replies: BinaryIO, compiles: bool, body: bytes) -> None:
    """Answer one request: whether its program compiles, and the verdicts or the reason."""
    replies.write(REPLY.pack(compiles, len(body)) + body)
    replies.flush()


if __name__ == "__main__":
    main()
