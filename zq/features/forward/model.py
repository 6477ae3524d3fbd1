"""Lanes: the numbered ways out of this server.

A lane has queues, whose jobs are for no worker here. They leave it in order. Each gets a number of
the lane's epoch before it is sent, and is in flight until it has arrived. Whatever ends in between,
it is sent again under its number, and the receiver recognises it: to the receiver, a lane is a
producer (`zq.features.producers`).

A new epoch takes the numbers away from the jobs that are left. It begins with each start of the
server, and where the two sides disagree: when a job was refused or taken out of the lane by
somebody, and when one of the two stores was restored from a backup. Three rules make that safe.
Before a lane leaves an epoch, it has completed all jobs that have arrived in it. The receiver
leaves an epoch only at the last number that the lane has seen, so that nothing of the old epoch is
stored later. And a lane follows an epoch of its own that it is not in only if it has left that one,
so that the receiver is older than it was, or if nothing has arrived in it, so that only the answer
to its beginning was lost.

A rule with `backlog: behind` has two lanes, each with numbers of its own. One has the jobs that
were stored in the last minute, the other one, NAME.backlog, has the older ones. A job that nobody
has sent in its minute changes over. Jobs in lines (fair keys, budgets) leave by the first lane, in
the order of their lines. Groups keep their order: only the head of a group can be taken.
"""

import os
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import msgspec

from zq.model.errors import Conflict, InvalidRequest, NotFound, StorageFull, Unprocessable
from zq.model.ids import MAX_KEY, key_at
from zq.model.job import JobRecord
from zq.model.names import check_name
from zq.model.queue_patterns import QueuePatterns
from zq.model.urls import check_url

LEAVING = "leaving"
"""The name of the statement that finds the queues of all lanes."""

MOST_LANES = 10_000
"""The most lanes of a server."""

WhenFull = Literal["refuse", "drop_oldest"]
Compression = Literal["gzip", "none"]
Backlog = Literal["in_order", "behind"]

BEHIND_MS = 60_000
"""What was stored longer ago than this is backlog, in milliseconds."""

ALL_KEYS, NO_KEYS = range(MAX_KEY), range(0)

_BACKLOG = ".backlog"
"""The name of a lane's backlog ends so."""

MOST_HEIRS = 24
"""So many instances are remembered that the receiver may know."""

MOST_IN_BATCH = 5_000
"""The most jobs of a request."""

_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,60}")


class LaneRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a lane carries, and how. Without a `url`, the receiver asks for the jobs."""

    queues: tuple[str, ...]
    """Names of queues, and beginnings of names with a star at the end."""
    url: str | None = None
    token: str | None = None
    """The secret of the access key. It is not shown."""
    key_file: str | None = None
    """The file with that secret. It is read again at each connection. Files are named by who starts
    the server only."""
    ca: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    batch: int = 500
    """The most jobs of a request."""
    rate: float | None = None
    """The most jobs a second."""
    backlog: Backlog = "in_order"
    """`behind`: what is new goes first, and the backlog by a lane of its own."""
    backlog_rate: float | None = None
    """The most jobs a second of that lane."""
    compression: Compression = "gzip"
    buffered: bool = False
    """True if answers of a hub count that may be lost by a power cut."""
    max_bytes: int | None = None
    """The most bytes of payloads that wait."""
    max_age_ms: int | None = None
    """How long a job may wait, in milliseconds."""
    when_full: WhenFull = "refuse"
    history: bool = True
    """True if the history of this server goes to the hub, too. The first lane to a hub decides."""

    @property
    def patterns(self) -> QueuePatterns:
        """The queues as a set."""
        return QueuePatterns.of(self.queues)

    @property
    def is_bounded(self) -> bool:
        """True if not everything may wait."""
        return self.max_bytes is not None or self.max_age_ms is not None

    def of_backlog(self) -> "LaneRule":
        """The rule of the lane of the backlog. The bounds are held by the lane of the new jobs."""
        return msgspec.structs.replace(
            self, rate=self.backlog_rate, backlog_rate=None, max_bytes=None, max_age_ms=None
        )


class ForwardLane(msgspec.Struct, frozen=True, array_like=True):
    """A lane as it is stored."""

    id: int
    name: str
    rule: LaneRule
    epoch: str
    next: int
    """The number of the next job that gets one."""
    heirs: str | None = None
    """The last epoch of each instance of this server that the receiver may know, without the
    store's identity, with spaces between them, the oldest first. Each was stored before the
    receiver was told of it."""
    paused: bool = False
    declared: bool = False
    """True if the rule comes from the start of the server, not from a request."""

    @property
    def is_backlog(self) -> bool:
        """True if it has the old jobs of another lane's queues."""
        return self.rule.url is not None and is_backlog(self.name)

    @property
    def _heirs(self) -> list[str]:
        return (self.heirs or "").split()

    def heirs_with(self, epoch: str) -> str:
        """What `heirs` becomes with the epoch that is about to follow."""
        instance, number = _origin(epoch)
        others = [heir for heir in self._heirs if not heir.startswith(f"{instance}.")]
        return " ".join([*others[1 - MOST_HEIRS :], f"{instance}.{number}"])

    def may_follow(self, epoch: str, last: int) -> bool:
        """True if this is an epoch of the lane that it may follow although it is in another one.

        `last` is the last number that has arrived in it.
        """
        place, own = self._place(epoch), self._place(self.epoch)
        return place is not None and (not last or (own is not None and place < own))

    def _place(self, epoch: str) -> tuple[int, int] | None:
        """The place of an epoch among those of the lane, if it is one."""
        instance, number = _origin(epoch)
        for place, heir in enumerate(self._heirs):
            known, _, last = heir.rpartition(".")
            if known == instance and number.isdecimal() and int(number) <= int(last):
                return place, int(number)
        return None

    def span(self, now: int) -> range:
        """The keys of the jobs that leave by it at a time, of those that are in no line.

        Keys never fall, so a clock that does turns no new job into an old one.
        """
        if self.rule.backlog == "in_order":
            return NO_KEYS if self.is_backlog else ALL_KEYS
        edge = key_at(now - BEHIND_MS)
        return range(edge) if self.is_backlog else range(edge, MAX_KEY)

    @property
    def holder(self) -> int:
        """The holder of its jobs in flight. No stream has a negative number."""
        return -self.id


class LaneBatch(NamedTuple):
    """Jobs with numbers: that of the first one, and so on. `keys` has those that are gone, too."""

    first: int
    keys: Sequence[int]
    jobs: Sequence[JobRecord]
    """The jobs, with steady times. Those are missing that somebody has taken out of the lane."""
    steady: int = 0
    """The steady time of the transaction that has found them, in milliseconds."""

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self.first + len(self.keys) - 1

    @property
    def is_whole(self) -> bool:
        """True if every job that has a number is still there."""
        return len(self.jobs) == len(self.keys)

    def part(self, start: int, stop: int | None = None) -> Self:
        """Some of the jobs of a whole batch, by their places."""
        return self._replace(
            first=self.first + start, keys=self.keys[start:stop], jobs=self.jobs[start:stop]
        )


class LaneRefusal(NamedTuple):
    """A job that the receiver refuses for itself, by its number, and why."""

    number: int
    message: str
    code: str


def new_epoch(identity: str) -> str:
    """An epoch that no other lane has had, of a store with this identity."""
    return f"{identity[:12]}.{os.urandom(6).hex()}"


def epoch_of(instance: str, number: int) -> str:
    """The epoch of a lane with a number that rises from each epoch of an instance to the next."""
    return f"{instance}.{number}"


def _origin(epoch: str) -> tuple[str, str]:
    """What tells an instance from all others, and the number of its epoch. Other programs may have
    epochs of any form."""
    instance, _, number = epoch.partition(".")[2].rpartition(".")
    return instance, number


def is_of(epoch: str, identity: str) -> bool:
    """True if a store with this identity has made the epoch."""
    return epoch.startswith(f"{identity[:12]}.")


def is_unsent(epoch: str) -> bool:
    """True if the epoch is that of a new lane, which no receiver has heard of."""
    return epoch.count(".") == 1


