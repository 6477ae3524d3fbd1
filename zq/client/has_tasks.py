"""An app as workers see it."""

from typing import Any, Protocol

from zq.client.backend import Backend
from zq.client.core import Core
from zq.client.running import Middleware
from zq.client.task import Task


class HasTasks(Protocol):
    """Tasks, the handlers of queues, and the middleware around each job."""

    core: Core
    tasks: dict[str, Task[Any, Any]]
    middleware: tuple[Middleware, ...]

    @property
    def backend(self) -> Backend:
        """The server that the jobs come from."""
