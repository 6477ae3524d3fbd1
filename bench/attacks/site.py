"""The server under attack, and how attackers reach it."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.children import running
from bench.servers import LOG, REPOSITORY, ServerError, end, wait_for_port

PATIENCE = 60.0
"""Seconds after which an attacker gives up waiting for an answer."""

POLITE = "polite"
"""The key of the well-behaved client."""


class Reply(NamedTuple):
    """An HTTP answer. Its status is 0, and its text the error, if the connection ended first."""

    status: int
    text: str


class Outcome(NamedTuple):
    """How the server answered an attack, in words, and how many bytes of one body it was sent."""

    answer: str
    sent: int = 0


@dataclass(frozen=True)
class Site:
    """A running server with default limits. The ports of listeners that it lacks are 0."""

    pid: int
    port: int
    admin_port: int = 0
    grpc_port: int = 0
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secret of each key, by its name. It is empty if the server needs no keys."""

    def connect(self, port: int = 0) -> socket.socket:
        """A connection to the server, or to another of its ports."""
        return socket.create_connection(("127.0.0.1", port or self.port), PATIENCE)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
        *,
        key: str = "",
        port: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request on a connection of its own, with the key of that name."""
        fields = dict(headers or {})
        if body is not None:
            fields.setdefault("Content-Type", kind)
        if key and key in self.secrets:
            fields["Authorization"] = f"Bearer {self.secrets[key]}"
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, fields)
            response = connection.getresponse()
            return Reply(response.status, response.read().decode(errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            return Reply(0, type(error).__name__)
        finally:
            connection.close()

    def need(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        key: str = "",
        port: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """The text of an answer without which the attack makes no sense."""
        reply = self.request(method, path, body, key=key, port=port, headers=headers)
        if not 200 <= reply.status < 300:
            raise ServerError(f"{method} {path} was answered {reply.status}: {reply.text[:300]}")
        return reply.text


@dataclass(frozen=True)
class Attack:
    """One way to hold others up: `run(site, size)` sends `size` things, `small` of them in tests.

    `flags` are those of the server. `keys` gives the scopes of each key by its name; with any, the
    server asks for keys. `parts` is what else has to listen: "admin", "grpc".
    """

    name: str
    run: Callable[[Site, int], Outcome]
    size: int
    small: int
    flags: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


@contextlib.contextmanager
def site_of(attack: Attack, directory: Path, checkout: Path = REPOSITORY) -> Iterator[Site]:
    """Run the server that an attack needs on a new directory, and remove both at the end.

    Python imports the zq of the `checkout`.
    """
    place = Path(tempfile.mkdtemp(prefix="attacked-", dir=directory))
    log = place / "log"
    secrets = made_keys(attack, place, checkout)
    command = command_of(attack, place)
    try:
        with running(partial(start, command, log, checkout), end) as process:
            port = wait_for_port(process, log)
            others = {part: wait_for_port(process, log, part) for part in attack.parts}
            yield Site(process.pid, port, others.get("admin", 0), others.get("grpc", 0), secrets)
            if process.poll() is not None:
                raise ServerError(f"{attack.name} ended the server: {process.returncode}")
    finally:
        shutil.rmtree(place)


def command_of(attack: Attack, place: Path) -> list[str]:
    """The command line of the server."""
    admin = ["--admin-port", "0"] if "admin" in attack.parts else ["--no-admin"]
    grpc = ["--grpc-port", "0"] if "grpc" in attack.parts else []
    keys = ["--keys", str(place / "keys")] if attack.keys else []
    return [
        *(
            sys.executable,
            "-m",
            "zq.cli",
            "serve",
            "--port",
            "0",
            "--root-dir",
            str(place / "root"),
        ),
        *(*LOG, *admin, *grpc, *keys, *attack.flags),
    ]


def start(command: list[str], log: Path, checkout: Path) -> subprocess.Popen[bytes]:
    """Start a server whose output goes to a file."""
    with log.open("wb") as output:
        return subprocess.Popen(command, cwd=checkout, stdout=output, stderr=subprocess.STDOUT)


def made_keys(attack: Attack, place: Path, checkout: Path) -> dict[str, str]:
    """Make the keys of an attack, and that of the well-behaved client. Return their secrets."""
    if not attack.keys:
        return {}
    secrets = {}
    for name, scopes in {POLITE: "enqueue", **attack.keys}.items():
        words = ["keys", "add", name, "--keys", str(place / "keys"), "--scopes", scopes]
        told = subprocess.run(
            [sys.executable, "-m", "zq.cli", *words],
            cwd=checkout,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        secrets[name] = next(word for word in told.stdout.split() if len(word) >= 30)
    return secrets
