"""How a job came out: what its worker says of a success, and what those who wait are told."""

import msgspec

from zq.model.job import ErrorRecord, Retention
from zq.model.lifecycle import TERMINAL, Status

MOST_WAIT_MS = 30_000
"""Proxies and clients cut a silent connection off sooner or later; ask again instead."""


class Completion(msgspec.Struct, frozen=True):
    """What a worker says with a success. `result` is JSON text of `result_size` bytes.

    No result is None; one that is null is the text ``null``. `lease` names the delivery: the job's
    `deliveries`. `retention` overrides the job's own.
    """

    result: str | None = None
    result_size: int = 0
    retention: Retention | None = None
    lease: int | None = None


class Ending(msgspec.Struct, frozen=True):
    """A job's state, with the result of a completed one and the last failure of a dead one.

    A job that did not die of a failure has a `reason` in its place.
    """

    status: Status
    result: str | None = None
    error: ErrorRecord | None = None
    reason: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing will become of the job any more."""
        return self.status in TERMINAL
