"""Lanes of reads: one for each kind of read, so that long reads delay no other kind.

The store compares the ends of durations in steady time. Reads turn dates into steady times where
they enter, and make the times of jobs dates where they leave.
"""

import asyncio
from collections.abc import Iterable
from typing import Generic, TypeVar

from zq.model.clock import SteadyClock
from zq.model.errors import ReadersBusy, ReadTimeout
from zq.model.filters import Filter
from zq.model.job import JobRecord, show_dates

T = TypeVar("T")

SCANNERS = 2
"""How many scans may run at once."""

MOST_WAITING = 32
"""How many scans may wait for a reader. The next one is refused."""

MOST_PAGES_WAITING = 1_000
"""How many pages of topics may wait for a reader: each takes a few milliseconds."""


class ReaderTurns(Generic[T]):
    """The readers of one lane, for one read at a time each. First come, first served."""

    def __init__(self, readers: Iterable[T], timeout: float, most_waiting: int | None) -> None:
        """`most_waiting` limits how many wait, each for `timeout` seconds at the most.

        Without it, other limits hold already.
        """
        self._timeout = timeout
        self._most_waiting = most_waiting
        self._waiting = 0
        self._free: asyncio.Queue[T] = asyncio.Queue()
        for reader in readers:
            self._free.put_nowait(reader)

    def give_back(self, reader: T) -> None:
        """Let the next read have a reader."""
        self._free.put_nowait(reader)

    async def take(self) -> T:
        """Wait for a reader, within the limits of the lane. Raises `ReadersBusy`."""
        if self._most_waiting is None:
            return await self._free.get()
        if self._waiting >= self._most_waiting:
            raise ReadersBusy(f"{self._waiting} long reads wait for their turn already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._free.get()
        except TimeoutError:
            raise ReadersBusy(
                f"the long reads before this one took longer than {self._timeout:g} s"
            ) from None
        finally:
            self._waiting -= 1


def took_too_long(timeout: float) -> ReadTimeout:
    """The error of a read that has not ended in so many seconds."""
    return ReadTimeout(
        f"reading took longer than {timeout:g} s: narrow the filter (by id,"
        " status or queue), ask for a smaller page, or raise --read-timeout"
    )


class Dates:
    """The dates of a store's steady times."""

    def __init__(self, steady: SteadyClock) -> None:
        self.steady = steady

    def steady_of(self, now: int) -> int:
        """The steady time of a date of this moment."""
        return now + self.ahead()

    def ahead(self) -> int:
        """How far steady time is ahead, also right after the clock was set."""
        self.steady.read()
        return self.steady.ahead

    def dated(self, filter: Filter) -> Filter:
        """A filter, as it applies to steady times."""
        return filter.dated(self.ahead())

    def date_of(self, steady: int) -> int:
        """The date of a steady time that was read."""
        return steady - self.steady.ahead

    def shown(self, jobs: list[JobRecord]) -> list[JobRecord]:
        """The jobs, with dates."""
        show_dates(jobs, self.steady.ahead)
        return jobs

    def shown_one(self, job: JobRecord | None) -> JobRecord | None:
        if job is not None:
            show_dates([job], self.steady.ahead)
        return job
