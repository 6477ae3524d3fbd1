"""What all readers of changing views have in common: they are woken, and reads may fail."""

import asyncio
import logging

from zq.model.errors import ZqError
from zq.store.errors import StoreError

log = logging.getLogger(__name__)


class NewsReader:
    """Somebody who is woken whenever there may be something new."""

    def __init__(self) -> None:
        self.ended = False
        self._wake = asyncio.Event()

    def nudge(self) -> None:
        """Wake the reader."""
        self._wake.set()

    def end(self) -> None:
        """End the reader: its handler returns."""
        self.ended = True
        self._wake.set()

    async def wait(self) -> None:
        """Wait until there may be something new."""
        await self._wake.wait()
        self._wake.clear()


def log_failure(what: str, task: "asyncio.Task[None]") -> None:
    """Log that a read has failed: `what` it could not read stays as it is, and is read again."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    is_usual = isinstance(error, ZqError | StoreError)
    log.log(
        logging.INFO if is_usual else logging.ERROR,
        f"{what} could not be read: {error}",
        exc_info=None if is_usual else error,
    )
