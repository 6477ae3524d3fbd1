"""Which event loop a process runs on."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Literal

LoopName = Literal["asyncio", "uvloop"]
LOOPS: tuple[LoopName, ...] = ("asyncio", "uvloop")


def best_loop() -> LoopName:
    """uvloop if it is installed, as in the real server."""
    return "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"


def loop_factory(name: LoopName) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "asyncio":
        return asyncio.new_event_loop
    import uvloop

    return uvloop.new_event_loop
