"""What an app's tasks and queues share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from zq.client.backend import Backend
from zq.client.events import Events
from zq.client.options import Options
from zq.client.payloads import Convert
from zq.client.running import Middleware


@dataclass(frozen=True)
class QueueHandler:
    """The function for the jobs of a queue."""

    function: Callable[..., Any]
    convert: Convert | None
    options: Options
    middleware: tuple[Middleware, ...] = ()
    """Around each job, inside of the app's."""


@dataclass
class Core:
    """The server, the options of all jobs, who listens, and who handles which queue."""

    backend: Backend
    defaults: Options
    events: Events = field(default_factory=Events)
    handlers: dict[str, QueueHandler] = field(default_factory=dict)
    startup: tuple[Callable[[], Any], ...] = ()
    """Called, or awaited, before a worker takes its first job."""

    def __reduce__(self) -> tuple[Any, tuple[Backend, Options]]:
        # What goes to another process enqueues there; it handles and hears nothing.
        return Core, (self.backend, self.defaults)
