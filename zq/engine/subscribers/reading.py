"""What all who wait for news have in common: they are woken, their wait ends, reads may fail."""

import asyncio
import logging

from zq.model.errors import ZqError
from zq.store.errors import StoreError

log = logging.getLogger(__name__)


class NewsReader:
    """A reader that is woken whenever there may be something new, until that ends."""

    def __init__(self) -> None:
        self.ended = False
        """The time is up, or the server stops: its handler answers with the present state."""
        self._wake = asyncio.Event()

    def nudge(self) -> None:
        """Wake the reader: there may be something new."""
        self._wake.set()

    def end(self) -> None:
        """End the reader. It is woken too."""
        self.ended = True
        self._wake.set()

    async def wait(self) -> None:
        """Return when the reader is woken. A wake from before the call counts too."""
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
