"""Queues by name, for producers: `zq.queues["mail"]`; in a file itself: `zq.queues.self()`."""

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from zq.client.errors import DiscoveryError, InvalidOption, UnknownQueue
from zq.client.files.queue import FileQueue

T = TypeVar("T")

loading: ContextVar[FileQueue[Any]] = ContextVar("zq_loading_queue")
"""The queue of the file that is being imported."""


class QueueRegistry:
    """The queues that `App.discover` has found in this process."""

    def __init__(self) -> None:
        self._found: dict[str, FileQueue[Any]] = {}

    def add(self, queue: FileQueue[Any]) -> None:
        """Make a queue known to producers. Raises `DiscoveryError` if another app has its name."""
        known = self._found.setdefault(queue.name, queue)
        if known.core is not queue.core:
            raise DiscoveryError(
                f"{queue.name}: another app of this process has a file of this name"
            )

    @overload
    def self(self, *, payload: type[T]) -> FileQueue[T]: ...
    @overload
    def self(self) -> FileQueue[Any]: ...
    def self(self, *, payload: Any = Any) -> FileQueue[Any]:
        """The queue of the file that calls this, at its top level.

        The handler's first argument is converted to `payload`. Raises `InvalidOption` elsewhere.
        """
        try:
            return loading.get()
        except LookupError:
            raise InvalidOption(
                "zq.queues.self() works only while App.discover imports the file of a queue;"
                ' elsewhere write zq.queues["name"]'
            ) from None

    def get(self, name: str) -> FileQueue[Any]:
        """The queue of this name. Raises `UnknownQueue`."""
        try:
            return self._found[name]
        except KeyError:
            known = ", ".join(sorted(self._found)) or "none: call App.discover first"
            raise UnknownQueue(
                f"no file was found for the queue {name!r}; known queues: {known}"
            ) from None

    __call__ = get
    __getitem__ = get

    def clear(self) -> None:
        """Forget all queues, so that the same files can be found again."""
        self._found.clear()

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._found))


queues = QueueRegistry()
