"""Processes of zq that cost a fork, not the half second that their imports take.

The suite starts some thousand processes by `python -m zq.cli …`. Each of them is forked from one
that has imported zq and nothing else, a nursery. So are the programs of the bench that `OF_ZQ`
names, and scripts that are told of a server, since they import zq. The programs of tests that
`PROGRAMS` names and those of a project of Django are forked from others, which have imported what
these need. Each
process of pytest has its own nurseries: one for zq, and one for each program and set of the
variables that are read when a program is loaded or when Python starts, from the third process of
that kind on. What is forked gets what a new process would get: arguments, environment, working
directory, standard streams and no other descriptor. It is a child of pytest, since it is cloned
beside the nursery instead of below it, so all of `subprocess` and asyncio works on it.

A process that needs more is executed as ever: with a program before it, a function to be run
first, another user. So is one whose parent has entered other namespaces, such as another network:
a nursery lives where pytest was when it began.
`ZQ_TESTS_FORK=0` executes all of them.

Run as a program, this file is the nursery.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import io
import json
import os
import platform
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, cast

ROOT = Path(__file__).parents[1]

PACKAGE = "zq"

PROGRAM = f"{PACKAGE}.cli"

DJANGO = "django"
"""Stands for all programs of a project of Django: scripts such as `manage.py`, and `-c`."""

IMPORTS = (
    *("zq.cli.every", "zq.cli.group", "zq.serving", "zq.runtime", "zq.http.api.rest"),
    *("zq.operators.admin.http.routes", "zq.operators.page.http.door"),
    *("zq.client.app", "zq.client.worker.worker", "zq.store.postgres.store", "uvloop"),
)
"""What a server, a command or a worker imports, most of it when it begins to run."""

OF_ZQ = ("bench.baseline", "bench.peers.produce", "bench.peers.work")
"""Other programs that import zq, or most of what it needs."""

LAYERS = (
    *("tick", "opening", "engine", "service", "service_running", "peer"),
    *("store", "sqlite_reads", "sqlite_quarantine"),
)
"""What a server asks its rooms for when it starts."""

PROGRAMS = {
    PROGRAM: IMPORTS,
    "crash.mortal": ("conformance.client", "crash.load"),
    "outbox.mortal": (*IMPORTS, "zq.cli.relay", "zq.outbox.postgres", "zq.outbox.sqlite"),
    "outbox.small_relay": (*IMPORTS, "zq.cli.relay", "zq.outbox.source"),
    "outbox.writer": ("psycopg", "zq.outbox"),
    "store.postgres.killed_move": (*IMPORTS, "zq.store.postgres.moving", "zq.store.sqlite.moving"),
    DJANGO: (
        *("django.core.management", "django.test", "django.db.backends.sqlite3.base"),
        *("django.db.backends.postgresql.base", "zq.client.worker.worker", "zq.outbox"),
    ),
}
"""What is forked, and what each imports, most of it when it begins to run."""

READ_AT_THE_START = ("PYTHON", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "OPENSSL_", "SSL_")
"""How the names of variables begin that say something to Python, to libraries or to the loader."""

EXECUTED = 2
"""How many processes with variables of their own are executed before others are forked."""

PLAIN: dict[str, Any] = {
    "preexec_fn": None,
    "pass_fds": (),
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "process_group": -1,
}
"""What `subprocess` can be asked for, and what it has where it is not asked."""

CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
"""The number of the system call, which has no wrapper that returns in both processes."""

CLONE_PARENT = 0x8000


Kind = tuple[str, frozenset[tuple[str, str]]]
"""A program, and the variables that are read at its start, with their values."""


class Birth(TypedDict):
    """What a new process is to be."""

    nursery: str
    """The program, or what stands for it, that the nursery has imported."""
    arguments: list[str]
    """What follows the name of Python on its command line."""
    environment: dict[str, str]
    directory: str
    session: bool
    """Whether it leads a session of its own."""


# In pytest


def install() -> None:
    """Let `subprocess` fork processes of zq from here on."""
    if CLONE is None or sys.platform != "linux" or os.environ.get("ZQ_TESTS_FORK") == "0":
        return
    execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    signature = inspect.signature(execute)
    nurseries = Nurseries()

    @functools.wraps(execute)
    def fork_or_execute(process: Any, *args: Any, **kwargs: Any) -> None:
        asked = signature.bind(process, *args, **kwargs).arguments
        birth = birth_of(asked)
        pid = None if birth is None else nurseries.fork(birth, streams_of(asked))
        if pid is None:
            execute(process, *args, **kwargs)
            return
        process.pid = pid
        process._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        process._close_pipe_fds(*(asked[name] for name in names))

    subprocess.Popen._execute_child = fork_or_execute  # type: ignore[attr-defined]


def birth_of(asked: dict[str, Any]) -> Birth | None:
    """What the arguments of `subprocess` ask for, or None if it is not to be forked."""
    words = asked["args"]
    if isinstance(words, str | bytes | os.PathLike) or asked["shell"] or asked["executable"]:
        return None
    words = [os.fsdecode(word) for word in words]
    given = os.environ if asked["env"] is None else asked["env"]
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
    if words[0] != sys.executable:
        return None
    is_script = words[1:2] == ["-c"] or (words[1:2] and words[1].endswith(".py"))
    if words[1:2] == ["-m"] and words[2] in PROGRAMS:
        nursery = words[2]
    elif is_script and "DJANGO_SETTINGS_MODULE" in environment:
        nursery = DJANGO
    elif "ZQ_URL" in environment if is_script else words[1:2] == ["-m"] and words[2] in OF_ZQ:
        nursery = PROGRAM
    else:
        return None
    if any(asked.get(name, usual) != usual for name, usual in PLAIN.items()):
        return None
    directory = os.fspath(asked["cwd"] or Path.cwd())
    if not Path(directory).is_dir():
        return None
    if (Path(directory) / PACKAGE).exists() and not Path(directory).samefile(ROOT):
        return None  # another zq, which would be the one that runs
    return Birth(
        nursery=nursery,
        arguments=words[1:],
        environment=environment,
        directory=os.fsdecode(directory),
        session=bool(asked["start_new_session"]),
    )


def streams_of(asked: dict[str, Any]) -> list[int]:
    """The descriptors that the process gets as its standard streams."""
    given = (asked["p2cread"], asked["c2pwrite"], asked["errwrite"])
    return [usual if fd == -1 else fd for usual, fd in enumerate(given)]


def _kind(program: str, environment: Mapping[str, str]) -> Kind:
    return program, frozenset(
        each for each in environment.items() if each[0].startswith(READ_AT_THE_START)
    )


def namespaces() -> dict[str, str]:
    """The namespaces of this thread, which what it starts belongs to."""
    return {each.name: str(each.readlink()) for each in Path("/proc/thread-self/ns").iterdir()}


class Nurseries:
    """The processes that others are forked from. Each is started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._home = namespaces()
        self._connections: dict[Kind, socket.socket] = {}
        self._executed: Counter[Kind] = Counter()

    def fork(self, birth: Birth, streams: list[int]) -> int | None:
        """The id of a new process, or None if it is to be executed."""
        kind, usual = _kind(birth["nursery"], birth["environment"]), _kind(PROGRAM, os.environ)
        with self._lock:
            if self._owner != os.getpid():  # in a fork of pytest, they would be the other's
                return None
            if namespaces() != self._home:
                return None
            if kind != usual and self._executed[kind] < EXECUTED:
                self._executed[kind] += 1
                return None
            if kind not in self._connections:
                self._connections[kind] = self._start(kind)
            connection = self._connections[kind]
            request = json.dumps(birth).encode()
            socket.send_fds(connection, [struct.pack("!I", len(request))], streams)
            connection.sendall(request)
            answer = connection.recv(4)
        if not answer:
            raise RuntimeError("the nursery has ended: ZQ_TESTS_FORK=0 does without")
        return int(struct.unpack("!I", answer)[0])

    def _start(self, kind: Kind) -> socket.socket:
        program, read = kind
        others = {n: v for n, v in os.environ.items() if not n.startswith(READ_AT_THE_START)}
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), program],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=others | dict(read),
            )

        def end() -> None:
            ours.close()
            process.wait()

        atexit.register(end)
        return ours


