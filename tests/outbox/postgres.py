"""A PostgreSQL of the test's own, as an unprivileged user, on a socket in /tmp.

Its programs are Debian's, or those of the folder that `PROGRAMS` names.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

_names = count(1)

NAME = "zq-pg-"
"""How the folders of servers are called. The process of the tests that made one follows."""

# Its superuser refuses to run as root.
RIGHTS: dict[str, Any] = (
    {"user": "nobody", "group": "nogroup", "extra_groups": ()} if os.getuid() == 0 else {}
)

PROGRAMS = "ZQ_TESTS_POSTGRES"
"""The variable that names the folder of another version's programs."""

LOCKS = " -c lock_timeout=60s"
"""A test that waits for itself fails, and does not hang."""

PATIENT = ("-w", "-t", "300")
"""How pg_ctl waits for a server that has just started, on a busy machine too."""


class Postgres:
    """A running server. Each test has a database of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    @property
    def pid(self) -> int:
        """Its first process, of which all others are children."""
        return int((self._socket / "data" / "postmaster.pid").read_text().split()[0])

    def new_database(self, template: str = "template1", encoding: str = "UTF8") -> str:
        """Make a database that is a copy of another one, as a rule an empty one: its address."""
        name = f"shop{next(_names)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            statement = f"CREATE DATABASE {name} TEMPLATE {template} ENCODING '{encoding}'"
            connection.execute(statement.encode())
        return self.address(name)

    @property
    def socket(self) -> Path:
        """The folder of its socket."""
        return self._socket

    def address(self, name: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://zq@/{name}?host={self._socket}"

    def is_running(self) -> bool:
        """True unless it has ended."""
        with suppress(OSError, IndexError, ValueError):
            return Path("/proc", str(self.pid)).exists()
        return False

    def kill(self) -> None:
        """End it as the loss of its host would, as far as its data is concerned."""
        _run(self._socket, "pg_ctl", "-m", "immediate", "stop")

    def start(self, options: str = "") -> None:
        given = f"-k {self._socket}{LOCKS} {options}"
        _run(self._socket, "pg_ctl", *PATIENT, "start", "-o", given)

    @contextmanager
    def standby(self, name: str = "standby") -> Iterator["Postgres"]:
        """A copy of it that follows what it commits."""
        with _folder() as folder:
            words = ("-U", "zq", "-h", str(self._socket), "-R", "-X", "stream", "-c", "fast")
            _run(folder, "pg_basebackup", *words, "-d", f"application_name={name}")
            copy = Postgres(folder)
            copy.start("-c listen_addresses=")
            yield copy

    def promote(self) -> None:
        _run(self._socket, "pg_ctl", *PATIENT, "promote")


@contextmanager
def postgres(*, flushes: bool = False, listens: str = "") -> Iterator[Postgres]:
    """Run a server. Commits are flushed only if asked for, as no test cuts its power.

    Besides its socket, it listens at an address if one is given, for anybody.
    """
    with _folder() as folder:
        subprocess.run(["cp", "-a", _made() / "data", folder], check=True, **RIGHTS)
        if listens:
            with (folder / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 0.0.0.0/0 trust\n")
        server = Postgres(folder)
        # What is known of a table changes when a test has it change.
        flush = "" if flushes else " -c fsync=off"
        server.start(f"-c listen_addresses={listens} -c autovacuum=off{flush}")
        yield server


@cache
def the_server() -> Postgres:
    """One PostgreSQL for all tests of a process that want no more than a database."""
    return _kept.enter_context(postgres())


@cache
def _made() -> Path:
    """A folder as `initdb` makes it, which takes longer than most tests. Servers get copies."""
    folder = _kept.enter_context(_folder())
    words = ("-U", "zq", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    _run(folder, "initdb", *words)
    return folder


_kept = ExitStack()
atexit.register(_kept.close)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for a server, which has ended afterwards."""
    _remove_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=f"{NAME}{os.getpid()}-"))
    if RIGHTS:
        shutil.chown(folder, "nobody", "nogroup")
    try:
        yield folder
    finally:
        _remove(folder)


def _run(folder: Path, program: str, *words: str) -> None:
    line = (str(_programs() / program), "-D", str(folder / "data"), *words)
    with folder.with_name(f"{folder.name}.log").open("ab") as log:
        subprocess.run(line, check=True, cwd=folder, stdout=log, stderr=log, **RIGHTS)


def _programs() -> Path:
    if named := os.environ.get(PROGRAMS):
        return Path(named)
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]


def _remove(folder: Path) -> None:
    if (folder / "data" / "postmaster.pid").exists():
        with suppress(subprocess.CalledProcessError):  # it has ended meanwhile
            _run(folder, "pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)
    folder.with_name(f"{folder.name}.log").unlink(missing_ok=True)


def _remove_left_behind() -> None:
    """End and remove the servers of tests that were killed, which else run on and fill the disk."""
    for folder in Path(tempfile.gettempdir()).glob(f"{NAME}*-*/"):
        owner = folder.name.removeprefix(NAME).partition("-")[0]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            with suppress(OSError):  # another process of the tests removes it, too
                _remove(folder)
