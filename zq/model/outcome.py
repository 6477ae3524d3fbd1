"""The outcome of a job: what its worker reports with a success, and what waiters get."""

from collections.abc import Mapping

import msgspec

from zq.model.job import ErrorRecord, Retention
from zq.model.lifecycle import TERMINAL, Status

MOST_WAIT_MS = 30_000
"""Proxies and clients cut off a silent connection at some time. Ask again instead."""


class Completion(msgspec.Struct, frozen=True):
    """A worker's report of a success. `result` is JSON text of `result_size` bytes.

    None means no result; a result that is null is the text ``null``. `lease` names the delivery:
    the job's `deliveries`. `retention` overrides the job's own. `used` is what the job has used of
    what holds gave it, by name, where that differs from what it drew.
    """

    result: str | None = None
    result_size: int = 0
    retention: Retention | None = None
    lease: int | None = None
    used: Mapping[str, int] | None = None


class Ending(msgspec.Struct, frozen=True):
    """A job's state, with the result of a completed job and the last failure of a dead one.

    A job that died without a failure has a `reason` instead, and how often it has stalled.
    """

    status: Status
    result: str | None = None
    error: ErrorRecord | None = None
    reason: str | None = None
    stalls: int = 0

    @property
    def is_final(self) -> bool:
        """True if the job is finished."""
        return self.status in TERMINAL
