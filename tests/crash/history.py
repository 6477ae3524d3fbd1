"""The actions and observations of clients, in an append-only history.

A job goes by the name that its producer put into the payload, so that it can be followed even if
the answer with its id never came. Times are wall-clock milliseconds of one machine; a server's own
are whole ones, rounded down. An operation has an effect at one moment between `start` and `end`.
"""

import dataclasses
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

NEVER = float("inf")


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # answered, and nothing was done
    UNKNOWN = "unknown"  # no answer: it may have been done or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What every entry of the history has."""

    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue(Operation):
    """A duplicate is refused: `owner` is the id of the job that has its unique key.

    The key's text says for how long it is held: `active-7`. A `delayed` job is not ready at once.
    For `window_ms` no other job of the queue and group gets the name `dedupe`. A job that dies goes
    to the queue `dead_letter`, if there is one.
    """

    job: str
    outcome: Outcome
    id: str = ""
    owner: str = ""
    queue: str = "a"
    priority: int = 0
    unique_key: str = ""
    delayed: bool = False
    group: str = ""
    dedupe: str = ""
    window_ms: int = 0
    ttl_ms: int = 0
    expires_at: float = NEVER
    """What the answer said; a job with a `ttl_ms` expires no sooner than that after `start`."""
    dead_letter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Operation):
    """A frame of a take stream, or a job of a claim.

    `start` is the server's time of the claim, `end` when it came. `lease` is its token (0: none was
    seen), `until` the deadline of a claim or of a stream's lease. Without a `queue` it is that of
    the enqueue.
    """

    job: str
    id: str
    stream: int
    attempts: int
    intact: bool = True
    lease: int = 0
    until: float = NEVER
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Success(Operation):
    """With a token it means that delivery only. A `result` is sent to be kept."""

    job: str
    outcome: Outcome
    lease: int = 0
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Operation):
    """`attempts` is what the answer said. A `final` one asks for the job's death."""

    job: str
    outcome: Outcome
    attempts: int = 0
    final: bool = False
    lease: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Operation):
    """A claimed job is given back."""

    job: str
    outcome: Outcome
    lease: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend(Operation):
    """A lease gets a new deadline: what the answer said, or without one the earliest possible.

    It was asked to be `lease_ms` away (0: nobody remembers).
    """

    job: str
    outcome: Outcome
    until: float
    lease: int = 0
    lease_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Operation):
    job: str
    outcome: Outcome
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry(Operation):
    """A dead job is made ready again, by its id."""

    job: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LostClaim(Operation):
    """A claim without an answer. Whatever it got is free again after `until`."""

    queue: str
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Operation):
    """What a queue was told: whether it delivers, and how many stalls a job survives.

    How many jobs may be in flight, be delivered a second, be unfinished. -1: it was not told.
    """

    queue: str
    outcome: Outcome
    paused: bool
    stall_limit: int = -1
    concurrency: float = -1
    rate: float = -1
    max_depth: float = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive(Operation):
    """All dead jobs of a queue are made ready again, or at most `limit`.

    So are those that wait in it as in a dead-letter queue, where they died.
    """

    queue: str
    outcome: Outcome
    limit: float = NEVER
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStart(Operation):
    """A worker asked for a stream of some queues, none named being all of them.

    One that claims has no window (0), and its jobs are its own beyond any hang-up or crash. Where
    the stream asks for leases, the first that runs out ends it.
    """

    stream: int
    window: int
    queues: tuple[str, ...] = ()
    lease_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd(Operation):
    """A worker hung up, or was killed."""

    stream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Operation):
    """A server accepts requests; it lets so many jobs be in flight in all (0: any number)."""

    in_flight_limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill(Operation):
    """The server or its machine went down: every stream ends. `end` is when it was gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied(Kill):
    """The moment of which a copy went on, in place of the server: every claim ends as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(Operation):
    """What the file of a killed server says: how often each job has been claimed."""

    deliveries: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job as a listing showed it."""

    id: str
    status: str
    attempts: int
    queue: str = "a"
    unique_key: str = ""
    until: float = NEVER
    result: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Operation):
    """All jobs by name, read after a start before any worker was let in, and their count."""

    jobs: dict[str, Listed]
    count: int


JobEvent = Enqueue | Delivery | Success | Failure | Release | Extend | Cancel | Retry
ServerEvent = Start | Kill | Listing | Inspection | Setting | Redrive
Event = JobEvent | StreamStart | StreamEnd | LostClaim | ServerEvent


def now() -> float:
    """Milliseconds."""
    return time.time_ns() / 1_000_000


def to_line(event: Event) -> str:
    """One JSON document."""
    return json.dumps({"op": type(event).__name__, **dataclasses.asdict(event)}) + "\n"


def from_line(line: str | bytes) -> Event:
    """What `to_line` wrote, of an event of streams or jobs."""
    fields = json.loads(line)
    kind = _KINDS[fields.pop("op")]
    for name in ("outcome", "queues"):
        if name in fields:
            fields[name] = Outcome(fields[name]) if name == "outcome" else tuple(fields[name])
    return kind(**fields)


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (Enqueue, Delivery, Success, Failure, Extend, StreamStart, StreamEnd)
}


class History:
    """Every client appends; nobody changes anything. Its order is that of the ends."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = list(events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event) -> None:
        self._events.append(event)

    def save(self, path: Path) -> None:
        """One JSON document a line, for a person to read after a violation."""
        with path.open("w") as lines:
            lines.writelines(map(to_line, self._events))