def backlog_of(name: str) -> str:
    """The lane of the backlog of another lane, by their names."""
    return name + _BACKLOG


def is_backlog(name: str) -> bool:
    """True if this is the lane of the backlog of another one."""
    return name.endswith(_BACKLOG)


def check_lane(name: str) -> str:
    """The name of a lane with a rule, if it is valid. Raises `InvalidRequest`."""
    if is_backlog(name):
        raise InvalidRequest(f"{name!r:.80} is the backlog of a lane: change the rule of that lane")
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r:.80} is no name of a lane: up to 60 letters, digits and ._:@- are allowed"
        )
    return name


def check_pattern(pattern: str) -> str:
    """A queue's name, or its beginning with a star at the end. Raises `InvalidRequest`."""
    if pattern != "*":
        check_name("queue", pattern.removesuffix("*"))
    return pattern


def check_rule(rule: LaneRule) -> LaneRule:
    """A rule, if it is valid. Raises `InvalidRequest`."""
    if not rule.queues:
        raise InvalidRequest("queues is empty: name the queues of the lane, such as 'sensor*'")
    for pattern in rule.queues:
        check_pattern(pattern)
    if rule.url is not None:
        try:
            check_url(rule.url)
        except ValueError as error:
            raise InvalidRequest(f"url: {error}") from None
    if not 1 <= rule.batch <= MOST_IN_BATCH:
        raise InvalidRequest(f"batch: {rule.batch} must be between 1 and {MOST_IN_BATCH}")
    for name in ("rate", "backlog_rate"):
        rate = getattr(rule, name)
        if rate is not None and rate <= 0:
            raise InvalidRequest(f"{name}: {rate} must be more than 0 jobs a second")
    if rule.backlog == "behind" and rule.url is None:
        raise InvalidRequest("backlog: behind is for a lane with a url: the receiver asks in order")
    if rule.backlog_rate is not None and rule.backlog != "behind":
        raise InvalidRequest("backlog_rate is for backlog = behind: say both, or leave it out")
    for name in ("max_bytes", "max_age_ms"):
        bound = getattr(rule, name)
        if bound is not None and bound < 1:
            raise InvalidRequest(f"{name}: {bound} must be at least 1")
    if (rule.client_cert is None) != (rule.client_key is None):
        raise InvalidRequest("client_cert and client_key belong together: give both")
    return rule


class LaneNotFound(NotFound):
    """There is no lane of this name."""

    code = "lane_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"lane {name!r} is not known: GET /forward lists all lanes")


class LanesMeet(Conflict):
    """A queue can be on one lane only: otherwise its jobs would be sent twice, or by chance."""

    code = "lanes_meet"

    def __init__(self, name: str, queues: Sequence[str], other: str) -> None:
        super().__init__(
            f"lane {name!r} would share queues ({', '.join(queues)}) with lane {other!r}: narrow"
            " one of the two"
        )


class TooManyLanes(Unprocessable):
    """There are as many lanes as the server may have."""

    code = "too_many_lanes"

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} lanes already: drop those that nobody needs")


class HubIsBuffered(Conflict):
    """A hub's answer must mean that the jobs are on its disk: they are deleted here then."""

    code = "hub_is_buffered"

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} acknowledges jobs before they are on its disk (--enqueue-commit-mode buffered):"
            " start it with fsync, or say in the lane's rule that this will do (buffered)"
        )


class LaneFenced(Conflict):
    """Another server is the producer of this name at the hub. Only one of the two may be it."""

    code = "lane_fenced"

    def __init__(self, producer: str, epoch: str, last: int) -> None:
        super().__init__(
            f"another server sends as {producer} to this hub (epoch {epoch}, last number {last}):"
            " give one of the two another name (--device), or, if the other is gone, let this one"
            " take over (zq forward resume LANE --take-over)"
        )


class LaneFull(StorageFull):
    """A lane has as much as it may have. There is room once its hub has taken some."""

    code = "lane_full"

    def __init__(self, lane: str, what: str) -> None:
        super().__init__(
            f"lane {lane!r} is full: {what}; new jobs of its queues are refused until its hub has"
            " taken some (zq forward status says why it waits)"
        )