# In the nursery


def be_the_nursery(connection: socket.socket, program: str) -> list[str] | None:
    """Fork what is asked for. Returns in each new process, with its arguments, and at the end."""
    for module in PROGRAMS[program]:
        with contextlib.suppress(ImportError):  # a package of an extra that is not installed
            importlib.import_module(module)
    if "zq.serving" in sys.modules:
        for layer in LAYERS:
            sys.modules["zq.rooms"].parts(layer, "", object)
    gc.collect()
    gc.freeze()
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return None
        birth = cast(Birth, json.loads(_exactly(connection, struct.unpack("!I", head)[0])))
        pid = _clone()
        if pid == 0:
            connection.detach()
            _become(birth, streams)
            return birth["arguments"]
        for stream in streams:
            os.close(stream)
        connection.sendall(struct.pack("!I", pid))


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += connection.recv(size - len(found))
    return found


def _clone() -> int:
    """`os.fork`, except that the new process is a child of this one's parent."""
    python, system = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True)
    python.PyOS_BeforeFork()
    pid = int(system.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def _become(birth: Birth, streams: list[int]) -> None:
    """Be what a new process of Python is before it runs its program."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if birth["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(birth["environment"])
    time.tzset()
    os.chdir(birth["directory"])
    sys.path[0] = birth["directory"]
    sys.stdin = sys.__stdin__ = _reopened(0, sys.stdin)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _reopened(1, sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _reopened(2, sys.stderr)  # type: ignore[misc]


def _reopened(number: int, like: Any) -> io.TextIOWrapper:
    """A standard stream as Python makes it when it starts."""
    mode, buffering = "rb" if number == 0 else "wb", 0 if like.write_through else -1
    return io.TextIOWrapper(
        cast(BinaryIO, os.fdopen(number, mode, buffering, closefd=False)),
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=number == 2 or os.isatty(number),
        write_through=like.write_through,
    )


def _run(arguments: list[str]) -> None:
    """Run a program as Python runs what its command line names."""
    if arguments[0] == "-m":
        sys.argv[1:] = arguments[2:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *arguments[2:]], ""
        exec(arguments[1], {"__name__": "__main__"})
    else:
        sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    arguments = be_the_nursery(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
    if arguments is not None:
        _run(arguments)
