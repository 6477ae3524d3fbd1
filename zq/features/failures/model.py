"""Groups of failures: which failures have the same cause, and how often each has come.

The rule is versioned. A signature begins with its number, so signatures of different rules differ.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import msgspec

from zq.features.trends.model import DAY_MS, HOUR_MS, MINUTE_MS, TimeMark

RULE = 1
"""The number of the rule that `cause_of` follows."""

MOST_GROUPS = 1_000
"""How many pairs of a group and a queue are counted. Further failures are counted as `OTHER`."""

OTHER = "other"
OTHER_QUEUE = "*"
"""No queue can have this name."""

KEPT_MS = 7 * 86_400_000
"""The age in ms from which a group that nobody has seen makes room for a new one."""

COUNTED_MS = {MINUTE_MS: 2 * HOUR_MS, HOUR_MS: 14 * DAY_MS}
"""The lengths of time in which each group is counted, and how long these counts are kept: twice as
long as the longest range that is made of them."""

MOST_TYPES = 8
"""How many types of jobs are known of a group in a queue: the first ones of the alphabet."""

MOST_READ = 1_000
MOST_SHOWN = 200
"""How many characters of a message are looked at, and how many of what remains are kept."""

_VARIABLE = re.compile(
    r"""(?P<id>\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b)
    | (?P<text>"[^"\n]*" | (?<!\w)'[^'\n]*' | `[^`\n]*`)
    | (?P<path>(?:\b[a-z][a-z0-9+.-]{1,15}://|(?<![\w<])(?:[A-Za-z]:\\|\.{0,2}/))[^\s,;)\]}>]+)
    | (?P<hex>\b0[xX][0-9a-fA-F]+\b | \b(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b)
    | (?P<n>[0-9]+(?:[.,:][0-9]+)*)""",
    re.VERBOSE,
)


class Cause(NamedTuple):
    """The common part of a group's failures: `message` is without the parts that differ."""

    signature: str
    error_type: str | None
    message: str


class FailureRow(msgspec.Struct, array_like=True, frozen=True):
    """How often failures of one group have come in one queue. Times in milliseconds."""

    signature: str
    queue: str
    error_type: str | None
    message: str
    total: int
    """How often since the first time."""
    first_seen: int
    last_seen: int
    sample: int
    """The key of the job that has failed last."""
    types: list[str]
    bars: list[tuple[int, int]]
    """How often lately, by the number of the bar. Bars without failures are missing."""


class FailureOrder(StrEnum):
    """Which groups come first: the most frequent ones, those of the first queue, or the latest."""

    COUNT = "count"
    QUEUE = "queue"
    TIME = "time"


class FailureRange(StrEnum):
    """How far back to look."""

    MINUTES = "5m"
    QUARTER = "15m"
    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"


class Bars(NamedTuple):
    """A range of time as `many` bars of `width` from counts of `length`, in milliseconds.

    The range slides by `length`, and the last length is still open.
    """

    many: int
    width: int
    length: int

    def begin(self, now: int) -> int:
        """When the first bar begins."""
        return now - now % self.length + self.length - self.many * self.width

    def passed(self, now: int) -> int:
        """How much of the range has passed."""
        return now - self.begin(now)


BARS = {
    FailureRange.MINUTES: Bars(5, MINUTE_MS, MINUTE_MS),
    FailureRange.QUARTER: Bars(15, MINUTE_MS, MINUTE_MS),
    FailureRange.HOUR: Bars(12, 5 * MINUTE_MS, MINUTE_MS),
    FailureRange.DAY: Bars(24, HOUR_MS, HOUR_MS),
    FailureRange.WEEK: Bars(28, 6 * HOUR_MS, HOUR_MS),
}


@lru_cache(maxsize=1024)
def cause_of(error_type: str | None, message: str) -> Cause:
    """The cause of a failure, by the type of its exception and its message."""
    common = common_message(message)
    digest = sha256(f"{error_type or ''}\0{common}".encode(errors="replace")).hexdigest()
    return Cause(f"{RULE}-{digest[:16]}", error_type, common)


def common_message(message: str) -> str:
    """The first line of a message, with ids, quoted texts, paths and numbers replaced by signs."""
    line = next((line for line in message[:MOST_READ].splitlines() if line.strip()), "")
    plain = _VARIABLE.sub(lambda found: f"<{found.lastgroup}>", line)
    return " ".join(plain.split())[:MOST_SHOWN]


class FailureGroup(msgspec.Struct, kw_only=True):
    """One cause over a range of time, in all the queues in which it has come."""

    signature: str
    error_type: str | None
    message: str
    queues: list[str]
    """The queues of its failures, the most frequent first."""
    types: list[str]
    bars: list[int]
    """How often it has come in each bar of the range."""
    before: int
    """How often it has come in as long a time before the range."""
    total: int
    """How often since the first time."""
    first_seen: int
    last_seen: int
    sample: int
    """The key of the job that has failed last."""
    is_new: bool
    """True if it came for the first time within the range."""
    times: float | None
    """How many times as often it comes as before the range; None if it did not come then."""
    mark: TimeMark | None = None
    """The last named moment before it came for the first time."""
    dead: int = 0
    """How many jobs are dead of it."""
    more_dead: bool = False
    """True if only the latest failures were looked at, so that more may be dead."""

    @property
    def count(self) -> int:
        """How often it has come in the range."""
        return sum(self.bars)


def by_cause(rows: Iterable[FailureRow]) -> list[list[FailureRow]]:
    """The rows of each group."""
    found: dict[str, list[FailureRow]] = {}
    for row in rows:
        found.setdefault(row.signature, []).append(row)
    return list(found.values())


def grouped(rows: Sequence[FailureRow], bars: Bars, now: int) -> FailureGroup:
    """The group that these rows are of, over the range before now.

    The bars of the rows begin one range earlier.
    """
    counts, lately = [0] * (2 * bars.many), dict[str, int]()
    for row in rows:
        for bar, n in row.bars:
            if bar < len(counts):
                counts[bar] += n
                if bar >= bars.many:
                    lately[row.queue] = lately.get(row.queue, 0) + n
    before, after = counts[: bars.many], counts[bars.many :]
    latest = max(rows, key=lambda row: row.last_seen)
    first_seen = min(row.first_seen for row in rows)
    # Equal parts of time: the open part of the range counts as far as it has passed.
    share = bars.passed(now) / (bars.many * bars.width)
    return FailureGroup(
        signature=latest.signature,
        error_type=latest.error_type,
        message=latest.message,
        queues=sorted(lately, key=lambda queue: (-lately[queue], queue)),
        types=sorted({type for row in rows for type in row.types}),
        bars=after,
        before=sum(before),
        total=sum(row.total for row in rows),
        first_seen=first_seen,
        last_seen=latest.last_seen,
        sample=latest.sample,
        is_new=first_seen >= bars.begin(now),
        times=sum(after) / share / sum(before) if any(before) else None,
    )
