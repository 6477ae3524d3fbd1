"""Starting and stopping the servers under test, each as its user would."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGTERM

from bench.children import running
from bench.http1 import LoadError
from bench.load import Target
from bench.loops import best_loop

REPOSITORY = Path(__file__).resolve().parent.parent
# All clients of a bench come from one address.
ONE_PEER = ["--max-connections-per-peer", "0", "--max-streams-per-peer", "0"]
LOG = ["--log-format", "json", "--log-level", "info"]
ZQ = ["-m", "zq.cli", "serve", "--no-admin", *LOG, *ONE_PEER]
COMMANDS = {
    "zq": ZQ,
    "zq-history": [*ZQ, "--history", "7d"],
    "zq-zttp": [*ZQ, "--http2-engine", "zttp"],
    "baseline": ["-m", "bench.baseline"],
    "null": ["-m", "bench.null"],
}
START_SECONDS = 30.0
STOP_SECONDS = 60.0
LOOK_EVERY = 0.02


class ServerError(Exception):
    """A server did not start, or did not stop as it should."""


@dataclass(frozen=True)
class Lab:
    """Where servers keep their data and under which conditions they run."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    baseline_loop: str = field(default_factory=best_loop)

    def command(self, name: str, root: Path) -> list[str]:
        loop = ["--loop", self.baseline_loop] if name == "baseline" else []
        return [sys.executable, *COMMANDS[name], *loop, "--port", "0", "--root-dir", str(root)]

    @contextlib.contextmanager
    def server(self, name: str) -> Iterator[Target]:
        """Run a server on a new directory; leave by SIGTERM and remove the directory."""
        root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))
        log = root.with_suffix(".log")
        try:
            with running(partial(self._start, name, root, log), end) as process:
                try:
                    yield Target(wait_for_port(process, log), process.pid)
                except (LoadError, OSError) as error:
                    raise ServerError(f"{error}\n{last_words(log)}") from error
            if process.returncode not in (0, -SIGTERM):
                raise ServerError(f"exit status {process.returncode}\n{last_words(log)}")
        finally:
            shutil.rmtree(root)
            log.unlink()

    def _start(self, name: str, root: Path, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                self.command(name, root),
                cwd=REPOSITORY,
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


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_port(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port in the log line that tells scripts where the server listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines(keepends=True):
            if '"api":"primary"' in line and line.endswith("\n"):
                address: str = json.loads(line)["fields"]["addr"]
                return int(address.rpartition(":")[2])
        time.sleep(LOOK_EVERY)
    raise ServerError(f"the server did not start\n{last_words(log)}")


def last_words(log: Path) -> str:
    return f"the server's log ends with:\n{tail(log)}"


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@contextlib.contextmanager
def lab(parent: Path | None, commit_delay_ms: float, baseline_loop: str) -> Iterator[Lab]:
    """A temporary directory below `parent`, and a delay before every sync if one is asked for."""
    with tempfile.TemporaryDirectory(prefix="zq-bench-", dir=parent) as name:
        directory = Path(name)
        environment = slow_sync(directory, commit_delay_ms) if commit_delay_ms else {}
        yield Lab(directory, environment, baseline_loop)


def slow_sync(directory: Path, delay_ms: float) -> dict[str, str]:
    """Compile the library that delays syncs; returns the variables that switch it on."""
    library = directory / "slow_sync.so"
    source = Path(__file__).with_name("slow_sync.c")
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(round(delay_ms * 1000))}
