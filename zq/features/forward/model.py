"""Lanes: the numbered ways out of this server.

A lane has queues, whose jobs are for no worker here. They leave it in order. Each gets a number of
the lane's epoch before it is sent, and is in flight until it has arrived. Whatever ends in between,
it is sent again under its number, and the receiver recognises it: to the receiver, a lane is a
producer (`zq.features.producers`).

A new epoch takes the numbers away from the jobs that are left. It begins with each start of the
server, and where the two sides disagree: when a job was refused or taken out of the lane by
somebody, and when one of the two stores was restored from a backup. Two rules make that safe.
Before a lane leaves an epoch, it has completed all jobs that have arrived in it. And the receiver
leaves an epoch only at the last number that the lane has seen, so that nothing of the old epoch is
stored later.
"""

import re
import secrets
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import msgspec

from zq.model.errors import InvalidRequest
from zq.model.job import JobRecord
from zq.model.names import check_name
from zq.model.queue_patterns import QueuePatterns

MOST_LANES = 10_000
"""The most lanes of a server."""

WhenFull = Literal["refuse", "drop_oldest"]
Compression = Literal["gzip", "none"]

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
    compression: Compression = "gzip"
    buffered: bool = False
    """True if answers of a hub count that may be lost by a power cut."""
    max_bytes: int | None = None
    """The most bytes of payloads that wait."""
    max_age_ms: int | None = None
    """How long a job may wait, in milliseconds."""
    when_full: WhenFull = "refuse"

    @property
    def patterns(self) -> QueuePatterns:
        """The queues as a set."""
        return QueuePatterns.of(self.queues)


class ForwardLane(msgspec.Struct, frozen=True, array_like=True):
    """A lane as it is stored."""

    id: int
    name: str
    rule: LaneRule
    epoch: str
    next: int
    """The number of the next job that gets one."""
    heir: str | None = None
    """The epoch that is about to follow. The receiver may know it already."""
    paused: bool = False
    declared: bool = False
    """True if the rule comes from the start of the server, not from a request."""

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
    return f"{identity[:12]}.{secrets.token_hex(6)}"


def is_of(epoch: str, identity: str) -> bool:
    """True if a store with this identity has made the epoch."""
    return epoch.startswith(f"{identity[:12]}.")


def check_lane(name: str) -> str:
    """The name of a lane, if it is valid. Raises `InvalidRequest`."""
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
    if rule.url is not None and not rule.url.startswith(("http://", "https://")):
        raise InvalidRequest(f"url: {rule.url!r:.200} must begin with http:// or https://")
    if not 1 <= rule.batch <= MOST_IN_BATCH:
        raise InvalidRequest(f"batch: {rule.batch} must be between 1 and {MOST_IN_BATCH}")
    if rule.rate is not None and rule.rate <= 0:
        raise InvalidRequest(f"rate: {rule.rate} must be more than 0 jobs a second")
    for name in ("max_bytes", "max_age_ms"):
        bound = getattr(rule, name)
        if bound is not None and bound < 1:
            raise InvalidRequest(f"{name}: {bound} must be at least 1")
    if (rule.client_cert is None) != (rule.client_key is None):
        raise InvalidRequest("client_cert and client_key belong together: give both")
    return rule
