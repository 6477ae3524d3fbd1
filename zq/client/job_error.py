"""One failure of a job, and the details that its exception gave."""

from typing import Any

import msgspec

DETAILS = "zq details: "
"""The last line of a backtrace begins with this if the exception gave details. JSON follows.

So the details are stored with the failure, and readers in any language see them.
"""


class JobError(msgspec.Struct, frozen=True):
    """One failure of a job. `attempt` counts from 1."""

    attempt: int
    message: str
    error_type: str | None = None
    backtrace: str | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    worker: str | None = None
    """The worker that had the job, if the server knows a name."""

    @property
    def traceback(self) -> str:
        """The backtrace without the details; empty if there is none."""
        return (self.backtrace or "").partition(DETAILS)[0]

    @property
    def details(self) -> Any:
        """The result of the exception's `to_dict()`, or None: see `DETAILS`."""
        line = (self.backtrace or "").rpartition("\n")[2]
        if not line.startswith(DETAILS):
            return None
        try:
            return msgspec.json.decode(line.removeprefix(DETAILS))
        except msgspec.DecodeError:  # another program's text
            return None
