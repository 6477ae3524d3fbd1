"""An app as workers see it."""

from typing import Any, Protocol

from zq.client.backend import Backend
from zq.client.core import Core
from zq.client.task import Task


class HasTasks(Protocol):
    """An app, or a part of one, as workers see it: its tasks, and what they share."""

    core: Core
    tasks: dict[str, Task[Any, Any]]

    @property
    def backend(self) -> Backend:
        """The server that the jobs come from."""
