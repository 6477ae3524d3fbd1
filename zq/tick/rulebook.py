"""The settings of all queues, in the writer's memory."""

from collections.abc import Iterable, Mapping, Set
from copy import copy

from zq.model.errors import DeadLetterCycle, FanOutChain
from zq.model.queue_patterns import NO_QUEUES, QueuePatterns
from zq.model.settings import NO_SETTINGS, QueueSettings, policy_for
from zq.model.settling import Policy


class _Tables:
    """The settings by queue, and the queues that a claim or a new job must look at."""

    def __init__(self, settings: Mapping[str, QueueSettings]) -> None:
        self.settings: dict[str, QueueSettings] = {}
        self.paused: set[str] = set()
        self.limited: set[str] = set()
        self.bounded: set[str] = set()
        self.timed: set[str] = set()
        self.leased: set[str] = set()
        self.keyed: set[str] = set()
        self.aging: dict[str, int] = {}
        self.fanning: dict[str, tuple[str, ...]] = {}
        for queue, own in settings.items():
            self.put(queue, own)

    def put(self, queue: str, own: QueueSettings) -> None:
        if own == NO_SETTINGS:
            self.settings.pop(queue, None)
        else:
            self.settings[queue] = own
        for queues, is_one in (
            (self.paused, own.paused),
            (self.limited, own.is_limited),
            (self.bounded, own.max_depth is not None),
            (self.timed, bool(own.ttl_ms)),
            (self.leased, own.lease_ms is not None),
            (self.keyed, own.fair is not None and own.fair.key is not None),
        ):
            (queues.add if is_one else queues.discard)(queue)
        if own.priority_aging_ms is not None:
            self.aging[queue] = own.priority_aging_ms
        else:
            self.aging.pop(queue, None)
        if own.fan_out:
            self.fanning[queue] = own.fan_out
        else:
            self.fanning.pop(queue, None)


class Rulebook:
    """An immutable set of settings: a transaction that changes settings makes a new one.

    So a rolled-back transaction leaves nothing in memory. A rulebook and those made from it share
    their tables. When one of them is asked, it first sets the tables to its own state. Therefore
    use an answer before you ask another rulebook.
    """

    def __init__(
        self,
        policy: Policy,
        settings: Mapping[str, QueueSettings],
        leaving: QueuePatterns = NO_QUEUES,
    ) -> None:
        self.server = policy
        """The server's own policy."""
        self.leaving = leaving
        """The queues whose jobs go to another server: no worker takes from them here."""
        self.is_empty = not (settings or leaving)
        """True if no queue has settings or leaves, so that nobody needs to ask for them."""
        self._shared = _Tables(settings)
        self._made: tuple[Rulebook, str, QueueSettings] | None = None
        """The rulebook that the tables match now, the queue in which it differs, and this one's
        settings of that queue."""

    @property
    def settings(self) -> Mapping[str, QueueSettings]:
        """The settings of the queues that have any."""
        return self._tables.settings

    def shut(self, queues: Iterable[str], *, leaves: bool = False) -> Set[str]:
        """The queues, among some, from which nothing is taken: they are paused, or they leave.

        `leaves`: the taker is who carries the jobs of queues that leave.
        """
        paused, leaving = self._tables.paused, self.leaving
        if leaves or not leaving:
            return paused.intersection(queues)
        return {queue for queue in queues if queue in paused or leaving.covers(queue)}

    @property
    def limited(self) -> Set[str]:
        """The queues with a limit on the jobs that claims may take."""
        return self._tables.limited

    @property
    def bounded(self) -> Set[str]:
        """The queues with a limit on their unfinished jobs."""
        return self._tables.bounded

    @property
    def timed(self) -> Set[str]:
        """The queues with a limit on the time that jobs wait."""
        return self._tables.timed

    @property
    def fanning(self) -> Mapping[str, tuple[str, ...]]:
        """The targets of the queues that have some."""
        return self._tables.fanning

    @property
    def keyed(self) -> Set[str]:
        """The queues that take the fair keys of new jobs from a field."""
        return self._tables.keyed

    @property
    def aging(self) -> Mapping[str, int]:
        """The time of a step in milliseconds, for the queues whose priorities age."""
        return self._tables.aging

    @property
    def has_leases(self) -> bool:
        """True if some queue gives its jobs' leases deadlines by default."""
        return bool(self._tables.leased)

    @property
    def has_gates(self) -> bool:
        """True if a claim has to look at queues one by one."""
        tables = self._tables
        return bool(tables.paused or tables.limited or self.leaving)

    def knows(self, queue: str) -> bool:
        """True if a queue has settings, or is a target of one that has."""
        tables = self._tables
        return queue in tables.settings or any(queue in some for some in tables.fanning.values())

    def of(self, queue: str) -> QueueSettings:
        """The settings of a queue."""
        return self._tables.settings.get(queue, NO_SETTINGS)

    def policy(self, queue: str) -> Policy:
        """The rules for jobs of a queue that set nothing themselves."""
        own = self._tables.settings.get(queue)
        return self.server if own is None else policy_for(own, self.server)

    def with_settings(self, queue: str, settings: QueueSettings) -> "Rulebook":
        """The rulebook with other settings of one queue.

        Raises `DeadLetterCycle` or `FanOutChain`.
        """
        self._refuse_cycle(queue, settings.dead_letter)
        if settings.fan_out:
            self._refuse_chain(queue, settings.fan_out)
        if self._made is not None:
            self._take_back()
        book = copy(self)
        self._hand_over(book, queue, settings)
        book.is_empty = not (book.settings or book.leaving)
        return book

    def with_leaving(self, leaving: QueuePatterns) -> "Rulebook":
        """The rulebook with other queues that leave."""
        return Rulebook(self.server, dict(self.settings), leaving)

    def without_settings(self) -> "Rulebook":
        """The server's policy, and the queues that leave."""
        return Rulebook(self.server, {}, self.leaving)

    @property
    def _tables(self) -> _Tables:
        if self._made is not None:
            self._take_back()
        return self._shared

    def _take_back(self) -> None:
        """Make the tables match this rulebook, step by step from the one that they match now."""
        path: list[tuple[Rulebook, Rulebook, str, QueueSettings]] = []
        book = self
        while book._made is not None:
            path.append((book, *book._made))
            book = book._made[0]
        for book, later, queue, own in reversed(path):
            book._made = None
            later._hand_over(book, queue, own)

    def _hand_over(self, book: "Rulebook", queue: str, settings: QueueSettings) -> None:
        self._made = (book, queue, self._shared.settings.get(queue, NO_SETTINGS))
        self._shared.put(queue, settings)

    def _refuse_cycle(self, start: str, target: str | None) -> None:
        path = [start]
        while target is not None:
            path.append(target)
            if target == start:
                raise DeadLetterCycle(path)
            target = self.of(target).dead_letter

    def _refuse_chain(self, queue: str, targets: tuple[str, ...]) -> None:
        for target in targets:
            if target != queue and target in self.fanning:
                raise FanOutChain(queue, target)
        for other, named in self.fanning.items():
            if other != queue and queue in named:
                raise FanOutChain(other, queue)
