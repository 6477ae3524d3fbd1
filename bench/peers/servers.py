"""Starts the peers' servers on loopback with storage of their own and their default settings."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

from bench import proc
from bench.children import running
from bench.peers.install import find_program, run, server_program
from bench.peers.roster import Contender
from bench.ports import LOOPBACK, free_port
from bench.servers import LOOK_EVERY, START_SECONDS, Lab, end, tail

POSTGRESQL_READY = "ready to accept connections"
"""PostgreSQL listens before it says so, and refuses everybody until then."""


class PeerError(Exception):
    """A peer failed. The message says how, and shows the end of its log."""


@dataclass(frozen=True)
class Server:
    """The address that clients connect to, and its processes: none if the peer lives in files."""

    address: str
    pids: Sequence[int] = ()

    def cpu_seconds(self) -> float:
        """User and system time so far, of all its processes."""
        return sum(map(proc.cpu_seconds, self.pids))

    def rss_mb(self) -> float | None:
        return sum(map(proc.rss_mb, self.pids)) if self.pids else None

    def peak_rss_mb(self) -> float | None:
        return sum(map(proc.peak_rss_mb, self.pids)) if self.pids else None


@contextlib.contextmanager
def serving(lab: Lab, contender: Contender, directory: Path) -> Iterator[Server]:
    match contender.peer.server:
        case "zq":
            with lab.server("zq") as target:
                yield Server(f"{LOOPBACK}:{target.port}", [target.pid])
        case "zq-postgresql":
            with (
                postgresql(lab, directory) as database,
                lab.server_on(database.address, *database.pids) as target,
            ):
                yield Server(f"{LOOPBACK}:{target.port}", [target.pid, *database.pids])
        case "redis":
            with redis(directory, contender.mode.options) as server:
                yield server
        case "beanstalkd":
            with beanstalkd(directory, contender.mode.options) as server:
                yield server
        case "postgresql":
            with postgresql(lab, directory) as server:
                yield server
        case None:
            yield Server("")


@contextlib.contextmanager
def redis(directory: Path, options: Sequence[str]) -> Iterator[Server]:
    port = free_port()
    command = [server_program("redis"), "--port", str(port), "--bind", LOOPBACK]
    with program([*command, "--dir", str(directory), *options], directory, port) as pid:
        yield Server(f"redis://{LOOPBACK}:{port}/0", [pid])


@contextlib.contextmanager
def beanstalkd(directory: Path, options: Sequence[str]) -> Iterator[Server]:
    port = free_port()
    command = [server_program("beanstalkd"), "-l", LOOPBACK, "-p", str(port)]
    with program([*command, "-b", str(directory), *options], directory, port) as pid:
        yield Server(f"{LOOPBACK}:{port}", [pid])


@contextlib.contextmanager
def postgresql(lab: Lab, directory: Path) -> Iterator[Server]:
    """A copy of a cluster that is made once a run. PostgreSQL refuses to run as root."""
    user = "postgres" if os.geteuid() == 0 else None
    template = lab.directory / "postgresql"
    if not template.exists():
        make_cluster(template, user)
    data = directory / "data"
    reachable(data)
    run(["cp", "--archive", str(template), str(data)])
    run(["chown", "--recursive", f"--reference={template}", str(directory)])
    port = free_port()
    command = [server_program("postgresql"), "-D", str(data), "-p", str(port)]
    for setting in (
        f"unix_socket_directories={directory}",
        f"listen_addresses={LOOPBACK}",
        "lc_messages=C",
    ):
        command += ["-c", setting]
    # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients.
    with program(command, directory, port, user=user, stop=SIGINT, ready=POSTGRESQL_READY) as pid:
        yield Server(f"postgresql://postgres@{LOOPBACK}:{port}/postgres", [pid])


def make_cluster(template: Path, user: str | None) -> None:
    initdb = find_program("initdb")
    if initdb is None:
        raise PeerError("PostgreSQL's initdb is not installed")
    template.mkdir()
    if user:
        shutil.chown(template, user, user)
        reachable(template)
    options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "-D", str(template)]
    made = subprocess.run(
        [initdb, *options], user=user, cwd="/", capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise PeerError(f"initdb failed: {made.stderr.strip()}")


def reachable(path: Path) -> None:
    """Let another user pass through the temporary directories above `path`, but not read them."""
    for above in path.parents:
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)


@contextlib.contextmanager
def program(
    command: Sequence[str],
    directory: Path,
    port: int,
    user: str | None = None,
    stop: Signals = SIGTERM,
    ready: str = "",
) -> Iterator[int]:
    """Run a server until the block ends. Raises PeerError if it does not listen in time, or its log
    does not say `ready`."""
    log = directory.with_suffix(".server.log")

    def start() -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                command, cwd="/", stdout=output, stderr=subprocess.STDOUT, user=user
            )

    with running(start, partial(end, stop=stop)) as process:
        wait_for_port(process, port, log, ready)
        yield process.pid


def wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path, ready: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), 1):
            if ready in log.read_text(errors="replace"):
                return
        time.sleep(LOOK_EVERY)
    raise PeerError(f"the server did not start:\n{tail(log)}")
