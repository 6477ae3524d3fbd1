"""Runs functions of zq over large inputs in a process of its own, and collects what they yield.

The event loop holds the interpreter's lock, so a thread would not let others go on. The process is
started for the first call, lasts over calls, and ends when it has had none for a while.
"""

import asyncio
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from zq.engine import aside_child as child
from zq.engine.aside_child import END, FRAME, PIECE, REQUEST
from zq.engine.piped_process import CHUNK, PipedProcess
from zq.engine.process_lane import ProcessLane
from zq.model.clock import Clock, Timer
from zq.model.errors import ServiceUnavailable, TooLarge, ZqError

IDLE_S = 60.0
"""The process ends after this time without a call, in seconds: at rest a server has none."""

CPU_S = 10
"""The most processor time of one call, in seconds."""

TIMEOUT_S = 30.0
"""The most time of one call, without its wait for others, in seconds."""

START_TIMEOUT_S = 20.0


class AsideProcess(PipedProcess):
    """One process. It is useless after any error but a `ZqError` of the function."""

    @classmethod
    async def start(cls, memory: int, modules: Sequence[str]) -> Self:
        """Start it, and wait until it is ready."""
        started = await cls.of(child, json.dumps(sys.path), str(memory), *modules)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await started.reply()
        except BaseException:
            started.kill()
            raise
        return started

    async def call(self, call: bytes, data: bytes) -> list[bytes]:
        """Send a call with its data, in small pieces, and return what the function yields."""
        view = memoryview(data)
        head = REQUEST.pack(len(call), len(data), CPU_S) + call
        await self.write((head, *(view[at : at + CHUNK] for at in range(0, len(data), CHUNK))))
        return await self.reply()

    async def reply(self) -> list[bytes]:
        """The outputs of a call. Raises the `ZqError` of the function."""
        pieces: list[bytes] = []
        while True:
            kind, length = FRAME.unpack(await self.read(FRAME.size))
            body = await self.read(length)
            if kind == PIECE:
                pieces.append(body)
            elif kind == END:
                return pieces
            else:
                raise _error(*pickle.loads(body))


class AsideLane(ProcessLane[AsideProcess]):
    """Runs one call at a time. A call is a module-level function of zq with plain arguments.

    `memory` limits the address space of the process, in bytes. `modules` have the functions.
    """

    def __init__(self, clock: Clock, memory: int, modules: Sequence[str]) -> None:
        super().__init__()
        self._clock = clock
        self._memory = memory
        self._modules = modules
        self._timer: Timer | None = None
        self.calls = 0
        """How many calls there have been."""

    async def run(
        self,
        function: Callable[..., Iterable[bytes]],
        data: bytes,
        *arguments: Any,
        owner: object = None,
    ) -> list[bytes]:
        """The outputs of `function(data, *arguments)`, in their order.

        The owners of calls take turns. Raises what `ZqError` the function raises; `TooLarge` if it
        takes too much time or memory, and `ServiceUnavailable` if too many calls wait or no process
        can be started.
        """
        call = pickle.dumps((function.__module__, function.__qualname__, arguments))
        if asyncio.current_task() is None:
            await asyncio.sleep(0)  # this makes it a task, which time-outs need
        async with self._turn(owner):
            self._rest(None)
            self.calls += 1
            try:
                process = await self._ready()
                async with asyncio.timeout(TIMEOUT_S):
                    return await process.call(call, data)
            except ZqError:
                raise
            except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
                self._drop()
                raise TooLarge(
                    "reading the body takes too much time or memory: send it in several requests"
                ) from None
            except BaseException:
                # The reply would answer the next call.
                self._drop()
                raise
            finally:
                self._rest(self._clock.call_later(IDLE_S, self._drop_if_idle))

    def _rest(self, timer: Timer | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer

    def _drop_if_idle(self) -> None:
        if not self._busy:
            self._drop()

    async def _start(self) -> AsideProcess:
        try:
            return await AsideProcess.start(self._memory, self._modules)
        except (OSError, asyncio.IncompleteReadError) as error:  # TimeoutError is an OSError
            raise ServiceUnavailable(
                f"the process for large bodies did not start ({error!r}): try again shortly, or"
                " send smaller bodies"
            ) from error

    def _full(self, waiting: int) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"{waiting} large bodies wait to be read already: try again shortly"
        )

    def _over(self) -> ServiceUnavailable:
        return ServiceUnavailable("the server is stopping")

    async def close(self) -> None:
        """End the process. Calls that are under way or waiting raise `ServiceUnavailable`."""
        self._rest(None)
        await super().close()


def _error(module: str, name: str, message: str) -> ZqError:
    """An error of the function, as it was raised in the process."""
    kind: type[ZqError] = getattr(importlib.import_module(module), name)
    error = kind.__new__(kind)
    ZqError.__init__(error, message)
    return error
