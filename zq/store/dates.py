"""The way between steady times and dates.

The store compares the ends of durations in steady time. Reads turn dates into steady times where
they enter, and make the times of jobs dates where they leave.
"""

from zq.model.clock import SteadyClock
from zq.model.filters import Filter
from zq.model.job import JobRecord, show_dates


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
        """The job, with dates, if there is one."""
        if job is not None:
            show_dates([job], self.steady.ahead)
        return job
