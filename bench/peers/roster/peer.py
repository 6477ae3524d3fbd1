"""The facts about a peer that the harness needs, and that readers of its figures need too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Runtime = Literal["ours", "python", "node"]
ServerName = Literal["zq", "zq-postgresql", "redis", "postgresql", "beanstalkd"]


@dataclass(frozen=True)
class Mode:
    """A setting of durability. If `durable`, an acknowledgement means that the job is on disk."""

    name: str
    durable: bool
    acknowledged: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Peer:
    """A queue, and how its own documentation says to start it.

    Commands are templates: {python}, {bin}, {address} and {concurrency} are filled in. Without
    `worker` the adapter's own `work` runs. `prepare` runs once on new storage, `scheduler` beside
    the worker in rows with delays. `lacks` says why a row does not exist for this peer.
    `python` is the interpreter of a peer that needs a newer one than the bench.
    """

    name: str
    adapter: str
    runtime: Runtime
    packages: tuple[str, ...]
    modes: tuple[Mode, ...]
    client: str
    worker_note: str
    server: ServerName | None = None
    worker: str = ""
    prepare: str = ""
    scheduler: str = ""
    lacks: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    python: str = ""

    @property
    def home(self) -> str:
        """The name of the directory that its packages are installed into."""
        return self.environment or self.name


@dataclass(frozen=True)
class Contender:
    """A peer in one of its modes."""

    peer: Peer
    mode: Mode

    @property
    def name(self) -> str:
        return f"{self.peer.name}/{self.mode.name}" if len(self.peer.modes) > 1 else self.peer.name
