"""The lists of a viewer: its copy of each, the shown part of them, and messages to the server."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from zq.operators.admin.model import Direction, Fallback, ListName
from zq.operators.admin.wire import (
    AdminJob,
    AroundPlace,
    DeleteMessage,
    DetailMessage,
    EndPlace,
    FindMessage,
    HeadPlace,
    JobPlace,
    OffsetPlace,
    SearchWords,
    ServerStatus,
    StartPlace,
    SubscribeMessage,
    TailPlace,
    ViewerMessage,
    WindowDocument,
    WindowPlace,
)
from zq.operators.page.client import Freshness

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


LISTS = (ListName.IN_FLIGHT, ListName.READY, ListName.SCHEDULED)
"""The lists in the order of their tabs."""


class Heard(msgspec.Struct, frozen=True):
    """Any message from the server. Its `event` decides which fields it has.

    Another version, or the original server, may send events that this one does not know.
    """

    server: ServerStatus
    event: str
    in_flight: WindowDocument | None = None
    ready: WindowDocument | None = None
    scheduled: WindowDocument | None = None
    id: str | None = None
    status: str | None = None
    job: AdminJob | None = None
    list: str | None = None
    matched_position: int | None = None
    window: WindowDocument | None = None
    error: str | None = None

    def windows(self) -> Mapping[ListName, WindowDocument]:
        """The parts of lists in a snapshot."""
        found = {name: getattr(self, name) for name in LISTS}
        return {name: window for name, window in found.items() if window is not None}


decode = msgspec.json.Decoder(Heard).decode


SCREENS = 3
"""How many screens of a list are requested at a time, so that most moves need no answer."""

HIDDEN_ROWS = 1
"""How many jobs of a list are requested while it is hidden."""

FROZEN_EDGE = "the display is frozen: press p, then scroll further"


class Query(NamedTuple):
    """The search: texts that the type and the queue contain. Empty texts match all."""

    type: str
    queue: str


class JobLists:
    """The state of the display. Keys and the server's messages change it."""

    def __init__(self, say: Callable[[ViewerMessage], None]) -> None:
        self._say = say
        self._live = {name: ShownList(name) for name in LISTS}
        self._frozen: ShownList | None = None
        self._frozen_source: Freshness | None = None
        self._asked: dict[ListName, SubscribeMessage] = {}
        self.list = ListName.READY
        self.rows = 20
        self.is_listing = True
        """True if a list of jobs is on the screen, and not another tab."""
        self.server: ServerStatus | None = None
        self.source = Freshness()
        self.notice = ""
        self.detail = False
        self.query: Query | None = None
        self.has_page = False
        """True if the server has the operators' page, whose tabs can be shown."""
        self.awaited = True
        """True if the user waits for the next answer."""

    @property
    def view(self) -> ShownList:
        """The list on the screen."""
        return self._frozen or self._live[self.list]

    @property
    def shown_source(self) -> Freshness:
        """How old the list on the screen is."""
        return self._frozen_source or self.source

    @property
    def frozen(self) -> bool:
        """True if the display ignores news."""
        return self._frozen is not None

    # The connection

    def greeting(self) -> list[ViewerMessage]:
        """The first messages on a new connection."""
        self._asked.clear()
        detail = [DetailMessage(True)] if self.detail else []
        return [*detail, *map(self._request, LISTS)]

    def hear(self, heard: Heard) -> None:
        """Process a message from the server."""
        self.server = heard.server
        self.source.hear()
        for name, view in self._live.items():
            view.total = heard.server.total(name)
        for name, window in heard.windows().items():
            self._live[name].show(window, self._rows_of(name))
        if heard.event == "job_changed":
            self._change(heard)
        elif heard.event == "find_result":
            self._found(heard)
        elif heard.event == "error":
            self.notice = heard.error or "the server refuses this"
        self.awaited = self.awaited and heard.event not in ("job_snapshot", "find_result", "error")
        self._ask_for_more()

    def hold(self, waiting: Iterable[AdminJob]) -> None:
        """Note which ready jobs there are, the oldest first; the list leaves out those that wait
        for budgets and groups."""
        self._live[ListName.READY].hold(waiting)

    @property
    def wants_waiting(self) -> bool:
        """True if the list on the screen ends before the jobs that wait for budgets and groups."""
        is_ready = self.view.name is ListName.READY
        return is_ready and self.view.is_short and self.is_listing and not self.frozen

    def _change(self, heard: Heard) -> None:
        status = heard.status or ""
        name = status.removesuffix("_removed")
        view = next((view for key, view in self._live.items() if key == name), None)
        if view is None or heard.id is None:
            return
        if status != name:
            view.drop(heard.id)
        elif heard.job is not None:
            view.add(heard.job)

    def _found(self, heard: Heard) -> None:
        if heard.matched_position is None or heard.window is None or heard.list != self.list:
            if not self._find_waiting(wrap=True):
                self.notice = "no such job"
            return
        view = self._live[self.list]
        view.let_go()
        view.show(heard.window, self._rows_of(self.list))
        index = heard.matched_position - heard.window.first_position
        if 0 <= index < len(view.items):
            view.follow(view.items[index].id)
            self._subscribe(around(view.items[index].id))

    def _find_waiting(self, *, wrap: bool) -> bool:
        """Look among the jobs that wait behind gates, which the server's search leaves out."""
        view, query = self.view, self.query or Query("", "")
        matching = [
            (at, job.id)
            for at, job in enumerate(view.items)
            if job.waits and query.type in job.job_type and query.queue in job.queue
        ]
        behind = [id for at, id in matching if at > view.cursor]
        found = behind or [id for _, id in matching if wrap]
        if found:
            view.follow(found[0])
        return bool(found)

    # Requests

    def _rows_of(self, name: ListName) -> int:
        """How many jobs of a list are requested."""
        return SCREENS * self.rows if self.is_listing and name == self.list else HIDDEN_ROWS

    def _request(self, name: ListName) -> SubscribeMessage:
        return SubscribeMessage(name, self._live[name].anchor, self._rows_of(name))

    def _subscribe(self, anchor: WindowPlace) -> None:
        self._live[self.list].anchor = anchor
        request = self._request(self.list)
        if self._asked.get(self.list) != request:
            self._asked[self.list] = request
            self.awaited = True
            self._say(request)

    def _ask_for_more(self) -> None:
        wanted = self._live[self.list].wanted() if self.is_listing else None
        if wanted is not None:
            self._subscribe(wanted)

    # Keys

    def resize(self, rows: int) -> None:
        """Set the number of rows for jobs on the screen."""
        if rows != self.rows:
            self.rows = max(rows, 1)
            self._subscribe(self._live[self.list].anchor)

    def show(self, name: ListName) -> None:
        """Show a list."""
        if name == self.list and self.is_listing:
            return
        self.leave()
        self.list, self.is_listing = name, True
        if self.frozen:
            self._freeze()
        self._subscribe(self._live[name].anchor)

    def leave(self) -> None:
        """Show no list: a few jobs of each are enough."""
        if not self.is_listing:
            return
        self.is_listing = False
        self._asked.pop(self.list, None)
        self._say(self._request(self.list))

    def move(self, rows: int) -> None:
        """Move the cursor by rows."""
        complete = self.view.move(rows)
        if self.frozen:
            self.notice = "" if complete else FROZEN_EDGE
        else:
            self._ask_for_more()

    def go_to_end(self, *, tail: bool) -> None:
        """Move the cursor to the first job of the list, or the last."""
        view = self.view
        if self.frozen or view.is_short:
            view.move(len(view.items) if tail else -len(view.items))
            return
        view.let_go()
        # The answer has no more jobs than this, and the cursor goes to its last one.
        view.cursor = SCREENS * self.rows if tail else 0
        self._asked.pop(self.list, None)
        self._subscribe(TailPlace() if tail else HEAD)

    def let_go(self) -> None:
        """Make the cursor follow no job."""
        self.view.let_go()

    def toggle_frozen(self) -> None:
        """Freeze the display, or update it again."""
        self.notice = ""
        if self.frozen:
            self._frozen = self._frozen_source = None
        else:
            self._freeze()

    def _freeze(self) -> None:
        self._frozen = self._live[self.list].copy()
        self._frozen_source = copy(self.source)

    def toggle_detail(self) -> None:
        """Show all details of the job under the cursor, or hide them."""
        self.detail = not self.detail
        self._say(DetailMessage(self.detail))

    def find(self, query: Query) -> None:
        """Look for a job from the cursor on."""
        self.query = query
        self.find_next(Direction.FORWARD)

    def find_next(self, direction: Direction) -> None:
        """Look for the next job that matches, or the one before."""
        if self.query is None:
            self.notice = "nothing to look for yet: press /"
            return
        if self.frozen:
            self.toggle_frozen()
        selected = self.view.selected
        is_waiting = selected is not None and selected.waits
        if is_waiting and direction == Direction.FORWARD and self._find_waiting(wrap=False):
            return
        edge = StartPlace() if direction is Direction.FORWARD else EndPlace()
        anchor = edge if selected is None else JobPlace(selected.id)
        queues, types = ((text,) if text else () for text in (self.query.queue, self.query.type))
        self.awaited = True
        words, limit = SearchWords(queues, types), SCREENS * self.rows
        self._say(FindMessage(self.list, anchor, direction, words, limit))

    def delete(self, job: AdminJob) -> None:
        """Delete a job."""
        self._say(DeleteMessage(job.id))
        self.notice = f"asked for {job.id} to be deleted"
