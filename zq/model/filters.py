"""The filters that listing, counting, patching and deleting share."""

from collections import Counter
from collections.abc import Mapping
from typing import Self

import msgspec

from zq.model.errors import InvalidFilter, NotCancellable, Unprocessable
from zq.model.lifecycle import NAMES, TERMINAL, Move, Status, sources
from zq.model.reach import EVERYWHERE, Reach


class ValueRange(msgspec.Struct, frozen=True):
    """An inclusive range. None leaves that side open."""

    low: int | None = None
    high: int | None = None


class Filter(msgspec.Struct, frozen=True, omit_defaults=True):
    """Different fields AND together; the values of one field OR. An empty field filters nothing.

    `keys` of None means all jobs, an empty tuple none. `program` is jq over the payload, which runs
    outside the store. An empty program raises `InvalidFilter`. `words` are looked for in types,
    messages of latest failures and payloads, in slices: see `zq.model.words`.
    """

    statuses: tuple[Status, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    keys: tuple[int, ...] | None = None
    upto: int | None = None
    """Only jobs whose key is at most this one. Jobs that arrive later have higher keys."""
    priority: ValueRange | None = None
    ready_at: ValueRange | None = None
    attempts: ValueRange | None = None
    finished_at: ValueRange | None = None
    revivable: bool = False
    """Only dead jobs, and jobs that wait in the dead-letter queue that they were moved to."""
    program: str | None = None
    words: tuple[str, ...] = ()
    """Each of them must occur in the job, in large or small letters."""
    budgets: tuple[str, ...] = ()
    """Only jobs that draw from one of these."""
    unique_keys: tuple[str, ...] = ()
    """Only jobs that came with one of these, owners or not."""
    errors: tuple[str, ...] = ()
    """Only jobs whose latest failure is of one of these groups, by signature."""
    swept: int | None = None
    """Only jobs that this sweep has cancelled."""
    reach: Reach = EVERYWHERE
    """Jobs outside of it do not exist for this request."""

    ahead: int = 0
    """The time in ms by which steady time is ahead of dates where this filter is applied: see
    `dated`."""

    def __post_init__(self) -> None:
        if self.program is not None and _is_blank(self.program):
            raise InvalidFilter("invalid filter: the expression is empty")

    def within(self, reach: Reach) -> Self:
        """This filter, narrowed to the queues within a reach."""
        return msgspec.structs.replace(self, reach=reach)

    def dated(self, ahead: int) -> Self:
        """This filter over steady times, of which dates are `ahead` behind.

        The date of a job that waits for a while is shown as that of its steady time.
        """
        return self if self.ready_at is None else msgspec.structs.replace(self, ahead=ahead)

    @property
    def plain(self) -> Self:
        """The part of it that indexes and rows decide: no program, and no words."""
        return msgspec.structs.replace(self, program=None, words=())

    @property
    def is_plain(self) -> bool:
        """True without a program and without words."""
        return self.program is None and not self.words


EVERYTHING = Filter()


def is_counted(filter: Filter) -> bool:
    """True if a filter uses only queues and statuses, for which counts are kept."""
    return filter == Filter(statuses=filter.statuses, queues=filter.queues, reach=filter.reach)


def counted(counts: Mapping[tuple[str, Status], int], filter: Filter) -> int:
    """How many jobs match such a filter, from the counts of each queue and status."""
    return counts_of(counts, filter).total()


def counts_of(
    counts: Mapping[tuple[str, Status], int], filter: Filter
) -> Counter[tuple[str, Status]]:
    """The counts that such a filter matches."""
    return Counter(
        {
            (queue, status): n
            for (queue, status), n in counts.items()
            if n
            and filter.reach.covers(queue)
            and (not filter.queues or queue in filter.queues)
            and (not filter.statuses or status in filter.statuses)
        }
    )


def refuse_uncancellable(filter: Filter, force: bool) -> None:
    """Raise `Unprocessable` if a cancellation names jobs that it cannot cancel."""
    for status in filter.statuses:
        if status not in sources(Move.FORCE if force else Move.CANCEL):
            raise Unprocessable(NotCancellable(NAMES[status]).message)


def refuse_unchangeable(filter: Filter) -> None:
    """Raise `Unprocessable` if a patch names finished jobs."""
    for status in filter.statuses:
        if status in TERMINAL:
            raise Unprocessable(f"cannot patch jobs in {NAMES[status].capitalize()} status")


def refuse_unrevivable(filter: Filter) -> None:
    """Raise `Unprocessable` for the requeuing of jobs that cannot come back."""
    for status in filter.statuses:
        if status not in sources(Move.REVIVE) or status is Status.IN_FLIGHT:
            raise Unprocessable(f"a job that is {NAMES[status]} cannot be requeued")


def _is_blank(program: str) -> bool:
    """True if a program has only space and comments."""
    lines = map(str.strip, program.splitlines())
    return all(not line or line.startswith("#") for line in lines)
