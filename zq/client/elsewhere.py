"""Another server for an app, within a block."""

from typing import Protocol, Self

from zq.client.backend import Backend, run
from zq.client.core import Core


class HasAddress(Protocol):
    """A server with an address, such as that of `zq.testing`."""

    @property
    def url(self) -> str: ...


class Elsewhere:
    """Points an app at another backend inside a ``with`` or ``async with`` block, and then back.

    The app's tasks and queues go with it. At the end of the block its connections are closed.
    """

    def __init__(self, core: Core, backend: Backend) -> None:
        self._core = core
        self._backend = backend
        self._before: list[Backend] = []

    def __enter__(self) -> Self:
        self._before.append(self._core.backend)
        self._core.backend = self._backend
        return self

    def __exit__(self, *_: object) -> None:
        self._core.backend = self._before.pop()
        run(self._backend.blocking.close())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self._core.backend = self._before.pop()
        await self._backend.close()
        await self._backend.blocking.close()
