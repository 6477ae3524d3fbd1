"""How long a worker may be silent about a job before it is taken from it. Pure decisions.

A lease has a holder, a token (the job's `deliveries`) and perhaps a deadline. Strictly after the
deadline the job goes back to its place, and a stall is counted.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from zq.model.job import MAX_UINT32

DEFAULT_LEASE_MS = 30_000
"""For claims that say nothing, of jobs and queues that say nothing either."""

MOST_CLAIMED = 1_000
"""Jobs that one request may claim."""

MOST_CLAIMED_BYTES = 8 * 1024 * 1024
"""Bytes of payloads that one request may claim; a first job of more comes alone. Its answer is one
piece, while a stream reads payloads as it writes them."""

LeaseMillis = Annotated[int, Meta(ge=1, le=MAX_UINT32)]


class Terms(msgspec.Struct, frozen=True):
    """What whoever takes jobs asks for. A lease without a `claimant` is a stream's."""

    lease_ms: int | None = None
    claimant: str | None = None

    @property
    def most_bytes(self) -> int | None:
        """Bytes of payloads that it takes at once; None where that is no matter."""
        return None if self.claimant is None else MOST_CLAIMED_BYTES


NO_TERMS = Terms()


def lease_time(terms: Terms, job_ms: int | None, queue_ms: int | None) -> int | None:
    """Milliseconds that a lease lasts, None for as long as its stream does.

    Who takes the job knows best how often it is heard of; then what the job says counts, then its
    queue. A claimed job always has a deadline: no connection tells that its worker is gone.
    """
    for said in (terms.lease_ms, job_ms, queue_ms):
        if said is not None:
            return said
    return None if terms.claimant is None else DEFAULT_LEASE_MS


def stalls_too_often(stalls: int, limit: int | None) -> bool:
    """Whether a job that has stalled so often, the last time included, is to die."""
    return limit is not None and stalls > limit
