"""Starts and stops the servers under test, each as its user would."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGTERM, Signals

from bench.baseline_disk import Kind
from bench.children import running
from bench.http1 import LoadError
from bench.load import Target
from bench.loops import LoopName, best_loop

REPOSITORY = Path(__file__).resolve().parent.parent
# All clients of a bench come from one address.
ONE_PEER = ["--max-connections-per-peer", "0", "--max-streams-per-peer", "0"]
LOG = ["--log-format", "json", "--log-level", "info"]
UNLIMITED = ["--global-in-flight-limit", "0"]
MANY_BUDGETS = ["--max-budgets", "120000"]
"""Jobs may bring seven eighths of them."""
ZQ = ["-m", "zq.cli", "serve", "--no-admin", *LOG, *ONE_PEER, *UNLIMITED, *MANY_BUDGETS]
BASELINE = ["-m", "bench.baseline"]
PROGRAMS = {
    "zq": ZQ,
    "zq-history": [*ZQ, "--history", "7d"],
    "zq-admin": [part for part in ZQ if part != "--no-admin"],
    "zq-postgres": ZQ,
    "zq-edge": [*ZQ, "--preset", "edge"],
    "zq-pages-2k": [*ZQ, "--page-size", "2KiB"],
    "zq-pages-1k": [*ZQ, "--page-size", "1KiB"],
    "zq-zttp": [*ZQ, "--http2-engine", "zttp"],
    "before": ZQ,
    "baseline": BASELINE,
    "baseline-loop": [*BASELINE, "--tick", "loop"],
    "baseline-thread": [*BASELINE, "--tick", "thread"],
    "null": ["-m", "bench.null"],
}
"""The arguments of the interpreter for each server."""

# Durable as zq is by default, and without limits that its own workers would reach.
ZIZQ = ["serve", "--no-admin", *LOG, "--default-commit-mode", "fsync", *UNLIMITED]
NAMES = (*PROGRAMS, "zizq")
START_SECONDS = 180.0
STOP_SECONDS = 60.0
LOOK_EVERY = 0.02


class ServerError(Exception):
    """A server did not start, or did not stop properly."""


@dataclass(frozen=True)
class Lab:
    """The directory of the servers' data, and the conditions under which they run.

    `baseline` chooses how the baseline runs its ticks. `before` is a checkout of an earlier zq, and
    `zizq` the program of the original. `tool` is put in front of each command.
    """

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    event_loop: LoopName = field(default_factory=best_loop)
    baseline: Kind = "loop"
    before: Path | None = None
    zizq: Path | None = None
    tool: Sequence[str] = ()
    start_seconds: float = START_SECONDS

    @property
    def at_hand(self) -> list[str]:
        """zq, and the servers that can run beside it."""
        given = {"before": self.before, "zizq": self.zizq}
        return ["zq", "baseline", *(name for name, path in given.items() if path)]

    def command(self, name: str, root: Path) -> list[str]:
        if name == "zizq":
            program = [str(self._given(name, self.zizq)), *ZIZQ]
        else:
            program = [sys.executable, *PROGRAMS[name]]
        if name == "baseline":
            program += ["--tick", self.baseline]
        if name.startswith("baseline"):
            program += ["--loop", self.event_loop]
        return [*self.tool, *program, "--port", "0", "--root-dir", str(root)]

    def working_directory(self, name: str) -> Path:
        """The directory in which a server is started: Python imports the zq of that checkout."""
        return self._given(name, self.before) if name == "before" else REPOSITORY

    def _given(self, name: str, path: Path | None) -> Path:
        if path is None:
            raise ServerError(f"where is it? Name it by --{name}")
        return path.resolve()

    @contextlib.contextmanager
    def server(self, name: str) -> Iterator[Target]:
        """Run a server on a new directory. Stop it by SIGTERM and remove the directory."""
        with (
            self._store(name) as (store, database),
            self._running(name, store, database) as target,
        ):
            yield target

    @contextlib.contextmanager
    def server_on(self, address: str, database: int) -> Iterator[Target]:
        """Run zq on a database of a PostgreSQL that is there: its address and its process."""
        with self._running("zq-postgres", ["--store", address], database) as target:
            yield target

    @contextlib.contextmanager
    def sharing(self, count: int) -> Iterator[list[Target]]:
        """Run servers that share a new database of PostgreSQL."""
        name = "zq-postgres"
        with self._store(name) as (store, database), contextlib.ExitStack() as stack:
            running = partial(self._running, name, [*store, "--servers", str(count)], database)
            yield [stack.enter_context(running()) for _ in range(count)]

    @contextlib.contextmanager
    def _running(self, name: str, store: Sequence[str], database: int) -> Iterator[Target]:
        root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))
        log = root.with_suffix(".log")
        try:
            with running(partial(self._start, name, root, log, store), end) as process:
                try:
                    port = wait_for_port(process, log, seconds=self.start_seconds)
                    yield Target(port, process.pid, database)
                except (LoadError, OSError) as error:
                    raise ServerError(f"{error}\n{last_words(log)}") from error
            if process.returncode not in (0, -SIGTERM):
                raise ServerError(f"exit status {process.returncode}\n{last_words(log)}")
        finally:
            shutil.rmtree(root)
            log.unlink()

    @contextlib.contextmanager
    def _store(self, name: str) -> Iterator[tuple[list[str], int]]:
        """Where a server keeps its data, if that is not a directory, and the process that does.

        PostgreSQL flushes commits.
        """
        if name != "zq-postgres":
            yield [], 0
            return
        sys.path.insert(0, str(REPOSITORY / "tests"))
        from outbox.postgres import postgres

        with postgres(flushes=True) as database:
            address = database.new_database()
            self._slow_down(address)
            yield ["--store", address], database.pid

    def _slow_down(self, address: str) -> None:
        """Delay the flushes of a database as those of a directory. They are still shared."""
        if delay := self.environment.get("SLOW_SYNC_US"):
            import psycopg

            with psycopg.connect(address, autocommit=True) as connection:
                name = connection.info.dbname
                for setting in (f"commit_delay = {delay}", "commit_siblings = 0"):
                    connection.execute(f"ALTER DATABASE {name} SET {setting}".encode())

    def _start(
        self, name: str, root: Path, log: Path, store: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                [*self.command(name, root), *store],
                cwd=self.working_directory(name),
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def sync_ms(self) -> float:
        """The median fdatasync of the directory, under the same conditions."""
        probe = [sys.executable, "-m", "bench.sync_probe", str(self.directory)]
        environment = {**os.environ, **self.environment}
        text = subprocess.check_output(probe, cwd=REPOSITORY, env=environment)
        return float(text)


def end(process: subprocess.Popen[bytes], stop: Signals = SIGTERM) -> None:
    process.send_signal(stop)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_port(
    process: subprocess.Popen[bytes],
    log: Path,
    api: str = "primary",
    seconds: float = START_SECONDS,
) -> int:
    """The port from the log line that tells scripts where this API of the server listens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines(keepends=True):
            if f'"api":"{api}"' in line and line.endswith("\n"):
                address: str = json.loads(line)["fields"]["addr"]
                return int(address.rpartition(":")[2])
        time.sleep(LOOK_EVERY)
    raise ServerError(f"the server did not start\n{last_words(log)}")


def last_words(log: Path) -> str:
    return f"the server's log ends with:\n{tail(log)}"


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@contextlib.contextmanager
def lab(parent: Path | None = None, commit_delay_ms: float = 0.0) -> Iterator[Lab]:
    """A temporary directory below `parent`, and a delay of every flush if one is asked for."""
    with tempfile.TemporaryDirectory(prefix="zq-bench-", dir=parent) as name:
        directory = Path(name)
        environment = slow_sync(directory, commit_delay_ms) if commit_delay_ms else {}
        yield Lab(directory, environment)


def slow_sync(directory: Path, delay_ms: float) -> dict[str, str]:
    """Compile the library that delays flushes. Return the variables that switch it on."""
    library = directory / "slow_sync.so"
    source = Path(__file__).with_name("slow_sync.c")
    options = ["-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(["cc", *options, str(source), "-ldl", "-lpthread"], check=True)
    return {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(round(delay_ms * 1000))}
