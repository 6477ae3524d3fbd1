"""What may be read of groups of failures, whichever the store is."""

from collections.abc import Sequence
from typing import Protocol

from zq.features.failures.model import FailureRow


class FailureReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        """The groups of failures by queue that have come since a time. Their number is bounded.

        Their bars of `bar` milliseconds begin at that time, and come from counts of `length`.
        """

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
        """How many jobs of these queues (None: of all) are dead of each group of failures.

        Of each, the latest `most` failures are looked at; true if there are more.
        """
