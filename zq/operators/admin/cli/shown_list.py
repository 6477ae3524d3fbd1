"""The viewer's copy of one list of jobs: the known part of it, and the cursor."""

from bisect import bisect_left
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from zq.operators.admin.model import Fallback, ListName
from zq.operators.admin.wire import (
    AdminJob,
    AroundPlace,
    HeadPlace,
    OffsetPlace,
    WindowDocument,
    WindowPlace,
)

HEAD = HeadPlace()

ORDERS: dict[ListName, Callable[[AdminJob], tuple[int, int, str]]] = {
    ListName.IN_FLIGHT: lambda job: (0, job.dequeued_at or 0, job.id),
    ListName.READY: lambda job: (int(job.waits), job.priority, job.id),
    ListName.SCHEDULED: lambda job: (0, job.ready_at, job.id),
}
"""The order of each list. Jobs that wait behind a gate come after all others."""


def around(job_id: str) -> AroundPlace:
    """The place of a window with a job in its middle; the head if the job has left the list."""
    return AroundPlace(job_id, Fallback.HEAD)


class ShownList:
    """One list. Positions count from 0 at its head.

    The cursor stays on a row of the screen until it is moved. From then on it follows its job.
    """

    def __init__(self, name: ListName) -> None:
        self.name = name
        self.items: list[AdminJob] = []
        self.first = 0
        self.total = 0
        self.cursor = 0
        """Index of the cursor's job among `items`."""
        self.top = 0
        """Index of the first job on the screen."""
        self.followed: AdminJob | None = None
        self.anchor: WindowPlace = HEAD
        self.is_short = False
        """True if the server's part ended before it was full: other jobs wait behind gates."""

    @property
    def selected(self) -> AdminJob | None:
        """The job under the cursor."""
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    def copy(self) -> "ShownList":
        """A copy, which later news do not change."""
        twin = ShownList(self.name)
        twin.__dict__.update(self.__dict__)
        twin.items = list(self.items)
        return twin

    # News

    def show(self, window: WindowDocument, asked: int) -> None:
        """Replace the known part by a part from the server. `asked` is how many jobs were asked
        for."""
        waiting = [job for job in self.items if job.waits]
        self.items = list(window.items)
        self.first = window.first_position
        self.total = window.total
        self.is_short = not self.first and len(self.items) < min(self.total, asked)
        self.hold(waiting if self.is_short else [])

    def hold(self, waiting: Iterable[AdminJob]) -> None:
        """Show these jobs, which wait behind gates, after all that the server's list has."""
        takeable = [job for job in self.items if not job.waits]
        known = {job.id for job in takeable}
        order = ORDERS[self.name]
        behind = (replace(job, waits=True) for job in waiting if job.id not in known)
        self.items = takeable + sorted(behind, key=order)
        self._settle()

    def add(self, job: AdminJob) -> None:
        """Add a job that has entered the known part."""
        order = ORDERS[self.name]
        left = [each for each in self.items if each.id != job.id]
        left.insert(bisect_left(left, order(job), key=order), job)
        self.items = left
        self._settle()

    def drop(self, job_id: str) -> None:
        """Remove a job that has left the known part, if it was there."""
        left = [job for job in self.items if job.id != job_id]
        if len(left) < len(self.items):
            self.items = left
            self._settle()

    def is_lost(self) -> bool:
        """True if the followed job may be in an unknown part of the list."""
        return self.followed is not None and self.selected != self.followed

    def _settle(self) -> None:
        """Put the cursor on its job again, if that is in the known part."""
        followed = self.followed
        if followed is not None:
            index = next((at for at, job in enumerate(self.items) if job.id == followed.id), None)
            if index is not None:
                self.top += index - self.cursor
                self.cursor = index
                self.followed = self.items[index]
            elif self._would_be_known(followed):
                self.followed = None  # it has left the list
        self.cursor = min(self.cursor, max(len(self.items) - 1, 0))

    def _would_be_known(self, job: AdminJob) -> bool:
        if not self.items:
            return self.total == 0
        place, order = ORDERS[self.name](job), ORDERS[self.name]
        after_first = self.first == 0 or order(self.items[0]) <= place
        at_tail = self.is_short or self.first + len(self.items) >= self.total
        return after_first and (at_tail or place <= order(self.items[-1]))

    # Moves

    def move(self, rows: int) -> bool:
        """Move the cursor by rows. Return whether it could move that far."""
        goal = self.cursor + rows
        self.cursor = min(max(goal, 0), max(len(self.items) - 1, 0))
        self.followed = self.selected
        return self.cursor == goal

    def follow(self, job_id: str) -> None:
        """Put the cursor on a known job."""
        for index, job in enumerate(self.items):
            if job.id == job_id:
                self.cursor = index
                self.followed = job

    def let_go(self) -> None:
        """Follow no job: the cursor stays on its row."""
        self.followed = None

    def scroll(self, rows: int) -> None:
        """Scroll so that the cursor is on a screen of this many rows."""
        lowest = max(len(self.items) - rows, 0)
        self.top = min(max(self.top, self.cursor - rows + 1, 0), self.cursor, lowest)

    def wanted(self) -> WindowPlace | None:
        """The anchor of a part with more jobs around the cursor; None if this part is good."""
        if self.is_lost() and self.followed is not None:
            return around(self.followed.id)
        margin = len(self.items) // 4
        starts_late = self.first > 0 and self.cursor < margin
        ends_early = (
            not self.is_short
            and self.first + len(self.items) < self.total
            and self.cursor + margin >= len(self.items)
        )
        if not margin or not (starts_late or ends_early):
            return None
        return OffsetPlace(max(self.first + self.cursor - len(self.items) // 2, 0))
