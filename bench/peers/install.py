"""Finds or installs a peer into a directory of its own below .peers/ of the checkout.

An installed peer is used as it is: remove its directory to get the newest release.
`python -m bench.peers.install NAME...` installs peers and runs nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import zq
from bench.peers.roster import Peer, contenders, named
from bench.report import REPOSITORY, commit

PEERS_DIRECTORY = REPOSITORY / ".peers"
INSTALLED = ".installed"
POSTGRESQL = Path("/usr/lib/postgresql")
DEBIAN = {
    "redis": ("redis-server", "redis-server"),
    "beanstalkd": ("beanstalkd", "beanstalkd"),
    "postgresql": ("postgres", "postgresql"),
}
SERVERS = {**{name: (name,) for name in DEBIAN}, "zq-postgresql": ("postgresql",)}
"""Server of a peer → the programs of Debian that it needs."""
ASK_VERSION = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]), sep=', ')"


class Missing(Exception):
    """A peer cannot take part. The message says why."""


@dataclass(frozen=True)
class Home:
    """Where an installed peer lies, and the interpreter that runs it."""

    directory: Path
    interpreter: str
    version: str

    @property
    def modules(self) -> Path:
        """The file that Node resolves the peer's packages from."""
        return self.directory / "package.json"


def find_or_install(peer: Peer, directory: Path = PEERS_DIRECTORY) -> Home:
    """Raises Missing."""
    for server in SERVERS.get(peer.server or "", ()):
        server_program(server)
    if peer.runtime == "ours":
        return Home(REPOSITORY, sys.executable, f"{zq.__version__} at {commit()}")
    home = directory / peer.home
    wanted = " ".join(peer.packages)
    marker = home / INSTALLED
    if not marker.exists() or marker.read_text() != wanted:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        install_node(home, peer) if peer.runtime == "node" else install_python(home, peer)
        marker.write_text(wanted)
    return home_of(home, peer)


def install_python(home: Path, peer: Peer) -> None:
    interpreter = program(peer.python) if peer.python else sys.executable
    run([interpreter, "-m", "venv", "--without-pip", str(home)])
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(home)]
    run([*pip, "install", "--quiet", *peer.packages])


def install_node(home: Path, peer: Peer) -> None:
    program("node"), program("npm")
    (home / "package.json").write_text("{}\n")
    quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--silent"]
    run(["npm", "install", "--prefix", str(home), *quiet, *peer.packages])


def home_of(home: Path, peer: Peer) -> Home:
    if peer.runtime == "node":
        manifest = home / "node_modules" / peer.packages[0] / "package.json"
        return Home(home, program("node"), json.loads(manifest.read_text())["version"])
    python = str(home / "bin" / "python")
    names = [package.partition("[")[0] for package in peer.packages]
    return Home(home, python, run([python, "-c", ASK_VERSION, names[0]]))


def program(name: str) -> str:
    if found := shutil.which(name):
        return found
    raise Missing(f"{name} is not installed")


def server_program(server: str) -> str:
    """The path of a server from a Debian package. It is installed if missing and allowed."""
    name, package = DEBIAN[server]
    if found := find_program(name):
        return found
    if os.geteuid() != 0:
        raise Missing(f"{name} is not installed: apt-get install {package}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], quiet)
    if found := find_program(name):
        return found
    raise Missing(f"{package} has no {name}")


def find_program(name: str) -> str | None:
    versions = sorted(POSTGRESQL.glob("*/bin"), key=lambda path: int(path.parent.name))
    return shutil.which(name) or next(
        (str(path / name) for path in reversed(versions) if (path / name).exists()), None
    )


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    """The output of a command. Raises Missing with the end of its output if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Missing(f"{Path(command[0]).name} failed: {complaint[-1]}")
    return done.stdout.strip()


def main() -> int:
    failed = 0
    wanted = named(sys.argv[1:]) if sys.argv[1:] else contenders()
    for peer in {each.peer.name: each.peer for each in wanted}.values():
        try:
            print(f"{peer.name}: {find_or_install(peer).version}")
        except Missing as missing:
            failed = 1
            print(f"{peer.name}: {missing}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
