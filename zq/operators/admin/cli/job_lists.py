"""The state of a viewer: the lists, the shown part of them, and the messages to the server."""

from collections.abc import Callable, Iterable
from copy import copy
from typing import NamedTuple

from zq.operators.admin.cli.messages import LISTS, Heard
from zq.operators.admin.cli.shown_list import HEAD, ShownList, around
from zq.operators.admin.model import Direction, ListName
from zq.operators.admin.wire import (
    AdminJob,
    DeleteMessage,
    DetailMessage,
    EndPlace,
    FindMessage,
    JobPlace,
    SearchWords,
    ServerStatus,
    StartPlace,
    SubscribeMessage,
    TailPlace,
    ViewerMessage,
    WindowPlace,
)
from zq.operators.page.client import Freshness

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
