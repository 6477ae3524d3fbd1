"""SIGTERM and SIGINT, which end a worker even where a handler blocks its event loop."""

import asyncio
import contextlib
import faulthandler
import signal
from collections.abc import Callable, Iterator
from types import FrameType

MARGIN_S = 5.0
"""How much later than it should have ended a worker that does not is ended by force."""

AT_ONCE_S = 3.0
"""The same after the second signal."""

_STDERR = 2
_LONGEST_S = 1e6


@contextlib.contextmanager
def signals(on_signal: Callable[[], None], shutdown_s: float) -> Iterator[None]:
    """Call `on_signal` in the event loop for each; to be entered in the main thread.

    These are Python's own handlers, for the loop's would not run while a handler blocks it. Where
    the block is not left in time, the process ends with code 1, and tells on stderr what each of
    its threads was at. The streams end with it, so that jobs go back.
    """
    loop = asyncio.get_running_loop()
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        seconds = min(shutdown_s, _LONGEST_S) + MARGIN_S if count == 1 else AT_ONCE_S
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        loop.call_soon_threadsafe(on_signal)

    before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_DFL if former is None else former)
        if count:
            faulthandler.cancel_dump_traceback_later()
