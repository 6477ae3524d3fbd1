"""How long a worker may stay silent about a job before it loses the job. Pure rules.

A lease has a holder, a token (the job's `deliveries`) and perhaps a deadline. Strictly after the
deadline the job returns to its place, and a stall is counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

DEFAULT_LEASE_MS = 30_000
"""The lease of a claim if neither the claim, the job nor the queue sets one."""

MOST_CLAIMED = 1_000
"""The most jobs that one request may claim."""

MOST_CLAIMED_BYTES = 8 * 1024 * 1024
"""The most bytes of payloads that one request may claim. A first job with more comes alone. The
answer is sent in one piece, while a stream reads payloads as it writes them."""


WORKER_DIED = "WorkerDied"
"""The type of the error of a job that has ended its workers too often."""


class Terms(msgspec.Struct, frozen=True):
    """The request of a taker for its leases. A lease without a `claimant` belongs to a stream."""

    lease_ms: int | None = None
    claimant: str | None = None
    endless: bool = False
    """True if it lasts until its holder lets go, over restarts of the server as well."""

    @property
    def most_bytes(self) -> int | None:
        """The most bytes of payloads that it takes at once; None means no limit."""
        return None if self.claimant is None else MOST_CLAIMED_BYTES


NO_TERMS = Terms()


def lease_time(terms: Terms, job_ms: int | None, queue_ms: int | None) -> int | None:
    """How long a lease lasts, in milliseconds; None means as long as its stream, or without end.

    The taker's own time comes first, since it knows best how often it reports. Then comes the time
    of the job, then that of its queue. A claimed job always has a deadline, since no connection
    shows that its worker is gone.
    """
    if terms.endless:
        return None
    for said in (terms.lease_ms, job_ms, queue_ms):
        if said is not None:
            return said
    return None if terms.claimant is None else DEFAULT_LEASE_MS


class Holder(NamedTuple):
    """The worker of a stream, as the jobs that it holds know it."""

    name: str = ""
    stall_limit: int | None = None
    """How often a job of a queue without a limit of its own may stall before it dies."""


class ResidentStream(NamedTuple):
    """A stream of a worker in the engine's own process, so that both die together.

    Nobody sees it end then. It is noted when it opens, and the next start counts the stalls.
    """

    holder: int
    stall_limit: int | None
    concurrency: int


class Residents(msgspec.Struct, frozen=True):
    """The resident streams of a process, and the boot of the machine in which it ran.

    If the machine itself went down, a job has not ended its worker.
    """

    boot: str | None
    streams: Sequence[ResidentStream]


class DiedStream(NamedTuple):
    """A resident stream whose process has died, with the jobs that its worker had begun."""

    holder: int
    stall_limit: int | None
    begun: Sequence[int]


def stall_words(stalls: int) -> str:
    """The message of a job that died of this many stalls; 0 means that the number is not known."""
    if stalls > 1:
        return f"its worker died {stalls} times"
    return "its worker died" if stalls else "its worker died too often"


def stalls_too_often(stalls: int, limit: int | None) -> bool:
    """True if a job dies after this many stalls, the last one included."""
    return limit is not None and stalls > limit
