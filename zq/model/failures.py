"""Groups of failures: which failures have the same cause, and how often each has come.

The rule is versioned. A signature begins with its number, so signatures of different rules differ.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import msgspec

RULE = 1
"""The number of the rule that `cause_of` follows."""

MOST_GROUPS = 1_000
"""How many pairs of a group and a queue are counted. Further failures are counted as `OTHER`."""

OTHER = "other"
OTHER_QUEUE = "*"
"""No queue can have this name."""

KEPT_MS = 7 * 86_400_000
"""If there is no room for a new group, those that nobody has seen for so long make room."""

HOUR_MS = 3_600_000

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
    """What failures of one group have in common: `message` is without what differs."""

    signature: str
    error_type: str | None
    message: str


class ErrorGroupRow(msgspec.Struct, array_like=True, frozen=True):
    """How often failures of one group have come in one queue. Times in milliseconds."""

    signature: str
    queue: str
    error_type: str | None
    message: str
    count: int
    first_seen: int
    last_seen: int
    sample: int
    """The key of the job that has failed last."""
    hour: int = 0
    """The number of the hour, since 1970, that the next count is about."""
    in_hour: int = 0
    in_hour_before: int = 0

    def lately(self, now: int) -> tuple[int, int]:
        """How often it has come in the present hour of the clock, and in the hour before."""
        match now // HOUR_MS - self.hour:
            case 0:
                return self.in_hour, self.in_hour_before
            case 1:
                return 0, self.in_hour
            case _:
                return 0, 0


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


class ErrorGroup(NamedTuple):
    """One cause with the queues in which it has come, the latest one first."""

    signature: str
    error_type: str | None
    message: str
    queues: list[ErrorGroupRow]

    @property
    def total(self) -> int:
        """How often it has come."""
        return sum(row.count for row in self.queues)

    def lately(self, now: int) -> tuple[int, int]:
        """How often it has come in the present hour of the clock, and in the hour before."""
        hours = [row.lately(now) for row in self.queues]
        return sum(here for here, _ in hours), sum(before for _, before in hours)

    @property
    def first_seen(self) -> int:
        """When it came first, in milliseconds."""
        return min(row.first_seen for row in self.queues)

    @property
    def last_seen(self) -> int:
        """When it came last, in milliseconds."""
        return self.queues[0].last_seen


def grouped(rows: Iterable[ErrorGroupRow]) -> list[ErrorGroup]:
    """The groups of these rows, the latest one first."""
    groups: dict[str, ErrorGroup] = {}
    for row in sorted(rows, key=lambda row: (-row.last_seen, row.queue)):
        group = ErrorGroup(row.signature, row.error_type, row.message, [])
        groups.setdefault(row.signature, group).queues.append(row)
    return list(groups.values())
