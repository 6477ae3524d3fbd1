"""Holds back what is visible until it is durable.

A commit is visible to readers a little before its flush has landed. What leaves the server waits
for that, so that no power cut takes back what somebody was told: one rule for all that is read.
Where commits are not waited for (buffered mode), neither are they here.
"""

import asyncio

from zq.model.errors import Unavailable


class Landing:
    """One tick's way to the disk, as those see it who have read what it has committed."""

    def __init__(self) -> None:
        self._landed: asyncio.Future[bool] | None = None
        """Whether what is visible got to the disk; None while that is not in doubt."""

    def hold_back(self) -> None:
        """Let those wait who read now: what is visible, or will be shortly, may not last."""
        if self._landed is None:
            self._landed = asyncio.get_running_loop().create_future()

    def let_go(self, is_safe: bool) -> None:
        """It is on the disk, or never will be."""
        if self._landed is not None:
            self._landed.set_result(is_safe)
            self._landed = None

    async def wait(self) -> None:
        """Until what is visible now is on the disk. Raises `Unavailable` where the disk fails."""
        if self._landed is not None and not await asyncio.shield(self._landed):
            raise Unavailable("the server is stopping after a failure of its disk")
