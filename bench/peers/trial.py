"""One contender on new storage, with the operations that rows use."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from bench.children import running
from bench.peers.install import Home
from bench.peers.roster import Contender
from bench.peers.servers import PeerError, Server, serving
from bench.peers.watch import Watch
from bench.peers.wire import Order, Receipt, Site, dump, load_receipt
from bench.report import REPOSITORY
from bench.servers import Lab, ServerError, tail

ADAPTERS = Path(__file__).with_name("adapters")
FILL_BATCH = 1000
FILL_CALLERS = 16
GRACE_SECONDS = 60.0
STOP_SECONDS = 5.0
LOOK_EVERY = 0.01


@dataclass(frozen=True)
class Size:
    """The size of a row, as a fraction of the full number of jobs.

    A run ends when its jobs are done or its seconds are over, so slow peers end too.
    """

    scale: float
    seconds: float

    @classmethod
    def of(cls, scale: float) -> Size:
        return cls(scale, 2.0 + 8.0 * scale)

    def jobs(self, full: int, least: int = 1) -> int:
        return max(least, round(full * self.scale))


class Trial:
    """A running server of a contender, with commands to run its producer and its worker."""

    def __init__(
        self, contender: Contender, home: Home, site: Site, server: Server, size: Size
    ) -> None:
        self.contender = contender
        self.size = size
        self.server = server
        self._home = home
        self._site = site
        self._log = Path(site.directory).with_suffix(".log")

    def configure(
        self,
        *,
        results: bool = False,
        failing: bool = False,
        detail: bool = False,
        fair: bool = False,
    ) -> None:
        """Set what handlers do: return results, fail, or report how late each job is. With `fair`,
        users share the queue where the peer has fair keys."""
        self._site = replace(self._site, results=results, failing=failing, detail=detail, fair=fair)

    def prepare(self) -> None:
        if command := self.contender.peer.prepare:
            self._run(self._fill_in(command), GRACE_SECONDS)

    def enqueue(self, order: Order) -> Receipt:
        """Run a producer to its end."""
        patience = order.seconds + order.delay + GRACE_SECONDS
        output = self._run([*self._adapter("produce"), dump(order)], patience)
        return load_receipt(output.splitlines()[-1])

    def fill(
        self, jobs: int, seconds: float, delay: float = 0.0, *, flood: bool = False
    ) -> Receipt:
        """Enqueue as many jobs as the peer manages within `seconds`, in bulk if it can."""
        bulk = "bulk" not in self.contender.peer.lacks
        if delay and self.contender.peer.adapter == "rq":
            bulk = False  # enqueue_many of this peer has no delays
        callers = 1 if bulk else FILL_CALLERS
        order = Order(jobs, seconds, delay=delay, callers=callers, flood=flood)
        return self.enqueue(replace(order, batch=FILL_BATCH) if bulk else order)

    @contextlib.contextmanager
    def working(self, concurrency: int, scheduler: bool = False) -> Iterator[Watch]:
        """Run the peer's worker, and its scheduler if it has one and the row needs it."""
        self._site = replace(self._site, concurrency=concurrency)
        peer = self.contender.peer
        command = self._fill_in(peer.worker) if peer.worker else self._adapter("work")
        commands = [command]
        if scheduler and peer.scheduler:
            commands.append(self._fill_in(peer.scheduler))
        with contextlib.ExitStack() as stack:
            report = Path(self._site.report)
            report.touch()
            programs = [stack.enter_context(self._background(each)) for each in commands]
            yield Watch(report, self._log, programs, self.server)

    def server_cpu(self) -> float:
        """Processor seconds of the server so far; 0 without one."""
        return self.server.cpu_seconds()

    def server_rss(self) -> float | None:
        return self.server.rss_mb()

    def server_peak(self) -> float | None:
        return self.server.peak_rss_mb()

    def _adapter(self, role: str) -> list[str]:
        peer = self.contender.peer
        if peer.runtime == "node":
            return [self._home.interpreter, str(ADAPTERS / peer.adapter), role]
        return [self._home.interpreter, "-m", f"bench.peers.{role}", peer.adapter]

    def _fill_in(self, template: str) -> list[str]:
        known = {
            "python": self._home.interpreter,
            "bin": str(Path(self._home.interpreter).parent),
            "address": self._site.address,
            "concurrency": str(self._site.concurrency),
        }
        return [word.format(**known) for word in template.split()]

    def _environment(self) -> dict[str, str]:
        ours = {"PYTHONPATH": str(REPOSITORY), "PEERS_MODULES": str(self._home.modules)}
        return {**os.environ, **ours, **self._site.environment()}

    def _run(self, command: Sequence[str], patience: float) -> str:
        """The output of a program. It must succeed within `patience` seconds."""
        with self._log.open("ab") as log:
            start = partial(self._start, command, stdout=subprocess.PIPE, stderr=log)
            with running(start, end_group) as process:
                try:
                    output, _ = process.communicate(timeout=patience)
                except subprocess.TimeoutExpired as error:
                    reason = f"the producer did not end within {patience:.0f} s"
                    raise PeerError(reason) from error
        if process.returncode:
            raise PeerError(f"exit status {process.returncode}:\n{tail(self._log)}")
        return output.decode()

    @contextlib.contextmanager
    def _background(self, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        with self._log.open("ab") as log:
            start = partial(self._start, command, stdout=log, stderr=subprocess.STDOUT)
            with running(start, end_group) as process:
                yield process

    def _start(
        self, command: Sequence[str], stdout: int | IO[bytes], stderr: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=self._environment(),
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Stop a process with all its children: ask first, then kill."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and group_runs(process):
            time.sleep(LOOK_EVERY)


def group_runs(process: subprocess.Popen[bytes]) -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def trial(lab: Lab, contender: Contender, home: Home, size: Size) -> Iterator[Trial]:
    """One trial. At its end everything that it started ends too. Raises PeerError."""
    name = contender.name.replace("/", "-")
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=lab.directory) as parent:
        directory = Path(parent) / "data"
        directory.mkdir()
        report = Path(parent) / "report"
        try:
            with serving(lab, contender, directory) as server:
                place = Site(server.address, str(directory), str(report), contender.mode.name)
                running = Trial(contender, home, place, server, size)
                running.prepare()
                yield running
        except ServerError as error:
            raise PeerError(str(error)) from error
