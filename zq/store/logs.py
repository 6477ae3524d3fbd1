"""What may be read of logs, whichever the store is."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

T = TypeVar("T")


class LogReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def log_end(self, log: str) -> int:
        """The number of the last record of a log; 0 if there is none."""

    async def log_page(
        self,
        log: str,
        after: int | None,
        upto: int,
        limit: int,
        decode: Callable[[int, str, list[msgspec.Raw]], list[T]],
    ) -> tuple[int, list[T]]:
        """The oldest number of a log, and up to `limit` records with ``after < seq <= upto``.

        If `after` is None, they begin with the oldest record. `decode` makes the records of one
        batch from its first number, the fields that its records share, and the records. It runs in
        another thread, since a page takes a while. Raises `RecordsGone` or `CursorAhead`.
        """
